/** Cosine vectors are stored with length 1 and compared by dot product. */

/** How far the squared length may be from 1 for a vector to be left as it is: what rounding to f32 makes of a normalized one. */
const SQUARED_LENGTH_SLACK = 1e-6;

/**
 * Brings each row to length 1, in place. values: Float32Array [n, dim].
 * Zero rows stay zero, rows of length 1 stay bit for bit, and rows with an infinite component or NaN stay as they are.
 */
export function normalizeRows(values: Float32Array, dim: number): void {
  for (let start = 0; start < values.length; start += dim) {
    let squares = 0;
    for (let index = start; index < start + dim; index++) squares += (values[index] as number) ** 2;
    if (!(squares > 0) || squares === Number.POSITIVE_INFINITY || Math.abs(squares - 1) <= SQUARED_LENGTH_SLACK) continue;
    const inverse = 1 / Math.sqrt(squares);
    for (let index = start; index < start + dim; index++) values[index] = (values[index] as number) * inverse;
  }
}
