/**
 * The server's side of one HTTP/2 connection: bytes in, requests and bytes out. It knows no socket and no clock. Source: RFC 9113.
 *
 * What a client could use to wear the server out is bounded: streams at once (those that it gave up and that still work included), resets,
 * the size of a header block and of its fields, what waits to be sent.
 */

import * as h2 from '../../protocols/http2/frames.js';
import { type FieldList, HpackDecoder, TOO_LARGE } from '../../protocols/http2/hpack-decoder.js';
import { HpackEncoder, literalBlock } from '../../protocols/http2/hpack-encoder.js';
import { type Http2Stream, NO_HANDLER, newStream, type StreamHandler } from './http2-stream.js';
import { bodyLength, requestProblem } from './request-fields.js';

export interface SessionEvents {
  /** A request begins. Its fields are valid; they are the same list again when a client repeats them. */
  request(stream: Http2Stream, fields: FieldList): StreamHandler;
  /** There is something to take. */
  output(): void;
}

/** Fields of nearly every answer, beside the status. */
export const USUAL_FIELDS: FieldList = ['content-type', 'application/grpc+proto', 'grpc-accept-encoding', 'identity,deflate,gzip'];

export const STREAMS_MAX = 1024;
const FRAME_BYTES_MAX = 1 << 20;
const STREAM_WINDOW = 4 << 20;
const CONNECTION_WINDOW = 16 << 20;
const HEADER_LIST_BYTES_MAX = 32 << 10;
const HEADER_BLOCK_BYTES_MAX = 64 << 10;
const CONTINUATIONS_MAX = 16;
/** Of every frame but DATA. */
const CONTROL_BYTES_MAX = 64 << 10;
/** Resets that a client has at hand, and how fast they come back. Source: nghttp2's limits against «rapid reset» (CVE-2023-44487). */
const RESETS_MAX = 1000;
const RESETS_PER_SECOND = 33;

/** The payload of a DATA frame that has not come whole. */
interface OpenData {
  readonly stream: Http2Stream | undefined;
  readonly endsStream: boolean;
  left: number;
  padding: number;
}

/** A header block that goes on in CONTINUATION frames. */
interface OpenBlock {
  readonly streamId: number;
  readonly endsStream: boolean;
  readonly parts: Buffer[];
  bytes: number;
}

export class Http2Session {
  /** By id. */
  readonly streams = new Map<number, Http2Stream>();
  /** Requests that were given up and whose work has not ended: they count as streams. */
  abandoned = 0;
  /** No request is taken any more; what runs may end. */
  closing = false;
  /** The connection can't go on: what is to be sent is sent, and it ends. */
  broken = false;
  private readonly decoder = new HpackDecoder(HEADER_LIST_BYTES_MAX);
  private readonly encoder = new HpackEncoder(USUAL_FIELDS);
  private out: Uint8Array[] = [];
  /** The beginning of a frame that has not come whole; null when there is none. */
  private rest: Buffer | null = null;
  private prefaceSeen = false;
  private settingsSeen = false;
  private openData: OpenData | null = null;
  private openBlock: OpenBlock | null = null;
  private skipping = 0;
  private lastStream = 0;
  private validFields: FieldList | null = null;
  private validBodyLength: number | null = null;
  private receiveWindow = CONNECTION_WINDOW;
  private unacknowledged = 0;
  private sendWindow = h2.WINDOW_DEFAULT;
  private peerStreamWindow = h2.WINDOW_DEFAULT;
  private peerFrameBytes = h2.FRAME_BYTES_DEFAULT;
  /** Of answers that wait for the client's windows. */
  waitingBytes = 0;
  private paused = false;
  private resets = RESETS_MAX;
  private resetsAtMs = 0;

