/** A stored chunk of rows, written and read part after part. Each part starts at a multiple of 8 bytes. */

export class ChunkWriter {
  private at: number;

  /** start: offset of the first part, a multiple of 8. */
  constructor(
    private readonly bytes: Uint8Array,
    start: number,
  ) {
    this.at = start;
  }

  /** The next part, for the caller to fill. */
  take(length: number): Uint8Array {
    const end = this.at + length;
    const part = this.bytes.subarray(this.at, end);
    this.at += align8(length);
    this.bytes.fill(0, end, this.at);
    return part;
  }

  put(part: Uint8Array): void {
    this.take(part.length).set(part);
  }
}

export class ChunkReader {
  private at: number;

  constructor(
    private readonly bytes: Uint8Array,
    start: number,
  ) {
    this.at = start;
  }

  /** The next part, a view on the chunk; null if the chunk has ended. */
  take(length: number): Uint8Array | null {
    const end = this.at + length;
    if (end > this.bytes.length) return null;
    const part = this.bytes.subarray(this.at, end);
    this.at += align8(length);
    return part;
  }

  /** Whether all bytes have been read. */
  get ended(): boolean {
    return this.at === this.bytes.length;
  }
}

export function align8(bytes: number): number {
  return Math.ceil(bytes / 8) * 8;
}
