/** Has a server listen on an address, or on that of a name. */

import net, { type ListenOptions, type Server } from 'node:net';

export interface ListenPlace {
  readonly host: string;
  readonly port: number;
  /** Other threads of this process listen there, too. */
  readonly reusePort?: boolean;
}

/** Of newer versions of Node.js: a port that is taken, for a server. The types are those of an older one. */
type BoundSocketClass = new (place: ListenPlace) => ListenOptions;

/**
 * Like `server.listen`. Node.js looks whether a host is an IPv6 address each time, by a pattern that costs every thread 8 ms to compile; where a
 * version of it takes sockets that are bound already, an IPv4 address does without. Errors: the system's, as events of the server.
 */
export function listenAt(server: Server, place: ListenPlace): void {
  const { BoundSocket } = net as unknown as { readonly BoundSocket?: BoundSocketClass };
  if (BoundSocket === undefined || !net.isIPv4(place.host)) {
    server.listen({ ...place });
    return;
  }
  try {
    server.listen(new BoundSocket(place));
  } catch (error) {
    process.nextTick(() => server.emit('error', error));
  }
}
