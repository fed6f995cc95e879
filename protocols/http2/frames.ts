/** HTTP/2 frames and error codes, as far as a server of unary calls needs them. Source: RFC 9113, sections 4, 6 and 7. */

/** Types of frames. Others are skipped. */
export const DATA = 0;
export const HEADERS = 1;
export const PRIORITY = 2;
export const RST_STREAM = 3;
export const SETTINGS_FRAME = 4;
export const PUSH_PROMISE = 5;
export const PING = 6;
export const GOAWAY = 7;
export const WINDOW_UPDATE = 8;
export const CONTINUATION = 9;

export const END_STREAM = 0x1;
/** Of SETTINGS and PING. */
export const ACK = 0x1;
export const END_HEADERS = 0x4;
export const PADDED = 0x8;
export const HAS_PRIORITY = 0x20;

/** Error codes of RST_STREAM and GOAWAY. */
export const NO_ERROR = 0;
export const PROTOCOL_ERROR = 1;
export const INTERNAL_ERROR = 2;
export const FLOW_CONTROL_ERROR = 3;
export const STREAM_CLOSED = 5;
export const FRAME_SIZE_ERROR = 6;
export const REFUSED_STREAM = 7;
export const CANCEL = 8;
export const COMPRESSION_ERROR = 9;
export const ENHANCE_YOUR_CALM = 11;
export const INADEQUATE_SECURITY = 12;

/** Identifiers of settings. */
export const SETTINGS_HEADER_TABLE_SIZE = 1;
export const SETTINGS_ENABLE_PUSH = 2;
export const SETTINGS_MAX_CONCURRENT_STREAMS = 3;
export const SETTINGS_INITIAL_WINDOW_SIZE = 4;
export const SETTINGS_MAX_FRAME_SIZE = 5;
export const SETTINGS_MAX_HEADER_LIST_SIZE = 6;

/** What a client sends before its first frame. */
export const PREFACE: Uint8Array = Buffer.from('PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n', 'latin1');
export const FRAME_HEAD_BYTES = 9;
/** Bytes of a frame's payload before a SETTINGS frame allows more. */
export const FRAME_BYTES_DEFAULT = 16_384;
export const FRAME_BYTES_LIMIT = 0xff_ffff;
/** Bytes of a window before SETTINGS or WINDOW_UPDATE frames change it. */
export const WINDOW_DEFAULT = 65_535;
export const WINDOW_MAX = 0x7fff_ffff;

/** The whole connection cannot go on: the peer gets a GOAWAY with this code. */
export class ConnectionError extends Error {
  constructor(
    readonly code: number,
    message: string,
  ) {
    super(message);
  }
}

/** Writes the head of a frame at `at`; returns where its payload begins. */
export function writeFrameHead(to: Uint8Array, at: number, length: number, type: number, flags: number, stream: number): number {
  to[at] = length >>> 16;
  to[at + 1] = length >>> 8;
  to[at + 2] = length;
  to[at + 3] = type;
  to[at + 4] = flags;
  writeUint32(to, at + 5, stream);
  return at + FRAME_HEAD_BYTES;
}

/** A whole frame; payload: its parts. */
export function frame(type: number, flags: number, stream: number, ...payload: readonly Uint8Array[]): Uint8Array {
  const length = payload.reduce((sum, part) => sum + part.length, 0);
  const bytes = new Uint8Array(FRAME_HEAD_BYTES + length);
  let at = writeFrameHead(bytes, 0, length, type, flags, stream);
  for (const part of payload) {
    bytes.set(part, at);
    at += part.length;
  }
  return bytes;
}

/** RST_STREAM or WINDOW_UPDATE: a frame whose payload is one number. */
export function numberFrame(type: number, stream: number, value: number): Uint8Array {
  const bytes = new Uint8Array(FRAME_HEAD_BYTES + 4);
  writeUint32(bytes, writeFrameHead(bytes, 0, 4, type, 0, stream), value);
  return bytes;
}

export function settingsFrame(settings: readonly (readonly [id: number, value: number])[]): Uint8Array {
  const bytes = new Uint8Array(FRAME_HEAD_BYTES + 6 * settings.length);
  let at = writeFrameHead(bytes, 0, 6 * settings.length, SETTINGS_FRAME, 0, 0);
  for (const [id, value] of settings) {
    bytes[at] = id >>> 8;
    bytes[at + 1] = id;
    writeUint32(bytes, at + 2, value);
    at += 6;
  }
  return bytes;
}

export function goAwayFrame(lastStream: number, code: number): Uint8Array {
  const bytes = new Uint8Array(FRAME_HEAD_BYTES + 8);
  const at = writeFrameHead(bytes, 0, 8, GOAWAY, 0, 0);
  writeUint32(bytes, at, lastStream);
  writeUint32(bytes, at + 4, code);
  return bytes;
}

/** Big endian. */
export function readUint32(bytes: Uint8Array, at: number): number {
  return (
    (((bytes[at] as number) << 24) | ((bytes[at + 1] as number) << 16) | ((bytes[at + 2] as number) << 8) | (bytes[at + 3] as number)) >>> 0
  );
}

function writeUint32(to: Uint8Array, at: number, value: number): void {
  to[at] = value >>> 24;
  to[at + 1] = value >>> 16;
  to[at + 2] = value >>> 8;
  to[at + 3] = value;
}
