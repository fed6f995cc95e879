/**
 * Takes the body of a request as bytes, within a limit and within the memory that there is for requests. A packed one is unpacked as it comes,
 * and the limit is that of what comes out: unpacking stops there.
 */

import type { IncomingMessage } from 'node:http';
import { TroupeError } from '../../protocols/errors.js';
import type { Ledger } from '../../storage/memory/shared-ledger.js';
import { noRoomFor } from '../context/answer.js';
import { bodyCoding, unpacking, unpackingCodings } from '../context/codings.js';
import type { Endpoint } from '../context/endpoint.js';
import { GrowingBytes } from '../context/growing-bytes.js';

/** A body above the limit is still read and dropped up to this many times the limit, so that the client gets to see the answer. */
const DRAIN_FACTOR = 16;

export class RequestBody {
  private readonly declared: number | undefined;
  private readonly kept: GrowingBytes;
  private readonly isPacked: boolean;
  /** How much has come, unpacked. */
  private length = 0;
  /** What still comes is dropped. */
  private isOver = false;
  private refuse: (why: Error) => void = () => {};
  /** Nobody waits for an answer. */
  isBroken = false;

  constructor(
    private readonly request: IncomingMessage,
    private readonly endpoint: Pick<Endpoint, 'access' | 'method'>,
    private readonly ledger: Ledger,
    private readonly limit: number,
  ) {
    const declared = request.headers['content-length'];
    this.isPacked = bodyCoding(request.headers) !== null;
    this.declared = declared === undefined || this.isPacked ? undefined : Number(declared);
    this.kept = new GrowingBytes(ledger, Math.min(this.declared ?? limit, limit));
  }

  /**
   * The body's bytes, in a buffer of their own (not pooled), so that they may be transferred to another thread.
   * Errors: `bodyTooLarge`; `busy` or `outOfMemory` when there is no memory for them; `unreadableCoding`, and `malformedBody` for what cannot
   * be unpacked; a client that goes away mid-body rejects with the stream's error.
   */
  read(): Promise<Uint8Array> {
    return new Promise((resolve, reject) => {
      this.refuse = reject;
      (this.isPacked ? this.readPacked(bodyCoding(this.request.headers) as string) : this.readPlain()).then(resolve, reject);
    });
  }

  /** The client has been told that the connection ends, which may go on for a while. */
  breakOff(why: Error): void {
    this.isBroken = true;
    if (this.request.complete) return;
    this.release();
    this.refuse(why);
  }

  private readPlain(): Promise<Uint8Array> {
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

  private readPacked(coding: string): Promise<Uint8Array> {
    const { ledger, request } = this;
    const unpack = unpacking(coding);
    if (unpack === null) return Promise.reject(unreadableCoding(coding));
    const { bytes, stream } = unpack;
    if (!ledger.reserve('bodies', bytes)) {
      stream.destroy();
      return Promise.reject(noRoomFor(this.endpoint));
    }
    const read = new Promise<Uint8Array>((resolve, reject) => {
      let received = 0;
      request.on('data', (chunk: Buffer) => {
        received += chunk.length;
        if (this.isOverLimit() && received > this.limit * DRAIN_FACTOR) reject(this.tooLarge());
      });
      stream.on('data', (chunk: Buffer) => {
        const error = this.take(chunk);
        if (error !== null) reject(error);
        if (error === null && !this.isOverLimit()) return;
        // The rest is read and dropped.
        request.unpipe(stream).resume();
        stream.destroy();
        if (request.complete) reject(this.tooLarge());
        else request.on('end', () => reject(this.tooLarge()));
      });
      stream.on('end', () => resolve(this.kept.bytes()));
      stream.on('error', (error) => {
        request.unpipe(stream).resume();
        reject(new TroupeError('malformedBody', `the body cannot be unpacked as ${coding}: ${error.message}`));
      });
      // Also when the client goes away before the body's end.
      request.on('error', reject);
      request.pipe(stream);
    });
    return read.finally(() => {
      stream.destroy();
      ledger.release('bodies', bytes);
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
    if (this.isPacked) {
      return new TroupeError('bodyTooLarge', `JSON payload is larger than allowed when it is unpacked (limit: ${this.limit} bytes).`);
    }
    const size = Math.max(this.length, this.declared ?? 0);
    return new TroupeError('bodyTooLarge', `JSON payload (${size} bytes) is larger than allowed (limit: ${this.limit} bytes).`);
  }
}

function unreadableCoding(coding: string): TroupeError {
  const taken = unpackingCodings().join(', ');
  return new TroupeError('unreadableCoding', `the content encoding ${JSON.stringify(coding)} cannot be read: it may be one of ${taken}`);
}
