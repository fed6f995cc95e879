/**
 * A stream of calls on a plain TCP connection: each frame with its length before it. A call costs 0.7 of what it costs on a stream of gRPC
 * (both ends, on one machine). The connection is one of the internal port: what it begins with tells which of the two it is.
 *
 *     caller: preface, then frames       u32 length (little endian), u8 kind, body of that length
 *     called: frames                     kind 0: a frame of calls or replies; 1: why the stream is refused, UTF-8: the last frame
 */

import type { Duplex } from 'node:stream';
import { FrameSlicer, frameOf } from './length-frames.js';
import type { FrameStream, StreamEvents } from './streams.js';

/** The number is the version of what follows. No request of HTTP begins like this. */
export const PLAIN_PREFACE = Buffer.from('TROUPE CALLS 1\n', 'latin1');

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
  const slicer = new FrameSlicer({ bodyBytesMax: bytesMax, kindMax: REFUSAL, preface, what: 'calls' });
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
      slicer.push(chunk, (kind, body) => {
        if (kind === REFUSAL) end(() => events.refused(body.toString('utf8')));
        else events.frame(body);
        return !over;
      });
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
      socket.write(frameOf(FRAME, bytes), (error) => {
        if (error == null) done();
      });
    },
    close: (reason) => {
      if (over) return;
      over = true;
      if (reason !== null) socket.write(frameOf(REFUSAL, Buffer.from(reason).subarray(0, REASON_BYTES_MAX)));
      socket.end();
      // Gives what was written the time to leave; a stream that is stuck is cut.
      setTimeout(() => socket.destroy(), LEAVING_MS).unref();
    },
  };
}
