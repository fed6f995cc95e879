/** The connections whose requests have been plain so far: it checks their time limits and closes them with the server. */

import type { Socket } from 'node:net';
import type { Ledger } from '../../../storage/memory/shared-ledger.js';
import { steadyNowMs } from '../../../storage/threads/clock.js';
import type { AnswerEncoder } from '../calls/encode-answer.js';
import type { RestReply } from '../calls/reply.js';
import { FastConnection, type FastRequest, type FastServer } from './connection.js';
import type { FindRequest, FoundRequest } from './find-request.js';

export interface FrontOptions {
  readonly maxBodyBytes: number;
  readonly findRequest: FindRequest;
  readonly ledger: Ledger;
  readonly encoder: AnswerEncoder;
  /** As in `FastServer`. */
  readonly refuse: (found: FoundRequest) => RestReply;
  readonly answer: (request: FastRequest) => RestReply | null | Promise<RestReply | null>;
  readonly handOn: (socket: Socket) => void;
  /** As in `FastServer`. Default: as Node.js counts it. */
  readonly activeMs?: () => number;
}

const CHECK_EVERY_MS = 5000;

export class FastFront implements FastServer {
  readonly maxBodyBytes: number;
  readonly findRequest: FindRequest;
  readonly ledger: Ledger;
  isClosing = false;
  readonly #connections = new Set<FastConnection>();
  readonly #checking: NodeJS.Timeout;

  constructor(private readonly options: FrontOptions) {
    this.maxBodyBytes = options.maxBodyBytes;
    this.findRequest = options.findRequest;
    this.ledger = options.ledger;
    this.#checking = setInterval(() => this.checkTimes(steadyNowMs()), CHECK_EVERY_MS);
    this.#checking.unref();
  }

  /** Takes a connection that a client has opened. */
  take(socket: Socket): void {
    if (this.isClosing) socket.destroy();
    else this.#connections.add(new FastConnection(socket, this));
  }

  /** Number of connections that have not been handed on. */
  get connections(): number {
    return this.#connections.size;
  }

  /** Ends connections that have waited too long. */
  checkTimes(nowMs: number): void {
    for (const connection of this.#connections) connection.checkTime(nowMs);
  }

  /** From now on a connection ends with the answer of its running request; those without one are closed. */
  close(): void {
    this.isClosing = true;
    clearInterval(this.#checking);
    for (const connection of this.#connections) connection.closeIfIdle();
  }

  /** Closes all that is left. */
  cut(): void {
    for (const connection of this.#connections) connection.cut();
  }

  answer(request: FastRequest): RestReply | null | Promise<RestReply | null> {
    const { answer, encoder } = this.options;
    const reply = answer(request);
    const { accepted } = request.head;
    if (accepted === undefined || reply === null) return reply;
    if (!(reply instanceof Promise)) return encoder.encode(reply, accepted);
    return reply.then((later) => (later === null ? null : encoder.encode(later, accepted)));
  }

  refuse(found: FoundRequest): RestReply {
    return this.options.refuse(found);
  }

  handOn(socket: Socket): void {
    this.options.handOn(socket);
  }

  forget(connection: FastConnection): void {
    this.#connections.delete(connection);
  }

  nowMs(): number {
    return steadyNowMs();
  }

  activeMs(): number {
    return this.options.activeMs?.() ?? performance.eventLoopUtilization().active;
  }
}
