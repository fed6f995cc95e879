/** The order in which rows are put into a graph. */

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { seededRandom } from '../../../ops/random.js';
import { insertionOrder } from '../../../storage/builder/insertion-order.js';

const DIM = 8;
const PLACES = 40;

/** Rows around so many places, each row's place at random. */
function around(count: number, seed: number): { placeOf: Uint32Array; values: Int8Array } {
  const random = seededRandom(seed).unit;
  const centres = Array.from({ length: PLACES }, () => Array.from({ length: DIM }, () => Math.round(random() * 200 - 100)));
  const placeOf = Uint32Array.from({ length: count }, () => Math.floor(random() * PLACES));
  const values = new Int8Array(count * DIM);
  placeOf.forEach((place, row) => {
    for (let i = 0; i < DIM; i++) values[row * DIM + i] = ((centres[place] as number[])[i] as number) + Math.round(random() * 6 - 3);
  });
  return { placeOf, values };
}

const rowsOf = (values: Int8Array) => (rows: Uint32Array) => {
  const some = new Int8Array(rows.length * DIM);
  rows.forEach((row, i) => {
    some.set(values.subarray(row * DIM, (row + 1) * DIM), i * DIM);
  });
  return some;
};
const nothing = async (): Promise<void> => {};
const each = (count: number) => Uint32Array.from({ length: count }, (_, row) => row);

test('every row is inserted once, and rows around one place come one after the other', async () => {
  const count = 6000;
  const { placeOf, values } = around(count, 1);
  const order = await insertionOrder(each(count), DIM, rowsOf(values), nothing, 0);
  assert.deepEqual(order.toSorted(), each(count));
  const changes = (rows: Uint32Array) => rows.filter((row, at) => at > 0 && placeOf[row] !== placeOf[rows[at - 1] as number]).length;
  const ordered = order.subarray(count / 16);
  const [before, after] = [changes(each(count)), changes(ordered)];
  assert.ok(after < before / 4, `${after} changes of place, ${before} before`);
});

test('a sixteenth of the rows comes first, as they were given, so that regions are linked to each other', async () => {
  const count = 1600;
  const { values } = around(count, 2);
  const given = each(count).reverse();
  const order = await insertionOrder(given, DIM, rowsOf(values), nothing, 0);
  assert.deepEqual(
    order.subarray(0, 100),
    given.filter((_, at) => at % 16 === 0),
  );
});

test('few bytes are inserted as they are given, and rows that are all alike, too', async () => {
  const count = 400;
  const { values } = around(1, 3);
  const given = each(count).reverse();
  const unread = () => assert.fail('no row is read');
  assert.equal(await insertionOrder(given, DIM, unread, nothing), given);
  const alike = await insertionOrder(given, DIM, (rows) => new Int8Array(rows.length * DIM).fill(5), nothing, 0);
  assert.deepEqual(alike.toSorted(), each(count));
  const one = await insertionOrder(Uint32Array.of(0), DIM, rowsOf(values), nothing, 0);
  assert.deepEqual(one, Uint32Array.of(0));
});

test('an order that is broken off reads no further', async () => {
  const count = 9000;
  const { values } = around(count, 4);
  const seen: number[] = [];
  const stop = async (done: number): Promise<void> => {
    seen.push(done);
    if (seen.length === 2) throw new Error('build cancelled');
  };
  await assert.rejects(insertionOrder(each(count), DIM, rowsOf(values), stop, 0), /build cancelled/);
  assert.deepEqual(seen, [0, 2048]);
});
