/**
 * Many small calls and their replies on one stream: a call of its own costs several times as much. Nothing is sent before the other
 * side has answered the hello, so that a call that is still here has not reached anybody.
 */

import type { PeerId } from '../../protocols/model/cluster.js';
import { type DataReply, LostAnswer, NotReached } from '../data-messages.js';
import type { ShownCertificate } from './certified.js';
import { type CallFrame, decodeCallFrame, encodeCallFrame, type NumberedBytes, unpackReply } from './codec/calls.js';
import { EMPTY_FRAME, type Hello } from './codec/frames.js';
import { dialCalls } from './dial-calls.js';
import type { Way } from './entrance.js';
import type { FrameStream, StreamEvents } from './streams.js';

/** A frame is full from here on. */
const FRAME_BYTES = 1 << 20;
/** Streams of calls that a node takes: a peer has one for each of its threads that call. */
const STREAMS_MAX = 1024;
/** Callers have so long to end their streams. */
const FAREWELL_MS = 500;

/** What a stream of calls begins with. */
export function greetingOf(hello: Hello): Uint8Array {
  return encodeCallFrame({ hello, items: [] });
}

/** Numbered items on their way out, several to a frame when more come than the stream takes. */
class Outbox {
  #items: NumberedBytes[] = [];
  #writing = false;
  #flushing = false;

  /** open: whether items may be sent now. written: a frame has left with the last item that waited. */
  constructor(
    private readonly stream: () => FrameStream,
    private readonly open: () => boolean,
    private readonly written: () => void = () => {},
  ) {}

  get isEmpty(): boolean {
    return this.#items.length === 0 && !this.#writing;
  }

  push(item: NumberedBytes): void {
    this.#items.push(item);
    if (this.#flushing) return;
    this.#flushing = true;
    // What else is sent in this turn joins the frame.
    queueMicrotask(() => {
      this.#flushing = false;
      this.flush();
    });
  }

  /** Whether it was still here. */
  take(number: number): boolean {
    const at = this.#items.findIndex((item) => item.number === number);
    if (at >= 0) this.#items.splice(at, 1);
    return at >= 0;
  }

  flush(): void {
    if (this.#writing || this.#items.length === 0 || !this.open()) return;
    let bytes = 0;
    let count = 0;
    while (count < this.#items.length && bytes < FRAME_BYTES) bytes += (this.#items[count++] as NumberedBytes).bytes.length;
    const items = this.#items.splice(0, count);
    this.#writing = true;
    this.stream().write(encodeCallFrame({ hello: null, items }), () => {
      this.#writing = false;
      this.flush();
      if (this.isEmpty) this.written();
    });
  }
}

interface Waiting {
  readonly resolve: (reply: DataReply) => void;
  readonly reject: (error: Error) => void;
  readonly timer: NodeJS.Timeout;
}

/** The caller's side. */
export class CallStream {
  readonly #waiting = new Map<number, Waiting>();
  readonly #stream: FrameStream;
  readonly #outbox: Outbox;
  #nextNumber = 1;
  #readerPorts: readonly number[] = [];
  #welcome = false;
  /** The other side stops: it still replies to what it was sent. */
  #leaving = false;
  #over = false;

  /** greeting: see `greetingOf`. */
  constructor(
    private readonly peer: PeerId,
    target: string,
    greeting: Uint8Array,
    way: Way,
  ) {
    this.#stream = dialCalls(target, way, {
      frame: (bytes) => this.#received(bytes),
      ended: (reason) => this.#end(`peer ${peer} cannot be reached: ${reason}`, `the stream of calls to peer ${peer} has ended: ${reason}`),
    });
    this.#outbox = new Outbox(
      () => this.#stream,
      () => this.isOpen,
    );
    this.#stream.write(greeting, () => {});
  }

  /** Whether it takes no calls any more. */
  get isOver(): boolean {
    return this.#over || this.#leaving;
  }

  /** Whether the other side has answered the greeting, so that calls leave at once. */
  get isOpen(): boolean {
    return this.#welcome && !this.isOver;
  }

  get size(): number {
    return this.#waiting.size;
  }

  /** Where readers of the other side take streams of calls, as it has told last. */
  get readerPorts(): readonly number[] {
    return this.#readerPorts;
  }

  /** packed: a call, in memory that does not change. Errors: `NotReached`, `LostAnswer`. */
  call(packed: Uint8Array, timeoutMs: number): Promise<DataReply> {
    const number = this.#nextNumber++;
    return new Promise((resolve, reject) => {
      const timer = setTimeout(() => this.#late(number, timeoutMs), timeoutMs);
      this.#waiting.set(number, { resolve, reject, timer });
      this.#outbox.push({ number, bytes: packed });
    });
  }

  close(): void {
    const { peer } = this;
    this.#end(`there is no connection with peer ${peer}`, `the connection with peer ${peer} was lost`);
    this.#stream.close(null);
  }

  #received(bytes: Uint8Array): void {
    if (!this.#welcome) {
      this.#welcome = true;
      this.#outbox.flush();
    }
    let frame: CallFrame;
    try {
      frame = decodeCallFrame(bytes);
      if (frame.readerPorts !== undefined) this.#readerPorts = frame.readerPorts;
    } catch (error) {
      this.#stream.close('that is no frame of replies');
      const detail = `peer ${this.peer} answers with what is no reply of a peer: ${(error as Error).message}`;
      this.#end(detail, detail);
      return;
    }
    for (const item of frame.items) this.#answered(item);
    if (frame.isFarewell === true) this.#leave();
  }

