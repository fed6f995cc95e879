/** One client's connection: its socket, its HTTP/2 session and its calls. */

import type { Socket } from 'node:net';
import type { FieldList } from '../../protocols/http2/hpack-decoder.js';
import { callerFrom } from '../access/door-access.js';
import type { KnownCallers } from '../access/known-callers.js';
import { takeBytes } from '../context/socket-bytes.js';
import { UnsentBytes } from '../context/unsent-bytes.js';
import { type CallHead, callHead, originOfCall } from './call-head.js';
import { Http2Session } from './http2-session.js';
import { type Http2Stream, NO_HANDLER, type StreamHandler } from './http2-stream.js';
import type { LoggedCalls } from './logged-calls.js';
import type { Served } from './methods.js';
import { isRare, type RareStreams } from './rare-streams.js';
import { INTERNAL, UNIMPLEMENTED } from './status.js';
import type { RefuseStranger } from './strangers.js';
import { type CallLimits, statusFields, UnaryCall } from './unary-call.js';

/** What the connections of a server share. */
export interface ConnectionContext extends CallLimits {
  readonly methods: ReadonlyMap<string, Served>;
  readonly rare: RareStreams;
  /** Null: what clients do is not recorded. */
  readonly calls: LoggedCalls | null;
  /** Null: there are no keys. */
  readonly callers: KnownCallers | null;
  readonly refuse: RefuseStranger;
  readonly nowMs: () => number;
  readonly monotonicMs: () => number;
  /** Calls of the connection end at this time of `nowMs`: `expire` should run then. */
  readonly watchDeadline: (deadlineMs: number) => void;
}

/** Bytes that may wait in the socket before bodies, and the client's next bytes, wait too. */
const SOCKET_BYTES_MAX = 1 << 20;
/** Parts of answers up to this size together go out as one. */
const JOINED_BYTES_MAX = 64 << 10;
/** From the connection to the client's first frame, and to its first request: one that needs no call yet connects again when it does. */
const PREFACE_MS = 10_000;
const FIRST_REQUEST_MS = 60_000;
/** How long a client gets to read why the connection ends. */
const LAST_WORDS_MS = 1000;

export class Connection {
  readonly session: Http2Session;
  private lastFields: FieldList | null = null;
  private lastHead: CallHead | null = null;
  private receiving = false;
  private flushing: NodeJS.Immediate | null = null;
  private ended = false;
  private paused = false;
  private readonly unsent: UnsentBytes;
  private readonly openedMs: number;

  constructor(
    private readonly socket: Socket,
    private readonly context: ConnectionContext,
  ) {
    this.session = new Http2Session({
      request: (stream, fields) => this.request(stream, fields),
      output: () => this.output(),
    });
    this.unsent = new UnsentBytes(context.ledger);
    this.openedMs = context.monotonicMs();
    takeBytes(socket, { take: (bytes) => this.receive(bytes), place: () => null });
    socket.on('drain', () => this.drained());
    // What went wrong is told by the end of the connection.
    socket.on('error', () => {});
    socket.on('close', () => {
      this.session.lost();
      this.unsent.set(0, 0);
    });
    this.flush();
  }

  /** Takes no new call, and ends with the last one that runs. */
  shutDown(): void {
    this.session.shutDown();
    this.flush();
  }

  destroy(): void {
    this.socket.destroy();
  }

  /** Ends the connection of a client that does not take its answers or asks for nothing, and calls whose messages do not come, after their time. */
  checkTime(): void {
    const nowMs = this.context.monotonicMs();
    const openMs = nowMs - this.openedMs;
    if (this.unsent.isLate(nowMs) || (this.session.stage === 'silent' && openMs > PREFACE_MS)) this.destroy();
    else if (this.session.stage === 'connected' && openMs > FIRST_REQUEST_MS) this.shutDown();
    for (const { handler } of [...this.session.streams.values()]) if (handler instanceof UnaryCall) handler.checkTime(nowMs);
  }

