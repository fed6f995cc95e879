/** Bytes of records, written and read strictly: what was read is what would be written again. */

const VARINT_BYTES_MAX = 8;
const GROWTH = 2;

/** Thrown by `ByteReader` for bytes that no `ByteWriter` writes. */
export class MalformedBytes extends Error {}

/** Grows as needed. */
export class ByteWriter {
  private bytes: Buffer;
  private at: number;

  /** reserved: bytes in front that somebody else fills. */
  constructor(reserved: number, bytes = 64) {
    this.bytes = Buffer.alloc(Math.max(bytes, reserved));
    this.at = reserved;
  }

  byte(value: number): void {
    this.reserve(1);
    this.bytes[this.at++] = value;
  }

  /** An unsigned integer up to 2^53 - 1, 7 bits a byte, the lowest first. */
  integer(value: number): void {
    if (!Number.isSafeInteger(value) || value < 0) throw new Error(`cannot store the number ${value}`);
    this.reserve(VARINT_BYTES_MAX);
    let rest = value;
    while (rest >= 0x80) {
      this.bytes[this.at++] = (rest % 0x80) | 0x80;
      rest = Math.floor(rest / 0x80);
    }
    this.bytes[this.at++] = rest;
  }

  text(value: string): void {
    const bytes = Buffer.from(value, 'utf8');
    this.integer(bytes.length);
    this.raw(bytes);
  }

  raw(bytes: Uint8Array): void {
    this.reserve(bytes.length);
    this.bytes.set(bytes, this.at);
    this.at += bytes.length;
  }

  /** A view on what was written. */
  finish(): Uint8Array {
    return this.bytes.subarray(0, this.at);
  }

  private reserve(count: number): void {
    if (this.at + count <= this.bytes.length) return;
    const larger = Buffer.alloc(Math.max(this.bytes.length * GROWTH, this.at + count));
    larger.set(this.bytes.subarray(0, this.at));
    this.bytes = larger;
  }
}

/** Errors of all methods: `MalformedBytes`. */
export class ByteReader {
  private at = 0;

  constructor(private readonly bytes: Uint8Array) {}

  byte(): number {
    const value = this.bytes[this.at++];
    if (value === undefined) throw new MalformedBytes('ends too early');
    return value;
  }

  flag(): boolean {
    const value = this.byte();
    if (value > 1) throw new MalformedBytes('is no truth value');
    return value === 1;
  }

  integer(): number {
    let value = 0;
    let scale = 1;
    for (let count = 0; count < VARINT_BYTES_MAX; count++) {
      const byte = this.byte();
      value += (byte & 0x7f) * scale;
      if (byte < 0x80) {
        if ((byte === 0 && count > 0) || !Number.isSafeInteger(value)) break;
        return value;
      }
      scale *= 0x80;
    }
    throw new MalformedBytes('is no integer in its shortest form');
  }

  text(): string {
    const bytes = this.take(this.integer());
    try {
      return STRICT_UTF8.decode(bytes);
    } catch {
      throw new MalformedBytes('is no UTF-8');
    }
  }

  /** A copy of `count` bytes. */
  take(count: number): Uint8Array {
    if (count > this.bytes.length - this.at) throw new MalformedBytes('ends too early');
    this.at += count;
    return Uint8Array.from(this.bytes.subarray(this.at - count, this.at));
  }

  /** A copy of all that is left. */
  rest(): Uint8Array {
    return this.take(this.bytes.length - this.at);
  }

  /** Nothing may be left. */
  end(): void {
    if (this.at !== this.bytes.length) throw new MalformedBytes('goes on behind its end');
  }
}

const STRICT_UTF8 = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });
