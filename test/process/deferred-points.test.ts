/** Points that `prevent_unoptimized` holds back, on several nodes. */

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { LocalCluster } from '../../ops/cluster/local-cluster.js';
import { seededRandom } from '../../ops/random.js';
import { temporaryFolder } from './support.js';

const ROUNDS = 5;
const POINTS = 400;
const DIM = 64;

test('a write that waits is answered when reads of every node see its points, whichever replica they ask, or when its time is up', async (t) => {
  const cluster = await LocalCluster.start({ nodes: 3, folder: await temporaryFolder(t) });
  t.after(() => cluster.close());
  const { client } = cluster.node(1);
  await client.result('PUT', '/collections/c', {
    vectors: { size: DIM, distance: 'Dot' },
    replication_factor: 3,
    optimizers_config: { prevent_unoptimized: true, indexing_threshold: 1 },
  });
  const random = seededRandom(7);
  const write = async (round: number, how: string): Promise<string> => {
    const points = Array.from({ length: POINTS }, (_, at) => ({
      id: round * POINTS + at,
      vector: Array.from({ length: DIM }, () => random.unit()),
    }));
    const { client: door } = cluster.node(1 + (round % 3));
    return (await door.result<{ status: string }>('PUT', `/collections/c/points?wait=true${how}`, { points })).status;
  };
  const counts = async (): Promise<number[]> => {
    const answers = cluster.nodes.map((node) =>
      node.client.result<{ count: number }>('POST', '/collections/c/points/count', { exact: true }),
    );
    return (await Promise.all(answers)).map(({ count }) => count);
  };
  for (let round = 1; round <= ROUNDS; round++) {
    assert.equal(await write(round, ''), 'completed');
    assert.deepEqual(await counts(), [1, 2, 3].map(() => round * POINTS), `round ${round}`); // biome-ignore format: a line
  }

  // While optimizers are off, each door says so when the time is up, and the points are there all the same.
  const configure = (max_optimization_threads: number | 'auto') =>
    client.result('PATCH', '/collections/c', { optimizers_config: { max_optimization_threads } });
  await configure(0);
  const late = [1, 2, 3].map((more) => write(ROUNDS + more, '&timeout=3'));
  assert.deepEqual(await Promise.all(late), ['wait_timeout', 'wait_timeout', 'wait_timeout']);
  // Node 1 has heard of the change before the writes.
  assert.ok(((await counts())[0] as number) < (ROUNDS + 1) * POINTS);
  await configure('auto');
  assert.equal(await write(ROUNDS + 4, ''), 'completed');
  assert.deepEqual(await counts(), [1, 2, 3].map(() => (ROUNDS + 4) * POINTS)); // biome-ignore format: a line
});
