/** A disk that takes no more: the kernel refuses writes beyond a file size, as a full disk would. */

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { nodeFor, type Point, sortedById, temporaryFolder } from './support.js';

/** Rows and operations in their own files reach it first; a full LMDB file is met in the tests of the replica. */
const FILE_KILOBYTES_MAX = 3 * 1024;
const BATCH = 100;
const BATCHES_MAX = 400;
const DIM = 32;

test('when the disk is full, writes answer an error, reads go on, and a restart finds every acknowledged point', async (t) => {
  if (process.platform === 'win32') return t.skip('needs ulimit');
  const folder = await temporaryFolder(t);
  const wrapper = ['bash', '-c', `ulimit -f ${FILE_KILOBYTES_MAX} && exec "$@"`, 'bash'];
  const limited = await nodeFor(t, { folder, wrapper });
  await limited.client.result('PUT', '/collections/c', {
    vectors: { size: DIM, distance: 'Euclid' },
    optimizers_config: { indexing_threshold: 0 },
  });

  let acknowledged = 0;
  let refused = null;
  while (refused === null && acknowledged < BATCHES_MAX) {
    const answer = await limited.client.call('PUT', '/collections/c/points?wait=true', { points: batch(acknowledged) });
    if (answer.status === 200) acknowledged++;
    else refused = answer;
  }
  assert.ok(refused !== null, 'the limit was never reached');
  assert.ok(acknowledged > 0, 'nothing was taken at all');
  assert.ok(refused.status >= 500, `a full disk is no client's mistake: ${refused.status} ${refused.text}`);
  assert.equal(typeof (refused.body as { status: { error: unknown } }).status.error, 'string');

  // The node lives and answers from what it has.
  assert.equal((await limited.client.call('GET', '/livez')).status, 200);
  const count = () => limited.client.result<{ count: number }>('POST', '/collections/c/points/count', { exact: true });
  assert.deepEqual(await count(), { count: acknowledged * BATCH });
  assert.equal((await limited.client.call('PUT', '/collections/c/points?wait=true', { points: batch(acknowledged) })).status >= 500, true);
  assert.deepEqual(await count(), { count: acknowledged * BATCH });
  await limited.end('SIGKILL');

  // With room again, everything acknowledged is there, and writing goes on.
  const roomy = await nodeFor(t, { folder });
  for (let i = 0; i < acknowledged; i++) {
    const wanted = batch(i);
    const points = await roomy.client.result<Point[]>('POST', '/collections/c/points', {
      ids: wanted.map((point) => point.id),
      with_payload: true,
      with_vector: true,
    });
    assert.deepEqual(sortedById(points), wanted);
  }
  await roomy.client.result('PUT', '/collections/c/points?wait=true', { points: batch(acknowledged) });
  const after = await roomy.client.result<{ count: number }>('POST', '/collections/c/points/count', { exact: true });
  assert.deepEqual(after, { count: (acknowledged + 1) * BATCH });
});

function batch(number: number): { id: number; payload: { batch: number }; vector: number[] }[] {
  return Array.from({ length: BATCH }, (_, i) => {
    const id = number * BATCH + i;
    return { id, payload: { batch: number }, vector: Array.from({ length: DIM }, (_, d) => ((id * 31 + d * 7) % 1000) / 8) };
  });
}