  /** What was not sent goes elsewhere. */
  #leave(): void {
    if (this.isOver) return;
    this.#leaving = true;
    for (const number of [...this.#waiting.keys()])
      if (this.#outbox.take(number)) this.#take(number)?.reject(new NotReached(`peer ${this.peer} is stopping`));
    this.#endWhenAnswered();
  }

  #endWhenAnswered(): void {
    if (this.#leaving && !this.#over && this.#waiting.size === 0) this.close();
  }

  #answered({ bytes, number }: NumberedBytes): void {
    const call = this.#take(number);
    if (call === undefined) return;
    try {
      call.resolve(unpackReply(bytes));
    } catch (broken) {
      call.reject(new LostAnswer('unavailable', `peer ${this.peer} answers with what is no reply of a peer`, broken));
    }
    this.#endWhenAnswered();
  }

  #late(number: number, timeoutMs: number): void {
    const unsent = this.#outbox.take(number);
    const call = this.#take(number);
    if (unsent) call?.reject(new NotReached(`peer ${this.peer} cannot be reached: no stream within ${timeoutMs} ms`));
    else call?.reject(new LostAnswer('timeout', `peer ${this.peer} has not answered within ${timeoutMs} ms`));
    this.#endWhenAnswered();
  }

  #end(unsent: string, lost: string): void {
    if (this.#over) return;
    this.#over = true;
    for (const number of [...this.#waiting.keys()]) {
      const error = this.#outbox.take(number) ? new NotReached(unsent) : new LostAnswer('unavailable', lost);
      this.#take(number)?.reject(error);
    }
  }

  #take(number: number): Waiting | undefined {
    const call = this.#waiting.get(number);
    if (call === undefined) return undefined;
    this.#waiting.delete(number);
    clearTimeout(call.timer);
    return call;
  }
}

/** The side that is called. */
export class CallsServer {
  readonly #streams = new Set<{ endWhenDone(): void; tell(frame: Uint8Array): void }>();
  /** Answers a hello. */
  #welcome: Uint8Array = EMPTY_FRAME;
  /** leaving: callers have been told to end their streams. ending: this side ends those that are left. */
  #phase: 'serving' | 'leaving' | 'ending' = 'serving';
  #allEnded: () => void = () => {};

  /** serve: the packed reply to a packed call; does not reject. */
  constructor(private readonly serve: (hello: Hello, packed: Uint8Array, certificate: ShownCertificate) => Promise<Uint8Array>) {}

  /** open: begins the stream that was taken. certificate: that its connection has shown. */
  accept(open: (events: StreamEvents) => FrameStream, certificate?: ShownCertificate): void {
    let hello: Hello | null = null;
    let carriedOut = 0;
    let over = false;
    const gone = (): void => {
      over = true;
      this.#streams.delete(handle);
      if (this.#streams.size === 0) this.#allEnded();
    };
    const end = (reason: string | null): void => {
      gone();
      stream.close(reason);
    };
    const endWhenDone = (): void => {
      if (this.#phase === 'ending' && !over && carriedOut === 0 && outbox.isEmpty) end(null);
    };
    const handle = {
      endWhenDone,
      tell: (frame: Uint8Array) => {
        if (hello !== null) stream.write(frame, () => {});
      },
    };
    const carryOut = (from: Hello, { bytes, number }: NumberedBytes): void => {
      carriedOut++;
      void this.serve(from, bytes, certificate).then((reply) => {
        carriedOut--;
        if (!over) outbox.push({ number, bytes: reply });
      });
    };
    const greet = (): void => {
      // A call from a caller without an answer to its hello was not sent.
      if (this.#phase === 'serving') stream.write(this.#welcome, () => {});
      else end(null);
    };
    const stream = open({
      frame: (bytes) => {
        try {
          const frame = decodeCallFrame(bytes);
          if (hello === null) {
            ({ hello } = frame);
            if (hello === null) throw new Error('a call says not who calls');
            greet();
            if (over) return;
          }
          for (const item of frame.items) carryOut(hello, item);
        } catch (error) {
          end((error as Error).message);
        }
      },
      ended: gone,
    });
    const outbox = new Outbox(
      () => stream,
      () => !over,
      endWhenDone,
    );
    if (this.#streams.size >= STREAMS_MAX) {
      end('too many streams of calls');
      return;
    }
    this.#streams.add(handle);
    endWhenDone();
  }

  /** Where readers of this node take streams of calls: callers are told, now and as others come. */
  tellReaderPorts(readerPorts: readonly number[]): void {
    this.#welcome = encodeCallFrame({ hello: null, items: [], readerPorts });
    this.#tellAll(this.#welcome);
  }

  /** Streams that are open. */
  get size(): number {
    return this.#streams.size;
  }

  /**
   * Callers are told to end their streams, so that no call is under way when one ends. Resolves when all have. Streams of callers that do
   * not listen, as those of releases before this one, end later when what was called for on them is answered.
   */
  async close(): Promise<void> {
    this.#phase = 'leaving';
    this.#tellAll(encodeCallFrame({ hello: null, items: [], isFarewell: true }));
    await new Promise<void>((resolve) => {
      const impatient = setTimeout(resolve, FAREWELL_MS);
      this.#allEnded = () => {
        clearTimeout(impatient);
        resolve();
      };
      if (this.#streams.size === 0) this.#allEnded();
    });
    this.#phase = 'ending';
    for (const stream of [...this.#streams]) stream.endWhenDone();
  }

  #tellAll(frame: Uint8Array): void {
    for (const stream of this.#streams) stream.tell(frame);
  }
}
