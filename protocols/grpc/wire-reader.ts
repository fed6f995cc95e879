/**
 * Reads protobuf's wire format. Source: protobuf documentation, «Encoding».
 * Errors: `malformedBody` for bytes that end within a field or are no message at all.
 */

import { isUtf8 } from 'node:buffer';
import { TroupeError } from '../errors.js';

export const VARINT = 0;
export const FIXED64 = 1;
export const BYTES = 2;
export const GROUP_START = 3;
export const GROUP_END = 4;
export const FIXED32 = 5;

const FIELD_NUMBER_MAX = 0x1fff_ffff;
const VARINT_BYTES_MAX = 10;
/** Texts up to this length are put together in JavaScript: a call out of it costs more. */
const SHORT_TEXT = 16;
const REPLACEMENT = '\ufffd';

/** A cursor over bytes. `end` is where the message at hand ends; whoever enters a message within it sets and resets that. */
export class WireReader {
  at = 0;
  end: number;
  private readonly buffer: Buffer;
  private readonly view: DataView;
  /** The last varint: unsigned 32-bit halves. */
  private low = 0;
  private high = 0;

  constructor(readonly bytes: Uint8Array) {
    this.end = bytes.length;
    this.buffer = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
    this.view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  }

  /** The next field's number * 8 + wire type. */
  tag(): number {
    this.varint();
    const tag = this.high * 0x1_0000_0000 + this.low;
    if (tag < 8 || tag >= (FIELD_NUMBER_MAX + 1) * 8) throw brokenMessage('a field number is out of range');
    return tag;
  }

  /** Where the length-delimited value at the cursor ends; the cursor moves to its first byte. */
  length(): number {
    this.varint();
    const to = this.at + this.low;
    if (this.high !== 0 || to > this.end) throw brokenMessage('a field is longer than its message');
    return to;
  }

  uint32(): number {
    this.varint();
    return this.low;
  }

  int32(): number {
    this.varint();
    return this.low | 0;
  }

  bool(): boolean {
    this.varint();
    return (this.low | this.high) !== 0;
  }

  /** bigint beyond 2^53 - 1. */
  uint64(): number | bigint {
    this.varint();
    const { low, high } = this;
    return high < 0x20_0000 ? high * 0x1_0000_0000 + low : (BigInt(high) << 32n) | BigInt(low);
  }

  /** bigint beyond ±(2^53 - 1). */
  int64(): number | bigint {
    this.varint();
    const { low, high } = this;
    if (high < 0x20_0000) return high * 0x1_0000_0000 + low;
    if (high > 0xffe0_0000 || (high === 0xffe0_0000 && low > 0)) return (high - 0x1_0000_0000) * 0x1_0000_0000 + low;
    return BigInt.asIntN(64, (BigInt(high) << 32n) | BigInt(low));
  }

  float(): number {
    return this.view.getFloat32(this.take(4), true);
  }

  double(): number {
    return this.view.getFloat64(this.take(8), true);
  }

  string(): string {
    const from = this.at;
    const to = this.length();
    const start = this.at;
    this.at = to;
    if (to - start <= SHORT_TEXT) {
      const { bytes } = this;
      let text = '';
      let at = start;
      for (; at < to && (bytes[at] as number) < 0x80; at++) text += String.fromCharCode(bytes[at] as number);
      if (at === to) return text;
    }
    const text = this.buffer.toString('utf8', start, to);
    if (text.includes(REPLACEMENT) && !isUtf8(this.bytes.subarray(start, to))) throw brokenMessage(`the text at byte ${from} is not UTF-8`);
    return text;
  }

  /** A copy of the bytes at the cursor. */
  blob(): Uint8Array {
    const to = this.length();
    const value = new Uint8Array(this.bytes.subarray(this.at, to));
    this.at = to;
    return value;
  }

  /** Copies the packed 32-bit floats of the field at the cursor to `target(count)`, which has room for them. */
  packedFloats(target: (count: number) => Float32Array): Float32Array {
    const to = this.length();
    const bytes = to - this.at;
    if (bytes % 4 !== 0) throw brokenMessage('packed floats have no whole number of values');
    const values = target(bytes / 4);
    new Uint8Array(values.buffer, values.byteOffset, bytes).set(this.bytes.subarray(this.at, to));
    this.at = to;
    return values;
  }

  /** Steps over the value of a field that is not known. */
  skip(wireType: number): void {
    let depth = 0;
    let type = wireType;
    for (;;) {
      if (type === GROUP_START) depth++;
      else if (type === GROUP_END) depth--;
      else this.skipValue(type);
      if (depth < 0) throw brokenMessage('a group ends that did not begin');
      if (depth === 0) return;
      type = this.tag() & 7;
    }
  }

  private skipValue(wireType: number): void {
    switch (wireType) {
      case VARINT:
        this.varint();
        return;
      case FIXED64:
        this.take(8);
        return;
      case BYTES:
        this.at = this.length();
        return;
      case FIXED32:
        this.take(4);
        return;
      default:
        throw brokenMessage(`wire type ${wireType} is not known`);
    }
  }

  /** Place of the next `count` bytes; the cursor moves behind them. */
  private take(count: number): number {
    const from = this.at;
    if (from + count > this.end) throw brokenMessage('the message ends within a field');
    this.at = from + count;
    return from;
  }

  private varint(): void {
    const { bytes, end } = this;
    let { at } = this;
    let byte = at < end ? (bytes[at++] as number) : -1;
    if (byte >= 0 && byte < 0x80) {
      this.low = byte;
      this.high = 0;
      this.at = at;
      return;
    }
    let low = 0;
    let high = 0;
    for (let read = 0; ; read++) {
      if (byte < 0 || read === VARINT_BYTES_MAX)
        throw brokenMessage(byte < 0 ? 'the message ends within a number' : 'a number is too long');
      const bits = byte & 0x7f;
      if (read < 4) low |= bits << (read * 7);
      else if (read === 4) {
        low |= bits << 28;
        high = bits >>> 4;
      } else high |= bits << (read * 7 - 32);
      if (byte < 0x80) break;
      byte = at < end ? (bytes[at++] as number) : -1;
    }
    this.low = low >>> 0;
    this.high = high >>> 0;
    this.at = at;
  }
}

export function brokenMessage(reason: string): TroupeError {
  return new TroupeError('malformedBody', `the message cannot be decoded: ${reason}`);
}
