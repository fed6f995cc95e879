/**
 * Frames on a plain connection, each with its length before it: u32 length of the body (little endian), u8 kind, body. What a connection begins with
 * tells what its frames are: `plain-stream.ts`, and portions between readers.
 */

const HEADER_BYTES = 5;
/** Memory for a frame of which the beginning has come; more follows as its bytes do, since its length is what a stranger says. */
const BEGUN_BYTES = 64 << 10;

/** A frame of any kind. */
export function frameOf(kind: number, body: Uint8Array): Buffer {
  const { at, frame } = beginFrame(kind, body.length);
  frame.set(body, at);
  return frame;
}

/** A frame whose body, of so many bytes, is to be written from `at` on. */
export function beginFrame(kind: number, bodyBytes: number): { readonly frame: Buffer; readonly at: number } {
  const frame = Buffer.allocUnsafe(HEADER_BYTES + bodyBytes);
  frame.writeUInt32LE(bodyBytes, 0);
  frame[4] = kind;
  return { frame, at: HEADER_BYTES };
}

export interface FrameRules {
  /** Of a frame. */
  readonly bodyBytesMax: number;
  /** Kinds above it are refused before the body comes. */
  readonly kindMax: number;
  /** What has to come first; null: nothing. */
  readonly preface: Buffer | null;
  /** What the frames are, for errors. */
  readonly what: string;
}

/** Cuts what arrives into frames. */
export class FrameSlicer {
  /** The beginning of a frame, whose first `filled` bytes have come. */
  #begun: Buffer | null = null;
  #filled = 0;
  #preface: Buffer | null;

  constructor(private readonly rules: FrameRules) {
    this.#preface = rules.preface;
  }

  /**
   * Hands out the frames that are whole now, whose memory is that of `bytes` or nobody else's. `each` returns false when that is enough.
   * Errors: `Error` for another preface, a kind that is none and a frame that is too long; those of `each`.
   */
  push(bytes: Buffer, each: (kind: number, body: Buffer) => boolean): void {
    let at = 0;
    while (at < bytes.length) {
      const rest = bytes.subarray(at);
      if (this.#begun === null) {
        const needed = this.#needed(rest);
        if (rest.length >= needed) {
          at += needed;
          if (!this.#hand(rest.subarray(0, needed), each)) return;
          continue;
        }
        this.#begun = Buffer.allocUnsafe(Math.min(needed, BEGUN_BYTES));
      }
      const taken = rest.copy(this.#begun, this.#filled);
      at += taken;
      this.#filled += taken;
      if (this.#filled === this.#begun.length && !this.#full(this.#begun, each)) return;
    }
  }

  /** The memory of a begun frame is full: it gets more, or the frame is whole. False: that is enough. */
  #full(begun: Buffer, each: (kind: number, body: Buffer) => boolean): boolean {
    const needed = this.#needed(begun);
    if (needed > begun.length) {
      this.#begun = Buffer.allocUnsafe(Math.min(needed, Math.max(2 * begun.length, BEGUN_BYTES)));
      begun.copy(this.#begun);
      return true;
    }
    this.#begun = null;
    this.#filled = 0;
    return this.#hand(begun, each);
  }

  /** Bytes of the frame that begins here, as far as they tell. */
  #needed(bytes: Buffer): number {
    if (this.#preface !== null) return this.#preface.length;
    if (bytes.length < HEADER_BYTES) return HEADER_BYTES;
    const { bodyBytesMax, kindMax } = this.rules;
    const length = bytes.readUInt32LE(0);
    const kind = bytes[4] as number;
    if (kind > kindMax) throw new Error(`a frame of the unknown kind ${kind}`);
    if (length > bodyBytesMax) throw new Error(`a frame of ${length} bytes; at most ${bodyBytesMax} are taken`);
    return HEADER_BYTES + length;
  }

  #hand(frame: Buffer, each: (kind: number, body: Buffer) => boolean): boolean {
    if (this.#preface === null) return each(frame[4] as number, frame.subarray(HEADER_BYTES));
    if (!frame.equals(this.#preface)) throw new Error(`that is no stream of ${this.rules.what}`);
    this.#preface = null;
    return true;
  }
}
