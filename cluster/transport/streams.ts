/** A gRPC stream of two peers as both of its ends see it: bytes of frames, and an end that is told once. */

import { Client, credentials, type ServerDuplexStream, type ServiceError, status } from '@grpc/grpc-js';
import { isOpen, type Way } from './entrance.js';
import { PeerCredentials } from './peer-credentials.js';
import { CALL_BYTES_MAX, FRAME_BYTES_MAX } from './queue.js';

export const CONNECT_PATH = '/troupe.peer.Peers/Connect';
export const ASK_PATH = '/troupe.peer.Peers/Ask';
export const CALL_PATH = '/troupe.peer.Peers/Call';
export const CALLS_PATH = '/troupe.peer.Peers/Calls';

export interface StreamEvents {
  frame(bytes: Uint8Array): void;
  /** The stream has ended and was not closed by this side; told once. reason: what the other side or the system said. */
  ended(reason: string): void;
}

export interface FrameStream {
  /** done: the frame has left this process and another one may follow. Not called when the stream ends before. */
  write(bytes: Uint8Array, done: () => void): void;
  /** Ends it behind what was written; no events from here on. reason: null in good order, else what the other side shall be told. */
  close(reason: string | null): void;
}

/** A client of a peer's internal port. Each has its own connection: it is gone with the client, and a new one looks the name up again. */
export function newClient(target: string, way: Way): Client {
  return clientOf(target, way, FRAME_BYTES_MAX);
}

/** A client for calls, whose answers may be large. */
export function newCallClient(target: string, way: Way): Client {
  return clientOf(target, way, CALL_BYTES_MAX);
}

function clientOf(target: string, way: Way, receivedBytesMax: number): Client {
  const host = target.replace(/:\d+$/, '');
  const own = isOpen(way.entrance)
    ? credentials.createInsecure()
    : new PeerCredentials(host, way.entrance, (reason) => way.failed(host, reason));
  return new Client(target, own, {
    'grpc.use_local_subchannel_pool': 1,
    'grpc.enable_retries': 0,
    'grpc.max_receive_message_length': receivedBytesMax,
    'grpc.max_send_message_length': -1,
    'grpc-node.flow_control_window': FLOW_WINDOW_BYTES,
    'grpc.service_config_disable_resolution': 1,
    // Proxies for the web are not meant for peers; one for gRPC is.
    'grpc.enable_http_proxy': process.env.grpc_proxy === undefined ? 0 : 1,
  });
}

/** Half-open connections are noticed by the silence of their streams; this lets the side that was called drop what is left of them. */
export const KEEPALIVE_MS = 10_000;
/** What may be under way to this side before it has read it: a frame. */
const FLOW_WINDOW_BYTES = 1 << 20;

/** Opens the stream of two peers. */
export function dialStream(target: string, way: Way, events: StreamEvents): FrameStream {
  return streamOf(newClient(target, way), CONNECT_PATH, events);
}

/** Opens a stream of calls to a peer, on gRPC. */
export function dialGrpcCalls(target: string, way: Way, events: StreamEvents): FrameStream {
  return streamOf(newCallClient(target, way), CALLS_PATH, events);
}

function streamOf(client: Client, path: string, events: StreamEvents): FrameStream {
  const call = client.makeBidiStreamRequest<Buffer, Buffer>(path, asIs, asIs);
  const once = new OnceEnded(events);
  const end = (reason: string) => {
    once.ended(reason);
    client.close();
  };
  call.on('data', (bytes: Buffer) => once.frame(bytes));
  call.on('end', () => end('the other side has ended the stream'));
  call.on('error', (error: ServiceError) => end(said(error)));
  return {
    write: (bytes, done) => writeTo(call, once, bytes, done),
    close: () => {
      once.silence();
      call.end();
      // Gives what was written the time to leave; a stream that is stuck is cut.
      setTimeout(() => {
        call.cancel();
        client.close();
      }, LEAVING_MS).unref();
    },
  };
}

/** A call that was taken. */
export function acceptedStream(call: ServerDuplexStream<Buffer, Buffer>, events: StreamEvents): FrameStream {
  const once = new OnceEnded(events);
  let closed = false;
  call.on('data', (bytes: Buffer) => once.frame(bytes));
  call.on('end', () => {
    once.ended('the other side has ended the stream');
    if (!closed) call.end();
    closed = true;
  });
  call.on('cancelled', () => once.ended('the other side has cut the stream'));
  call.on('error', (error: Error) => once.ended(error.message));
  return {
    write: (bytes, done) => writeTo(call, once, bytes, done),
    close: (reason) => {
      once.silence();
      if (closed) return;
      closed = true;
      if (reason === null) call.end();
      else call.emit('error', Object.assign(new Error(reason), { code: status.FAILED_PRECONDITION, details: reason }));
      setTimeout(() => call.destroy(), LEAVING_MS).unref();
    },
  };
}

const LEAVING_MS = 300;

/** Passes events on until the end, which it tells once. */
class OnceEnded implements StreamEvents {
  over = false;

  constructor(private readonly events: StreamEvents) {}

  frame(bytes: Uint8Array): void {
    if (!this.over) this.events.frame(bytes);
  }

  ended(reason: string): void {
    if (this.over) return;
    this.over = true;
    this.events.ended(reason);
  }

  silence(): void {
    this.over = true;
  }
}

interface Writable {
  write(chunk: Buffer, done: (error?: Error | null) => void): boolean;
}

function writeTo(call: Writable, once: OnceEnded, bytes: Uint8Array, done: () => void): void {
  if (once.over) return;
  call.write(Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length), (error) => {
    if (error) once.ended(error.message);
    else done();
  });
}

function said({ code, details, message }: ServiceError): string {
  if (code === status.FAILED_PRECONDITION) return `refused: ${details}`;
  if (code === status.UNIMPLEMENTED) return NO_PEER;
  return code === status.UNAVAILABLE ? whyUnreachable(details) : details || message;
}

export const NO_PEER = 'what listens there is no internal port of a peer (cluster.p2p.port, 6335 by default)';

/** What the system said, or what is left of it behind a proxy. */
export function whyUnreachable(details: string): string {
  const cause = /^No connection established\. Last error: (.*?)\.? Resolution note: ?(.*)$/s.exec(details);
  if (cause === null) return details;
  // gRPC's words for an answer that is no HTTP/2, such as that of the REST port.
  if (cause[1]?.startsWith('Protocol error')) return NO_PEER;
  const first = cause[1]?.replace(/^Error: /, '').replace(/ \(\d{4}-\S+Z\)$/, '');
  const said = [first, cause[2]].filter((text) => text !== undefined && text !== '' && text !== 'undefined');
  return ['no connection', ...said].join(': ');
}

export function asIs(bytes: Buffer): Buffer {
  return bytes;
}
