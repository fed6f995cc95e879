import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { ClusterTree } from '../../vectors/cluster-tree.js';
import { clusterKernels } from '../../vectors/own-kernels.js';
import { randomOf, SEED } from './segment.js';

const noPause = async (): Promise<void> => {};

/** Codes around some middles. u8 [count, stride] */
function codesOf(count: number, stride: number, middles: number, seed: number): Uint8Array {
  const random = randomOf(seed);
  const middle = Array.from({ length: middles }, () => Array.from({ length: stride }, () => 40 + 170 * random()));
  const codes = new Uint8Array(count * stride);
  for (let row = 0; row < count; row++)
    for (let i = 0; i < stride; i++)
      codes[row * stride + i] = ((middle[row % middles] as number[])[i] as number) + 30 * (random() - random());
  return codes;
}

function distance(codes: Uint8Array, row: number, clusters: Uint8Array, cluster: number, stride: number): number {
  let sum = 0;
  for (let i = 0; i < stride; i++) sum += ((codes[row * stride + i] as number) - (clusters[cluster * stride + i] as number)) ** 2;
  return sum;
}

function nearestDistance(codes: Uint8Array, row: number, clusters: Uint8Array, from: number, to: number, stride: number): number {
  let best = Number.POSITIVE_INFINITY;
  for (let cluster = from; cluster < to; cluster++) best = Math.min(best, distance(codes, row, clusters, cluster, stride));
  return best;
}

test('the kernel finds the nearest cluster of the nearest groups', () => {
  fc.assert(
    fc.property(
      fc.record({
        stride: fc.constantFrom(16, 32, 64, 112),
        sizes: fc.array(fc.integer({ min: 1, max: 9 }), { minLength: 1, maxLength: 12 }),
        points: fc.integer({ min: 1, max: 30 }),
        looked: fc.integer({ min: 1, max: 5 }),
        seed: fc.nat(),
      }),
      ({ stride, sizes, points, looked: wanted, seed }) => {
        const firsts = Uint32Array.from([0, ...sizes.map((_, n) => sizes.slice(0, n + 1).reduce((sum, size) => sum + size, 0))]);
        const count = firsts.at(-1) as number;
        const clusters = codesOf(count, stride, count, seed);
        const groups = codesOf(sizes.length, stride, sizes.length, seed + 1);
        const codes = codesOf(points, stride, points, seed + 2);
        const looked = Math.min(wanted, sizes.length);
        const kernels = clusterKernels(stride, Math.max(count, sizes.length));
        kernels.setClusters(clusters, groups, firsts, looked);
        kernels.nearest(codes).forEach((cluster, row) => {
          const ranked = [...sizes.keys()].sort(
            (a, b) => distance(codes, row, groups, a, stride) - distance(codes, row, groups, b, stride),
          );
          const best = Math.min(
            ...ranked
              .slice(0, looked)
              .map((group) => nearestDistance(codes, row, clusters, firsts[group] as number, firsts[group + 1] as number, stride)),
          );
          assert.equal(distance(codes, row, clusters, cluster, stride), best);
        });
      },
    ),
    { seed: SEED, numRuns: 100 },
  );
});

test('a tree has no more clusters than asked for, and puts nearly each code into the nearest of all', async () => {
  const stride = 32;
  const codes = codesOf(6000, stride, 150, SEED);
  const tree = new ClusterTree(stride, 300);
  await tree.train(codes.subarray(0, 4000 * stride), noPause);
  const { centroids } = tree;
  const count = centroids.length / stride;
  assert.ok(count > 150 && count <= 300, `${count} clusters`);
  let nearest = 0;
  tree.assign(codes).forEach((cluster, row) => {
    if (distance(codes, row, centroids, cluster, stride) === nearestDistance(codes, row, centroids, 0, count, stride)) nearest++;
  });
  assert.ok(nearest > 0.95 * 6000, `${nearest} of 6000`);
});

test('the clusters of a tree that is trained as a whole are nearer to their codes than those of one that is trained in parts', async () => {
  const stride = 32;
  const codes = codesOf(8000, stride, 400, SEED);
  const meanDistance = (tree: ClusterTree): number => {
    const { centroids } = tree;
    let [sum, nearest] = [0, 0];
    tree.assign(codes).forEach((cluster, row) => {
      const own = distance(codes, row, centroids, cluster, stride);
      sum += own;
      if (own === nearestDistance(codes, row, centroids, 0, centroids.length / stride, stride)) nearest++;
    });
    assert.ok(nearest > 0.95 * 8000, `${nearest} of 8000`);
    return sum / 8000;
  };
  const inParts = new ClusterTree(stride, 400, 10);
  await inParts.train(codes, noPause);
  const whole = new ClusterTree(stride, 400, 10);
  await whole.trainWhole(codes, noPause);
  assert.equal(whole.centroids.length, inParts.centroids.length);
  const [one, other] = [meanDistance(whole), meanDistance(inParts)];
  assert.ok(one < other, `${one} and ${other}`);
  // So few are in one group, and so each code is in the nearest.
  const few = new ClusterTree(stride, 20, 1);
  await few.trainWhole(codes, noPause);
  few.assign(codes).forEach((cluster, row) => {
    assert.equal(distance(codes, row, few.centroids, cluster, stride), nearestDistance(codes, row, few.centroids, 0, 20, stride));
  });
});

test('codes that are fewer than clusters, or all alike, make as many clusters as they can', async () => {
  for (const [rows, middles] of [
    [1, 1],
    [7, 7],
    [500, 1],
  ] as const) {
    const tree = new ClusterTree(16, 64);
    const codes = middles === 1 ? new Uint8Array(rows * 16).fill(9) : codesOf(rows, 16, middles, SEED);
    for (const train of ['train', 'trainWhole'] as const) {
      await tree[train](codes, noPause);
      const count = tree.centroids.length / 16;
      assert.ok(count >= 1 && count <= 64, `${count} clusters`);
      assert.ok(tree.assign(codes).every((cluster) => cluster < count));
    }
  }
});

test('a pause that throws ends the training', async () => {
  const tree = new ClusterTree(16, 64);
  for (const train of ['train', 'trainWhole'] as const)
    await assert.rejects(
      tree[train](codesOf(500, 16, 20, SEED), () => Promise.reject(new Error('stop'))),
      /stop/,
    );
});
