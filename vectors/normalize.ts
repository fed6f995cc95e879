/** Cosine vectors are stored with length 1 and compared by dot product. */

/** How far the squared length may be from 1 for a vector to be left as it is: what rounding to f32 makes of a normalized one. */
const SQUARED_LENGTH_SLACK = 1e-6;

/**
 * Brings each row to length 1, in place. values: Float32Array [n, dim].
 * Zero rows stay zero, rows of length 1 stay bit for bit, and rows with an infinite component or NaN stay as they are.
 */
export function normalizeRows(values: Float32Array, dim: number): void {
  for (let start = 0; start < values.length; start += dim) {
    const end = start + dim;
    const squares = squaredLength(values, start, end);
    if (!(squares > 0) || squares === Number.POSITIVE_INFINITY || Math.abs(squares - 1) <= SQUARED_LENGTH_SLACK) continue;
    const inverse = 1 / Math.sqrt(squares);
    for (let index = start; index < end; index++) values[index] = (values[index] as number) * inverse;
  }
}

/** The sum of the squares of the components from..to. */
function squaredLength(values: Float32Array, from: number, to: number): number {
  // Four sums side by side: each addition waits for the one before it.
  let a = 0;
  let b = 0;
  let c = 0;
  let d = 0;
  let index = from;
  for (; index + 3 < to; index += 4) {
    a += (values[index] as number) ** 2;
    b += (values[index + 1] as number) ** 2;
    c += (values[index + 2] as number) ** 2;
    d += (values[index + 3] as number) ** 2;
  }
  for (; index < to; index++) a += (values[index] as number) ** 2;
  return a + b + (c + d);
}
