/**
 * 8-bit codes in up to some thousand clusters of near ones: k-means (Lloyd's iterations) for groups, within each of them for its own clusters, and some more
 * over all clusters. A code is put into the nearest cluster of the nearest groups, which is nearly always the nearest of all, for some √n comparisons.
 */

import { type ClusterKernels, clusterKernels } from './own-kernels.js';

/** Lloyd's iterations of groups and of their clusters, and of all clusters after that; further ones change little. */
const ITERATIONS = 4;
const LAST_ITERATIONS = 2;
/** Groups in which the nearest cluster is looked for. */
const LOOKED_AT = 4;
/** Those over clusters in new groups. */
const WHOLE_ITERATIONS = 4;
/** Fewer are compared with each code. */
const GROUPED_MIN = 64;
/** Codes that are looked at between two pauses. */
const SLICE_CODES = 4096;

/** Awaited between steps of some milliseconds; may throw. */
type Pause = () => Promise<void>;

/** Clusters in groups. */
interface Level {
  /** u8 [groups, stride]. */
  readonly groups: Uint8Array;
  /** u32 [groups + 1]: the first cluster of each group, and the end of the last one. */
  readonly firsts: Uint32Array;
  /** u8 [clusters, stride]. */
  readonly clusters: Uint8Array;
}

export class ClusterTree {
  private readonly kernels: ClusterKernels;
  private level: Level = { groups: NO_CODES, firsts: Uint32Array.of(0), clusters: NO_CODES };

  /** stride: bytes of a code, a multiple of 16. count: clusters at most. looked: groups in which the nearest cluster is looked for. */
  constructor(
    private readonly stride: number,
    private readonly count: number,
    private readonly looked = LOOKED_AT,
  ) {
    this.kernels = clusterKernels(stride, count);
  }

  /** u8 [clusters, stride], `count` of them at most. */
  get centroids(): Uint8Array {
    return this.level.clusters;
  }

  /** Finds clusters. sample: u8 [n, stride], n >= 1. */
  async train(sample: Uint8Array, pause: Pause): Promise<void> {
    const { count, stride } = this;
    const rows = sample.length / stride;
    const groupCount = Math.min(rows, Math.ceil(Math.sqrt(count)));
    const groups = await this.means(sample, groupCount, pause);
    const firsts = new Uint32Array(groupCount + 1);
    const clusters = new Uint8Array(count * stride);
    for (const [group, own] of members(this.nearest(flat(groups, stride), sample), groupCount).entries()) {
      const wanted = Math.max(1, Math.min(own.length, Math.floor((own.length * (count - groupCount)) / rows)));
      const middle = groups.subarray(group * stride, (group + 1) * stride);
      const found = wanted === 1 ? middle : await this.means(rowsOf(sample, own, stride), wanted, pause);
      const first = firsts[group] as number;
      clusters.set(found, first * stride);
      firsts[group + 1] = first + wanted;
    }
    this.level = { groups, firsts, clusters: clusters.subarray(0, (firsts[groupCount] as number) * stride) };
    for (let iteration = 0; iteration < LAST_ITERATIONS; iteration++) {
      moveToMeans(this.level.clusters, sample, await this.assignAll(sample, pause), stride);
    }
  }

  /**
   * As `train`, and then some iterations over all clusters, which are put into groups anew each time. It takes some times as long, and what a code is put into is nearer:
   * 200,000 × 128 (synthetic) in 2,048 lists and 16 groups looked at, the lists to read for 98 of 100 neighbours: 22, after `train` 29, and 21 where each code is compared with all
   * clusters, for twice the CPU. With 8,192 lists those are five times as many comparisons.
   */
  async trainWhole(sample: Uint8Array, pause: Pause): Promise<void> {
    const { count, stride } = this;
    if (count < GROUPED_MIN) {
      this.level = flat(
        await this.means(sample, Math.min(count, sample.length / stride), pause, LAST_ITERATIONS + WHOLE_ITERATIONS),
        stride,
      );
      return;
    }
    await this.train(sample, pause);
    for (let iteration = 0; iteration < WHOLE_ITERATIONS; iteration++) {
      await this.group(this.level.clusters, pause);
      moveToMeans(this.level.clusters, sample, await this.assignAll(sample, pause), stride);
    }
    await this.group(this.level.clusters, pause);
  }