  constructor(private readonly events: SessionEvents) {
    this.out.push(
      h2.settingsFrame([
        [h2.SETTINGS_MAX_CONCURRENT_STREAMS, STREAMS_MAX],
        [h2.SETTINGS_INITIAL_WINDOW_SIZE, STREAM_WINDOW],
        [h2.SETTINGS_MAX_FRAME_SIZE, FRAME_BYTES_MAX],
        [h2.SETTINGS_MAX_HEADER_LIST_SIZE, HEADER_LIST_BYTES_MAX],
      ]),
      h2.numberFrame(h2.WINDOW_UPDATE, 0, CONNECTION_WINDOW - h2.WINDOW_DEFAULT),
    );
  }

  // ---------------------------------------------------------------- in

  /** How far the client has come. */
  get stage(): 'silent' | 'connected' | 'asking' {
    return this.lastStream > 0 ? 'asking' : this.settingsSeen ? 'connected' : 'silent';
  }

  /** Takes what came from the client. nowMs: of any clock that does not go back. */
  receive(bytes: Buffer, nowMs: number): void {
    if (this.broken) return;
    try {
      this.read(bytes, nowMs);
    } catch (error) {
      if (!(error instanceof h2.ConnectionError)) throw error;
      this.breakOff(error.code);
    }
    if (this.out.length > 0) this.events.output();
  }

  /** The client is gone. */
  lost(): void {
    this.broken = true;
    this.out = [];
    for (const stream of [...this.streams.values()]) this.forget(stream);
  }

  private read(bytes: Buffer, nowMs: number): void {
    let chunk = bytes;
    if (this.rest !== null) {
      chunk = Buffer.concat([this.rest, bytes]);
      this.rest = null;
    }
    let at = 0;
    if (!this.prefaceSeen) {
      if (!startsLike(chunk, h2.PREFACE)) throw new h2.ConnectionError(h2.PROTOCOL_ERROR, 'this is not HTTP/2');
      if (chunk.length < h2.PREFACE.length) {
        this.rest = Buffer.from(chunk);
        return;
      }
      this.prefaceSeen = true;
      at = h2.PREFACE.length;
    }
    while (at < chunk.length && !this.broken) {
      const next = this.readSome(chunk, at, nowMs);
      if (next < 0) break;
      at = next;
    }
    // The chunk's memory is the socket's: what is kept is copied.
    if (at < chunk.length && !this.broken) this.rest = Buffer.from(chunk.subarray(at));
  }

  /** Reads one frame, or a part of a DATA frame; returns where the next one begins, or -1 when more bytes are needed. */
  private readSome(chunk: Buffer, at: number, nowMs: number): number {
    if (this.openData !== null) return this.readData(this.openData, chunk, at);
    if (this.skipping > 0) {
      const skipped = Math.min(this.skipping, chunk.length - at);
      this.skipping -= skipped;
      return at + skipped;
    }
    if (chunk.length - at < h2.FRAME_HEAD_BYTES) return -1;
    const length = ((chunk[at] as number) << 16) | ((chunk[at + 1] as number) << 8) | (chunk[at + 2] as number);
    const type = chunk[at + 3] as number;
    const flags = chunk[at + 4] as number;
    const streamId = h2.readUint32(chunk, at + 5) & 0x7fff_ffff;
    this.checkFrame(type, length, streamId);
    const from = at + h2.FRAME_HEAD_BYTES;
    if (type === h2.DATA) {
      const padded = (flags & h2.PADDED) !== 0;
      if (padded && chunk.length === from) return -1;
      this.startData(length, flags, streamId, padded ? (chunk[from] as number) : -1);
      return padded ? from + 1 : from;
    }
    if (type > h2.CONTINUATION) {
      this.skipping = length;
      return from;
    }
    if (chunk.length - from < length) return -1;
    this.control(type, flags, streamId, chunk.subarray(from, from + length), nowMs);
    return from + length;
  }

