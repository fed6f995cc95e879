/**
 * Opens a stream of calls to a peer: on a plain connection, or as a stream of gRPC where the peer takes no other, as releases before this one do.
 * Nothing but the hello is sent before the first frame from the other side, so what was sent to a peer that does not understand it is sent again.
 */

import { connect, type Socket } from 'node:net';
import { http } from '../../protocols/late-modules.js';
import { ENTER_MS, enterPort, isOpen, type Way } from './entrance.js';
import { PLAIN_PREFACE, plainStream } from './plain-stream.js';
import { CALL_BYTES_MAX } from './queue.js';
import { dialGrpcCalls, type FrameStream, KEEPALIVE_MS, type StreamEvents } from './streams.js';

/** How long a peer may take until its first frame on a plain connection. */
const FIRST_FRAME_MS = 2000;

/** target: `host:port`. What is written before the other side is there is sent then. */
export function dialCalls(target: string, way: Way, events: StreamEvents): FrameStream {
  // A proxy for gRPC passes nothing else on. Nodes with TLS or a key are none of a release that takes streams of gRPC alone.
  if (process.env.grpc_proxy !== undefined) return dialGrpcCalls(target, way, events);
  if (!isOpen(way.entrance)) return dialMember(target, way, events);
  const socket = connectTo(target);
  socket.write(PLAIN_PREFACE);

  const hello: Uint8Array[] = [];
  let isUnderstood = false;
  const understood = (): void => {
    isUnderstood = true;
    clearTimeout(patience);
  };
  const plain = plainStream(
    socket,
    { bytesMax: CALL_BYTES_MAX, preface: null },
    {
      frame: (bytes) => {
        if (!isUnderstood) understood();
        events.frame(bytes);
      },
      refused: (reason) => {
        understood();
        events.ended(`refused: ${reason}`);
      },
      ended: (reason) => {
        clearTimeout(patience);
        if (isUnderstood) events.ended(reason);
        else dialAgain();
      },
    },
  );
  let stream = plain;
  const dialAgain = (): void => {
    stream = dialGrpcCalls(target, way, events);
    for (const bytes of hello) stream.write(bytes, () => {});
  };
  const patience = setTimeout(() => {
    plain.close(null);
    dialAgain();
  }, FIRST_FRAME_MS);
  return {
    write: (bytes, done) => {
      if (!isUnderstood) hello.push(bytes);
      stream.write(bytes, done);
    },
    close: (reason) => {
      clearTimeout(patience);
      stream.close(reason);
    },
  };
}

/** On a plain connection that the peer lets in first. */
function dialMember(target: string, way: Way, events: StreamEvents): FrameStream {
  const early: [Uint8Array, () => void][] = [];
  let stream: FrameStream | null = null;
  let isOver = false;
  dialPlain(target, way).then(
    (socket) => {
      if (isOver) {
        socket.destroy();
        return;
      }
      socket.write(PLAIN_PREFACE);
      const refused = (reason: string): void => events.ended(`refused: ${reason}`);
      stream = plainStream(socket, { bytesMax: CALL_BYTES_MAX, preface: null }, { ...events, refused });
      socket.resume();
      for (const [bytes, done] of early) stream.write(bytes, done);
    },
    (error: Error) => {
      if (isOver) return;
      isOver = true;
      events.ended(error.message);
    },
  );
  return {
    write: (bytes, done) => {
      if (stream === null) early.push([bytes, done]);
      else stream.write(bytes, done);
    },
    close: (reason) => {
      isOver = true;
      stream?.close(reason);
    },
  };
}

/** A plain connection that the peer at this address has let in, of which nothing was read, through `grpc_proxy` if that is set. Errors: why it is none. */
export async function dialPlain(target: string, way: Way): Promise<Socket> {
  const host = new URL(`http://${target}`).hostname;
  try {
    const proxy = process.env.grpc_proxy;
    return await enterPort(proxy === undefined ? connectTo(target) : await tunnelTo(target, proxy), host, way.entrance);
  } catch (error) {
    way.failed(host, (error as Error).message);
    throw error;
  }
}

function connectTo(target: string): Socket {
  return connect({ ...placeOf(`http://${target}`), noDelay: true, keepAlive: true, keepAliveInitialDelay: KEEPALIVE_MS });
}

function placeOf(url: string): { readonly host: string; readonly port: number } {
  const { hostname, port } = new URL(url);
  return { host: hostname.replace(/^\[(.*)\]$/, '$1'), port: Number(port || 80) };
}

/** Errors: what the proxy says, or how the connection with it ends. */
function tunnelTo(target: string, proxy: string): Promise<Socket> {
  const asked = http().request({ ...placeOf(proxy), method: 'CONNECT', path: target, headers: { host: target }, agent: false });
  return new Promise((resolve, reject) => {
    const patience = setTimeout(() => asked.destroy(new Error('the proxy does not answer')), ENTER_MS);
    asked.once('error', (error) => {
      clearTimeout(patience);
      reject(error);
    });
    asked.once('connect', ({ httpVersion, statusCode, statusMessage }, socket: Socket, early: Buffer) => {
      clearTimeout(patience);
      if (statusCode !== 200) {
        socket.destroy();
        reject(new Error(`the proxy answers: HTTP/${httpVersion} ${statusCode} ${statusMessage}`));
        return;
      }
      socket.setNoDelay(true).setKeepAlive(true, KEEPALIVE_MS).pause();
      if (early.length > 0) socket.unshift(early);
      resolve(socket);
    });
    asked.end();
  });
}
