/** Points that `prevent_unoptimized` holds back, on several nodes. */

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { LocalCluster } from '../../ops/cluster/local-cluster.js';
import { seededRandom } from '../../ops/random.js';
import { temporaryFolder } from './support.js';

const ROUNDS = 5;
const POINTS = 400;
const DIM = 64;

test('a write that waits is answered when reads of every node see its points, whichever replica they ask', async (t) => {
  const cluster = await LocalCluster.start({ nodes: 3, folder: await temporaryFolder(t) });
  t.after(() => cluster.close());
  const { client } = cluster.node(1);
  await client.result('PUT', '/collections/c', {
    vectors: { size: DIM, distance: 'Dot' },
    replication_factor: 3,
    optimizers_config: { prevent_unoptimized: true, indexing_threshold: 1 },
  });
  const random = seededRandom(7);
  for (let round = 1; round <= ROUNDS; round++) {
    const points = Array.from({ length: POINTS }, (_, at) => ({
      id: round * POINTS + at,
      vector: Array.from({ length: DIM }, () => random.unit()),
    }));
    await cluster.node(1 + (round % 3)).client.result('PUT', '/collections/c/points?wait=true', { points });
    const counts = cluster.nodes.map((node) =>
      node.client.result<{ count: number }>('POST', '/collections/c/points/count', { exact: true }),
    );
    assert.deepEqual(
      (await Promise.all(counts)).map(({ count }) => count),
      [1, 2, 3].map(() => round * POINTS),
      `round ${round}`,
    );
  }
});
