/**
 * Product quantization (Jégou, Douze and Schmid, 2011): a vector is cut into parts of a few components, and each part is
 * coded as the number of the nearest of 256 centroids. A query becomes a table of scores per part, which a row sums up.
 *
 * Training and coding run in a WebAssembly memory of their own: distances to 256 centroids are most of their work.
 */

import { type CentroidKernels, centroidKernels } from '../own-kernels.js';
import { CENTROIDS, partCount } from '../quantizer-spec.js';

/** Rows of a sample that centroids are found from: some 20 for each, fewer of very long vectors. */
const TRAINING_ROWS = 5120;
const TRAINING_COMPONENTS = 1 << 24;
/** Lloyd's iterations; further ones change little. */
const ITERATIONS = 8;
/** Rows coded at a time. */
const BATCH_ROWS = 2048;

/** Rows of `dim` components that `train` takes at most. */
export function trainingRows(dim: number): number {
  return Math.max(CENTROIDS, Math.min(TRAINING_ROWS, Math.floor(TRAINING_COMPONENTS / dim)));
}

/** Finds centroids and codes rows with them. */
export class ProductCoder {
  private readonly parts: number;
  private readonly kernels: CentroidKernels;
  private readonly padded: number;
  /** Rows there is room for. */
  private readonly capacity: number;

  /** codebook: Float32Array [parts, partDim, 256]; stays in use. */
  constructor(
    private readonly partDim: number,
    private readonly dim: number,
    private readonly codebook: Float32Array,
  ) {
    this.parts = partCount({ partDim }, dim);
    this.padded = this.parts * partDim;
    this.capacity = trainingRows(dim);
    this.kernels = centroidKernels(this.capacity, this.padded, partDim);
  }

  /**
   * Fills the codebook: k-means for each part.
   * sample: Float32Array [n, dim], n <= trainingRows(dim). progress: called between parts; may throw.
   */
  async train(sample: Float32Array, progress: () => Promise<void>): Promise<void> {
    const rows = sample.length / this.dim;
    this.load(sample, rows);
    for (let part = 0; part < this.parts; part++) {
      const centroids = this.firstCentroids(part, rows);
      for (let iteration = 0; iteration < ITERATIONS && rows > CENTROIDS; iteration++) {
        this.kernels.setCentroids(centroids);
        if (!this.moveCentroids(part, rows, centroids)) break;
      }
      this.codebook.set(centroids, part * this.partDim * CENTROIDS);
      if (part % 8 === 0) await progress();
    }
  }

  /** Writes the codes of rows to `out` from byte `offset`, `stride` bytes apart. values: Float32Array [n, dim], any n. */
  encode(values: Float32Array, out: Uint8Array, offset: number, stride: number): void {
    const rows = values.length / this.dim;
    const batch = Math.min(BATCH_ROWS, this.capacity);
    for (let from = 0; from < rows; from += batch) {
      const count = Math.min(batch, rows - from);
      this.load(values.subarray(from * this.dim, (from + count) * this.dim), count);
      for (let part = 0; part < this.parts; part++) {
        const size = this.partDim * CENTROIDS;
        this.kernels.setCentroids(this.codebook.subarray(part * size, (part + 1) * size));
        const numbers = this.kernels.nearest(part, count);
        let at = offset + from * stride + part;
        for (let row = 0; row < count; row++, at += stride) out[at] = numbers[row] as number;
      }
    }
  }

  /** Rows padded with zeros to whole parts; what is no number counts as 0. */
  private load(values: Float32Array, rows: number): void {
    const { dim, padded, kernels } = this;
    for (let row = 0; row < rows; row++) {
      const target = kernels.values.subarray(row * padded, (row + 1) * padded);
      for (let i = 0; i < dim; i++) {
        const value = values[row * dim + i] as number;
        target[i] = Number.isFinite(value) ? value : 0;
      }
      target.fill(0, dim);
    }
  }

  /** Rows spread over the sample. With fewer than 256 the last ones repeat, and are never the nearest of the smallest number. */
  private firstCentroids(part: number, rows: number): Float32Array {
    const centroids = new Float32Array(this.partDim * CENTROIDS);
    for (let number = 0; number < CENTROIDS && rows > 0; number++) {
      const row = rows <= CENTROIDS ? Math.min(number, rows - 1) : Math.floor((number * rows) / CENTROIDS);
      this.putCentroid(centroids, number, part, row);
    }
    return centroids;
  }

  private putCentroid(centroids: Float32Array, number: number, part: number, row: number): void {
    const from = row * this.padded + part * this.partDim;
    for (let i = 0; i < this.partDim; i++) centroids[i * CENTROIDS + number] = this.kernels.values[from + i] as number;
  }

  /** Moves each centroid to the mean of its rows, and those without rows to rows that lie in the largest clusters. False: none moved. */
  private moveCentroids(part: number, rows: number, centroids: Float32Array): boolean {
    const { partDim, padded, kernels } = this;
    const numbers = kernels.nearest(part, rows);
    const counts = new Uint32Array(CENTROIDS);
    const sums = new Float64Array(partDim * CENTROIDS);
    for (let row = 0; row < rows; row++) {
      const number = numbers[row] as number;
      counts[number] = (counts[number] as number) + 1;
      const from = row * padded + part * partDim;
      for (let i = 0; i < partDim; i++)
        sums[i * CENTROIDS + number] = (sums[i * CENTROIDS + number] as number) + (kernels.values[from + i] as number);
    }
    let moved = false;
    let probe = 0;
    for (let number = 0; number < CENTROIDS; number++) {
      const count = counts[number] as number;
      if (count === 0) {
        // A step that is prime to any sample meets large clusters most often.
        probe += 1031;
        this.putCentroid(centroids, number, part, probe % rows);
        continue;
      }
      for (let i = 0; i < partDim; i++) {
        const mean = Math.fround((sums[i * CENTROIDS + number] as number) / count);
        if (mean === centroids[i * CENTROIDS + number]) continue;
        centroids[i * CENTROIDS + number] = mean;
        moved = true;
      }
    }
    return moved;
  }
}
