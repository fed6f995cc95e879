/** How many connections a gRPC server has, by what the library tells about itself (channelz). */

import { getChannelzHandlers, type Server } from '@grpc/grpc-js';

/** More are counted as so many. */
const CONNECTIONS_MAX = 10_000;

type Ask = (
  call: { readonly request: { readonly server_id: number; readonly start_socket_id: number; readonly max_results: number } },
  answer: (error: unknown, found: { readonly socket_ref: readonly unknown[] } | null) => void,
) => void;

/** 0 where it tells nothing. The answer comes within the call. */
export function connectionsOf(server: Server): number {
  let connections = 0;
  const ask = getChannelzHandlers().GetServerSockets as unknown as Ask;
  ask({ request: { server_id: server.getChannelzRef().id, start_socket_id: 0, max_results: CONNECTIONS_MAX } }, (_error, found) => {
    connections = found?.socket_ref.length ?? 0;
  });
  return connections;
}
