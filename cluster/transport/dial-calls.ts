/**
 * Opens a stream of calls to a peer: on a plain connection, or as a stream of gRPC where the peer takes no other, as releases before this one do.
 * Nothing but the hello is sent before the first frame from the other side, so what was sent to a peer that does not understand it is sent again.
 */

import { connect, type Socket } from 'node:net';
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
  const { hostname, port } = new URL(`http://${target}`);
  const host = hostname.replace(/^\[(.*)\]$/, '$1');
  return connect({ host, port: Number(port || 80), noDelay: true, keepAlive: true, keepAliveInitialDelay: KEEPALIVE_MS });
}

/** What a proxy says before the first byte of the other side. */
const HEAD_BYTES_MAX = 8192;

/** Errors: what the proxy says, or how the connection with it ends. */
function tunnelTo(target: string, proxy: string): Promise<Socket> {
  const socket = connectTo(new URL(proxy).host);
  socket.write(`CONNECT ${target} HTTP/1.1\r\nHost: ${target}\r\n\r\n`);
  return new Promise((resolve, reject) => {
    let head = Buffer.alloc(0);
    const failed = (error?: Error): void => {
      clearTimeout(patience);
      socket.destroy();
      reject(error ?? new Error('the proxy has ended the connection'));
    };
    const patience = setTimeout(() => failed(new Error('the proxy does not answer')), ENTER_MS);
    const received = (chunk: Buffer): void => {
      head = Buffer.concat([head, chunk]);
      const end = head.indexOf('\r\n\r\n');
      if (end < 0 && head.length <= HEAD_BYTES_MAX) return;
      const [status = ''] = head.toString('latin1', 0, end).split('\r\n', 1);
      if (!/^HTTP\/1\.\d 200 /.test(status)) {
        failed(new Error(`the proxy answers: ${status}`));
        return;
      }
      clearTimeout(patience);
      socket.off('data', received).off('error', failed).off('close', closed).pause();
      if (head.length > end + 4) socket.unshift(head.subarray(end + 4));
      resolve(socket);
    };
    const closed = (): void => failed();
    socket.on('data', received).once('error', failed).once('close', closed);
  });
}
