/**
 * One connection of a client, as long as its requests are plain: they are read from the bytes of the socket and answered one after the
 * other. At the first request that is not plain the connection, with all bytes from that request on, is handed on to Node's HTTP server.
 */

import type { Socket } from 'node:net';
import { http } from '../../../protocols/late-modules.js';
import type { CallTrace } from '../../../protocols/model/explanation.js';
import type { Ledger } from '../../../storage/memory/shared-ledger.js';
import { addressOf } from '../../context/client-address.js';
import { GrowingBytes } from '../../context/growing-bytes.js';
import { endWithClient } from '../../context/linger.js';
import { type BytesTaker, takeBytes } from '../../context/socket-bytes.js';
import { UnsentBytes } from '../../context/unsent-bytes.js';
import { brokenOff } from '../calls/last-words.js';
import type { RestReply } from '../calls/reply.js';
import type { FindRequest, FoundRequest } from './find-request.js';
import { type RequestHead, readHead } from './head.js';

/** A plain request. */
export interface FastRequest {
  readonly head: RequestHead;
  readonly found: FoundRequest;
  /** In a buffer of its own. */
  readonly body: Uint8Array;
  /** Milliseconds that its client has waited for this thread, which did other things while the body came. */
  readonly heldMs: number;
  readonly isGone: () => boolean;
  /** Of the client; empty: it is gone. */
  readonly address: () => string;
  /** Calls the listener if the client goes away before its answer. With a listener, it is gone when it ends its half of the connection. */
  readonly onGone: (listener: () => void) => void;
  /** Of a call that is part of a trace; set by the logs of calls. */
  trace?: CallTrace | undefined;
}

/** What a connection needs of the server that it belongs to. */
export interface FastServer {
  readonly maxBodyBytes: number;
  readonly findRequest: FindRequest;
  readonly isClosing: boolean;
  readonly ledger: Ledger;
  /** Null if the client is gone. Never rejects. */
  answer(request: FastRequest): RestReply | null | Promise<RestReply | null>;
  /** The answer to a request for whose body there is no memory. */
  refuse(found: FoundRequest): RestReply;
  /** Takes the connection over; its next byte is the first of a request. */
  handOn(socket: Socket): void;
  /** The connection is closed or handed on. */
  forget(connection: FastConnection): void;
  nowMs(): number;
  /** Milliseconds that this thread has not been idle since it began. */
  activeMs(): number;
}

/** A request whose body is on its way. */
interface Incoming {
  readonly head: RequestHead;
  readonly found: FoundRequest;
  readonly body: GrowingBytes;
  /** How long the thread had not been idle when the head had come; null: the body came with it. */
  activeMs: number | null;
}

/** As Node's HTTP server has them. */
export const KEEP_ALIVE_MS = 75_000;
const FIRST_REQUEST_MS = 60_000;
const REQUEST_MS = 300_000;

/** Bytes of later requests that are read before a request is answered. */
const READ_AHEAD_BYTES_MAX = 65_536;
/** The next request waits while more than this of the answers has not been sent. */
const UNSENT_BYTES_MAX = 1 << 20;
/** Head and body up to this size are written as one text, which Node copies to the socket without allocating. */
const ONE_TEXT_BYTES_MAX = 15_000;
/** What is missing of a body is read straight into it if it is more than this. */
const PLACE_BYTES_MIN = 32_768;
const NOTHING = Buffer.alloc(0);

export class FastConnection implements BytesTaker {
  #unread: Buffer = NOTHING;
  #incoming: Incoming | null = null;
  /** A request is being answered, or its answer is being sent. */
  #isBusy = false;
  #hasEnded = false;
  #isOver = false;
  readonly #unsent: UnsentBytes;
  #hasAnswered = false;
  /** Has bytes come as `data` events. */
  readonly #letGo: () => void;
  /** Ends the work on the request that is being answered. */
  #giveUp: (() => void) | null = null;
  /** When the connection was opened, last answered, or got the first byte of a request. */
  #sinceMs: number;

