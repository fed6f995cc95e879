/**
 * Prints float32 values as the shortest decimal that reads back as the same float32, as the API shows scores and vectors;
 * infinities and NaN, which JSON has not, as `null`. The kernels print (`vectors/kernels/print.ts`).
 */

import { type FloatPrinter, floatPrinter } from '../../vectors/own-kernels.js';

let printer: FloatPrinter | undefined;
const single = new Float32Array(1);

/** JSON text of one float32. */
export function floatText(value: number): string {
  printer ??= floatPrinter();
  single[0] = value;
  const end = printer.print(single, 0, 1);
  return printer.bytes.toString('latin1', printer.textAt, end - 1);
}

/**
 * Prints a vector in pieces: the texts of its components, a comma behind each.
 * write: called with each piece, which is what `bytes` holds from `start` to `end` during the call.
 */
export function printVector(values: Float32Array, write: (bytes: Buffer, start: number, end: number) => void): void {
  printer ??= floatPrinter();
  const { bytes, textAt, countMax } = printer;
  for (let from = 0; from < values.length; from += countMax) {
    write(bytes, textAt, printer.print(values, from, Math.min(from + countMax, values.length)));
  }
}
