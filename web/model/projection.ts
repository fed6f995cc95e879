/**
 * Vectors as places on a plane: the two directions in which they differ most (principal components, by power iteration with the second
 * one kept at a right angle to the first).
 */

const ROUNDS = 24;
/** The directions are those of so many rows, spread over all: more would not change what is seen, and take longer. */
const SAMPLE_MAX = 4000;

/** rows: [count, dim], one after the other; not changed. Gives [count, 2] within -1 to 1; zeros where all rows are equal. */
export function project(rows: Float32Array, dim: number): Float32Array {
  const count = dim === 0 ? 0 : rows.length / dim;
  const places = new Float32Array(2 * count);
  if (count === 0) return places;
  const sample = sampleOf(rows, dim, count);
  const mean = meanOf(sample, dim, sample.length / dim);
  const first = direction(sample, dim, mean, null);
  const second = direction(sample, dim, mean, first);
  let largest = 0;
  for (let row = 0; row < count; row++) {
    const x = along(rows, row * dim, dim, mean, first);
    const y = along(rows, row * dim, dim, mean, second);
    places[2 * row] = x;
    places[2 * row + 1] = y;
    largest = Math.max(largest, Math.abs(x), Math.abs(y));
  }
  if (largest > 0) for (let at = 0; at < places.length; at++) places[at] = (places[at] as number) / largest;
  return places;
}

function sampleOf(rows: Float32Array, dim: number, count: number): Float32Array {
  if (count <= SAMPLE_MAX) return rows;
  const sample = new Float32Array(SAMPLE_MAX * dim);
  for (let at = 0; at < SAMPLE_MAX; at++) {
    const row = Math.floor((at * count) / SAMPLE_MAX);
    sample.set(rows.subarray(row * dim, (row + 1) * dim), at * dim);
  }
  return sample;
}

function meanOf(rows: Float32Array, dim: number, count: number): Float64Array {
  const mean = new Float64Array(dim);
  for (let at = 0; at < rows.length; at++) mean[at % dim] = (mean[at % dim] as number) + (rows[at] as number);
  for (let at = 0; at < dim; at++) mean[at] = (mean[at] as number) / count;
  return mean;
}

/** The direction of the most variance, at a right angle to `other`; of length 1, or 0 where there is no variance left. */
function direction(rows: Float32Array, dim: number, mean: Float64Array, other: Float64Array | null): Float64Array {
  const count = rows.length / dim;
  // A start that no usual data is at a right angle to, and that is the same each time.
  let found = Float64Array.from({ length: dim }, (_, at) => Math.cos(at * 1.7 + (other === null ? 0 : 1)));
  normalize(found, other);
  for (let round = 0; round < ROUNDS; round++) {
    const next = new Float64Array(dim);
    for (let row = 0; row < count; row++) {
      const weight = along(rows, row * dim, dim, mean, found);
      for (let at = 0; at < dim; at++) next[at] = (next[at] as number) + weight * ((rows[row * dim + at] as number) - (mean[at] as number));
    }
    normalize(next, other);
    found = next;
  }
  return found;
}

function along(rows: Float32Array, start: number, dim: number, mean: Float64Array, unit: Float64Array): number {
  let sum = 0;
  for (let at = 0; at < dim; at++) sum += ((rows[start + at] as number) - (mean[at] as number)) * (unit[at] as number);
  return sum;
}

function normalize(vector: Float64Array, other: Float64Array | null): void {
  if (other !== null) {
    let shared = 0;
    for (let at = 0; at < vector.length; at++) shared += (vector[at] as number) * (other[at] as number);
    for (let at = 0; at < vector.length; at++) vector[at] = (vector[at] as number) - shared * (other[at] as number);
  }
  let length = 0;
  for (const value of vector) length += value * value;
  length = Math.sqrt(length);
  for (let at = 0; at < vector.length; at++) vector[at] = length < 1e-12 ? 0 : (vector[at] as number) / length;
}