  constructor(
    private readonly socket: Socket,
    private readonly server: FastServer,
  ) {
    this.#sinceMs = server.nowMs();
    this.#unsent = new UnsentBytes(server.ledger);
    socket.on('end', this.#onEnd).on('error', this.#onError).on('close', this.#onClose);
    this.#letGo = takeBytes(socket, this);
  }

  /** Closes the connection if no request is on its way or being answered, nor a last answer on its way to the client. */
  closeIfIdle(): void {
    if (this.#isIdle() && !this.#isOver) this.cut();
  }

  cut(): void {
    this.socket.destroy();
  }

  /** Ends a connection that has waited too long for a request, for the rest of one, or for its client to take an answer. */
  checkTime(nowMs: number): void {
    if (this.#unsent.isLate(nowMs)) this.cut();
    if (this.#isBusy || this.#isOver) return;
    const waitedMs = nowMs - this.#sinceMs;
    if (this.#isIdle() && this.#hasAnswered) {
      if (waitedMs > KEEP_ALIVE_MS) this.cut();
    } else if (waitedMs > (this.#incoming === null ? FIRST_REQUEST_MS : REQUEST_MS)) this.#endWith(brokenOff(408, 'Client Timeout'));
  }

  #isIdle(): boolean {
    return !this.#isBusy && this.#incoming === null && this.#unread.length === 0;
  }

  take(chunk: Buffer): void {
    if (this.#isOver) return;
    if (this.#isIdle()) this.#sinceMs = this.server.nowMs();
    const rest = this.#incoming === null ? chunk : this.#fill(this.#incoming, chunk);
    if (this.#isOver) return;
    if (rest.length > 0) this.#unread = this.#unread.length === 0 ? rest : Buffer.concat([this.#unread, rest]);
    if (!this.#isBusy) this.#advance();
    else if (this.#unread.length > READ_AHEAD_BYTES_MAX) this.socket.pause();
    // What is kept must not stay in the socket's memory.
    if (this.#unread.length > 0 && this.#unread.buffer === chunk.buffer) this.#unread = Buffer.from(this.#unread);
  }

  place(): Buffer | null {
    const body = this.#incoming?.body;
    if (body === undefined || body.length - body.filled < PLACE_BYTES_MIN || body.filled === body.buffer.length) return null;
    return body.buffer.subarray(body.filled);
  }

  readonly #onEnd = (): void => {
    this.#hasEnded = true;
    if (this.#isIdle()) this.socket.destroySoon();
    else if (!this.#isBusy) this.#endWith(brokenOff(400, 'Client Error'));
    else if (this.#giveUp !== null) this.#endWork(this.#giveUp);
  };

  /** Http-H8: what is left of earlier answers still goes to the client. */
  #endWork(giveUp: () => void): void {
    this.#isOver = true;
    giveUp();
    this.socket.destroySoon();
  }

  /** The client is gone. */
  readonly #onError = (): void => this.cut();

  readonly #onClose = (): void => {
    this.#isOver = true;
    this.#incoming?.body.release();
    this.#incoming = null;
    this.#unsent.set(0, 0);
    this.#giveUp?.();
    this.server.forget(this);
  };

  readonly #onGone = (listener: () => void): void => {
    this.#giveUp = listener;
  };

  readonly #address = (): string => addressOf(this.socket);

  readonly #isGone = (): boolean => this.#isOver || this.socket.destroyed;

  /**
   * Copies bytes to the body that they belong to, if they are not there already; the answer is what is left of them. Without memory for them
   * the request is refused, and the connection is over.
   */
  #fill({ body, found }: Incoming, bytes: Buffer): Buffer {
    if (bytes.buffer === body.buffer.buffer) {
      body.filled += bytes.length;
      if (!body.makeRoom()) this.#refuse(found);
      return NOTHING;
    }
    const missing = body.length - body.filled;
    const isMore = bytes.length > missing;
    if (!body.add(isMore ? bytes.subarray(0, missing) : bytes) || !body.makeRoom()) this.#refuse(found);
    return isMore ? bytes.subarray(missing) : NOTHING;
  }

  #refuse(found: FoundRequest): void {
    const answer = this.server.refuse(found);
    this.#endWith(headOf(answer, true) + answer.body.toString('latin1'));
  }

  /** Answers what has come whole. */
  #advance(): void {
    while (!this.#isBusy && !this.#isGone()) {
      const incoming = this.#incoming ?? this.#next();
      if (incoming === null || !incoming.body.isWhole) return;
      this.#incoming = null;
      this.#isBusy = true;
      const { activeMs, body, found, head } = incoming;
      const answer = this.server.answer({
        head,
        found,
        body: body.buffer,
        heldMs: activeMs === null ? 0 : this.server.activeMs() - activeMs,
        isGone: this.#isGone,
        address: this.#address,
        onGone: this.#onGone,
      });
      if (answer instanceof Promise) {
        void answer.then((later) => {
          body.release();
          this.#giveUp = null;
          this.#send(head, later);
          this.#advance();
        });
        return;
      }
      body.release();
      this.#send(head, answer);
    }
    if (this.#isIdle() && this.#hasEnded) this.socket.destroySoon();
  }

  /** The next request, with as much of its body as has come; null if nothing has come, or if the connection is handed on. */
  #next(): Incoming | null {
    const unread = this.#unread;
    if (unread.length === 0) return null;
    const head = readHead(unread);
    const found = head === null || this.#isOdd(head) ? null : this.server.findRequest(head);
    if (head === null || found === null) {
      this.#handOn();
      return null;
    }
    const incoming: Incoming = { head, found, body: new GrowingBytes(this.server.ledger, head.bodyBytes), activeMs: null };
    this.#incoming = incoming;
    this.#unread = this.#fill(incoming, unread.subarray(head.bytes));
    if (!incoming.body.isWhole) incoming.activeMs = this.server.activeMs();
    return this.#incoming;
  }

  /** The body is too long, or there are bytes behind the last request of the connection. */
  #isOdd({ bodyBytes, bytes, isLast }: RequestHead): boolean {
    return bodyBytes > this.server.maxBodyBytes || (isLast && this.#unread.length > bytes + bodyBytes);
  }

  #handOn(): void {
    const { socket } = this;
    this.#isOver = true;
    socket.off('end', this.#onEnd).off('error', this.#onError).off('close', this.#onClose);
    this.server.forget(this);
    this.#letGo();
    socket.unshift(Buffer.from(this.#unread));
    this.#unread = NOTHING;
    this.server.handOn(socket);
    socket.resume();
  }

  #send(head: RequestHead, answer: RestReply | null): void {
    const { socket } = this;
    if (answer === null || this.#isGone()) return;
    const isLast = head.isLast || this.server.isClosing || (this.#hasEnded && this.#unread.length === 0);
    const text = headOf(answer, isLast);
    if (answer.body.length <= ONE_TEXT_BYTES_MAX) socket.write(text + answer.body.toString('latin1'), 'latin1');
    else {
      socket.cork();
      socket.write(text, 'latin1');
      socket.write(answer.body);
      socket.uncork();
    }
    this.#hasAnswered = true;
    this.#sinceMs = this.server.nowMs();
    const unsent = socket.writableLength;
    if (!this.#unsent.set(unsent, this.#sinceMs)) this.cut();
    else if (isLast) this.#endLast();
    else if (unsent > UNSENT_BYTES_MAX) socket.once('drain', this.#sent);
    else {
      if (unsent > 0 && socket.listenerCount('drain') === 0) socket.once('drain', this.#taken);
      this.#sent(false);
    }
  }

  readonly #taken = (): void => {
    this.#unsent.set(this.socket.writableLength, this.server.nowMs());
  };

  /** mayAdvance: false where the caller goes on with the next request. */
  readonly #sent = (mayAdvance: false | undefined): void => {
    this.#isBusy = false;
    if (mayAdvance !== false) this.#taken();
    if (this.socket.isPaused()) this.socket.resume();
    if (mayAdvance !== false) this.#advance();
  };

  /** After the last answer. A client that has begun another request may be in the middle of it. */
  #endLast(): void {
    const { socket } = this;
    this.#isOver = true;
    if (this.#unread.length === 0) socket.destroySoon();
    else this.#linger();
  }

  /** Says the text to a client whose request ends before it has come whole. */
  #endWith(text: string): void {
    this.#isOver = true;
    this.#incoming?.body.release();
    this.#incoming = null;
    this.socket.write(text, 'latin1');
    this.#linger();
  }

  #linger(): void {
    this.#unread = NOTHING;
    this.socket.resume();
    endWithClient(this.socket);
  }
}

const labels = new Map<number, string>([[200, 'OK']]);

/** The words of a status as Node.js has them. */
function labelOf(status: number): string {
  let label = labels.get(status);
  if (label === undefined) {
    label = http().STATUS_CODES[status] ?? 'unknown';
    labels.set(status, label);
  }
  return label;
}

/** As Node's HTTP server writes it. */
function headOf({ body, headers, status, type }: RestReply, isLast: boolean): string {
  let text = `HTTP/1.1 ${status} ${labelOf(status)}\r\n`;
  for (let at = 0; at < headers.length; at += 2) text += `${headers[at]}: ${headers[at + 1]}\r\n`;
  if (type !== undefined) text += `content-type: ${type}\r\n`;
  const connection = isLast ? 'Connection: close' : `Connection: keep-alive\r\nKeep-Alive: timeout=${KEEP_ALIVE_MS / 1000}`;
  return `${text}content-length: ${body.length}\r\nDate: ${dateText()}\r\n${connection}\r\n\r\n`;
}

let dateSecond = 0;
let date = '';

/** The time as HTTP has it, made once a second. */
function dateText(): string {
  const second = Math.floor(Date.now() / 1000);
  if (second !== dateSecond) {
    dateSecond = second;
    date = new Date(second * 1000).toUTCString();
  }
  return date;
}
