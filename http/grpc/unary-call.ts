/** One unary call over a stream: its message is put together, carried out and answered. */

import { promisify } from 'node:util';
import { CANCEL } from '../../protocols/http2/frames.js';
import type { FieldList } from '../../protocols/http2/hpack-decoder.js';
import { literalBlock } from '../../protocols/http2/hpack-encoder.js';
import { zlib } from '../../protocols/late-modules.js';
import type { Ledger } from '../../storage/memory/shared-ledger.js';
import type { Caller } from '../access/caller.js';
import type { RequestOrigin } from '../audit/origin.js';
import { type CallHead, originOfCall } from './call-head.js';
import type { Http2Session } from './http2-session.js';
import type { Http2Stream, StreamHandler } from './http2-stream.js';
import { MessageReader, PREFIX_BYTES } from './message-reader.js';
import type { CallContext, Served, ServedOutcome } from './methods.js';
import { DEADLINE_EXCEEDED, INTERNAL, messageText, RESOURCE_EXHAUSTED, UNIMPLEMENTED } from './status.js';

/** What bounds the calls of a server. */
export interface CallLimits {
  readonly messageBytesMax: number;
  readonly ledger: Ledger;
  /** The answer to a call of this method for whose message there is no memory. */
  readonly noRoom: (path: string) => Extract<ServedOutcome, { kind: 'failed' }>;
}

/** As REST has it. */
const REQUEST_MS = 300_000;
/** Deflate makes no more bytes than this of one. */
const INFLATION_MAX = 1032;

const OK_BLOCK = literalBlock(['grpc-status', '0', 'grpc-message', 'OK']);
const ERROR_START: FieldList = [':status', '200', 'content-type', 'application/grpc+proto'];

/** Fields of an answer that has no message. */
export function statusFields(code: number, details: string, metadata: readonly (readonly [string, string])[] = []): FieldList {
  return [...ERROR_START, 'grpc-status', String(code), 'grpc-message', messageText(details), ...metadata.flat()];
}

export class UnaryCall implements StreamHandler, CallContext {
  private readonly reader: MessageReader;
  /** Reserved for what a compressed message may become. */
  private unpackedBytes = 0;
  private state: 'reading' | 'running' | 'over' = 'reading';
  private giveUp: (() => void) | null = null;
  /** When it was first looked at. */
  private readingSinceMs: number | null = null;

  /** deadlineMs: by the clock of the connection; infinite for none. */
  constructor(
    private readonly session: Http2Session,
    private readonly stream: Http2Stream,
    private readonly head: CallHead,
    /** The address of the client. */
    private readonly address: () => string,
    readonly caller: Caller,
    private readonly served: Served,
    private readonly limits: CallLimits,
    readonly deadlineMs: number,
  ) {
    this.reader = new MessageReader(limits.ledger);
  }

  data(bytes: Buffer): void {
    if (this.state !== 'reading') return;
    const { messageBytesMax } = this.limits;
    const problem = this.reader.add(bytes, messageBytesMax);
    if (problem === null) return;
    if (problem.kind === 'tooLarge') {
      this.fail(RESOURCE_EXHAUSTED, `Received message larger than max (${problem.bytes} vs ${messageBytesMax})`);
    } else if (problem.kind === 'noRoom') this.refuse();
    else this.fail(UNIMPLEMENTED, `Received a second request message for server streaming method ${this.head.path}`);
  }

  end(): void {
    if (this.state !== 'reading') return;
    const { message, compressed } = this.reader;
    if (message === null) this.fail(UNIMPLEMENTED, `Received no request message for server streaming method ${this.head.path}`);
    else if (compressed && this.head.encoding !== 'identity') void this.unpack(message);
    else void this.run(message);
  }

  /** Ends a call whose message has not come to its end in time. Called every few seconds. nowMs: of any clock that does not go back. */
  checkTime(nowMs: number): void {
    if (this.state !== 'reading') return;
    this.readingSinceMs ??= nowMs;
    if (nowMs - this.readingSinceMs <= REQUEST_MS) return;
    this.fail(DEADLINE_EXCEEDED, `The request did not come to its end within ${REQUEST_MS / 1000} seconds`);
  }

