/**
 * One connection to a gRPC server that carries one call after the other, as thin as the load client's other connections: frames are made
 * and read by hand, and a call leaves in one write, as clients in compiled languages send it. A client that costs more than the
 * server would leave the server asleep between calls, and what waking it costs would be counted as the server's work.
 */

import type { Socket } from 'node:net';
import {
  ACK,
  DATA,
  END_HEADERS,
  END_STREAM,
  FRAME_BYTES_DEFAULT,
  FRAME_HEAD_BYTES,
  frame,
  GOAWAY,
  HEADERS,
  numberFrame,
  PING,
  PREFACE,
  RST_STREAM,
  readUint32,
  SETTINGS_ENABLE_PUSH,
  SETTINGS_FRAME,
  SETTINGS_INITIAL_WINDOW_SIZE,
  SETTINGS_MAX_FRAME_SIZE,
  settingsFrame,
  WINDOW_DEFAULT,
  WINDOW_UPDATE,
} from '../../../protocols/http2/frames.js';
import { type FieldList, HpackDecoder } from '../../../protocols/http2/hpack-decoder.js';
import type { LoadAccess } from './jobs.js';
import { type Lane, type LaneDone, openSocket } from './lane.js';

/** Bytes of answers that may be under way. */
const WINDOW = 64 << 20;
const HEADER_LIST_BYTES_MAX = 64 << 10;
const SETTING_BYTES = 6;

/** Fields of every request but those of HPACK's own table: name and value in turn. */
const USUAL: FieldList = [':authority', '127.0.0.1', 'content-type', 'application/grpc', 'te', 'trailers'];
/** `:method: POST` and `:scheme: http`. */
const STATIC = Uint8Array.of(0x83, 0x86);
const WITH_INDEXING = 0x40;
const INDEXED = 0x80;
/** The number of the field that entered the table last. */
const NEWEST = 62;

export async function openGrpc(port: number, access?: LoadAccess): Promise<Lane> {
  return new GrpcLane(await openSocket(port, 'h2', access), access?.metadata ?? []);
}

class GrpcLane implements Lane {
  private readonly decoder = new HpackDecoder(HEADER_LIST_BYTES_MAX);
  private pending: Buffer | null = null;
  private closed = false;
  private done: LaneDone = () => {};
  private fail: (error: Error) => void = () => {};
  private path = '';
  private stream = -1;
  private parts: Buffer[] = [];
  private status = '';
  private details = '';
  /** What the server's windows do not allow yet. */
  private body: Buffer | null = null;
  private sendWindow = WINDOW_DEFAULT;
  private streamWindow = WINDOW_DEFAULT;
  private streamWindowAtFirst = WINDOW_DEFAULT;
  private frameBytes = FRAME_BYTES_DEFAULT;
  private unacknowledged = 0;

  /** metadata: fields of each call. */
  constructor(
    private readonly socket: Socket,
    private readonly metadata: FieldList,
  ) {
    const settings = settingsFrame([
      [SETTINGS_ENABLE_PUSH, 0],
      [SETTINGS_INITIAL_WINDOW_SIZE, WINDOW],
    ]);
    socket.write(Buffer.concat([PREFACE, settings, numberFrame(WINDOW_UPDATE, 0, WINDOW - WINDOW_DEFAULT)]));
    socket.on('data', (chunk: Buffer) => this.receive(chunk));
    socket.on('error', (error) => this.fail(error));
    socket.on('close', () => {
      if (!this.closed) this.fail(new Error('the server closed a connection'));
    });
  }

  /** request: the path, a zero, and the message with its prefix. */
  send(request: Buffer, done: LaneDone, fail: (error: Error) => void): void {
    this.done = done;
    this.fail = fail;
    const end = request.indexOf(0);
    this.stream += 2;
    this.parts = [];
    this.status = '';
    this.details = '';
    this.streamWindow = this.streamWindowAtFirst;
    this.body = request.subarray(end + 1);
    const head = frame(HEADERS, END_HEADERS, this.stream, STATIC, this.block(request.toString('latin1', 0, end)));
    this.pump([head]);
  }

  close(): void {
    this.closed = true;
    this.socket.destroy();
  }

  /** Fields enter the server's table with the first call of a path; later calls name them by number. */
  private block(path: string): Uint8Array {
    const fields = [':path', path, ...USUAL, ...this.metadata];
    const count = fields.length / 2;
    if (path === this.path) return Uint8Array.from({ length: count }, (_, at) => INDEXED | (NEWEST + count - 1 - at));
    this.path = path;
    const parts: Uint8Array[] = [];
    for (let at = 0; at < fields.length; at += 2) parts.push(Uint8Array.of(WITH_INDEXING), text(fields[at]), text(fields[at + 1]));
    return Buffer.concat(parts);
  }