  private checkFrame(type: number, length: number, streamId: number): void {
    if (length > FRAME_BYTES_MAX) throw new h2.ConnectionError(h2.FRAME_SIZE_ERROR, 'a frame is larger than agreed');
    if (!this.settingsSeen && type !== h2.SETTINGS_FRAME)
      throw new h2.ConnectionError(h2.PROTOCOL_ERROR, 'the first frame has to be SETTINGS');
    if (type !== h2.DATA && type <= h2.CONTINUATION && length > CONTROL_BYTES_MAX) {
      throw new h2.ConnectionError(h2.ENHANCE_YOUR_CALM, 'a frame is too large');
    }
    const { openBlock } = this;
    if (openBlock !== null && (type !== h2.CONTINUATION || streamId !== openBlock.streamId)) {
      throw new h2.ConnectionError(h2.PROTOCOL_ERROR, 'a header block was interrupted');
    }
  }

  private control(type: number, flags: number, streamId: number, payload: Buffer, nowMs: number): void {
    switch (type) {
      case h2.HEADERS:
        this.headers(flags, streamId, payload);
        return;
      case h2.CONTINUATION:
        this.continuation(flags, payload);
        return;
      case h2.PRIORITY:
        if (streamId === 0) throw new h2.ConnectionError(h2.PROTOCOL_ERROR, 'PRIORITY belongs to a stream');
        if (payload.length !== 5) this.resetKnown(streamId, h2.FRAME_SIZE_ERROR);
        return;
      case h2.RST_STREAM:
        this.resetByClient(streamId, payload, nowMs);
        return;
      case h2.SETTINGS_FRAME:
        this.settings(flags, streamId, payload);
        return;
      case h2.PING:
        if (streamId !== 0) throw new h2.ConnectionError(h2.PROTOCOL_ERROR, 'PING belongs to the connection');
        if (payload.length !== 8) throw sizeError();
        if ((flags & h2.ACK) === 0) this.out.push(h2.frame(h2.PING, h2.ACK, 0, payload));
        return;
      case h2.GOAWAY:
        if (streamId !== 0) throw new h2.ConnectionError(h2.PROTOCOL_ERROR, 'GOAWAY belongs to the connection');
        if (payload.length < 8) throw sizeError();
        return;
      case h2.WINDOW_UPDATE:
        this.windowUpdate(streamId, payload);
        return;
      default:
        throw new h2.ConnectionError(h2.PROTOCOL_ERROR, 'clients do not push');
    }
  }

  // ---------------------------------------------------------------- requests

  private headers(flags: number, streamId: number, payload: Buffer): void {
    if ((streamId & 1) === 0) throw new h2.ConnectionError(h2.PROTOCOL_ERROR, 'a client opens streams with odd numbers');
    const padded = (flags & h2.PADDED) !== 0;
    const from = (padded ? 1 : 0) + ((flags & h2.HAS_PRIORITY) !== 0 ? 5 : 0);
    const to = payload.length - (padded ? (payload[0] ?? 0) : 0);
    if (from > payload.length) throw sizeError();
    if (from > to) throw new h2.ConnectionError(h2.PROTOCOL_ERROR, 'there is more padding than frame');
    const block = payload.subarray(from, to);
    const endsStream = (flags & h2.END_STREAM) !== 0;
    if ((flags & h2.END_HEADERS) !== 0) this.block(streamId, endsStream, block);
    else this.openBlock = { streamId, endsStream, parts: [Buffer.from(block)], bytes: block.length };
  }

  private continuation(flags: number, payload: Buffer): void {
    const open = this.openBlock;
    if (open === null) throw new h2.ConnectionError(h2.PROTOCOL_ERROR, 'there is no header block to continue');
    open.parts.push(Buffer.from(payload));
    open.bytes += payload.length;
    if (open.bytes > HEADER_BLOCK_BYTES_MAX || open.parts.length > CONTINUATIONS_MAX) {
      throw new h2.ConnectionError(h2.ENHANCE_YOUR_CALM, 'a header block is too large');
    }
    if ((flags & h2.END_HEADERS) === 0) return;
    this.openBlock = null;
    this.block(open.streamId, open.endsStream, Buffer.concat(open.parts));
  }