  cancelled(): void {
    if (this.state === 'running') this.abandon();
    else this.finish();
  }

  onGone(listener: () => void): void {
    this.giveUp = listener;
  }

  /** Tells the client that its time is up; what runs is not waited for. */
  expire(): void {
    if (this.state === 'over') {
      // The answer waits for a client that doesn't take it.
      this.session.reset(this.stream, CANCEL);
      return;
    }
    if (this.state === 'running') this.abandon();
    this.fail(DEADLINE_EXCEEDED, 'Deadline exceeded');
  }

  private abandon(): void {
    this.session.abandoned++;
    this.giveUp?.();
  }

  private async unpack(message: Buffer): Promise<void> {
    this.state = 'running';
    const bytesMax = Math.min(this.limits.messageBytesMax, message.length * INFLATION_MAX);
    if (!this.limits.ledger.reserve('bodies', bytesMax)) {
      this.refuse();
      return;
    }
    this.unpackedBytes = bytesMax;
    const unpacked = await this.unpacked(message);
    if (unpacked instanceof Uint8Array) void this.run(unpacked);
    else if (this.ended()) this.fail(...unpacked);
  }

  /** The message itself, or what is wrong with it. */
  private async unpacked(message: Buffer): Promise<Buffer | readonly [code: number, details: string]> {
    const { encoding } = this.head;
    if (encoding !== 'gzip' && encoding !== 'deflate') {
      return [UNIMPLEMENTED, `Received message compressed with unsupported encoding "${encoding}"`];
    }
    try {
      const { gunzip, inflate } = zlib();
      return await promisify(encoding === 'gzip' ? gunzip : inflate)(message, { maxOutputLength: this.limits.messageBytesMax });
    } catch (error) {
      return (error as NodeJS.ErrnoException).code === 'ERR_BUFFER_TOO_LARGE'
        ? [RESOURCE_EXHAUSTED, `Received message that decompresses to a size larger than ${this.limits.messageBytesMax}`]
        : [INTERNAL, 'Failed to decompress message'];
    }
  }

  get origin(): RequestOrigin {
    return originOfCall(this.head, this.address());
  }

  get credential(): string | null {
    return this.head.credential;
  }

  private async run(message: Buffer): Promise<void> {
    this.state = 'running';
    const outcome = await this.served(message, this.deadlineMs, this);
    if (this.ended()) this.answer(outcome);
  }

  /** The work is over. True when somebody waits for the answer. */
  private ended(): boolean {
    this.finish();
    if (!this.stream.closed) return true;
    this.session.abandoned--;
    return false;
  }

  private answer(outcome: ServedOutcome): void {
    if (outcome.kind === 'failed') {
      this.session.answerEmpty(this.stream, statusFields(outcome.code, outcome.details, outcome.metadata));
      return;
    }
    const { parts } = outcome;
    const prefix = Buffer.allocUnsafe(PREFIX_BYTES);
    prefix[0] = 0;
    prefix.writeUInt32BE(
      parts.reduce((sum, part) => sum + part.length, 0),
      1,
    );
    this.session.answer(this.stream, [prefix, ...parts], OK_BLOCK);
  }

  /** There is no memory for its message. */
  private refuse(): void {
    const { code, details, metadata } = this.limits.noRoom(this.head.path);
    this.finish();
    this.session.answerEmpty(this.stream, statusFields(code, details, metadata));
  }

  private finish(): void {
    this.state = 'over';
    this.reader.release();
    this.limits.ledger.release('bodies', this.unpackedBytes);
    this.unpackedBytes = 0;
  }

  private fail(code: number, details: string): void {
    if (this.state === 'reading') this.finish();
    this.session.answerEmpty(this.stream, statusFields(code, details));
  }
}
