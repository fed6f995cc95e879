/**
 * Ends a connection whose client may still send. If bytes of the client are unread when a socket is closed, the system tells the client at once
 * (RST), and the client loses an answer that it has not read yet; its next write fails (EPIPE). So what the server has said is sent, its half is
 * ended, and what still comes is read and dropped until the client ends its half, within bounds. Source: RFC 9112, section 9.6.
 */

import type { Socket } from 'node:net';

const LINGER_MS = 30_000;
/** 16 bodies of the largest size that is usual. */
const LINGER_BYTES_MAX = 512 << 20;
const CHECK_EVERY_MS = 1000;

/** The socket keeps flowing: whoever has its bytes drops them. */
export function endWithClient(socket: Socket): void {
  if (socket.destroyed) return;
  socket.end();
  const bytesMax = socket.bytesRead + LINGER_BYTES_MAX;
  let checksLeft = LINGER_MS / CHECK_EVERY_MS;
  const check = setInterval(() => {
    if (--checksLeft === 0 || socket.bytesRead > bytesMax) socket.destroy();
  }, CHECK_EVERY_MS);
  check.unref();
  socket.once('close', () => clearInterval(check));
}