  /** Puts clusters into groups of near ones. */
  private async group(clusters: Uint8Array, pause: Pause): Promise<void> {
    const { stride } = this;
    const count = clusters.length / stride;
    this.level = flat(clusters, stride);
    if (count < GROUPED_MIN) return;
    const groupCount = Math.ceil(Math.sqrt(count));
    const groups = await this.means(clusters, groupCount, pause);
    const own = members(this.nearest(flat(groups, stride), clusters), groupCount);
    const firsts = new Uint32Array(groupCount + 1);
    for (const [group, { length }] of own.entries()) firsts[group + 1] = (firsts[group] as number) + length;
    const order = new Uint32Array(count);
    for (const [group, numbers] of own.entries()) order.set(numbers, firsts[group]);
    this.level = { groups, firsts, clusters: rowsOf(clusters, order, stride) };
  }

  /** The cluster of each code. codes: u8 [n, stride]. */
  assign(codes: Uint8Array): Uint32Array {
    return this.nearest(this.level, codes);
  }

  private async assignAll(codes: Uint8Array, pause: Pause): Promise<Uint32Array> {
    const { stride } = this;
    const numbers = new Uint32Array(codes.length / stride);
    for (let at = 0; at < numbers.length; at += SLICE_CODES) {
      await pause();
      numbers.set(this.assign(codes.subarray(at * stride, (at + SLICE_CODES) * stride)), at);
    }
    return numbers;
  }

  /** k-means. codes: k at least. */
  private async means(codes: Uint8Array, k: number, pause: Pause, iterations = ITERATIONS): Promise<Uint8Array> {
    const { stride } = this;
    const rows = codes.length / stride;
    const means = rowsOf(codes, spread(rows, k), stride);
    for (let iteration = 0; iteration < iterations && rows > k; iteration++) {
      await pause();
      moveToMeans(means, codes, this.nearest(flat(means, stride), codes), stride);
    }
    return means;
  }

  private nearest({ clusters, firsts, groups }: Level, codes: Uint8Array): Uint32Array {
    this.kernels.setClusters(clusters, groups, firsts, Math.min(this.looked, firsts.length - 1));
    return this.kernels.nearest(codes);
  }
}

const NO_CODES = new Uint8Array(0);

/** All clusters in one group. */
function flat(clusters: Uint8Array, stride: number): Level {
  return { groups: NO_CODES, firsts: Uint32Array.of(0, clusters.length / stride), clusters };
}

/** `k` of so many rows, which are more. */
function spread(rows: number, k: number): Uint32Array {
  return Uint32Array.from({ length: k }, (_, number) => Math.floor((number * rows) / k));
}

/** Moves each cluster to the mean of its codes; those without any stay. */
function moveToMeans(clusters: Uint8Array, codes: Uint8Array, numbers: Uint32Array, stride: number): void {
  const sums = new Uint32Array(clusters.length);
  const counts = new Uint32Array(clusters.length / stride);
  numbers.forEach((number, row) => {
    counts[number] = (counts[number] as number) + 1;
    const [to, from] = [number * stride, row * stride];
    for (let i = 0; i < stride; i++) sums[to + i] = (sums[to + i] as number) + (codes[from + i] as number);
  });
  counts.forEach((own, number) => {
    if (own > 0) for (let at = number * stride; at < (number + 1) * stride; at++) clusters[at] = Math.round((sums[at] as number) / own);
  });
}

/** The codes of each group, ascending. */
function members(numbers: Uint32Array, groups: number): Uint32Array[] {
  const counts = new Uint32Array(groups);
  for (const number of numbers) counts[number] = (counts[number] as number) + 1;
  const own = Array.from(counts, (count) => new Uint32Array(count));
  const filled = new Uint32Array(groups);
  numbers.forEach((number, row) => {
    (own[number] as Uint32Array)[filled[number] as number] = row;
    filled[number] = (filled[number] as number) + 1;
  });
  return own;
}

function rowsOf(codes: Uint8Array, rows: Uint32Array, stride: number): Uint8Array {
  const own = new Uint8Array(rows.length * stride);
  rows.forEach((row, at) => {
    own.set(codes.subarray(row * stride, (row + 1) * stride), at * stride);
  });
  return own;
}
