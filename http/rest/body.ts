/** Takes the body of a request as bytes, within a limit. */

import type { IncomingMessage } from 'node:http';
import { TroupeError } from '../../protocols/errors.js';

/** A body above the limit is still read and dropped up to this many times the limit, so that the client gets to see the answer. */
const DRAIN_FACTOR = 16;

/**
 * The body's bytes, in a buffer of their own (not pooled), so that they may be transferred to another thread.
 * Errors: bodyTooLarge; a client that goes away mid-body rejects with the stream's error.
 */
export function readBody(request: IncomingMessage, limitBytes: number): Promise<Uint8Array> {
  const declared = request.headers['content-length'];
  return new Promise((resolve, reject) => {
    const body = new BodyBuffer(declared === undefined ? undefined : Number(declared), limitBytes);
    request.on('data', (chunk: Buffer) => {
      if (!body.take(chunk)) finish(body.tooLarge());
    });
    request.on('end', () => finish(body.overLimit() ? body.tooLarge() : undefined));
    // Also when the client goes away before the body's end.
    request.on('error', finish);

    function finish(error: Error | undefined): void {
      if (error === undefined) resolve(body.bytes());
      else reject(error);
    }
  });
}

/** Grows with the chunks of a body; one copy when the length is known ahead. */
class BodyBuffer {
  private readonly whole: Uint8Array | undefined;
  private readonly chunks: Buffer[] = [];
  private length = 0;

  constructor(
    private readonly declared: number | undefined,
    private readonly limit: number,
  ) {
    if (declared !== undefined && declared <= limit) this.whole = Buffer.allocUnsafeSlow(declared);
  }

  /** False when so much has come that reading on is no use. */
  take(chunk: Buffer): boolean {
    const at = this.length;
    this.length += chunk.length;
    if (this.whole !== undefined) this.whole.set(chunk, at);
    else if (this.declared === undefined && this.length <= this.limit) this.chunks.push(chunk);
    return this.length <= this.limit * DRAIN_FACTOR;
  }

  overLimit(): boolean {
    return this.length > this.limit;
  }

  tooLarge(): TroupeError {
    const size = Math.max(this.length, this.declared ?? 0);
    return new TroupeError('bodyTooLarge', `JSON payload (${size} bytes) is larger than allowed (limit: ${this.limit} bytes).`);
  }

  bytes(): Uint8Array {
    if (this.whole !== undefined) return this.whole;
    const bytes = Buffer.allocUnsafeSlow(this.length);
    let at = 0;
    for (const chunk of this.chunks) {
      bytes.set(chunk, at);
      at += chunk.length;
    }
    return bytes;
  }
}
