/** One connection to a node on which several requests are sent at once, before the first of them is answered (pipelining). */

import { connect, type Socket } from 'node:net';

export interface BurstRequest {
  readonly method: string;
  readonly path: string;
  readonly body: Buffer | string | undefined;
}

export interface BurstAnswer {
  readonly status: number;
  /** The beginning of the body. */
  readonly text: string;
}

const TEXT_BYTES_MAX = 300;

export class BurstConnection {
  #socket: Socket | null = null;

  constructor(private readonly port: number) {}

  /**
   * Sends the requests at once and tells of each answer as it comes, in their order. Requests behind one whose answer closes the connection are
   * sent again on another one. Rejects when the connection ends without such an answer.
   */
  async ask(requests: readonly BurstRequest[], answered: (at: number, answer: BurstAnswer) => void): Promise<void> {
    for (let from = 0; from < requests.length; ) {
      const first = from;
      from += await this.#askFrom(requests.slice(first), (at, answer) => answered(first + at, answer));
    }
  }

  close(): void {
    this.#socket?.destroy();
    this.#socket = null;
  }

  /** How many were answered: all, or those up to an answer that closes the connection. */
  #askFrom(requests: readonly BurstRequest[], answered: (at: number, answer: BurstAnswer) => void): Promise<number> {
    const socket = this.#socket ?? connect({ host: '127.0.0.1', port: this.port, noDelay: true });
    this.#socket = socket;
    return new Promise((done, refuse) => {
      let count = 0;
      let unread: Buffer = Buffer.alloc(0);
      const end = (settle: () => void, isOver: boolean): void => {
        socket.removeAllListeners();
        // A connection that breaks later is nobody's.
        socket.on('error', () => {});
        if (isOver) this.close();
        settle();
      };
      const broken = (why: string): void => end(() => refuse(new Error(`${why}; ${count} of ${requests.length} were answered`)), true);
      socket.on('error', (error) => broken(error.message));
      socket.on('close', () => broken('the connection broke'));
      socket.on('data', (bytes: Buffer) => {
        unread = unread.length === 0 ? bytes : Buffer.concat([unread, bytes]);
        for (let answer = answerOf(unread); answer !== null; answer = answerOf(unread)) {
          unread = unread.subarray(answer.bytes);
          answered(count++, answer);
          if (answer.isLast || count === requests.length) {
            end(() => done(count), answer.isLast);
            return;
          }
        }
      });
      socket.write(Buffer.concat(requests.map(bytesOfRequest)));
    });
  }
}

function bytesOfRequest({ body, method, path }: BurstRequest): Buffer {
  const bytes = Buffer.from(body ?? '');
  const length = body === undefined ? '' : `content-type: application/json\r\ncontent-length: ${bytes.length}\r\n`;
  return Buffer.concat([Buffer.from(`${method} ${path} HTTP/1.1\r\nhost: node\r\n${length}\r\n`), bytes]);
}

/** The first answer, and how many bytes it takes; null while it is not whole. */
function answerOf(bytes: Buffer): (BurstAnswer & { readonly bytes: number; readonly isLast: boolean }) | null {
  const headBytes = bytes.indexOf('\r\n\r\n') + 4;
  if (headBytes < 4) return null;
  const head = bytes.toString('latin1', 0, headBytes);
  const length = /\r\ncontent-length: (\d+)\r\n/i.exec(head)?.[1];
  if (length === undefined) throw new Error(`an answer without a length: ${head}`);
  const end = headBytes + Number(length);
  if (bytes.length < end) return null;
  const isLast = /\r\nconnection: close\r\n/i.test(head);
  return {
    status: Number(head.slice(9, 12)),
    text: bytes.toString('utf8', headBytes, Math.min(end, headBytes + TEXT_BYTES_MAX)),
    bytes: end,
    isLast,
  };
}