  /** A whole header block: of a new request, or of the fields after a body. */
  private block(streamId: number, endsStream: boolean, block: Buffer): void {
    const fields = this.decoder.decode(block);
    const known = this.streams.get(streamId);
    if (known !== undefined) {
      if (known.requestEnded) this.reset(known, h2.STREAM_CLOSED);
      else if (!endsStream) this.reset(known, h2.PROTOCOL_ERROR);
      else this.requestEnded(known);
      return;
    }
    // The stream is over, and the client did not know it yet.
    if (streamId <= this.lastStream) return;
    this.lastStream = streamId;
    if (this.closing || this.streams.size + this.abandoned >= STREAMS_MAX) {
      this.out.push(h2.numberFrame(h2.RST_STREAM, streamId, h2.REFUSED_STREAM));
      return;
    }
    const stream = newStream(streamId, STREAM_WINDOW, this.peerStreamWindow, NO_HANDLER);
    this.streams.set(streamId, stream);
    if (fields === TOO_LARGE) this.refuse(stream, '431');
    else if (fields !== this.validFields && requestProblem(fields) !== null) this.reset(stream, h2.PROTOCOL_ERROR);
    else {
      if (fields !== this.validFields) this.validBodyLength = bodyLength(fields);
      this.validFields = fields;
      stream.bodyLeft = this.validBodyLength;
      stream.handler = this.events.request(stream, fields);
    }
    if (endsStream && !stream.closed) this.requestEnded(stream);
  }

  /** A body of another length than the request says makes it malformed. Source: RFC 9113, section 8.1.1. */
  private requestEnded(stream: Http2Stream): void {
    if (stream.bodyLeft !== null && stream.bodyLeft > 0) {
      this.reset(stream, h2.PROTOCOL_ERROR);
      return;
    }
    stream.requestEnded = true;
    stream.handler.end();
  }

  private startData(length: number, flags: number, streamId: number, padding: number): void {
    if (streamId === 0 || streamId > this.lastStream) throw new h2.ConnectionError(h2.PROTOCOL_ERROR, 'DATA belongs to an open stream');
    if (padding >= 0 && length === 0) throw sizeError();
    if (padding >= length && padding >= 0) throw new h2.ConnectionError(h2.PROTOCOL_ERROR, 'there is more padding than frame');
    if (length > this.receiveWindow) throw new h2.ConnectionError(h2.FLOW_CONTROL_ERROR, 'there is more DATA than allowed');
    this.receiveWindow -= length;
    this.unacknowledged += length;
    const left = padding >= 0 ? length - 1 - padding : length;
    const stream = this.open(streamId, length, left);
    const data = { stream, endsStream: (flags & h2.END_STREAM) !== 0, left, padding: Math.max(0, padding) };
    if (data.left + data.padding === 0) this.dataEnded(data);
    else this.openData = data;
  }

  /** The stream that takes a frame of DATA; undefined when its bytes are for nobody. bytes: those of the body among them. */
  private open(streamId: number, length: number, bytes: number): Http2Stream | undefined {
    const stream = this.streams.get(streamId);
    if (stream === undefined) return undefined;
    const problem = dataProblem(stream, length, bytes);
    if (problem !== null) {
      this.reset(stream, problem);
      return undefined;
    }
    stream.receiveWindow -= length;
    stream.unacknowledged += length;
    if (stream.bodyLeft !== null) stream.bodyLeft -= bytes;
    return stream;
  }

  private readData(data: OpenData, chunk: Buffer, from: number): number {
    const { stream } = data;
    let at = from;
    const bytes = Math.min(data.left, chunk.length - at);
    if (bytes > 0) {
      if (stream !== undefined && !stream.closed) stream.handler.data(chunk.subarray(at, at + bytes));
      data.left -= bytes;
      at += bytes;
    }
    const padding = Math.min(data.padding, chunk.length - at);
    data.padding -= padding;
    at += padding;
    if (data.left + data.padding === 0) {
      this.openData = null;
      this.dataEnded(data);
    }
    return at;
  }

