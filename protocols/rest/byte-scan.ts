/**
 * Steps over a JSON body byte by byte and takes flat number arrays out of it. What is left is a short text for the JSON
 * parser, with `[3]` where `vectors[3]` stood.
 *
 * A scan is no judge of JSON: wherever the bytes are not what it knows it gives up, and the whole body goes to the
 * parser, which finds the error and says where it is. What it steps over without a look stays in the text.
 */

import { FloatList } from './float-list.js';

/** What is left of a body, and the vectors taken out: `[3]` stands in the text where `vectors[3]` was. */
export interface ScannedBody {
  readonly text: string;
  readonly vectors: readonly Float32Array[];
  /** Characters the whole body has. */
  readonly characters: number;
}

export const OPEN_LIST = 0x5b;
export const OPEN_OBJECT = 0x7b;
const QUOTE = 0x22;
const COMMA = 0x2c;
const COLON = 0x3a;
const CLOSE_LIST = 0x5d;
const CLOSE_OBJECT = 0x7d;
const BACKSLASH = 0x5c;

/** Made with the first body that is scanned, or by `prepareByteScan`: the main thread scans none, and compiling the kernel takes some milliseconds. */
let floats: FloatList | undefined;

function floatList(): FloatList {
  floats ??= new FloatList();
  return floats;
}

/** For a thread that will scan bodies: when the first one comes, the process may have no addresses left, which ends the thread. */
export function prepareByteScan(): void {
  floatList();
}

/** Commas and opening brackets outside of strings: one less than a text has values, or a few more where lists are empty. */
export function countValueMarks(bytes: Uint8Array): number {
  return floatList().countMarks(bytes);
}

/** Methods that answer true have stepped over something; false means: give up. */
export class ByteScanner {
  readonly vectors: Float32Array[] = [];
  /** A number was taken out that makes the parser read its whole text to the letter. */
  remarkable = false;
  private readonly buffer: Buffer;
  private at = 0;
  /** End of what is copied to the rest so far, the rest, and how many characters it lacks. */
  private copied = 0;
  private pieces = '';
  private removed = 0;

  constructor(private readonly bytes: Uint8Array) {
    this.buffer = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  }

  /** Of the next byte. */
  get position(): number {
    return this.at;
  }

  rest(): ScannedBody {
    const text = this.pieces + this.textOf(this.copied, this.bytes.length);
    return { text, vectors: this.vectors, characters: text.length + this.removed };
  }

  /** Takes out a list of numbers; an empty one stays. */
  vector(): boolean {
    this.peek();
    const start = this.at;
    const list = floatList();
    const end = list.read(this.buffer, start);
    if (end < 0) return false;
    this.at = end;
    if (list.count === 0) return true;
    if (list.remarkable) this.remarkable = true;
    const mark = `[${this.vectors.length}]`;
    this.pieces += this.textOf(this.copied, start) + mark;
    this.copied = end;
    this.removed += end - start - mark.length;
    this.vectors.push(list.values.slice(0, list.count));
    return true;
  }

  /** Takes out a list of numbers, or each of a list of such lists. */
  inputList(): boolean {
    const start = this.at;
    if (this.vector()) return true;
    this.at = start + 1;
    if (this.peek() !== OPEN_LIST) return false;
    this.at = start;
    return this.items(() => this.vector());
  }

  /** Steps over an object. value: called before the value of each key, steps over it. */
  members(value: (key: string) => boolean): boolean {
    if (this.peek() !== OPEN_OBJECT) return false;
    this.at++;
    if (this.peek() === CLOSE_OBJECT) {
      this.at++;
      return true;
    }
    for (;;) {
      if (this.peek() !== QUOTE) return false;
      const start = this.at + 1;
      if (!this.skipString()) return false;
      const key = this.textOf(start, this.at - 1);
      if (key.includes('\\') || this.peek() !== COLON) return false;
      this.at++;
      if (!value(key)) return false;
      const next = this.peek();
      this.at++;
      if (next === CLOSE_OBJECT) return true;
      if (next !== COMMA) return false;
    }
  }

  /** Steps over a list. item: steps over one of its values. */
  items(item: () => boolean): boolean {
    if (this.peek() !== OPEN_LIST) return false;
    this.at++;
    if (this.peek() === CLOSE_LIST) {
      this.at++;
      return true;
    }
    for (;;) {
      if (!item()) return false;
      const next = this.peek();
      this.at++;
      if (next === CLOSE_LIST) return true;
      if (next !== COMMA) return false;
    }
  }

  /** The next byte that is no white space, which is not taken; -1 at the end. */
  peek(): number {
    const { bytes } = this;
    for (;;) {
      const byte = bytes[this.at];
      if (byte === undefined) return -1;
      if (byte !== 0x20 && byte !== 0x0a && byte !== 0x0d && byte !== 0x09) return byte;
      this.at++;
    }
  }

  /** Steps over any value by its brackets alone. */
  skipValue(): boolean {
    const { bytes } = this;
    let depth = 0;
    this.peek();
    for (;;) {
      const byte = bytes[this.at];
      if (byte === undefined) return false;
      if (byte === QUOTE) {
        if (!this.skipString()) return false;
        continue;
      }
      if (byte === OPEN_LIST || byte === OPEN_OBJECT) depth++;
      else if (byte === CLOSE_LIST || byte === CLOSE_OBJECT) {
        if (depth === 0) return true;
        depth--;
      } else if (byte === COMMA && depth === 0) return true;
      this.at++;
    }
  }

  private skipString(): boolean {
    const { bytes } = this;
    for (let at = this.at + 1; at < bytes.length; at++) {
      const byte = bytes[at];
      if (byte === BACKSLASH) at++;
      else if (byte === QUOTE) {
        this.at = at + 1;
        return true;
      }
    }
    return false;
  }

  private textOf(from: number, to: number): string {
    return this.buffer.toString('utf8', from, to);
  }
}
