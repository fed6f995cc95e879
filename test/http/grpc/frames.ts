/** Frames as a client sends them, and as it reads them. */

import * as h2 from '../../../protocols/http2/frames.js';
import { literalBlock } from '../../../protocols/http2/hpack-encoder.js';

export interface Frame {
  readonly type: number;
  readonly flags: number;
  readonly stream: number;
  readonly payload: Buffer;
}

export const REQUEST = [
  ':method',
  'POST',
  ':scheme',
  'http',
  ':path',
  '/qdrant.Points/Count',
  'content-type',
  'application/grpc',
  'te',
  'trailers',
];

/** The beginning of each connection. */
export const HELLO = bytes(h2.PREFACE, h2.settingsFrame([]));

/** Frames in one piece, as they come from a socket. */
export function bytes(...parts: readonly Uint8Array[]): Buffer {
  return Buffer.concat(parts);
}

/** The header of a request. */
export function headers(stream: number, fields: readonly string[] = REQUEST, flags: number = h2.END_HEADERS): Uint8Array {
  return h2.frame(h2.HEADERS, flags, stream, literalBlock(fields));
}

/** A part of a body. */
export function data(stream: number, body: Uint8Array, flags = 0): Uint8Array {
  return h2.frame(h2.DATA, flags, stream, body);
}

/** A message with its prefix. */
export function message(body: Uint8Array, flag = 0): Buffer {
  const prefix = Buffer.alloc(5);
  prefix[0] = flag;
  prefix.writeUInt32BE(body.length, 1);
  return Buffer.concat([prefix, body]);
}

/** All frames of what was sent. Throws when the last one is not whole. */
export function framesOf(sent: Uint8Array): Frame[] {
  const all = Buffer.from(sent);
  const frames: Frame[] = [];
  for (let at = 0; at < all.length; ) {
    const length = all.readUIntBE(at, 3);
    const end = at + h2.FRAME_HEAD_BYTES + length;
    if (end > all.length) throw new Error('the last frame is not whole');
    const payload = all.subarray(at + h2.FRAME_HEAD_BYTES, end);
    frames.push({ type: all.readUInt8(at + 3), flags: all.readUInt8(at + 4), stream: all.readUInt32BE(at + 5), payload });
    at = end;
  }
  return frames;
}