  private dataEnded({ stream, endsStream }: OpenData): void {
    if (this.unacknowledged >= CONNECTION_WINDOW / 2) {
      this.out.push(h2.numberFrame(h2.WINDOW_UPDATE, 0, this.unacknowledged));
      this.receiveWindow += this.unacknowledged;
      this.unacknowledged = 0;
    }
    if (stream === undefined || stream.closed) return;
    if (endsStream) this.requestEnded(stream);
    else if (stream.unacknowledged >= STREAM_WINDOW / 2) {
      this.out.push(h2.numberFrame(h2.WINDOW_UPDATE, stream.id, stream.unacknowledged));
      stream.receiveWindow += stream.unacknowledged;
      stream.unacknowledged = 0;
    }
  }

  // ---------------------------------------------------------------- the connection

  private settings(flags: number, streamId: number, payload: Buffer): void {
    if (streamId !== 0) throw new h2.ConnectionError(h2.PROTOCOL_ERROR, 'SETTINGS belong to the connection');
    const acknowledges = (flags & h2.ACK) !== 0;
    if (!this.settingsSeen && acknowledges) throw new h2.ConnectionError(h2.PROTOCOL_ERROR, 'the first frame has to be SETTINGS');
    this.settingsSeen = true;
    if (acknowledges ? payload.length !== 0 : payload.length % 6 !== 0) throw sizeError();
    if (acknowledges) return;
    for (let at = 0; at < payload.length; at += 6) this.setting(payload.readUInt16BE(at), payload.readUInt32BE(at + 2));
    this.out.push(h2.frame(h2.SETTINGS_FRAME, h2.ACK, 0));
    this.sendWaiting();
  }

  private setting(id: number, value: number): void {
    switch (id) {
      case h2.SETTINGS_HEADER_TABLE_SIZE:
        this.encoder.setTableBytes(value);
        return;
      case h2.SETTINGS_ENABLE_PUSH:
        if (value > 1) throw new h2.ConnectionError(h2.PROTOCOL_ERROR, 'ENABLE_PUSH is 0 or 1');
        return;
      case h2.SETTINGS_INITIAL_WINDOW_SIZE: {
        if (value > h2.WINDOW_MAX) throw new h2.ConnectionError(h2.FLOW_CONTROL_ERROR, 'the initial window is too large');
        const change = value - this.peerStreamWindow;
        this.peerStreamWindow = value;
        for (const stream of this.streams.values()) {
          stream.sendWindow += change;
          if (stream.sendWindow > h2.WINDOW_MAX) throw new h2.ConnectionError(h2.FLOW_CONTROL_ERROR, 'a window is too large');
        }
        return;
      }
      case h2.SETTINGS_MAX_FRAME_SIZE:
        if (value < h2.FRAME_BYTES_DEFAULT || value > h2.FRAME_BYTES_LIMIT) {
          throw new h2.ConnectionError(h2.PROTOCOL_ERROR, 'MAX_FRAME_SIZE is out of its range');
        }
        this.peerFrameBytes = value;
        return;
      default:
        return;
    }
  }

  private windowUpdate(streamId: number, payload: Buffer): void {
    if (payload.length !== 4) throw sizeError();
    const more = h2.readUint32(payload, 0) & 0x7fff_ffff;
    if (streamId === 0) {
      this.sendWindow += more;
      if (more === 0) throw new h2.ConnectionError(h2.PROTOCOL_ERROR, 'a window grows by 0');
      if (this.sendWindow > h2.WINDOW_MAX) throw new h2.ConnectionError(h2.FLOW_CONTROL_ERROR, 'the window is too large');
      this.sendWaiting();
      return;
    }
    this.checkKnown(streamId);
    const stream = this.streams.get(streamId);
    if (stream === undefined) return;
    stream.sendWindow += more;
    if (more === 0 || stream.sendWindow > h2.WINDOW_MAX) this.reset(stream, more === 0 ? h2.PROTOCOL_ERROR : h2.FLOW_CONTROL_ERROR);
    else this.pump(stream);
  }