  /** Sends as much of the message as the windows allow. */
  private pump(frames: Uint8Array[]): void {
    while (this.body !== null) {
      const bytes = Math.min(this.body.length, this.frameBytes, this.sendWindow, this.streamWindow);
      if (bytes <= 0) break;
      const isLast = bytes === this.body.length;
      frames.push(frame(DATA, isLast ? END_STREAM : 0, this.stream, this.body.subarray(0, bytes)));
      this.sendWindow -= bytes;
      this.streamWindow -= bytes;
      this.body = isLast ? null : this.body.subarray(bytes);
    }
    if (frames.length > 0) this.socket.write(Buffer.concat(frames));
  }

  private receive(chunk: Buffer): void {
    const bytes = this.pending === null ? chunk : Buffer.concat([this.pending, chunk]);
    this.pending = null;
    let at = 0;
    while (bytes.length - at >= FRAME_HEAD_BYTES) {
      const to = at + FRAME_HEAD_BYTES + bytes.readUIntBE(at, 3);
      if (to > bytes.length) break;
      this.frame(bytes[at + 3] as number, bytes[at + 4] as number, readUint32(bytes, at + 5), bytes.subarray(at + FRAME_HEAD_BYTES, to));
      at = to;
    }
    if (at < bytes.length) this.pending = bytes.subarray(at);
  }

  private frame(type: number, flags: number, stream: number, payload: Buffer): void {
    switch (type) {
      case DATA:
        this.parts.push(payload);
        this.acknowledge(payload.length);
        break;
      case HEADERS:
        this.headers(flags, payload);
        break;
      case SETTINGS_FRAME:
        if ((flags & ACK) === 0) this.settings(payload);
        return;
      case PING:
        if ((flags & ACK) === 0) this.socket.write(frame(PING, ACK, 0, payload));
        return;
      case WINDOW_UPDATE:
        if (stream === 0) this.sendWindow += readUint32(payload, 0);
        else if (stream === this.stream) this.streamWindow += readUint32(payload, 0);
        this.pump([]);
        return;
      case RST_STREAM:
      case GOAWAY:
        this.fail(new Error(`the server sent a frame of type ${type}: ${payload.toString('hex')}`));
        return;
      default:
        this.fail(new Error(`frames of type ${type} are not expected`));
        return;
    }
    if ((flags & END_STREAM) !== 0) this.answered();
  }

  private headers(flags: number, block: Buffer): void {
    if ((flags & END_HEADERS) === 0) throw new Error('header blocks in parts are not expected');
    const fields = this.decoder.decode(block) ?? [];
    for (let at = 0; at < fields.length; at += 2) {
      if (fields[at] === 'grpc-status') this.status = fields[at + 1] as string;
      if (fields[at] === 'grpc-message') this.details = fields[at + 1] as string;
    }
  }

  private answered(): void {
    const good = this.status === '0';
    const bytes = good ? Buffer.concat(this.parts) : Buffer.from(`grpc-status ${this.status}: ${this.details}`);
    this.done({ good, bytes, bodyAt: 0 });
  }

  private settings(payload: Buffer): void {
    for (let at = 0; at < payload.length; at += SETTING_BYTES) {
      const value = payload.readUInt32BE(at + 2);
      const id = payload.readUInt16BE(at);
      if (id === SETTINGS_MAX_FRAME_SIZE) this.frameBytes = value;
      if (id !== SETTINGS_INITIAL_WINDOW_SIZE) continue;
      this.streamWindow += value - this.streamWindowAtFirst;
      this.streamWindowAtFirst = value;
    }
    this.pump([frame(SETTINGS_FRAME, ACK, 0)]);
  }

  private acknowledge(bytes: number): void {
    this.unacknowledged += bytes;
    if (this.unacknowledged < WINDOW / 2) return;
    this.socket.write(numberFrame(WINDOW_UPDATE, 0, this.unacknowledged));
    this.unacknowledged = 0;
  }
}

/** A text of a header block. Its length is a number of RFC 7541, section 5.1, with a prefix of 7 bits. */
function text(value: string | undefined): Uint8Array {
  const bytes = Buffer.from(value ?? '', 'latin1');
  const length: number[] = [Math.min(bytes.length, 127)];
  if (bytes.length >= 127) {
    let rest = bytes.length - 127;
    for (; rest >= 128; rest >>= 7) length.push((rest & 127) | 128);
    length.push(rest);
  }
  return Buffer.concat([Uint8Array.from(length), bytes]);
}
