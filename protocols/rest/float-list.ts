/**
 * Reads a flat list of JSON numbers straight from bytes as float32 values, the same ones that `JSON.parse` and rounding
 * would give. A kernel reads pieces of the text in a memory of its own (`kernels/read.ts`), and hands back what it cannot
 * be sure of.
 */

import { readFileSync } from 'node:fs';

const OPEN_LIST = 0x5b;
const CLOSE_LIST = 0x5d;

/** Longest list that is read; longer ones go to the parser. */
const FLOATS_MAX = 65_536;

/** The kernel's memory: powers of ten, a piece of text, and the numbers in it, two bytes each at least. */
const WHOLE_POWERS_AT = 512;
const TEXT_AT = 1024;
const TEXT_MAX = 32_768;
const OUT_AT = TEXT_AT + TEXT_MAX + 64;
/** Exponents of the powers that a number is multiplied by, largest first, and of those that digits are shifted by. */
const POWERS = Array.from({ length: 60 }, (_, index) => 22 - index);
const WHOLE_POWERS = Array.from({ length: 16 }, (_, index) => index);

/** What the kernel answers, and where it goes on. */
const DONE = 0;
const MORE = 1;
const HARD = 2;
const FIRST = 0;
const NUMBER = 1;
const BEHIND_NUMBER = 2;

interface Exports {
  readonly memory: WebAssembly.Memory;
  startList(powers: number, wholePowers: number): void;
  scanFloats(at: number, end: number, out: number, place: number): number;
  positionOf(): number;
  numberStartOf(): number;
  writtenOf(): number;
  isRemarkable(): number;
  startMarks(): void;
  countMarks(at: number, end: number): number;
}

/** Room for one list after the other. */
export class FloatList {
  /** The numbers of the last list are the first `count` of these. */
  readonly values = new Float32Array(FLOATS_MAX);
  count = 0;
  /** The last list had a number that makes the parser read its whole text to the letter: a long integer or a large exponent. */
  remarkable = false;
  readonly #kernel = instantiate();
  readonly #text = Buffer.from(this.#kernel.memory.buffer);
  readonly #floats = new Float32Array(this.#kernel.memory.buffer);

  /**
   * Reads the list whose bracket opens at `start`. Returns the place behind the closing bracket, or -1 for anything but
   * plain JSON numbers within a double. bytes: a `Buffer`, which does not look for the closing bracket one byte after the other.
   */
  read(bytes: Buffer, start: number): number {
    if (bytes[start] !== OPEN_LIST) return -1;
    const close = bytes.indexOf(CLOSE_LIST, start);
    if (close < 0) return -1;
    this.count = 0;
    this.#kernel.startList(0, WHOLE_POWERS_AT);
    for (let at = start + 1; ; ) {
      const end = Math.min(close + 1, at + TEXT_MAX);
      this.#text.set(bytes.subarray(at, end), TEXT_AT);
      const outcome = this.#readPiece(end - at);
      const read = (outcome === DONE ? this.#kernel.positionOf() : this.#kernel.numberStartOf()) - TEXT_AT;
      if ((outcome !== DONE && outcome !== MORE) || !this.#take()) return -1;
      at += read;
      if (outcome === DONE) return at;
      // A number that is longer than a piece.
      if (read === 0) return -1;
    }
  }

  /** Commas and opening brackets outside of strings. */
  countMarks(bytes: Uint8Array): number {
    let count = 0;
    this.#kernel.startMarks();
    for (let at = 0; at < bytes.length; at += TEXT_MAX) {
      const end = Math.min(bytes.length, at + TEXT_MAX);
      this.#text.set(bytes.subarray(at, end), TEXT_AT);
      count += this.#kernel.countMarks(TEXT_AT, TEXT_AT + end - at);
    }
    return count;
  }

  /** Reads the first `length` bytes of the text until they end. Returns the kernel's last answer. */
  #readPiece(length: number): number {
    const kernel = this.#kernel;
    const end = TEXT_AT + length;
    this.#text[end] = 0;
    let outcome = kernel.scanFloats(TEXT_AT, end, OUT_AT, this.count === 0 ? FIRST : NUMBER);
    while (outcome === HARD) {
      const at = kernel.positionOf();
      const value = Number(this.#text.toString('latin1', kernel.numberStartOf(), at));
      if (!Number.isFinite(value)) return outcome;
      const out = kernel.writtenOf();
      this.#floats[out >>> 2] = value;
      outcome = kernel.scanFloats(at, end, out + 4, BEHIND_NUMBER);
    }
    return outcome;
  }

  /** Appends the numbers of a piece; false: too many. */
  #take(): boolean {
    const end = this.#kernel.writtenOf() >>> 2;
    const count = this.count + end - (OUT_AT >>> 2);
    if (count > FLOATS_MAX) return false;
    this.values.set(this.#floats.subarray(OUT_AT >>> 2, end), this.count);
    this.count = count;
    this.remarkable = this.#kernel.isRemarkable() !== 0;
    return true;
  }
}

function instantiate(): Exports {
  const module = new WebAssembly.Module(readFileSync(new URL('./floats.wasm', import.meta.url)));
  const exports = new WebAssembly.Instance(module).exports as unknown as Exports;
  // From their texts: `**` is not exact everywhere.
  new Float64Array(exports.memory.buffer).set(POWERS.map((exponent) => Number(`1e${exponent}`)));
  new BigUint64Array(exports.memory.buffer, WHOLE_POWERS_AT).set(WHOLE_POWERS.map((exponent) => 10n ** BigInt(exponent)));
  return exports;
}
