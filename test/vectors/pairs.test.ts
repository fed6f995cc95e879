import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Worker } from 'node:worker_threads';
import { seededRandom } from '../../ops/random.js';
import { kernelModule } from '../../vectors/kernels.js';
import { testSeed } from '../seed.js';

const ROWS = 90;
const DIM = 21;
const STRIDE = 32;
const K = 8;
const NO_ROW = 0xffff_ffff;

/** Rows on few values, so that many are as near as others. */
class Scene {
  readonly memory = new WebAssembly.Memory({ initial: 2, maximum: 2, shared: true });
  readonly codes: Uint8Array;
  readonly exports: {
    setPairs(...places: number[]): void;
    keepNone(from: number, to: number): void;
    nearestLeaders(leaders: number, leaderCount: number, rows: number, count: number, each: number, best: number, out: number): void;
    meetAll(rows: number, count: number): void;
  };

  /** locks: where those of rows are; 0: there are none. */
  constructor(values: number, locks = 0) {
    const random = seededRandom(testSeed());
    const { memory } = this;
    const { exports } = new WebAssembly.Instance(kernelModule(), { env: { memory, expired: () => 0 } });
    this.exports = exports as unknown as Scene['exports'];
    this.codes = new Uint8Array(memory.buffer, AT.codes, ROWS * STRIDE);
    for (let row = 0; row < ROWS; row++)
      for (let i = 0; i < DIM; i++) this.codes[row * STRIDE + i] = 255 - random.integer(values) * Math.floor(255 / values);
    this.exports.setPairs(AT.codes, STRIDE, AT.block, AT.squares, AT.bounds, AT.query, AT.near, K, locks);
    this.exports.keepNone(0, 40);
    this.exports.keepNone(40, ROWS);
  }

  score(one: number, other: number): number {
    let sum = 0;
    for (let i = 0; i < DIM; i++) sum -= ((this.codes[one * STRIDE + i] as number) - (this.codes[other * STRIDE + i] as number)) ** 2;
    return sum;
  }

  put(at: number, rows: readonly number[]): void {
    new Uint32Array(this.memory.buffer, at, rows.length).set(rows);
  }

  meet(rows: readonly number[]): void {
    this.put(AT.group, rows);
    this.exports.meetAll(AT.group, rows.length);
  }

  /** Best first; of rows as near, the smaller first. */
  kept(row: number): readonly [number, number][] {
    const place = AT.near + row * K * 8;
    const rows = new Uint32Array(this.memory.buffer, place, K);
    const scores = new Float32Array(this.memory.buffer, place + K * 4, K);
    const kept = Array.from(rows, (other, n) => [other, scores[n] as number] as [number, number]);
    return kept.filter(([other]) => other !== NO_ROW).sort(([one, near], [other, nearer]) => nearer - near || one - other);
  }

  nearest(row: number, met: Iterable<number>): readonly [number, number][] {
    const scored = [...new Set(met)]
      .filter((other) => other !== row)
      .map((other) => [other, this.score(row, other) + 0] as [number, number]);
    return scored.sort(([one, near], [other, nearer]) => nearer - near || one - other).slice(0, K);
  }
}

const AT = {
  codes: 1024,
  block: 8192,
  squares: 16384,
  bounds: 20480,
  query: 24576,
  near: 32768,
  group: 53248,
  out: 57344,
  best: 61440,
  locks: 65536,
  freed: 69632,
};

for (const { values, locks } of [
  { values: 2, locks: 0 },
  { values: 200, locks: 0 },
  { values: 2, locks: AT.locks },
  { values: 200, locks: AT.locks },
])
  test(`of each row the nearest that it has met are kept, each once, with ${values} values of a component${locks === 0 ? '' : ', under locks'}`, () => {
    const scene = new Scene(values, locks);
    const met = Array.from({ length: ROWS }, () => new Set<number>());
    const order = Array.from({ length: ROWS }, (_, row) => (row * 37) % ROWS);
    // Of all remainders by four; some overlap, and a row of the last two is in each.
    for (const [from, to] of [
      [0, 41],
      [30, 72],
      [30, 33],
      [71, 72],
      [20, 59],
      [50, ROWS],
    ] as const) {
      const group = order.slice(from, to);
      scene.meet(group);
      for (const row of group) for (const other of group) met[row]?.add(other);
    }
    for (let row = 0; row < ROWS; row++) {
      const [kept, expected] = [scene.kept(row), scene.nearest(row, met[row] as Set<number>)];
      assert.deepEqual(
        kept.map(([, score]) => score + 0),
        expected.map(([, score]) => score),
        `row ${row}`,
      );
      assert.equal(new Set(kept.map(([other]) => other)).size, kept.length);
      for (const [other, score] of kept) assert.ok(met[row]?.has(other) && other !== row && scene.score(row, other) === score);
    }
    if (locks !== 0) assert.deepEqual([...new Set(new Uint32Array(scene.memory.buffer, locks, ROWS))], [0]);
  });

test('who keeps a row with another waits until no other thread changes what is kept of that one', async () => {
  const scene = new Scene(200, AT.locks);
  const locks = new Int32Array(scene.memory.buffer, AT.locks, ROWS);
  const freed = new Int32Array(scene.memory.buffer, AT.freed, 1);
  locks[7] = 1;
  const frees = `
    const { parentPort, workerData: { freed, locks } } = require('node:worker_threads');
    parentPort.postMessage('begun');
    Atomics.wait(freed, 0, 0);
    Atomics.wait(locks, 7, 1, 30);
    Atomics.store(freed, 0, 2);
    Atomics.store(locks, 7, 0);`;
  const other = new Worker(frees, { eval: true, workerData: { freed, locks } });
  await new Promise((resolve) => other.once('message', resolve));
  Atomics.store(freed, 0, 1);
  Atomics.notify(freed, 0);
  const rows = [5, 6, 7, 8];
  scene.meet(rows);
  assert.equal(Atomics.load(freed, 0), 2);
  for (const row of rows) assert.deepEqual(scene.kept(row), scene.nearest(row, rows));
  await new Promise((resolve) => other.once('exit', resolve));
});

test('of a few leaders the nearest of each row are told, the nearest first', () => {
  for (const [leaderCount, each] of [
    [1, 1],
    [2, 2],
    [6, 3],
    [13, 5],
  ] as const) {
    const scene = new Scene(3);
    const leaders = Array.from({ length: leaderCount }, (_, n) => (n * 53 + 5) % ROWS);
    const rows = Array.from({ length: 33 }, (_, n) => n * 2);
    scene.put(AT.group, leaders);
    scene.put(AT.group + 1024, rows);
    scene.exports.nearestLeaders(AT.group, leaderCount, AT.group + 1024, rows.length, each, AT.best, AT.out);
    const told = new Uint32Array(scene.memory.buffer, AT.out, rows.length * each);
    for (const [at, row] of rows.entries()) {
      const score = (number: number) => scene.score(row, leaders[number] as number);
      const expected = Array.from(leaders.keys()).sort((one, other) => score(other) - score(one) || one - other);
      assert.deepEqual(Array.from(told.subarray(at * each, (at + 1) * each)), expected.slice(0, each));
    }
  }
});
