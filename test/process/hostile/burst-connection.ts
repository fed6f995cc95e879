/**
 * One connection to a node on which several requests are sent at once, before the first of them is answered (pipelining). It is light, as it shares
 * the machine with the node: bodies are written as they are, and of an answer only its beginning and its end are kept.
 */

import { connect, type Socket } from 'node:net';

export interface BurstRequest {
  readonly method: string;
  readonly path: string;
  readonly body: Buffer | undefined;
}

export interface BurstAnswer {
  readonly status: number;
  /** The beginning of the body. */
  readonly text: string;
  /** Milliseconds that the node says it took; null where it says nothing. */
  readonly nodeMs: number | null;
}

/** What is told of a burst. */
export interface BurstEvents {
  /** Of each answer as it comes, in their order. */
  readonly answered: (at: number, answer: BurstAnswer) => void;
  /** The system has taken all bytes of the requests. Not told when the connection breaks before. */
  readonly sent?: () => void;
}

const TEXT_BYTES_MAX = 300;
/** The time of a node stands at the end of its answer. */
const END_BYTES = 80;

export class BurstConnection {
  #socket: Socket | null = null;

  constructor(private readonly port: number) {}

  /**
   * Sends the requests at once. Those behind one whose answer closes the connection are sent again on another one. Rejects when the connection
   * ends without such an answer.
   */
  async ask(requests: readonly BurstRequest[], { answered, sent }: BurstEvents): Promise<void> {
    for (let from = 0; from < requests.length; ) {
      const first = from;
      from += await this.#askFrom(requests.slice(first), { answered: (at, answer) => answered(first + at, answer), ...(sent && { sent }) });
    }
  }

  close(): void {
    this.#socket?.destroy();
    this.#socket = null;
  }

  /** How many were answered: all, or those up to an answer that closes the connection. */
  #askFrom(requests: readonly BurstRequest[], { answered, sent }: BurstEvents): Promise<number> {
    const socket = this.#socket ?? connect({ host: '127.0.0.1', port: this.port, noDelay: true });
    this.#socket = socket;
    return new Promise((done, refuse) => {
      let count = 0;
      const end = (settle: () => void, isOver: boolean): void => {
        socket.removeAllListeners();
        // A connection that breaks later is nobody's.
        socket.on('error', () => {});
        if (isOver) this.close();
        settle();
      };
      const broken = (why: string): void => end(() => refuse(new Error(`${why}; ${count} of ${requests.length} were answered`)), true);
      const answers = new Answers();
      socket.on('error', (error) => broken(error.message));
      socket.on('close', () => broken('the connection broke'));
      socket.on('data', (bytes: Buffer) => {
        try {
          for (let answer = answers.take(bytes); answer !== null; answer = answers.take()) {
            answered(count++, answer);
            if (answer.isLast || count === requests.length) {
              end(() => done(count), answer.isLast);
              return;
            }
          }
        } catch (error) {
          broken(String(error));
        }
      });
      socket.cork();
      const parts = requests.flatMap(({ body, method, path }) => {
        const length = body === undefined ? '' : `content-type: application/json\r\ncontent-length: ${body.length}\r\n`;
        const head = Buffer.from(`${method} ${path} HTTP/1.1\r\nhost: node\r\n${length}\r\n`);
        return body === undefined ? [head] : [head, body];
      });
      for (const [at, part] of parts.entries()) socket.write(part, at === parts.length - 1 ? (error) => error || sent?.() : undefined);
      socket.uncork();
    });
  }
}

interface OpenAnswer {
  readonly status: number;
  readonly isLast: boolean;
  missing: number;
  start: Buffer;
  end: Buffer;
}

/** Puts answers together from the bytes of a connection. */
class Answers {
  #unread: Buffer = Buffer.alloc(0);
  #open: OpenAnswer | null = null;

  /** The next whole answer, null while there is none. bytes: that have come since. */
  take(bytes?: Buffer): (BurstAnswer & { readonly isLast: boolean }) | null {
    if (bytes !== undefined) this.#unread = this.#unread.length === 0 ? bytes : Buffer.concat([this.#unread, bytes]);
    this.#open ??= this.#begin();
    const open = this.#open;
    if (open === null) return null;
    const part = this.#unread.subarray(0, open.missing);
    this.#unread = this.#unread.subarray(part.length);
    open.missing -= part.length;
    if (open.start.length < TEXT_BYTES_MAX) open.start = Buffer.concat([open.start, part.subarray(0, TEXT_BYTES_MAX)]);
    open.end = Buffer.concat([open.end, part.subarray(-END_BYTES)]).subarray(-END_BYTES);
    if (open.missing > 0) return null;
    this.#open = null;
    const time = /"time":([\d.e+-]+)/.exec(open.end.toString('latin1'))?.[1];
    return {
      status: open.status,
      text: open.start.toString('utf8', 0, TEXT_BYTES_MAX),
      nodeMs: time === undefined ? null : Number(time) * 1000,
      isLast: open.isLast,
    };
  }

  #begin(): OpenAnswer | null {
    const headBytes = this.#unread.indexOf('\r\n\r\n') + 4;
    if (headBytes < 4) return null;
    const head = this.#unread.toString('latin1', 0, headBytes);
    const length = /\r\ncontent-length: (\d+)\r\n/i.exec(head)?.[1];
    if (length === undefined) throw new Error(`an answer without a length: ${head}`);
    this.#unread = this.#unread.subarray(headBytes);
    const empty = Buffer.alloc(0);
    return {
      status: Number(head.slice(9, 12)),
      isLast: /\r\nconnection: close\r\n/i.test(head),
      missing: Number(length),
      start: empty,
      end: empty,
    };
  }
}
