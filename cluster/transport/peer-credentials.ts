/** Has gRPC take connections to peers once they are let in. */

import { CallCredentials, ChannelCredentials } from '@grpc/grpc-js';
import { type Entrance, enterPort } from './entrance.js';

type Connector = ReturnType<ChannelCredentials['_createSecureConnector']>;

export class PeerCredentials extends ChannelCredentials {
  /** host: as for `enterPort`. failed: told why a peer does not let this node in, or is none. */
  constructor(
    private readonly host: string,
    private readonly entrance: Entrance,
    private readonly failed: (reason: string) => void,
  ) {
    super();
  }

  override _isSecure(): boolean {
    return this.entrance.tls !== null;
  }

  override _equals(other: ChannelCredentials): boolean {
    return this === other;
  }

  override _createSecureConnector(): Connector {
    const { entrance, failed, host } = this;
    return {
      connect: async (socket) => {
        try {
          return { socket: await enterPort(socket, host, entrance), secure: entrance.tls !== null };
        } catch (error) {
          failed((error as Error).message);
          throw error;
        }
      },
      waitForReady: () => Promise.resolve(),
      getCallCredentials: () => CallCredentials.createEmpty(),
      destroy: () => {},
    };
  }
}
