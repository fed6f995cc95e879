/** Numbers between 32-bit floats and doubles. */

/** The double a person would write for a 32-bit float: 0.3, not 0.30000001192092896. */
export function shortestFloat(value: number): number {
  if (Number.isInteger(value)) return value;
  for (let digits = 6; digits < 9; digits++) {
    const short = Number(value.toPrecision(digits));
    if (Math.fround(short) === value) return short;
  }
  return value;
}
