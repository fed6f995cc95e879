/** Searches of points that have no graph yet, whose rows get codes of their own (`vectors/kernels/row-codes.ts`) while they come, change and go. */

import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { HardwareUsage } from '../../protocols/model/usage.js';
import { randomOf } from '../vectors/segment.js';
import { type NodeUnderTest, nodeFor, type ScoredPoint, temporaryFolder } from './support.js';

const DIM = 64;
const LIMIT = 10;
const ROUNDS = 8;
const NEW_POINTS = 500;
const CHANGED = 60;
const DELETED = 30;
const SEARCHES = 12;

const random = randomOf(7);
const vector = (): number[] => Array.from({ length: DIM }, () => Math.fround(random() - 0.5));

function nearest(points: ReadonlyMap<number, number[]>, query: readonly number[]): number[] {
  const squares = [...points].map(([id, values]) => ({
    id,
    square: values.reduce((sum, value, at) => sum + (value - (query[at] as number)) ** 2, 0),
  }));
  squares.sort((one, other) => one.square - other.square);
  return squares.slice(0, LIMIT).map(({ id }) => id);
}

/** Asks all readers at once, and gives the bytes that the last search has compared. */
async function searchAll({ client }: NodeUnderTest, points: ReadonlyMap<number, number[]>): Promise<number> {
  const queries = Array.from({ length: SEARCHES }, vector);
  const answers = await Promise.all(queries.map((query) => client.call('POST', '/collections/c/points/query', { query, limit: LIMIT })));
  let bytes = 0;
  for (const [at, { body }] of answers.entries()) {
    const { result, usage } = body as { result: { points: ScoredPoint[] }; usage: { hardware: HardwareUsage } };
    assert.deepEqual(
      result.points.map(({ id }) => id),
      nearest(points, queries[at] as number[]),
    );
    bytes = usage.hardware.cpu;
  }
  return bytes;
}

test('points without a graph are found exactly while they come, change and go, also after a kill, and most are looked at by their codes', async (t) => {
  const folder = await temporaryFolder(t);
  const environment = { SERVICE__SERVICE__HARDWARE_REPORTING: 'true' };
  const node = await nodeFor(t, { folder, environment });
  const { client } = node;
  await client.result('PUT', '/collections/c', { vectors: { size: DIM, distance: 'Euclid' }, shard_number: 1 });
  const points = new Map<number, number[]>();
  let bytes = 0;
  for (let round = 0; round < ROUNDS; round++) {
    const ids = Array.from({ length: NEW_POINTS }, (_, at) => 1 + round * NEW_POINTS + at);
    const known = [...points.keys()];
    const changed = known.filter(() => random() < CHANGED / known.length);
    for (const id of [...ids, ...changed]) points.set(id, vector());
    const sent = [...ids, ...changed].map((id) => ({ id, vector: points.get(id) }));
    await client.result('PUT', '/collections/c/points?wait=true', { points: sent });
    await searchAll(node, points);
    const gone = [...points.keys()].filter(() => random() < DELETED / points.size);
    for (const id of gone) points.delete(id);
    await client.result('POST', '/collections/c/points/delete?wait=true', { points: gone });
    bytes = await searchAll(node, points);
  }
  assert.ok(bytes < points.size * DIM * 2.5, `${bytes} bytes of ${points.size} rows`);

  await node.end('SIGKILL');
  const again = await nodeFor(t, { folder, environment });
  for (let pass = 0; pass < 3; pass++) bytes = await searchAll(again, points);
  assert.ok(bytes < points.size * DIM * 2.5, `${bytes} bytes of ${points.size} rows`);
});
