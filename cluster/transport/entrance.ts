/** How a node gets to the internal port of another one: over TLS, and by proving that it has the cluster's key, where the settings say so. */

import { isIP, type Socket } from 'node:net';
import { tls } from '../../protocols/late-modules.js';
import { certifiedHost } from './certified.js';
import { proveMember } from './proof.js';

/** What nodes show each other, as PEM. */
export interface PeerTls {
  readonly cert: string;
  readonly key: string;
  readonly ca: string;
}

/** Can be sent to other threads. */
export interface Entrance {
  /** Null: connections are plain. */
  readonly tls: PeerTls | null;
  /** By `memberKey`, the node's own first; none: nothing is proven. */
  readonly keys: readonly Uint8Array[];
}

export const OPEN_ENTRANCE: Entrance = { tls: null, keys: [] };

/** How a node calls its peers. */
export interface Way {
  readonly entrance: Entrance;
  /** Told why the peer at this host does not let this node in, or is none. */
  failed(host: string, reason: string): void;
}

/** For threads that tell nobody. */
export function silentWay(entrance: Entrance): Way {
  return { entrance, failed: () => {} };
}

/** For TLS and proof together. */
export const ENTER_MS = 5000;

/** Whether a connection can be used as it is. */
export function isOpen({ keys, tls: peerTls }: Entrance): boolean {
  return peerTls === null && keys.length === 0;
}

/**
 * Makes a connection to a peer ready for what is spoken on it. host: the host of the peer's address, which its certificate must have. Errors: why
 * the other side is none that this node talks to, or does not talk to this node; the connection is destroyed then.
 */
export async function enterPort(socket: Socket, host: string, entrance: Entrance): Promise<Socket> {
  let inner = socket;
  socket.on('error', (error) => inner.destroy(error));
  const patience = setTimeout(() => inner.destroy(new Error(`no end of the handshake within ${ENTER_MS / 1000} s`)), ENTER_MS);
  try {
    if (entrance.tls !== null) inner = await secured(socket, host, entrance.tls);
    await proveMember(inner, entrance.keys);
    return inner;
  } catch (error) {
    inner.destroy();
    socket.destroy();
    throw new Error(`not admitted: ${(error as Error).message}`, { cause: error });
  } finally {
    clearTimeout(patience);
  }
}

function secured(socket: Socket, host: string, { ca, cert, key }: PeerTls): Promise<Socket> {
  const name = certifiedHost(host);
  // RFC 6066, section 3: addresses are no names of servers.
  const servername = isIP(name) === 0 ? { servername: name } : {};
  return new Promise((resolve, reject) => {
    const secure = tls().connect({ socket, host: name, ...servername, ca, cert, key, ALPNProtocols: ['h2'], minVersion: 'TLSv1.2' });
    const failed = (error?: Error): void => reject(error ?? new Error('the other side has ended the connection: it may speak no TLS'));
    secure.once('error', failed).once('close', failed);
    secure.once('secureConnect', () => {
      secure.off('error', failed).off('close', failed);
      resolve(secure);
    });
  });
}
