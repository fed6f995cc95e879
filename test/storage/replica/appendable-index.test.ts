import assert from 'node:assert/strict';
import { readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { test } from 'node:test';
import fc from 'fast-check';
import { seededRandom } from '../../../ops/random.js';
import type { FieldSchema } from '../../../protocols/model/collection.js';
import type { FieldCondition, GeoArea, GeoPoint, Match } from '../../../protocols/model/filter.js';
import { emptyBits } from '../../../query/filter/bits.js';
import { areaTest } from '../../../query/geo/area.js';
import { Environment } from '../../../storage/disk/lmdb.js';
import { verifyReplicas } from '../../../storage/verify/verify-lmdb.js';
import { seeded } from '../../query/property.js';
import { testSeed } from '../../seed.js';
import { Replica, specOf, temporaryFolder, upsert } from './support.js';

const TEXT: FieldSchema = { type: 'text', params: { type: 'text', tokenizer: 'prefix', min_token_len: 2 } };
const WORDS = ['quick', 'brown', 'fox', `long${'g'.repeat(500)}`, '今天'];

function rowsOf(replica: Replica, condition: FieldCondition): { quality: string; rows: number[]; max: number | undefined } {
  const [segment, rows] = [...replica.view.refresh().appendable][0] as [number, number];
  const index = replica.view.fieldIndex(segment, condition.key, rows);
  const bits = emptyBits(rows);
  const quality = index?.match(condition, bits) ?? 'none';
  const max = index?.cardinality(condition)?.max;
  replica.view.release();
  return {
    quality,
    rows: Array.from({ length: rows }, (_, row) => row).filter((row) => ((bits[row >>> 5] as number) >>> (row & 31)) & 1),
    max,
  };
}

test('places and words of appendable rows are found by their keys, with nothing beside them', async (t) => {
  const folder = temporaryFolder(t);
  let replica = await Replica.open(specOf(folder));
  const degrees = [-180, -179.99, -90, -0.5, 0, 0.001, 45, 89.9, 90, 170, 180];
  const places = degrees.flatMap((lon) => degrees.filter((lat) => Math.abs(lat) <= 90).map((lat): GeoPoint => ({ lon, lat })));
  const payloads = places.map((g, at) => ({
    g: at % 5 === 0 ? [{ ...g }, { lon: 1, lat: 1 }] : { ...g },
    t: [WORDS[at % 5] as string, `${WORDS[(at * 7) % 3]} ${WORDS[at % 2]}`],
  }));
  replica.apply(
    { kind: 'createFieldIndex', field: 'g', schema: { type: 'geo' } },
    upsert(payloads.map((payload, id) => ({ id, seed: 1, payload }))),
    { kind: 'createFieldIndex', field: 't', schema: TEXT },
  );
  const check = (): void => {
    const corner = fc.record({
      lon: fc.constantFrom(...degrees, 2),
      lat: fc.constantFrom(...degrees.filter((lat) => Math.abs(lat) <= 90), 2),
    });
    const area: fc.Arbitrary<GeoArea> = fc.oneof(
      fc.record({ kind: fc.constant('box' as const), topLeft: corner, bottomRight: corner }),
      fc.record({ kind: fc.constant('circle' as const), center: corner, radius: fc.constantFrom(1, 5000, 2e6, 3e7) }),
    );
    fc.assert(
      fc.property(area, (one) => {
        const isWithin = areaTest(one);
        const expected = payloads.flatMap(({ g }, row) => ([g].flat().some(({ lon, lat }) => isWithin(lon, lat)) ? [row] : []));
        const { quality, rows, max } = rowsOf(replica, { kind: 'geo', key: 'g', area: one });
        assert.deepEqual([quality, rows], ['exact', expected]);
        assert.ok(max === undefined || max >= rows.length);
      }),
      seeded(150),
    );
    for (const text of ['qui fo', 'brown', 'longg', '今天 fox', 'zebra fox']) {
      for (const kind of ['text', 'textAny'] as const) {
        const beginnings = text.split(' ');
        const has = (t: string[], one: string): boolean => t.some((value) => value.split(' ').some((word) => word.startsWith(one)));
        const expected = payloads.flatMap(({ t }, row) => {
          const found = beginnings.map((one) => has(t, one));
          return (kind === 'text' ? found.every(Boolean) : found.some(Boolean)) ? [row] : [];
        });
        const match: Match = { kind, text };
        assert.deepEqual(rowsOf(replica, { kind: 'match', key: 't', match }).rows, expected, `${kind} ${text}`);
      }
    }
  };
  check();
  assert.deepEqual(Object.fromEntries(replica.store.stats().fieldPoints), { g: payloads.length, t: payloads.length });
  await replica.close();
  replica = await Replica.within(t, specOf(folder));
  check();
});

test('an index created again with other parameters takes the place of the first', async (t) => {
  const replica = await Replica.within(t, specOf(temporaryFolder(t)));
  const match: Match = { kind: 'text', text: 'qui' };
  replica.apply(upsert([{ id: 1, seed: 1, payload: { t: 'quick' } }]), { kind: 'createFieldIndex', field: 't', schema: { type: 'text' } });
  assert.deepEqual(rowsOf(replica, { kind: 'match', key: 't', match }).rows, []);
  replica.apply({ kind: 'createFieldIndex', field: 't', schema: TEXT });
  assert.deepEqual(rowsOf(replica, { kind: 'match', key: 't', match }).rows, [0]);
});

const LONG = 'a keyword that is as long as the names and addresses that people file their points under, and then some more';

test('rows are found whether their terms wait to be merged or are merged, in batches of any size, and after opening anew', async (t) => {
  const numbers = seededRandom(testSeed());
  const random = (): number => numbers.unit();
  const folder = temporaryFolder(t);
  let replica = await Replica.open(specOf(folder));
  const payloads: { s: string; n: number; x: number; e: string[] }[] = [];
  replica.apply(
    { kind: 'createFieldIndex', field: 's', schema: { type: 'keyword' } },
    { kind: 'createFieldIndex', field: 'n', schema: { type: 'integer' } },
    { kind: 'createFieldIndex', field: 'x', schema: { type: 'float' } },
    { kind: 'createFieldIndex', field: 'gone', schema: { type: 'keyword' } },
  );
  const add = (count: number): void => {
    const batch = Array.from({ length: count }, (_, i) => {
      const x = Math.round(random() * 1e6) / 1e3 - 500;
      return {
        s: `${LONG} ${Math.floor(random() * 900)}`,
        n: Math.floor(random() * 40),
        x,
        e: [`${(payloads.length + i) % 7}`, 'all'],
        gone: `${x}`,
      };
    });
    const first = payloads.length;
    payloads.push(...batch);
    replica.apply(upsert(batch.map((payload, at) => ({ id: first + at, seed: 1, payload }))));
  };
  const expect = (condition: FieldCondition, matches: (payload: (typeof payloads)[number]) => boolean): void => {
    const expected = payloads.flatMap((payload, row) => (matches(payload) ? [row] : []));
    const { quality, rows, max } = rowsOf(replica, condition);
    assert.deepEqual([quality, rows], ['exact', expected], JSON.stringify(condition));
    assert.ok(max === undefined || max >= expected.length);
  };
  const check = (): void => {
    const some = payloads[Math.floor(random() * payloads.length)] as (typeof payloads)[number];
    expect({ kind: 'match', key: 's', match: { kind: 'value', value: some.s } }, ({ s }) => s === some.s);
    expect({ kind: 'match', key: 'n', match: { kind: 'any', values: [3, some.n] } }, ({ n }) => n === 3 || n === some.n);
    expect({ kind: 'range', key: 'x', range: { gte: some.x, lt: some.x + 100 } }, ({ x }) => x >= some.x && x < some.x + 100);
    expect({ kind: 'fieldIsEmpty', key: 'n', isEmpty: true }, () => false);
    const [segment, rows] = [...replica.view.refresh().appendable][0] as [number, number];
    const counts = new Map<unknown, number>();
    replica.view.fieldIndex(segment, 'n', rows)?.countValues?.(null, (value, count) => counts.set(value, (counts.get(value) ?? 0) + count));
    assert.deepEqual(
      [...counts.values()].reduce((sum, count) => sum + count, 0),
      payloads.length,
    );
    assert.equal(counts.get(some.n), payloads.filter(({ n }) => n === some.n).length);
    const visited: number[] = [];
    replica.view.fieldIndex(segment, 'x', rows)?.visitInOrder?.('desc', null, (_value, row) => visited.push(row) < 50);
    const best = payloads.map(({ x }, row) => ({ x, row })).sort((one, other) => other.x - one.x || other.row - one.row);
    assert.deepEqual(
      visited,
      best.slice(0, 50).map(({ row }) => row),
    );
    replica.view.release();
  };
  while (payloads.length < 3500) {
    add(random() < 0.3 ? 1 : 1 + Math.floor(random() * 200));
    if (payloads.length > 1500 && payloads.length < 1700) replica.apply({ kind: 'deleteFieldIndex', field: 'gone' });
    if (payloads.length > 2000 && !replica.fields.has('e'))
      replica.apply({ kind: 'createFieldIndex', field: 'e', schema: { type: 'keyword' } });
    if (random() < 0.3) check();
  }
  const checkAll = (): void => {
    check();
    for (const word of ['all', '3'])
      expect({ kind: 'match', key: 'e', match: { kind: 'value', value: word } }, ({ e }) => e.includes(word));
  };
  checkAll();
  const { fieldPoints } = replica.store.stats();
  await replica.close();
  replica = await Replica.within(t, specOf(folder));
  assert.deepEqual(replica.warnings, []);
  assert.deepEqual(replica.store.stats().fieldPoints, fieldPoints);
  checkAll();
});

test('a batch with more terms than may wait is merged at once', async (t) => {
  const replica = await Replica.within(t, specOf(temporaryFolder(t)));
  replica.apply({ kind: 'createFieldIndex', field: 's', schema: { type: 'keyword' } });
  replica.apply(upsert(Array.from({ length: 3000 }, (_, id) => ({ id, seed: 1, payload: { s: `${LONG} ${id % 1500}` } }))));
  assert.deepEqual(rowsOf(replica, { kind: 'match', key: 's', match: { kind: 'value', value: `${LONG} 7` } }).rows, [7, 1507]);
});

test('a damaged record of new terms, a damaged leaf and one of another place have all indexes of the segment made anew', async (t) => {
  const folder = temporaryFolder(t);
  const payload = (id: number): { s: string; n: number } => ({ s: `${LONG} ${id}`, n: id % 5 });
  const fill = async (): Promise<void> => {
    const replica = await Replica.open(specOf(folder));
    replica.apply(
      { kind: 'createFieldIndex', field: 's', schema: { type: 'keyword' } },
      { kind: 'createFieldIndex', field: 'n', schema: { type: 'integer' } },
      upsert(Array.from({ length: 1500 }, (_, id) => ({ id, seed: 1, payload: payload(id) }))),
      upsert(Array.from({ length: 100 }, (_, at) => ({ id: 1500 + at, seed: 1, payload: payload(1500 + at) }))),
    );
    await replica.close();
  };
  await fill();
  const environment = Environment.open(path.join(folder, 'lmdb'), () => {});
  const entries = [...environment.range('index', new Uint8Array(0), Buffer.alloc(20, 0xff))];
  await environment.close();
  const isRecent = ({ key }: { key: Uint8Array }): boolean => Buffer.from(key).readUInt16BE(4) === 0;
  assert.ok(entries.some(isRecent) && entries.filter((entry) => !isRecent(entry)).length > 10);
  const flipped = (value: Uint8Array): Buffer => {
    const bytes = Buffer.from(value);
    (bytes[bytes.length >> 1] as number) ^= 1;
    return bytes;
  };
  const recent = entries.findLast(isRecent) as (typeof entries)[number];
  const leaf = entries.findLast((entry) => !isRecent(entry)) as (typeof entries)[number];
  const damages: ((damaged: Environment) => void)[] = [
    (damaged) => damaged.put('index', recent.key, flipped(recent.value)),
    (damaged) => damaged.put('index', leaf.key, flipped(leaf.value)),
    (damaged) => damaged.put('index', Buffer.concat([leaf.key, Uint8Array.of(1)]), leaf.value),
  ];
  for (const damage of damages) {
    const damaged = Environment.open(path.join(folder, 'lmdb'), () => {});
    damaged.write(() => damage(damaged));
    await damaged.close();
    const replica = await Replica.open(specOf(folder));
    assert.match(replica.warnings.join(), /index of `[sn]` in segment \d+ is made anew/);
    assert.deepEqual(rowsOf(replica, { kind: 'match', key: 's', match: { kind: 'value', value: `${LONG} 1555` } }).rows, [1555]);
    assert.equal(rowsOf(replica, { kind: 'match', key: 'n', match: { kind: 'value', value: 3 } }).rows.length, 320);
    assert.deepEqual(Object.fromEntries(replica.store.stats().fieldPoints), { s: 1600, n: 1600 });
    await replica.close();
  }
});

test('a damaged page that hides index records without any other sign makes no filter find less: the replica is not opened', async (t) => {
  const folder = temporaryFolder(t);
  const before = await Replica.open(specOf(folder));
  before.apply({ kind: 'createFieldIndex', field: 's', schema: { type: 'keyword' } });
  // More than goes on in the first record.
  before.apply(upsert(Array.from({ length: 300 }, (_, id) => ({ id, seed: 1, payload: { s: `${LONG.slice(0, 30)} ${id}` } }))));
  before.apply(upsert([{ id: 300, seed: 1, payload: { s: 'last' } }]));
  await before.close();
  const file = path.join(folder, 'lmdb', 'data.mdb');
  const bytes = readFileSync(file);
  // Segment, 0, number of the record; LMDB has the length of a key before it. Its page says at 20 where its list of records ends.
  const key = Buffer.from('0a00 00000001 0000 00000001'.replaceAll(' ', ''), 'hex');
  let hidden = 0;
  for (let at = bytes.indexOf(key); at >= 0; at = bytes.indexOf(key, at + 1), hidden++) {
    const listEnd = Math.floor(at / 4096) * 4096 + 20;
    bytes.writeUInt16LE(bytes.readUInt16LE(listEnd) - 2, listEnd);
  }
  assert.ok(hidden > 0);
  writeFileSync(file, bytes);
  await assert.rejects(Replica.open(specOf(folder)), { code: 'storage', detail: /record `index` is damaged/ });
  assert.match((await verifyReplicas([folder])).get(folder) ?? 'sound', /record `index` is damaged/);
});

test('a replica of a former format gets its indexes of appendable rows anew, and the format of this release', async (t) => {
  const folder = temporaryFolder(t);
  const before = await Replica.open(specOf(folder));
  before.apply(
    { kind: 'createFieldIndex', field: 's', schema: { type: 'keyword' } },
    upsert(Array.from({ length: 20 }, (_, id) => ({ id, seed: 1, payload: { s: `k${id % 4}` } }))),
  );
  await before.close();
  const older = Environment.open(path.join(folder, 'lmdb'), () => {});
  older.write(() => {
    older.clear('index');
    // Segment, field number, term with its end, block: as that format had it for each term.
    older.put('index', Buffer.from('00000001000101 6b31 0000 00000000'.replaceAll(' ', ''), 'hex'), Buffer.alloc(14));
  });
  await older.close();
  const mark = path.join(folder, 'format.json');
  writeFileSync(mark, '{"format":4}\n');
  const replica = await Replica.within(t, specOf(folder));
  assert.deepEqual(replica.warnings, []);
  assert.deepEqual(rowsOf(replica, { kind: 'match', key: 's', match: { kind: 'value', value: 'k1' } }).rows, [1, 5, 9, 13, 17]);
  assert.deepEqual(Object.fromEntries(replica.store.stats().fieldPoints), { s: 20 });
  assert.equal(readFileSync(mark, 'utf8'), '{"format":7}\n');
});