  /** Ends the calls whose deadline has come; returns the next deadline. */
  expire(nowMs: number): number {
    let next = Number.POSITIVE_INFINITY;
    for (const { handler } of [...this.session.streams.values()]) {
      if (!(handler instanceof UnaryCall)) continue;
      if (handler.deadlineMs <= nowMs) handler.expire();
      else next = Math.min(next, handler.deadlineMs);
    }
    return next;
  }

  private receive(bytes: Buffer): void {
    this.receiving = true;
    this.session.receive(bytes, this.context.monotonicMs());
    this.receiving = false;
    this.flush();
  }

  private request(stream: Http2Stream, fields: FieldList): StreamHandler {
    if (fields !== this.lastFields || this.lastHead === null) {
      this.lastFields = fields;
      this.lastHead = callHead(fields);
    }
    const head = this.lastHead;
    const { session } = this;
    if (!head.isGrpc) {
      session.answerEmpty(stream, [':status', '415']);
      return NO_HANDLER;
    }
    const caller = callerFrom(this.context.callers, head.credential);
    const served = this.context.methods.get(head.path);
    const refused = caller.kind === 'stranger' ? this.context.refuse(head.path, caller) : null;
    if (refused !== null) {
      this.context.calls?.refused(head.path, caller, originOfCall(head, this.address()), refused);
      session.answerEmpty(stream, statusFields(refused.code, refused.details, refused.metadata));
      return NO_HANDLER;
    }
    if (served === undefined) {
      if (isRare(head.path)) return this.context.rare.serve(session, stream, fields);
      session.answerEmpty(stream, statusFields(UNIMPLEMENTED, `The server does not implement the method ${head.path}`));
      return NO_HANDLER;
    }
    if (head.timeoutMs === null) {
      session.answerEmpty(stream, statusFields(INTERNAL, `Invalid grpc-timeout value "${head.timeout}"`));
      return NO_HANDLER;
    }
    const deadlineMs = head.timeoutMs === Number.POSITIVE_INFINITY ? head.timeoutMs : this.context.nowMs() + head.timeoutMs;
    if (deadlineMs !== Number.POSITIVE_INFINITY) this.context.watchDeadline(deadlineMs);
    return new UnaryCall(session, stream, head, this.address, caller, served, this.context, deadlineMs);
  }

  private readonly address = (): string => this.socket.remoteAddress ?? '';

  // ---------------------------------------------------------------- output

  /** Answers that come while others are awaited go out together. */
  private output(): void {
    if (this.receiving || this.flushing !== null) return;
    if (this.session.streams.size === 0) this.flush();
    else {
      this.flushing = setImmediate(() => {
        this.flushing = null;
        this.flush();
      });
    }
  }

  private flush(): void {
    const { session, socket } = this;
    const parts = session.take();
    if (parts.length > 0 && !socket.destroyed && !this.ended) this.write(parts);
    this.countUnsent();
    if (session.broken || (session.closing && session.streams.size === 0)) this.end();
  }

  /** A client that takes none of its answers has as many waiting as it has streams. */
  private countUnsent(): void {
    const { session, socket } = this;
    if (socket.destroyed) return;
    if (!this.unsent.set(session.waitingBytes + socket.writableLength, this.context.monotonicMs())) this.destroy();
  }

  private write(parts: Uint8Array[]): void {
    const { socket } = this;
    const bytes = parts.reduce((sum, part) => sum + part.length, 0);
    if (parts.length === 1) socket.write(parts[0] as Uint8Array);
    else if (bytes <= JOINED_BYTES_MAX) socket.write(Buffer.concat(parts, bytes));
    else {
      socket.cork();
      for (const part of parts) socket.write(part);
      socket.uncork();
    }
    if (socket.writableLength <= SOCKET_BYTES_MAX || this.paused) return;
    this.paused = true;
    socket.pause();
    this.session.pause(true);
  }

  private drained(): void {
    this.countUnsent();
    if (!this.paused) return;
    this.paused = false;
    this.socket.resume();
    this.session.pause(false);
  }

  private end(): void {
    if (this.ended) return;
    this.ended = true;
    this.socket.end();
    // What the client still sends is read and dropped: else it would lose what was sent to it.
    setTimeout(() => this.socket.destroy(), LAST_WORDS_MS).unref();
  }
}
