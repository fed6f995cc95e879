/** What consensus needs of the network, as an interface, so that a simulation can put its own in place. */

import type { PeerId } from '../protocols/model/cluster.js';
import type { DataAnswer, DataCall, PeerCalls } from './data-messages.js';
import type { PeerMessage, PeerReply, PeerRequest } from './peer-messages.js';
import type { Entrance } from './transport/entrance.js';

/** A peer's connection as `GET /cluster` and telemetry show it. */
export interface PeerConnection {
  readonly connected: boolean;
  /** Messages that were dropped since the last one that went out, and why the last one was. */
  readonly failures: number;
  readonly lastError: string | null;
  readonly lastErrorMs: number | null;
  /** Version of the peer-to-peer protocol that both speak; null before the first connection. */
  readonly protocolVersion: number | null;
  readonly queued: number;
}

/** What another thread of this node calls a peer with. */
export interface CallerCard {
  /** `host:port` */
  readonly target: string;
  /** Of the peer's process. */
  readonly session: number;
  /** What a stream of calls begins with. */
  readonly greeting: Uint8Array;
  /** What the peer asks of those that connect. */
  readonly entrance: Entrance;
}

/** Who is connected with this node's internal port. */
export interface InternalPort {
  /** That are open; a peer has several: for the stream of the pair, for small calls, for large ones. */
  readonly connections: number;
  /** Of these, plain ones for small calls, beside those of gRPC. */
  readonly plainConnections: number;
  /** Streams on which peers make their small calls. */
  readonly callStreams: number;
  /** That are being carried out. */
  readonly calls: number;
}

export interface TransportListener {
  /** Messages of one peer, in order. The cluster and the peer are those of the handshake. */
  received(from: PeerId, messages: readonly PeerMessage[]): void;
  /** Its stream came up or broke. */
  connectionChanged(peer: PeerId, connected: boolean): void;
  /** Messages to it were dropped. */
  unreachable(peer: PeerId): void;
  /** A request to this node; the errors of the promise are the caller's. `address`: the caller's host as seen here, IPv6 in brackets. */
  requested(request: PeerRequest, address: string): Promise<PeerReply>;
  /** A call of a peer of this cluster for this node's replicas; the errors of the promise are the caller's. */
  called(from: PeerId, call: DataCall): Promise<DataAnswer>;
}

/** Calls go to peers that `setPeers` has named and that there is a connection with. */
export interface PeerTransport extends PeerCalls {
  /** From now on, messages and requests reach `listener`. Before it everything is refused. */
  start(self: { readonly peerId: PeerId; readonly clusterId: () => string | null }, listener: TransportListener): Promise<void>;
  /**
   * Peers to be connected with, by address; those left out are cut off. Any peer of the cluster may connect by itself: a
   * follower that lags behind hears a leader that it doesn't know yet, and a removed peer is told so.
   */
  setPeers(uris: ReadonlyMap<PeerId, string>): void;
  /** Returns at once; what cannot be delivered is dropped and told by `unreachable`. */
  send(to: PeerId, messages: readonly PeerMessage[]): void;
  /** Errors: `unavailable` when nobody answers there, `timeout`, and what the other side answers. */
  request(uri: string, request: PeerRequest, timeoutMs: number): Promise<PeerReply>;
  /** Whether the system at this address says for certain that nobody listens there: false in doubt, and where nothing answers. */
  refuses(uri: string): Promise<boolean>;
  /** Null without a connection with the peer. Left out: no other thread calls. */
  cardOf?(peer: PeerId): CallerCard | null;
  connections(): ReadonlyMap<PeerId, PeerConnection>;
  internalPort(): InternalPort;
  close(): Promise<void>;
}
