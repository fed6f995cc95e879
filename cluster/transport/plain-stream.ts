/**
 * A stream of calls on a plain TCP connection: each frame with its length before it. A call costs 0.7 of what it costs on a stream of gRPC
 * (both ends, on one machine). The connection is one of the internal port: what it begins with tells which of the two it is.
 *
 *     caller: preface, then frames       u32 length (little endian), u8 kind, body of that length
 *     called: frames                     kind 0: a frame of calls or replies; 1: why the stream is refused, UTF-8: the last frame
 */

import type { Duplex } from 'node:stream';
import type { FrameStream, StreamEvents } from './streams.js';

/** The number is the version of what follows. No request of HTTP begins like this. */
export const PLAIN_PREFACE = Buffer.from('TROUPE CALLS 1\n', 'latin1');

const HEADER_BYTES = 5;
const FRAME = 0;
const REFUSAL = 1;
/** A reason that is longer is cut. */
const REASON_BYTES_MAX = 4096;
const LEAVING_MS = 300;

export interface PlainEvents extends StreamEvents {
  /** The other side takes no stream of calls. Told instead of `ended`. */
  refused(reason: string): void;
}

/** bytesMax: of a frame. preface: what the other side begins with. */
export interface PlainOptions {
  readonly bytesMax: number;
  readonly preface: Buffer | null;
}

/** A connection's frames. It is destroyed at its end, and when it breaks the rules. */
export function plainStream(socket: Duplex, { bytesMax, preface }: PlainOptions, events: PlainEvents): FrameStream {
  const reader = new FrameReader(bytesMax, preface);
  let over = false;
  const end = (tell: () => void): void => {
    if (over) return;
    over = true;
    socket.destroy();
    tell();
  };
  const received = (chunk: Buffer): void => {
    if (over) return;
    try {
      for (const { body, kind } of reader.push(chunk)) {
        if (over) return;
        if (kind === REFUSAL) end(() => events.refused(body.toString('utf8')));
        else events.frame(body);
      }
    } catch (error) {
      end(() => events.ended((error as Error).message));
    }
  };
  socket.on('data', received);
  socket.on('end', () => end(() => events.ended('the other side has ended the stream')));
  socket.on('error', (error) => end(() => events.ended(error.message)));
  socket.on('close', () => end(() => events.ended('the connection was cut')));
  return {
    write: (bytes, done) => {
      if (over) return;
      socket.write(framed(FRAME, bytes), (error) => {
        if (error == null) done();
      });
    },
    close: (reason) => {
      if (over) return;
      over = true;
      if (reason !== null) socket.write(framed(REFUSAL, Buffer.from(reason).subarray(0, REASON_BYTES_MAX)));
      socket.end();
      // Gives what was written the time to leave; a stream that is stuck is cut.
      setTimeout(() => socket.destroy(), LEAVING_MS).unref();
    },
  };
}

function framed(kind: number, body: Uint8Array): Buffer {
  const bytes = Buffer.allocUnsafe(HEADER_BYTES + body.length);
  bytes.writeUInt32LE(body.length, 0);
  bytes[4] = kind;
  bytes.set(body, HEADER_BYTES);
  return bytes;
}

interface Framed {
  readonly kind: number;
  readonly body: Buffer;
}

/** Cuts what arrives into frames. */
export class FrameReader {
  private chunks: Buffer[] = [];
  /** Of all chunks. */
  private bytes = 0;

  /** preface: what has to come first; null: nothing. */
  constructor(
    private readonly bytesMax: number,
    private preface: Buffer | null,
  ) {}

  /** The frames that are whole now. Errors: for another preface, a kind that is none and a frame that is too long. */
  push(chunk: Buffer): Framed[] {
    this.chunks.push(chunk);
    this.bytes += chunk.length;
    const frames: Framed[] = [];
    if (this.preface !== null) {
      if (this.bytes < this.preface.length) return frames;
      if (!this.take(this.preface.length).equals(this.preface)) throw new Error('that is no stream of calls');
      this.preface = null;
    }
    for (let next = this.next(); next !== null; next = this.next()) frames.push(next);
    return frames;
  }

  private next(): Framed | null {
    if (this.bytes < HEADER_BYTES) return null;
    if ((this.chunks[0] as Buffer).length < HEADER_BYTES) this.join();
    const first = this.chunks[0] as Buffer;
    const length = first.readUInt32LE(0);
    const kind = first[4] as number;
    if (kind !== FRAME && kind !== REFUSAL) throw new Error(`a frame of the unknown kind ${kind}`);
    if (length > this.bytesMax) throw new Error(`a frame of ${length} bytes; at most ${this.bytesMax} are taken`);
    if (this.bytes < HEADER_BYTES + length) return null;
    return { kind, body: this.take(HEADER_BYTES + length).subarray(HEADER_BYTES) };
  }

  /** The first bytes of what has come, which has as many. */
  private take(count: number): Buffer {
    if ((this.chunks[0] as Buffer).length < count) this.join();
    const first = this.chunks[0] as Buffer;
    this.bytes -= count;
    if (first.length === count) this.chunks.shift();
    else this.chunks[0] = first.subarray(count);
    return first.subarray(0, count);
  }

  private join(): void {
    this.chunks = [Buffer.concat(this.chunks)];
  }
}
