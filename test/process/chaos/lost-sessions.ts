/**
 * Connections of the gRPC clients that are lost as nodes die. connect-node stops listening to a connection that it leaves, and checks a new one in a
 * promise that nobody waits for; what such a connection says after that would end this program. A call on it fails as well, and is sent again.
 */

import http2 from 'node:http2';
import { syncBuiltinESMExports } from 'node:module';

/** Calls `lost` for each error of a connection over HTTP/2 that is opened from now on. Returns a function that ends that. */
export function watchSessions(lost: (error: Error) => void): () => void {
  const { connect } = http2;
  const watched = (...parameters: Parameters<typeof connect>): http2.ClientHttp2Session => connect(...parameters).on('error', lost);
  const rejected = (reason: unknown): void => {
    if (!(reason instanceof Error) || reason.name !== 'ConnectError') throw reason;
    lost(reason);
  };
  Object.assign(http2, { connect: watched });
  // So that those who have imported the name get it.
  syncBuiltinESMExports();
  process.on('unhandledRejection', rejected);
  return () => {
    Object.assign(http2, { connect });
    syncBuiltinESMExports();
    process.off('unhandledRejection', rejected);
  };
}
