/** The called side of a connection between two readers: answers questions for portions one after the other, as long as the caller may ask. */

import type { Socket } from 'node:net';
import { certificateOf, type ShownCertificate } from '../../cluster/transport/certified.js';
import { decodeCallFrame } from '../../cluster/transport/codec/calls.js';
import type { Hello } from '../../cluster/transport/codec/frames.js';
import { frameOf } from '../../cluster/transport/length-frames.js';
import type { PortionQuestion } from '../../storage/reader/reader.js';
import type { PortionResult } from '../../storage/threads/messages.js';
import { answerFrame, HELLO, portionSlicer, QUESTION, QUESTION_BYTES_MAX, READS_PREFACE, REFUSAL, readQuestion } from './portion-frames.js';
import { takeBytes } from './socket-bytes.js';

/** Answers that the caller does not take: it is cut off. */
const UNSENT_BYTES_MAX = 64 << 20;
/** Of questions that wait while a caller is judged anew. */
const EARLY_BYTES_MAX = 4 << 20;
/** Until the hello. */
const HELLO_MS = 5000;
/** Whether a caller may ask is judged anew after so long: addresses of members, and so the certificates that name them, change. */
const JUDGED_MS = 1000;
/** What was answered gets so long to leave. */
const LEAVING_MS = 300;

export interface AskerHost {
  /** Monotonic. */
  readonly nowMs: () => number;
  /** Null: the main thread has to be asked. */
  answer(question: PortionQuestion): PortionResult | null;
  /** Whether who says this hello and has shown this certificate may ask. */
  judge(hello: Hello, certificate: ShownCertificate): Promise<boolean>;
}

export class Asker {
  readonly #slicer = portionSlicer(QUESTION_BYTES_MAX, READS_PREFACE);
  readonly #patience: NodeJS.Timeout;
  #hello: Hello | null = null;
  #judgedMs = Number.NEGATIVE_INFINITY;
  /** Bodies of questions that came while the caller was judged anew; null: it is not being judged. */
  #early: Buffer[] | null = null;
  #earlyBytes = 0;
  #isOver = false;

  /** socket: let in, not flowing. */
  constructor(
    private readonly socket: Socket,
    private readonly host: AskerHost,
  ) {
    this.#patience = setTimeout(() => socket.destroy(), HELLO_MS);
    for (const event of ['error', 'end', 'close']) socket.on(event, () => this.#cut());
    const begun = socket.read() as Buffer | null;
    takeBytes(socket, { take: (bytes) => this.#received(bytes), place: () => null });
    if (begun !== null) this.#received(begun);
  }

  /** What was asked is answered. */
  end(): void {
    if (this.#isOver) return;
    this.#isOver = true;
    clearTimeout(this.#patience);
    this.socket.end();
    setTimeout(() => this.socket.destroy(), LEAVING_MS).unref();
  }

  #cut(): void {
    this.#isOver = true;
    clearTimeout(this.#patience);
    this.socket.destroy();
  }

  #received(bytes: Buffer): void {
    if (this.#isOver) return;
    // What answers the questions of one read leaves together.
    this.socket.cork();
    try {
      this.#slicer.push(bytes, (kind, body) => this.#frame(kind, body));
    } catch (error) {
      this.#refuse((error as Error).message);
    } finally {
      this.socket.uncork();
    }
  }

  #frame(kind: number, body: Buffer): boolean {
    if (kind === QUESTION && this.#hello !== null) this.#asked(this.#hello, body);
    else if (kind === HELLO && this.#hello === null) this.#greeted(body);
    else this.#refuse(`a frame of the kind ${kind} at the wrong place`);
    return !this.#isOver;
  }

  #greeted(body: Buffer): void {
    const { hello } = decodeCallFrame(Buffer.from(body));
    if (hello === null) throw new Error('a caller says not who it is');
    clearTimeout(this.#patience);
    this.#hello = hello;
    this.#early = this.#judge(hello, () => this.socket.write(frameOf(HELLO, new Uint8Array(0))));
  }

  #asked(hello: Hello, body: Buffer): void {
    if (this.#early === null && this.host.nowMs() - this.#judgedMs < JUDGED_MS) {
      this.#answer(body);
      return;
    }
    this.#early ??= this.#judge(hello, () => {});
    this.#earlyBytes += body.length;
    if (this.#judgedMs === Number.NEGATIVE_INFINITY || this.#earlyBytes > EARLY_BYTES_MAX) throw new Error('too many questions too early');
    this.#early.push(Buffer.from(body));
  }

  /** Goes on with what comes meanwhile, or refuses the caller, which asks the main thread then. Returned is where that waits. */
  #judge(hello: Hello, admitted: () => void): Buffer[] {
    const early: Buffer[] = [];
    void this.host.judge(hello, certificateOf(this.socket)).then((isAdmitted) => {
      this.#early = null;
      this.#earlyBytes = 0;
      if (this.#isOver) return;
      if (!isAdmitted) {
        this.#refuse('this node does not know the caller');
        return;
      }
      this.#judgedMs = this.host.nowMs();
      admitted();
      try {
        for (const body of early) if (!this.#isOver) this.#answer(body);
      } catch (error) {
        this.#refuse((error as Error).message);
      }
    });
    return early;
  }

  /** Errors: of bytes that are no question. */
  #answer(body: Buffer): void {
    const { number, question } = readQuestion(body);
    this.socket.write(answerFrame(number, this.host.answer(question)));
    if (this.socket.writableLength > UNSENT_BYTES_MAX) this.#cut();
  }

  #refuse(reason: string): void {
    if (this.#isOver) return;
    this.socket.write(frameOf(REFUSAL, Buffer.from(reason)));
    this.end();
  }
}
