/** Prints float32 values as the shortest decimal that reads back as the same float32, as the API shows scores and vectors. */

/** Powers of ten that a double holds exactly. */
const POWERS = Float64Array.from({ length: 23 }, (_, exponent) => 10 ** exponent);

/** Shortest JSON text of a float32; `null` for infinities and NaN, which JSON has not. */
export function floatText(value: number): string {
  // Small integers and values like 0.5 are most of what is printed, and print right as doubles.
  if (Number.isInteger(value) && value > -1e7 && value < 1e7) return value === 0 ? '0' : String(value);
  const magnitude = Math.abs(value);
  if (!(magnitude >= 1e-5 && magnitude < 1e7)) return rareText(value);
  return value < 0 ? `-${plainText(magnitude)}` : plainText(magnitude);
}

/** JSON text of a vector. */
export function vectorText(values: Float32Array): string {
  if (values.length === 0) return '[]';
  let text = `[${floatText(values[0] as number)}`;
  for (let i = 1; i < values.length; i++) text += `,${floatText(values[i] as number)}`;
  return `${text}]`;
}

/** value in 1e-5..1e7: digits are tried as integers, fewest first; 6 always read back, 9 always suffice. */
function plainText(value: number): string {
  // Decimal places that make 6 significant digits.
  let places = 6;
  for (let bound = 1; value >= bound; bound *= 10) places--;
  for (let bound = 0.1; value < bound; bound /= 10) places++;
  for (const most = places + 3; places <= most; places++) {
    const digits = Math.round(value * power(places));
    const back = digits / power(places);
    if (Math.fround(back) === value) return decimalText(digits, places);
  }
  return rareText(value);
}

function power(exponent: number): number {
  return exponent < 0 ? 0.1 : (POWERS[exponent] as number);
}

/** digits × 10^-places without trailing zeros. */
function decimalText(digits: number, places: number): string {
  if (places <= 0) return String(places === 0 ? digits : digits * 10);
  let text = String(digits);
  if (text.length <= places) text = text.padStart(places + 1, '0');
  let end = text.length;
  const point = end - places;
  while (end > point && text.charCodeAt(end - 1) === 0x30) end--;
  return end === point ? text.slice(0, point) : `${text.slice(0, point)}.${text.slice(point, end)}`;
}

function rareText(value: number): string {
  if (!Number.isFinite(value)) return 'null';
  for (let precision = 1; precision < 9; precision++) {
    const short = Number(value.toPrecision(precision));
    if (Math.fround(short) === value) return String(short);
  }
  return String(Number(value.toPrecision(9)));
}
