import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import path from 'node:path';
import { type TestContext, test } from 'node:test';
import { seededRandom } from '../../../ops/random.js';
import { initChecksum } from '../../../storage/disk/checksum.js';
import { Environment } from '../../../storage/disk/lmdb.js';
import { mayLieAt, OpenPayloads, PayloadReader, type PayloadSegment } from '../../../storage/replica/payload-records.js';
import { check, rowKey } from '../../../storage/wal/records.js';
import { Replica, specOf, temporaryFolder, upsert } from './support.js';

const SEGMENT = 7;
const ROWS = 10_000;

/** An environment with the texts of these rows, in records as a transaction makes them; returns these, too. */
async function stored(t: TestContext, texts: ReadonlyMap<number, Uint8Array>) {
  await initChecksum();
  const environment = Environment.open(path.join(temporaryFolder(t), 'lmdb'), () => {});
  t.after(() => environment.close());
  const records = new Map<number, Uint8Array>();
  let open: OpenPayloads | undefined;
  for (const [row, text] of texts) {
    if (open === undefined || !open.fits(row, text)) {
      if (open !== undefined) records.set(open.from, Uint8Array.from(open.encode()));
      open = new OpenPayloads(SEGMENT, row);
    }
    open.add(row, text);
  }
  if (open !== undefined) records.set(open.from, Uint8Array.from(open.encode()));
  const write = (changed: ReadonlyMap<number, Uint8Array>): void =>
    environment.write(() => {
      for (const [from, record] of changed) environment.put('payload', rowKey(SEGMENT, from), record);
    });
  write(records);
  // Of the segments before and behind it.
  environment.write(() => {
    for (const other of [SEGMENT - 1, SEGMENT + 1])
      environment.put('payload', rowKey(other, 0), Uint8Array.from(check(Buffer.from('{"of":"another"}'))));
  });
  const memory = { buffer: new SharedArrayBuffer(ROWS) };
  const starts = new Uint8Array(memory.buffer);
  let first = 0;
  for (const row of texts.keys()) {
    if (records.has(row)) first = row;
    starts[row] = row - first;
  }
  const segment = { id: SEGMENT, layout: { payloadRecords: 0 }, memory } as unknown as PayloadSegment;
  return { environment, records, segment, starts, write };
}

const textOf = (payload: object): Buffer => Buffer.from(JSON.stringify(payload));

test('each row has its own text, whatever the sizes and gaps, and in whatever order it is read', async (t) => {
  const random = seededRandom(26);
  const texts = new Map<number, Buffer>();
  const rows = 6000;
  for (let row = 3; row < rows; row++) {
    // Stretches without payloads, with small ones and with large ones.
    const stretch = Math.floor(row / 500) % 4;
    if (stretch === 0 || random.integer(5) === 0) continue;
    const length = stretch === 3 ? random.integer(9000) : random.integer(stretch * 200);
    texts.set(row, textOf({ row, text: 'é'.repeat(length / 2) }));
  }
  const { environment, records, segment } = await stored(t, texts);
  assert.ok(records.size < texts.size / 2, `${records.size} records of ${texts.size} payloads`);
  for (const record of records.values()) assert.ok(record.length <= 4080 || record[4] === '{'.charCodeAt(0), `${record.length} bytes`);
  const reader = new PayloadReader(environment);
  const wanted = (row: number): string => texts.get(row)?.toString() ?? '{}';
  for (let row = 0; row < rows + 300; row++) assert.equal(Buffer.from(reader.text(segment, row)).toString(), wanted(row), `row ${row}`);
  for (let row = rows + 300; row >= 0; row--) assert.equal(Buffer.from(reader.text(segment, row)).toString(), wanted(row), `row ${row}`);
  const found: Uint8Array[] = [];
  for (let read = 0; read < rows; read++) {
    const row = random.integer(rows);
    const text = reader.text(segment, row);
    assert.equal(Buffer.from(text).toString(), wanted(row), `row ${row}`);
    if (text.length < 400) found.push(text);
  }
  // An answer in the order of scores held a record of 4 KB for each small payload.
  const held = [...new Set(found.map(({ buffer }) => buffer))].reduce((sum, { byteLength }) => sum + byteLength, 0);
  assert.ok(held < 400 * found.length, `${held} bytes for ${found.length} texts`);
});