  private resetByClient(streamId: number, payload: Buffer, nowMs: number): void {
    if (streamId === 0) throw new h2.ConnectionError(h2.PROTOCOL_ERROR, 'RST_STREAM belongs to a stream');
    if (payload.length !== 4) throw sizeError();
    this.checkKnown(streamId);
    const stream = this.streams.get(streamId);
    if (stream === undefined) return;
    this.resets = Math.min(RESETS_MAX, this.resets + ((nowMs - this.resetsAtMs) * RESETS_PER_SECOND) / 1000) - 1;
    this.resetsAtMs = nowMs;
    if (this.resets < 0) throw new h2.ConnectionError(h2.ENHANCE_YOUR_CALM, 'too many requests were given up');
    this.forget(stream);
  }

  private resetKnown(streamId: number, code: number): void {
    const stream = this.streams.get(streamId);
    if (stream !== undefined) this.reset(stream, code);
  }

  /** No frame but those that open streams or rank them may name one that is not open yet. */
  private checkKnown(streamId: number): void {
    if ((streamId & 1) === 0 || streamId > this.lastStream) throw new h2.ConnectionError(h2.PROTOCOL_ERROR, 'the stream is not open');
  }

  // ---------------------------------------------------------------- out

  /** What is to be sent, in order. */
  take(): Uint8Array[] {
    const { out } = this;
    this.out = [];
    return out;
  }

  /**
   * A whole answer: the usual fields, the body and the last fields.
   * body: its parts, which the caller does not use any more; lastBlock: a `literalBlock`.
   */
  answer(stream: Http2Stream, body: readonly Uint8Array[], lastBlock: Uint8Array): void {
    if (stream.closed) return;
    const block = this.encoder.usualBlock();
    const length = body.reduce((sum, part) => sum + part.length, 0);
    const fits = length <= this.peerFrameBytes && length <= this.sendWindow && length <= stream.sendWindow && !this.paused;
    const bytes = Buffer.allocUnsafe(2 * h2.FRAME_HEAD_BYTES + block.length + (fits ? length + h2.FRAME_HEAD_BYTES + lastBlock.length : 0));
    let at = put(bytes, h2.writeFrameHead(bytes, 0, block.length, h2.HEADERS, h2.END_HEADERS, stream.id), block);
    if (!fits) {
      this.out.push(bytes.subarray(0, at));
      stream.waiting.push(...body);
      this.waitingBytes += length;
      stream.lastBlock = lastBlock;
      this.pump(stream);
    } else {
      this.sendWindow -= length;
      at = h2.writeFrameHead(bytes, at, length, h2.DATA, 0, stream.id);
      for (const part of body) at = put(bytes, at, part);
      at = h2.writeFrameHead(bytes, at, lastBlock.length, h2.HEADERS, h2.END_HEADERS | h2.END_STREAM, stream.id);
      put(bytes, at, lastBlock);
      this.out.push(bytes);
      this.answered(stream);
    }
    this.events.output();
  }

  /** An answer without a body. fields: with the status. */
  answerEmpty(stream: Http2Stream, fields: FieldList): void {
    if (stream.closed) return;
    this.sendBlock(stream, h2.END_HEADERS | h2.END_STREAM, literalBlock(fields));
    this.answered(stream);
    this.events.output();
  }

  /** The first fields of an answer in parts, with the status. */
  begin(stream: Http2Stream, fields: FieldList): void {
    if (stream.closed) return;
    this.sendBlock(stream, h2.END_HEADERS, literalBlock(fields));
    this.events.output();
  }

  /** More of an answer in parts. The caller does not use the bytes any more. */
  send(stream: Http2Stream, bytes: Uint8Array): void {
    if (stream.closed) return;
    stream.waiting.push(bytes);
    this.waitingBytes += bytes.length;
    this.pump(stream);
    this.events.output();
  }

  /** The last fields of an answer in parts. */
  finish(stream: Http2Stream, fields: FieldList): void {
    if (stream.closed) return;
    stream.lastBlock = literalBlock(fields);
    this.pump(stream);
    this.events.output();
  }

  /** Gives the stream up. */
  reset(stream: Http2Stream, code: number): void {
    if (stream.closed) return;
    this.out.push(h2.numberFrame(h2.RST_STREAM, stream.id, code));
    this.forget(stream);
    this.events.output();
  }

