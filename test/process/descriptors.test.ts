/** A node that has no file descriptor left: the kernel refuses to open files for a while (`prlimit`). */

import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { readdir } from 'node:fs/promises';
import { test } from 'node:test';
import { promisify } from 'node:util';
import { nodeFor, type Point, sortedById, temporaryFolder, until, untilIndexed } from './support.js';

const run = promisify(execFile);
const POINTS = 2000;
const DIM = 8;
/** Standard streams and what the event loop of the main thread is made of. */
const LASTING = 10;

test('an acknowledged change that meets a lack of file descriptors is carried out when there are some again', async (t) => {
  if (process.platform !== 'linux') return t.skip('needs prlimit');
  const folder = await temporaryFolder(t);
  const first = await nodeFor(t, { folder });
  await first.client.result('PUT', '/collections/c', {
    vectors: { size: DIM, distance: 'Dot' },
    optimizers_config: { indexing_threshold: 10 },
  });
  const points = Array.from({ length: POINTS }, (_, id) => ({
    id,
    vector: Array.from({ length: DIM }, (_, at) => ((id * 7 + at) % 13) - 6),
    payload: { color: 'red', text: 'x'.repeat(100) },
  }));
  await first.client.result('PUT', '/collections/c/points?wait=true', { points });
  await untilIndexed(first.client, 'c', POINTS);
  await first.end('SIGTERM');

  // After a start no thread has opened the files of the sealed segment yet.
  const node = await nodeFor(t, { folder });
  const { pid } = node;
  // The connection is there before the lack begins.
  assert.equal((await node.client.call('POST', '/collections/none/points/payload?wait=true', { payload: {}, points: [1] })).status, 404);
  // Numbers below it belong to the process for as long as it lives; those above that are closed meanwhile give no room.
  const limit = lowestFree((await readdir(`/proc/${pid}/fd`)).map(Number).filter((descriptor) => descriptor < LASTING));
  const { stdout: limits } = await run('prlimit', ['--pid', String(pid), '--nofile', '--raw', '--noheadings', '--output', 'HARD']);
  await run('prlimit', ['--pid', String(pid), `--nofile=${limit}:${limits.trim()}`]);
  const change = { payload: { color: 'blue' }, filter: { must: [{ has_id: [3] }] } };
  assert.equal((await node.client.call('POST', '/collections/c/points/payload?wait=false', change)).status, 200);
  // Of a request that names its points nothing is logged before it is applied, so it is refused, also without waiting.
  for (const wait of [true, false]) {
    const refused = await node.client.call('POST', `/collections/c/points/payload?wait=${wait}`, {
      payload: { color: 'green' },
      points: [4],
    });
    assert.ok(refused.status >= 500, `nothing was lacking: ${refused.status} ${refused.text}`);
  }
  await run('prlimit', ['--pid', String(pid), `--nofile=${limits.trim()}:${limits.trim()}`]);
  const colors = async () => {
    const found = await node.client.result<Point[]>('POST', '/collections/c/points', { ids: [3, 4], with_payload: ['color'] });
    return sortedById(found).map(({ payload }) => payload?.color);
  };
  await until(colors, ([three]) => three === 'blue');
  assert.deepEqual(await colors(), ['blue', 'red']);
  await node.end('SIGKILL');

  const again = await nodeFor(t, { folder });
  const [three] = await again.client.result<Point[]>('POST', '/collections/c/points', { ids: [3], with_payload: ['color'] });
  assert.equal(three?.payload?.color, 'blue');
});

/** The number that the next opened file would get. */
function lowestFree(open: readonly number[]): number {
  const taken = new Set(open);
  let free = 0;
  while (taken.has(free)) free++;
  return free;
}
