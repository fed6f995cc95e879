/**
 * The addresses of clients whose connections a reader has handed on: the main thread sees the reader at the other end. The reader says in a
 * line of its own, ahead of the client's bytes, who it is.
 */

import type { Socket } from 'node:net';

const LF = 10;
/** An address of IPv6 with a zone is shorter. */
const LINE_BYTES_MAX = 256;
const handedOn = new WeakMap<Socket, string>();

/** Empty: the client is gone. */
export function addressOf(socket: Socket): string {
  return handedOn.get(socket) ?? socket.remoteAddress ?? '';
}

/** The first line that a reader sends. */
export function addressLine(client: Socket): string {
  return `${client.remoteAddress ?? ''}\n`;
}

/** Takes the reader's line off a connection that is paused; resolves when what follows is the client's. Rejects if it ends before. */
export function takeAddressLine(socket: Socket): Promise<void> {
  return new Promise((resolve, reject) => {
    let line: Buffer = Buffer.alloc(0);
    const settle = (then: () => void): void => {
      socket.off('readable', onReadable).off('close', onClose);
      then();
    };
    const onClose = (): void => settle(() => reject(new Error('the reader closed the connection')));
    const onReadable = (): void => {
      const chunk = socket.read() as Buffer | null;
      if (chunk === null) return;
      line = line.length === 0 ? chunk : Buffer.concat([line, chunk]);
      const end = line.indexOf(LF);
      if (end === -1 && line.length <= LINE_BYTES_MAX) return;
      settle(() => {
        if (end === -1) reject(new Error('a connection came without the address of its client'));
        else {
          handedOn.set(socket, line.toString('latin1', 0, end));
          if (line.length > end + 1) socket.unshift(line.subarray(end + 1));
          resolve();
        }
      });
    };
    socket.on('readable', onReadable).on('close', onClose);
  });
}
