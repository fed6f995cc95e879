/**
 * The bytes of a socket without memory for each read. Node.js takes 64 KiB from the system for every read of a socket; for large bodies
 * that memory, and the collections that free it, cost more than reading. Here all sockets of a thread are read into one buffer, or
 * straight into the place where the bytes belong.
 *
 * `net.connect` has an option for this (`onread`) that a server's sockets lack, so it is set as `net.Socket` does for that option. Where
 * the fields of that option are not found, bytes come as `data` events.
 */

import type { Socket } from 'node:net';

export interface BytesTaker {
  /** Takes what came. The memory is the taker's only until it returns. */
  take(bytes: Buffer): void;
  /** Where the next bytes belong, not empty; null: anywhere. What is read there comes to `take` as this very memory. */
  place(): Buffer | null;
}

/** The fields of a `net.Socket` that has the option. */
interface ReadFields {
  /** Where the next read goes. */
  readonly buffer: symbol;
  /** Gets each read; its answer is false if the socket is to stop reading. */
  readonly taken: symbol;
  /** Gives the buffer of the next read. */
  readonly next: symbol;
}

interface ReadableHandle {
  useUserBuffer(buffer: Uint8Array): void;
}

/** Bytes of one read at most where they have no place of their own. */
const READ_BYTES = 1 << 18;

let shared: Buffer | null = null;

/** Reads a socket for the taker; call what is returned to have further bytes come as `data` events. */
export function takeBytes(socket: Socket, taker: BytesTaker): () => void {
  const fields = readFieldsOf(socket);
  const handle = (socket as unknown as { readonly _handle?: Partial<ReadableHandle> | null })._handle;
  if (fields === null || typeof handle?.useUserBuffer !== 'function') {
    const onData = (bytes: Buffer): void => taker.take(bytes);
    socket.on('data', onData);
    return () => void socket.off('data', onData);
  }
  shared ??= Buffer.allocUnsafeSlow(READ_BYTES);
  const anywhere = shared;
  let isTaken = true;
  Object.assign(socket, {
    [fields.buffer]: anywhere,
    [fields.next]: () => (isTaken ? taker.place() : null) ?? anywhere,
    [fields.taken]: (count: number, buffer: Buffer): boolean => {
      const bytes = buffer.subarray(0, count);
      if (!isTaken) return socket.push(Buffer.from(bytes));
      taker.take(bytes);
      return true;
    },
  });
  handle.useUserBuffer(anywhere);
  return () => {
    isTaken = false;
  };
}

function readFieldsOf(socket: Socket): ReadFields | null {
  const found = new Map(Object.getOwnPropertySymbols(socket).map((symbol) => [symbol.description, symbol]));
  const [buffer, taken, next] = ['kBuffer', 'kBufferCb', 'kBufferGen'].map((name) => found.get(name));
  return buffer === undefined || taken === undefined || next === undefined ? null : { buffer, taken, next };
}
