/** Puts together the one message of a unary call from the parts of its body. Source: gRPC over HTTP/2, «Length-Prefixed-Message». */

/** One byte that says whether the message is compressed, four of its length. */
export const PREFIX_BYTES = 5;
/** Memory for more than this is only taken as the bytes come. */
const TRUSTED_BYTES = 1 << 20;

const EMPTY = Buffer.alloc(0);

export type MessageProblem =
  /** Its length, in bytes. */
  { readonly kind: 'tooLarge'; readonly bytes: number } | { readonly kind: 'second' };

export class MessageReader {
  compressed = false;
  private readonly prefix = Buffer.alloc(PREFIX_BYTES);
  private prefixBytes = 0;
  private length = 0;
  private have = 0;
  private bytes: Buffer = EMPTY;

  /** The message in a buffer of its own; null while it is not whole. */
  get message(): Buffer | null {
    if (this.prefixBytes < PREFIX_BYTES || this.have < this.length) return null;
    return this.bytes;
  }

  /** Takes a part, which is copied. */
  add(part: Buffer, bytesMax: number): MessageProblem | null {
    let at = 0;
    while (at < part.length) {
      if (this.prefixBytes < PREFIX_BYTES) {
        this.prefix[this.prefixBytes++] = part[at++] as number;
        if (this.prefixBytes < PREFIX_BYTES) continue;
        this.compressed = this.prefix[0] === 1;
        this.length = this.prefix.readUInt32BE(1);
        if (this.length > bytesMax) return { kind: 'tooLarge', bytes: this.length };
        this.bytes = Buffer.allocUnsafeSlow(Math.min(this.length, TRUSTED_BYTES));
        continue;
      }
      const bytes = Math.min(part.length - at, this.length - this.have);
      if (bytes === 0) return { kind: 'second' };
      if (this.have + bytes > this.bytes.length) this.grow(this.have + bytes);
      part.copy(this.bytes, this.have, at, at + bytes);
      this.have += bytes;
      at += bytes;
    }
    return null;
  }

  private grow(needed: number): void {
    const bytes = Buffer.allocUnsafeSlow(Math.min(this.length, Math.max(needed, 2 * this.bytes.length)));
    this.bytes.copy(bytes, 0, 0, this.have);
    this.bytes = bytes;
  }
}
