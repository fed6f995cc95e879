/**
 * Writes protobuf's wire format from the end to the start: the length of a message is known once it is written, so no
 * byte moves twice. Fields are written last to first, items of lists too.
 */

const FIRST_BYTES = 1024;
const LOW = 0xffff_ffffn;
/** Shorter texts are sooner written letter by letter than by the runtime. */
const SHORT_TEXT = 16;

/** V8 keeps so few bytes of a typed array in its own heap, which takes a tenth of the time that memory of their own takes. */
const IN_HEAP_BYTES = 64;

/** Place where a message ends: what `endOf` gave. */
export type MessageEnd = number;

/** Most messages are written one after the other, so they take turns with one buffer. One that a large message needs is not kept. */
const KEPT_BYTES_MAX = 1 << 18;
/** Null while a message is written. */
let kept: Buffer | null = null;
const NO_BYTES = Buffer.alloc(0);

export class WireWriter {
  private buffer: Buffer;
  /** Bytes from here on are written. */
  private at: number;

  constructor() {
    this.buffer = kept ?? Buffer.allocUnsafeSlow(FIRST_BYTES);
    this.at = this.buffer.length;
    kept = null;
  }

  /** The bytes, in a buffer of their own that can be transferred. The writer begins anew. */
  finish(): Uint8Array {
    const { buffer, at } = this;
    const length = buffer.length - at;
    const bytes = length <= IN_HEAP_BYTES ? copyOfFew(buffer, at) : new Uint8Array(buffer.buffer.slice(at, buffer.length));
    if (buffer.length > 0 && buffer.length <= KEPT_BYTES_MAX) kept = buffer;
    this.buffer = NO_BYTES;
    this.at = 0;
    return bytes;
  }

  /** To be asked before the fields of a message are written. */
  endOf(): MessageEnd {
    return this.buffer.length - this.at;
  }

  /** The head of a message whose fields stand between here and `end`. */
  message(field: number, end: MessageEnd): void {
    this.varint(this.buffer.length - this.at - end);
    this.tag(field, 2);
  }

  /** A signed or unsigned integer of 64 bits at most. */
  int(field: number, value: number | bigint): void {
    this.packedInt(value);
    this.tag(field, 0);
  }

  bool(field: number, value: boolean): void {
    this.varint(value ? 1 : 0);
    this.tag(field, 0);
  }

  float(field: number, value: number): void {
    this.reserve(4);
    this.at -= 4;
    this.buffer.writeFloatLE(value, this.at);
    this.tag(field, 5);
  }

  double(field: number, value: number): void {
    this.reserve(8);
    this.at -= 8;
    this.buffer.writeDoubleLE(value, this.at);
    this.tag(field, 1);
  }

  string(field: number, value: string): void {
    if (value.length <= SHORT_TEXT && this.ascii(value)) {
      this.varint(value.length);
      this.tag(field, 2);
      return;
    }
    const bytes = Buffer.byteLength(value);
    this.reserve(bytes);
    this.at -= bytes;
    this.buffer.write(value, this.at, 'utf8');
    this.varint(bytes);
    this.tag(field, 2);
  }

  blob(field: number, value: Uint8Array): void {
    this.reserve(value.length);
    this.at -= value.length;
    this.buffer.set(value, this.at);
    this.varint(value.length);
    this.tag(field, 2);
  }

  floats(field: number, values: Float32Array): void {
    if (values.length === 0) return;
    this.reserve(values.byteLength);
    this.at -= values.byteLength;
    this.buffer.set(new Uint8Array(values.buffer, values.byteOffset, values.byteLength), this.at);
    this.varint(values.byteLength);
    this.tag(field, 2);
  }

  /** A packed list of unsigned integers. */
  uints(field: number, values: ArrayLike<number | bigint>): void {
    if (values.length === 0) return;
    const end = this.endOf();
    for (let i = values.length - 1; i >= 0; i--) this.packedInt(values[i] as number | bigint);
    this.message(field, end);
  }

  /** An integer without a tag, as packed lists have them. */
  packedInt(value: number | bigint): void {
    if (typeof value === 'number' && value >= 0) this.varint(value);
    else this.bigVarint(BigInt.asUintN(64, BigInt(value)));
  }

  tag(field: number, wireType: number): void {
    this.varint(field * 8 + wireType);
  }

  /** Writes a text of ASCII; false for any other, of which nothing is written. */
  private ascii(value: string): boolean {
    const { length } = value;
    this.reserve(length);
    const from = this.at - length;
    for (let i = 0; i < length; i++) {
      const unit = value.charCodeAt(i);
      if (unit > 127) return false;
      this.buffer[from + i] = unit;
    }
    this.at = from;
    return true;
  }

  /** value: 0 to 2^53 - 1. */
  private varint(value: number): void {
    this.reserve(8);
    if (value < 128) {
      this.at--;
      this.buffer[this.at] = value;
      return;
    }
    const { buffer } = this;
    let bytes = 1;
    for (let rest = value; rest >= 128; rest = Math.floor(rest / 128)) bytes++;
    this.at -= bytes;
    let rest = value;
    for (let i = 0; i < bytes - 1; i++) {
      buffer[this.at + i] = (rest % 128) + 128;
      rest = Math.floor(rest / 128);
    }
    buffer[this.at + bytes - 1] = rest;
  }

  private bigVarint(value: bigint): void {
    this.reserve(10);
    const bytes: number[] = [];
    let low = Number(value & LOW);
    let high = Number(value >> 32n);
    while (high !== 0 || low >= 128) {
      bytes.push((low & 127) | 128);
      low = ((low >>> 7) | (high << 25)) >>> 0;
      high >>>= 7;
    }
    bytes.push(low);
    this.at -= bytes.length;
    this.buffer.set(bytes, this.at);
  }

  /** Makes room for so many bytes before what is written. */
  private reserve(bytes: number): void {
    if (bytes <= this.at) return;
    const written = this.buffer.length - this.at;
    const larger = Buffer.allocUnsafeSlow(Math.max(written + bytes, this.buffer.length * 2, FIRST_BYTES));
    larger.set(this.buffer.subarray(this.at), larger.length - written);
    this.buffer = larger;
    this.at = larger.length - written;
  }
}

function copyOfFew(buffer: Buffer, at: number): Uint8Array {
  const bytes = new Uint8Array(buffer.length - at);
  for (let i = 0; i < bytes.length; i++) bytes[i] = buffer[at + i] as number;
  return bytes;
}
