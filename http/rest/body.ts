/** Takes the body of a request as bytes, within a limit and within the memory that there is for requests. */

import type { IncomingMessage } from 'node:http';
import { TroupeError } from '../../protocols/errors.js';
import type { Ledger } from '../../storage/memory/shared-ledger.js';
import { noRoomFor } from '../context/answer.js';
import type { Endpoint } from '../context/endpoint.js';
import { GrowingBytes } from '../context/growing-bytes.js';

/** A body above the limit is still read and dropped up to this many times the limit, so that the client gets to see the answer. */
const DRAIN_FACTOR = 16;

export class RequestBody {
  private readonly declared: number | undefined;
  private readonly kept: GrowingBytes;
  /** How much has come. */
  private length = 0;
  /** What still comes is dropped. */
  private isOver = false;

  constructor(
    private readonly request: IncomingMessage,
    private readonly endpoint: Pick<Endpoint, 'access' | 'method'>,
    ledger: Ledger,
    private readonly limit: number,
  ) {
    const declared = request.headers['content-length'];
    this.declared = declared === undefined ? undefined : Number(declared);
    this.kept = new GrowingBytes(ledger, Math.min(this.declared ?? limit, limit));
  }

  /**
   * The body's bytes, in a buffer of their own (not pooled), so that they may be transferred to another thread.
   * Errors: bodyTooLarge; `busy` or `outOfMemory` when there is no memory for them; a client that goes away mid-body rejects with the
   * stream's error.
   */
  read(): Promise<Uint8Array> {
    return new Promise((resolve, reject) => {
      this.request.on('data', (chunk: Buffer) => {
        const error = this.take(chunk);
        if (error !== null) reject(error);
      });
      this.request.on('end', () => {
        if (this.isOverLimit()) reject(this.tooLarge());
        else resolve(this.kept.bytes());
      });
      // Also when the client goes away before the body's end.
      this.request.on('error', reject);
    });
  }

  /** The request is answered. */
  release(): void {
    this.isOver = true;
    this.kept.release();
  }

  /** Why reading on is no use; null otherwise. */
  private take(chunk: Buffer): TroupeError | null {
    this.length += chunk.length;
    if (this.isOverLimit()) return this.length > this.limit * DRAIN_FACTOR ? this.tooLarge() : null;
    if (this.isOver || (this.declared ?? 0) > this.limit || this.kept.add(chunk)) return null;
    this.release();
    return noRoomFor(this.endpoint);
  }

  private isOverLimit(): boolean {
    return this.length > this.limit;
  }

  private tooLarge(): TroupeError {
    const size = Math.max(this.length, this.declared ?? 0);
    return new TroupeError('bodyTooLarge', `JSON payload (${size} bytes) is larger than allowed (limit: ${this.limit} bytes).`);
  }
}
