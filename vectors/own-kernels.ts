/** Kernels that work in a memory of their own, on what is copied to it: nearest centroids and clusters, and numbers as text. */

import { kernelModule } from './kernels.js';
import { CENTROIDS } from './quantizer-spec.js';
import { align64 } from './scratch.js';

interface OwnExports {
  setPrintTables(powers: number, pairs: number): void;
  printFloats(values: number, count: number, out: number): number;
  nearestClusters(
    points: number,
    count: number,
    stride: number,
    query: number,
    groups: number,
    groupCount: number,
    firsts: number,
    clusters: number,
    looked: number,
    best: number,
    out: number,
  ): void;
  nearestCentroids(values: number, count: number, stride: number, codebook: number, partDim: number, out: number, outStride: number): void;
}

/** bytes: that the kernels use of the memory; loads may end a little behind them. */
function ownInstance(bytes: number): { readonly memory: WebAssembly.Memory; readonly exports: OwnExports } {
  const pages = Math.ceil((bytes + 64) / 65536);
  const memory = new WebAssembly.Memory({ initial: pages, maximum: pages, shared: true });
  const { exports } = new WebAssembly.Instance(kernelModule(), { env: { memory, expired: () => 0 } });
  return { memory, exports: exports as unknown as OwnExports };
}

/** Nearest centroids, computed in a memory of its own. */
export interface CentroidKernels {
  /** f32 [rows, padded dim]: the rows to look at. */
  readonly values: Float32Array;
  /** centroids: Float32Array [partDim, 256]; copied. */
  setCentroids(centroids: Float32Array): void;
  /** Number of the centroid nearest to one part of each of the first `count` rows: a view, valid until the next call. */
  nearest(part: number, count: number): Uint8Array;
}

/** rows, paddedDim: room for so many rows of so many components. */
export function centroidKernels(rows: number, paddedDim: number, partDim: number): CentroidKernels {
  const codebookAt = 1024;
  const outAt = codebookAt + partDim * CENTROIDS * 4;
  const valuesAt = outAt + align64(rows);
  const { exports, memory } = ownInstance(valuesAt + rows * paddedDim * 4);
  const codebook = new Float32Array(memory.buffer, codebookAt, partDim * CENTROIDS);
  return {
    values: new Float32Array(memory.buffer, valuesAt, rows * paddedDim),
    setCentroids: (centroids) => codebook.set(centroids),
    nearest: (part, count) => {
      exports.nearestCentroids(valuesAt + part * partDim * 4, count, paddedDim * 4, codebookAt, partDim, outAt, 1);
      return new Uint8Array(memory.buffer, outAt, count);
    },
  };
}

/** Nearest clusters of 8-bit codes, computed in a memory of its own. */
export interface ClusterKernels {
  /** clusters: u8 [n, stride], copied. groups, firsts: as of `nearestClusters` in `kernels/clusters.ts`; `looked` groups are looked at for each code. */
  setClusters(clusters: Uint8Array, groups: Uint8Array, firsts: Uint32Array, looked: number): void;
  /** The nearest cluster of each code. codes: u8 [n, stride]. */
  nearest(codes: Uint8Array): Uint32Array;
}

/** Codes that `ClusterKernels` copies at a time. */
const CLUSTER_BATCH = 1024;

/** stride: bytes of a code, a multiple of 16. count: clusters at most, and so groups. */
export function clusterKernels(stride: number, count: number): ClusterKernels {
  let at = 1024;
  const take = (bytes: number): number => {
    const offset = at;
    at += align64(bytes);
    return offset;
  };
  const [query, best, firstsAt, outAt] = [take(stride * 2), take(1024), take((count + 1) * 4), take(CLUSTER_BATCH * 4)];
  const [pointsAt, groupsAt, clustersAt] = [take(CLUSTER_BATCH * stride), take(count * stride), take(count * stride)];
  const { exports, memory } = ownInstance(at);
  const bytes = new Uint8Array(memory.buffer);
  let [groupCount, looked] = [1, 1];
  return {
    setClusters: (clusters, groups, firsts, wanted) => {
      bytes.set(clusters, clustersAt);
      bytes.set(groups, groupsAt);
      new Uint32Array(memory.buffer, firstsAt, firsts.length).set(firsts);
      [groupCount, looked] = [firsts.length - 1, wanted];
    },
    nearest: (codes) => {
      const numbers = new Uint32Array(codes.length / stride);
      for (let from = 0; from < numbers.length; from += CLUSTER_BATCH) {
        const size = Math.min(CLUSTER_BATCH, numbers.length - from);
        bytes.set(codes.subarray(from * stride, (from + size) * stride), pointsAt);
        exports.nearestClusters(pointsAt, size, stride, query, groupsAt, groupCount, firstsAt, clustersAt, looked, best, outAt);
        numbers.set(new Uint32Array(memory.buffer, outAt, size), from);
      }
      return numbers;
    },
  };
}

/** Numbers that `FloatPrinter` prints in one call, and bytes of the longest text of one with its comma. */
const PRINTED_MAX = 2048;
const FLOAT_TEXT_MAX = 18;
/** Powers of ten that floats are scaled with: see `kernels/print.ts`. */
const POWER_MIN = -31;
const POWER_MAX = 45;

/** Prints float32 numbers, in a memory of its own. */
export interface FloatPrinter {
  /** Numbers that one call prints at most. */
  readonly countMax: number;
  /** Holds the text of the last call, from `textAt` to the end that the call returned. */
  readonly bytes: Buffer;
  readonly textAt: number;
  /** Prints the numbers from `from` below `to` as JSON, a comma behind each. Returns the end of the text in `bytes`. */
  print(values: Float32Array, from: number, to: number): number;
}

export function floatPrinter(): FloatPrinter {
  const pairsAt = 1024;
  const valuesAt = pairsAt + 256;
  const textAt = valuesAt + PRINTED_MAX * 4;
  const { exports, memory } = ownInstance(textAt + PRINTED_MAX * FLOAT_TEXT_MAX);
  const bytes = Buffer.from(memory.buffer);
  new BigUint64Array(memory.buffer).set(powersOfTen());
  for (let pair = 0; pair < 100; pair++) bytes.write(String(pair).padStart(2, '0'), pairsAt + 2 * pair, 'latin1');
  exports.setPrintTables(0, pairsAt);
  const floats = new Float32Array(memory.buffer, valuesAt, PRINTED_MAX);
  return {
    countMax: PRINTED_MAX,
    bytes,
    textAt,
    print: (values, from, to) => {
      floats.set(from === 0 && to === values.length ? values : values.subarray(from, to));
      return exports.printFloats(valuesAt, to - from, textAt);
    },
  };
}

/** 10^POWER_MIN to 10^POWER_MAX, each times the power of two that gives it 64 bits, rounded up. */
function powersOfTen(): bigint[] {
  return Array.from({ length: POWER_MAX - POWER_MIN + 1 }, (_, index) => {
    const power = POWER_MIN + index;
    const ten = 10n ** BigInt(Math.abs(power));
    const bits = ten.toString(2).length;
    if (power >= 0) return bits <= 64 ? ten << BigInt(64 - bits) : (ten >> BigInt(bits - 64)) + 1n;
    return (1n << BigInt(bits + 63)) / ten + 1n;
  });
}
