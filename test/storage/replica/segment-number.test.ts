/** How many segments rows are shared out to: `default_segment_number` and `max_segment_size`. */

import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { CollectionConfig } from '../../../protocols/model/collection.js';
import type { UpdateOperation } from '../../../protocols/model/update.js';
import { configOf, Replica, specOf, temporaryFolder, upsert, vectorOf } from './support.js';

/** Of 16 bytes. */
const ROWS_OF_A_KILOBYTE = 64;

function withOptimizers(changes: Partial<CollectionConfig['optimizer_config']>): CollectionConfig {
  const config = configOf();
  return { ...config, optimizer_config: { ...config.optimizer_config, ...changes } };
}

function points(from: number, to: number): UpdateOperation {
  return upsert(Array.from({ length: to - from }, (_, at) => ({ id: from + at, seed: from + at })));
}

/** Live rows of each segment. */
function rowsOf(replica: Replica): number[] {
  const { segments } = replica.store.stats();
  assert.equal(replica.points().size, replica.store.stats().points);
  return segments.map(({ rows, deleted }) => rows - deleted);
}

test('a collection that names no number of segments begins with one', async (t) => {
  const replica = await Replica.within(t, specOf(temporaryFolder(t)));
  replica.apply(points(0, 200));
  assert.deepEqual(rowsOf(replica), [200]);
});

test('a collection that names a number of segments has as many from the start, and rows are shared out to them', async (t) => {
  const folder = temporaryFolder(t);
  const spec = specOf(folder, withOptimizers({ default_segment_number: 3 }));
  let replica = await Replica.open(spec);
  assert.deepEqual(rowsOf(replica), [0, 0, 0]);
  replica.apply(points(0, 30));
  assert.deepEqual(rowsOf(replica), [10, 10, 10]);
  // Each point goes on to have one live row.
  replica.apply(upsert([{ id: 3, seed: 500 }]), upsert([{ id: 3, seed: 501 }]));
  assert.equal(
    rowsOf(replica).reduce((sum, rows) => sum + rows),
    30,
  );
  assert.deepEqual(replica.points().get('3')?.vectors[''], vectorOf(501));
  await replica.close();
  replica = await Replica.open(spec);
  replica.apply(points(30, 60));
  assert.deepEqual(
    rowsOf(replica).map((rows) => Math.round(rows / 10)),
    [2, 2, 2],
  );
  replica.store.configure(withOptimizers({ default_segment_number: 5 }));
  replica.apply(points(60, 64));
  assert.deepEqual(rowsOf(replica).slice(3), [2, 2]);
  await replica.close();
});

test('no segment that takes rows grows beyond max_segment_size, up to a number of segments that reads can bear', async (t) => {
  const replica = await Replica.within(t, specOf(temporaryFolder(t), withOptimizers({ max_segment_size: 1 })));
  replica.apply(points(0, 200));
  assert.deepEqual(rowsOf(replica), [64, 64, 64, 8]);
  replica.apply(points(200, 64 * ROWS_OF_A_KILOBYTE + 300));
  const rows = rowsOf(replica);
  assert.deepEqual([rows.length, rows.at(-1)], [65, 300]);
});