  /** paused: the client does not read what was sent; bodies wait until it does. */
  pause(paused: boolean): void {
    this.paused = paused;
    if (paused) return;
    this.sendWaiting();
    if (this.out.length > 0) this.events.output();
  }

  /** Takes no new request. */
  shutDown(): void {
    if (this.closing || this.broken) return;
    this.closing = true;
    this.out.push(h2.goAwayFrame(this.lastStream, h2.NO_ERROR));
    this.events.output();
  }

  private sendBlock(stream: Http2Stream, flags: number, block: Uint8Array): void {
    this.out.push(h2.frame(h2.HEADERS, flags, stream.id, this.encoder.prefix(), block));
  }

  private refuse(stream: Http2Stream, status: string): void {
    this.answerEmpty(stream, [':status', status]);
  }

  private sendWaiting(): void {
    for (const stream of this.streams.values()) {
      if (stream.waiting.length > 0 || stream.lastBlock !== null) this.pump(stream);
    }
  }

  /** Sends as much of what waits as the client's windows allow. */
  private pump(stream: Http2Stream): void {
    const { waiting } = stream;
    while (waiting.length > 0 && !this.paused) {
      const next = waiting[0] as Uint8Array;
      const bytes = Math.min(next.length, this.peerFrameBytes, this.sendWindow, stream.sendWindow);
      if (bytes <= 0 && next.length > 0) return;
      if (bytes > 0) {
        this.out.push(h2.frame(h2.DATA, 0, stream.id, next.subarray(0, bytes)));
        this.sendWindow -= bytes;
        stream.sendWindow -= bytes;
        this.waitingBytes -= bytes;
      }
      if (bytes === next.length) waiting.shift();
      else waiting[0] = next.subarray(bytes);
    }
    if (waiting.length > 0 || stream.lastBlock === null) return;
    this.sendBlock(stream, h2.END_HEADERS | h2.END_STREAM, stream.lastBlock);
    this.answered(stream);
  }

  /** The whole answer is on its way. */
  private answered(stream: Http2Stream): void {
    stream.closed = true;
    this.streams.delete(stream.id);
    // The client need not send the rest of its request.
    if (!stream.requestEnded) {
      this.out.push(h2.numberFrame(h2.RST_STREAM, stream.id, h2.NO_ERROR));
      stream.handler.cancelled();
    }
  }

  /** Nobody answers the stream any more. */
  private forget(stream: Http2Stream): void {
    stream.closed = true;
    for (const bytes of stream.waiting) this.waitingBytes -= bytes.length;
    stream.waiting.length = 0;
    this.streams.delete(stream.id);
    stream.handler.cancelled();
  }

  private breakOff(code: number): void {
    this.out.push(h2.goAwayFrame(this.lastStream, code));
    this.broken = true;
    for (const stream of [...this.streams.values()]) this.forget(stream);
  }
}

/** Why a stream can't take a frame of DATA; null if it can. */
function dataProblem({ bodyLeft, receiveWindow, requestEnded }: Http2Stream, length: number, bytes: number): number | null {
  if (requestEnded) return h2.STREAM_CLOSED;
  if (length > receiveWindow) return h2.FLOW_CONTROL_ERROR;
  return bodyLeft !== null && bytes > bodyLeft ? h2.PROTOCOL_ERROR : null;
}

function put(to: Uint8Array, at: number, bytes: Uint8Array): number {
  to.set(bytes, at);
  return at + bytes.length;
}

/** Whether `bytes` and `start` are equal as far as both go. */
function startsLike(bytes: Uint8Array, start: Uint8Array): boolean {
  const length = Math.min(bytes.length, start.length);
  for (let at = 0; at < length; at++) if (bytes[at] !== start[at]) return false;
  return true;
}

function sizeError(): h2.ConnectionError {
  return new h2.ConnectionError(h2.FRAME_SIZE_ERROR, 'a frame has the wrong size');
}
