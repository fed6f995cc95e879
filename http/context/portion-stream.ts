/**
 * The caller's side of a connection between two readers: questions for portions, numbered, and their answers in any order. Whatever goes wrong with
 * the connection is no error: the peer's main thread is asked then.
 */

import type { Socket } from 'node:net';
import { frameOf } from '../../cluster/transport/length-frames.js';
import type { PortionQuestion } from '../../storage/reader/reader.js';
import type { PortionResult } from '../../storage/threads/messages.js';
import { ANSWER, HELLO, portionSlicer, questionFrame, READS_PREFACE, readAnswer } from './portion-frames.js';
import { takeBytes } from './socket-bytes.js';

/** Of an answer. */
const ANSWER_BYTES_MAX = 256 << 20;
/** More questions, or bytes of them, that the peer has not taken: its main thread is asked. */
const WAITING_MAX = 1024;
const UNSENT_BYTES_MAX = 4 << 20;
/** The longest that Node.js has. */
const TIMER_MS_MAX = 0x7fff_ffff;
/** Timers may be over so early. */
const EARLY_MS = 1;

interface Waiting {
  readonly untilMs: number;
  readonly resolve: (result: PortionResult | null) => void;
  readonly reject: (error: Error) => void;
}

export class PortionStream {
  readonly #waiting = new Map<number, Waiting>();
  readonly #slicer = portionSlicer(ANSWER_BYTES_MAX, null);
  #socket: Socket | null = null;
  #isWelcome = false;
  #isOver = false;
  #number = 0;
  #timer: NodeJS.Timeout | null = null;
  /** When it is over. */
  #timerMs = 0;

  /** greeting: what a stream of calls begins with. dialed: a connection that the peer has let in, of which nothing was read. */
  constructor(greeting: Uint8Array, dialed: Promise<Socket>) {
    dialed.then(
      (socket) => this.#begin(socket, greeting),
      () => this.close(),
    );
  }

  /** Whether it takes no questions any more. */
  get isOver(): boolean {
    return this.#isOver;
  }

  /** Whether the peer has said that this node may ask. */
  get isOpen(): boolean {
    return this.#isWelcome && !this.#isOver;
  }

  /** Null: the main thread has to be asked. Rejects if there is no answer within `waitMs`. */
  ask(question: PortionQuestion, waitMs: number): Promise<PortionResult | null> {
    const socket = this.#socket;
    if (!this.isOpen || socket === null) return Promise.resolve(null);
    if (this.#waiting.size >= WAITING_MAX || socket.writableLength > UNSENT_BYTES_MAX) return Promise.resolve(null);
    this.#number = (this.#number + 1) >>> 0;
    const number = this.#number;
    const frame = questionFrame(number, question);
    if (frame === null) return Promise.resolve(null);
    const nowMs = performance.now();
    const untilMs = nowMs + waitMs;
    return new Promise((resolve, reject) => {
      this.#waiting.set(number, { untilMs, resolve, reject });
      this.#watch(untilMs, nowMs);
      socket.write(frame);
    });
  }

  close(): void {
    if (this.#isOver) return;
    this.#isOver = true;
    if (this.#timer !== null) clearTimeout(this.#timer);
    this.#socket?.destroy();
    for (const { resolve } of this.#waiting.values()) resolve(null);
    this.#waiting.clear();
  }

  #begin(socket: Socket, greeting: Uint8Array): void {
    if (this.#isOver) {
      socket.destroy();
      return;
    }
    this.#socket = socket;
    for (const event of ['error', 'end', 'close']) socket.on(event, () => this.close());
    socket.write(Buffer.concat([READS_PREFACE, frameOf(HELLO, greeting)]));
    takeBytes(socket, { take: (bytes) => this.#received(bytes), place: () => null });
    socket.resume();
  }

  #received(bytes: Buffer): void {
    try {
      this.#slicer.push(bytes, (kind, body) => this.#frame(kind, body));
    } catch {
      this.close();
    }
  }

  #frame(kind: number, body: Buffer): boolean {
    if (kind === ANSWER && this.#isWelcome) this.#answered(body);
    else if (kind === HELLO) this.#isWelcome = true;
    else this.close();
    return !this.#isOver;
  }

  #answered(body: Buffer): void {
    const { number, result } = readAnswer(body);
    const waiting = this.#waiting.get(number);
    this.#waiting.delete(number);
    waiting?.resolve(result);
  }

  /** One timer for all questions, since nearly all are answered long before their time is over. */
  #watch(untilMs: number, nowMs: number): void {
    if (this.#timer !== null && untilMs >= this.#timerMs) return;
    if (this.#timer !== null) clearTimeout(this.#timer);
    this.#timerMs = untilMs;
    this.#timer = setTimeout(() => this.#checkTimes(performance.now()), Math.min(TIMER_MS_MAX, untilMs - nowMs));
  }

  #checkTimes(nowMs: number): void {
    this.#timer = null;
    let nextMs = Number.POSITIVE_INFINITY;
    for (const [number, { reject, untilMs }] of this.#waiting) {
      if (untilMs > nowMs + EARLY_MS) {
        nextMs = Math.min(nextMs, untilMs);
        continue;
      }
      this.#waiting.delete(number);
      reject(new Error('a peer has not answered in time'));
    }
    if (nextMs < Number.POSITIVE_INFINITY) this.#watch(nextMs, nowMs);
  }
}
