/** A long text as UTF-8, made while it is written. */

import type { LongWork } from '../../actors/runtime/long-works.js';

/** Longer texts are converted: some tens of microseconds. */
const TEXT_MAX = 32_768;
/** Bytes that are copied in one step. */
const COPIED_MAX = 1 << 18;

export class TextBytes {
  readonly #chunks: Buffer[] = [];
  #text = '';

  write(text: string): void {
    this.#text += text;
    if (this.#text.length >= TEXT_MAX) this.#convert();
  }

  /** All that was written, in order. */
  chunks(): readonly Buffer[] {
    if (this.#text !== '') this.#convert();
    return this.#chunks;
  }

  #convert(): void {
    this.#chunks.push(Buffer.from(this.#text));
    this.#text = '';
  }
}

/** The chunks in one buffer of its own. */
export function* joined(chunks: readonly Uint8Array[]): LongWork<Buffer> {
  const bytes = Buffer.allocUnsafeSlow(chunks.reduce((sum, { length }) => sum + length, 0));
  let at = 0;
  for (const chunk of chunks) {
    for (let from = 0; from < chunk.length; from += COPIED_MAX) {
      bytes.set(chunk.subarray(from, from + COPIED_MAX), at + from);
      yield;
    }
    at += chunk.length;
  }
  return bytes;
}