test('a damaged byte of a record never gives a row another text, and spares the rows whose texts it is not in', async (t) => {
  const texts = new Map(Array.from({ length: 40 }, (_, at) => [5 + 2 * at, textOf({ at, text: 'x'.repeat(at) })] as const));
  const { environment, records, segment, starts, write } = await stored(t, texts);
  assert.deepEqual([...records.keys()], [5]);
  const whole = records.get(5) as Uint8Array;
  for (let byte = 0; byte < whole.length; byte++) {
    const damaged = Uint8Array.from(whole);
    damaged[byte] = (damaged[byte] as number) ^ (1 << (byte % 8));
    assert.ok(mayLieAt(SEGMENT, 5, damaged), `byte ${byte}: only the answers that need it fail`);
    write(new Map([[5, damaged]]));
    const reader = new PayloadReader(environment);
    let refused = 0;
    for (let row = 0; row < 90; row++) {
      try {
        assert.equal(Buffer.from(reader.text(segment, row)).toString(), texts.get(row)?.toString() ?? '{}', `byte ${byte}, row ${row}`);
      } catch (error) {
        assert.match(String(error), /record `payload\/7\/\d+` is damaged/);
        refused++;
      }
    }
    const isInTexts = byte >= 16 + 79 * 8;
    if (isInTexts) assert.equal(refused, 1, `byte ${byte}`);
    else assert.ok(refused >= 40, `byte ${byte}: ${refused} rows`);
  }
  assert.ok(mayLieAt(SEGMENT, 5, whole) && !mayLieAt(SEGMENT, 7, whole) && !mayLieAt(SEGMENT + 1, 5, whole));
  // What an interrupted copy or a wrong tool may leave.
  for (const cut of [0, 3, 4, 5, 12, 16, 100, whole.length - 1]) {
    write(new Map([[5, whole.subarray(0, cut)]]));
    assert.throws(() => new PayloadReader(environment).text(segment, 5), /`payload\/7\/5` is damaged/, `${cut} bytes`);
  }
  environment.write(() => {
    environment.remove('payload', rowKey(SEGMENT, 5));
    environment.put('payload', rowKey(SEGMENT, 6), whole);
  });
  starts[7] = 1;
  assert.throws(() => new PayloadReader(environment).text(segment, 7), /`payload\/7\/6` is damaged/, 'a record that is not at its place');
});

test('a replica of the format with a record for each payload is read, and goes on with records of several', async (t) => {
  const folder = temporaryFolder(t);
  const before = await Replica.open(specOf(folder));
  // Alone in a commit, a payload has the record that it had in that format.
  for (let id = 0; id < 30; id++) before.apply(upsert([{ id, seed: id, ...(id % 3 === 0 ? {} : { payload: { id } }) }]));
  await before.close();
  writeFileSync(path.join(folder, 'format.json'), '{"format":6}\n');
  const replica = await Replica.open(specOf(folder));
  replica.apply(upsert(Array.from({ length: 30 }, (_, at) => ({ id: 30 + at, seed: at, payload: { id: 30 + at } }))));
  const points = replica.points();
  await replica.close();
  const payloads = (shown: typeof points) => Array.from({ length: 60 }, (_, id) => shown.get(String(id))?.payload);
  const wanted = Array.from({ length: 60 }, (_, id) => (id < 30 && id % 3 === 0 ? {} : { id }));
  assert.deepEqual(payloads(points), wanted);
  const again = await Replica.within(t, specOf(folder));
  assert.deepEqual(payloads(again.points()), wanted);
});

test('a replica whose record of payloads is lost does not open', async (t) => {
  const folder = temporaryFolder(t);
  const replica = await Replica.open(specOf(folder));
  replica.apply(upsert(Array.from({ length: 50 }, (_, id) => ({ id, seed: id, payload: { id } }))));
  const segment = [...replica.sets.values()].at(-1)?.segments[0];
  await replica.close();
  const environment = Environment.open(path.join(folder, 'lmdb'), () => {});
  environment.write(() => assert.ok(environment.remove('payload', rowKey(segment?.id as number, 0))));
  await environment.close();
  await assert.rejects(Replica.open(specOf(folder)), /record `payload\/\d+` is damaged/);
});
