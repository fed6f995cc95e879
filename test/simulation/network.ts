/**
 * A network between nodes that loses, delays, doubles and reorders messages, and cuts one way or both. What is said goes through
 * the bytes of the real protocol.
 */

import { type DataAnswer, type DataCall, type DataReply, LostAnswer, NotReached } from '../../cluster/data-messages.js';
import type { PeerMessage, PeerReply, PeerRequest } from '../../cluster/peer-messages.js';
import type { InternalPort, PeerConnection, PeerTransport, TransportListener } from '../../cluster/ports.js';
import { decodeCall, decodeReply, encodeCall, encodeReply, packCall, unpackCall } from '../../cluster/transport/codec/calls.js';
import { decodeFrame, encodeMessages } from '../../cluster/transport/codec/frames.js';
import { decodeAnswer, decodeRequest, encodeAnswer, encodeRequest } from '../../cluster/transport/codec/requests.js';
import { PROTOCOL_VERSIONS } from '../../cluster/transport/handshake.js';
import { errorFacts, errorFromFacts, factsForPeer, TroupeError } from '../../protocols/errors.js';
import type { PeerId } from '../../protocols/model/cluster.js';
import type { Stream } from './random.js';
import type { Life, World } from './world.js';

export interface NetworkSettings {
  /** Of batches of messages. */
  lossRate: number;
  duplicateRate: number;
  /** Batches overtake each other. */
  reorder: boolean;
  delayMs: { low: number; high: number };
}

export const CALM_NETWORK: NetworkSettings = { lossRate: 0, duplicateRate: 0, reorder: false, delayMs: { low: 0.2, high: 3 } };

export interface NetworkCounts {
  delivered: number;
  lost: number;
  duplicated: number;
  reordered: number;
  cut: number;
}

/** A link is tried again, and found broken, after so long. */
const LINK_MS = { low: 20, high: 700 };
/** Longest wait for a refusal. */
const REFUSAL_MS = 500;
/** A part of a call that was lost is sent again after so long. */
const RESEND_MS = { low: 200, high: 600 };

export class VirtualNetwork {
  settings: NetworkSettings = CALM_NETWORK;
  /** Sees calls, and answers them in the place of the peer, against the rules; null: it is asked. */
  intercept: (to: PeerId, call: DataCall) => DataAnswer | null = () => null;
  /** Against the rules: whoever is not connected counts as refusing connections. */
  silenceRefuses = false;
  /** Against the rules: every pledge is given, and kept or not. */
  pledgesAll = false;
  readonly counts: NetworkCounts = { delivered: 0, lost: 0, duplicated: 0, reordered: 0, cut: 0 };
  /** By URI, the newest start of each node. */
  readonly #endpoints = new Map<string, Endpoint>();
  /** Cuts of `from>to`, by host. */
  readonly #cut = new Map<string, number>();
  /** When the last batch between two hosts arrives: later ones come after it. */
  readonly #lastArrivalMs = new Map<string, number>();

  constructor(
    readonly world: World,
    readonly random: Stream,
    readonly tell: (who: string, what: string) => void,
  ) {}

  /** The transport of one life of a node. host: what cuts go by; uri: where it is called now. */
  transport(host: string, uri: string, life: Life): PeerTransport {
    return new Endpoint(this, host, uri, life);
  }

  cut(from: string, to: string): void {
    const link = `${from}>${to}`;
    this.#cut.set(link, (this.#cut.get(link) ?? 0) + 1);
    this.linksChanged();
  }

  /** Takes one cut back. */
  mend(from: string, to: string): void {
    const link = `${from}>${to}`;
    const left = (this.#cut.get(link) ?? 0) - 1;
    if (left > 0) this.#cut.set(link, left);
    else this.#cut.delete(link);
    this.linksChanged();
  }

  heal(): void {
    this.#cut.clear();
    this.linksChanged();
  }

  isCut(from: string, to: string): boolean {
    return this.#cut.has(`${from}>${to}`);
  }

  listen(endpoint: Endpoint): void {
    this.#endpoints.set(endpoint.uri, endpoint);
    this.linksChanged();
  }

  /** The host that was at an address last. */
  hostAt(uri: string): string | undefined {
    return this.#endpoints.get(uri)?.host;
  }

  /** The node that answers at an address. */
  at(uri: string): Endpoint | undefined {
    const endpoint = this.#endpoints.get(uri);
    return endpoint?.life.alive === true && endpoint.listener !== null ? endpoint : undefined;
  }

  /** The running node that is `peer` for `endpoint`: by its address, or because it has called itself. */
  peerOf(endpoint: Endpoint, peer: PeerId): Endpoint | undefined {
    const uri = endpoint.peers.get(peer);
    const known = uri === undefined ? undefined : this.at(uri);
    if (known !== undefined && known.peerId === peer && sameCluster(known, endpoint)) return known;
    for (const other of this.#endpoints.values()) {
      if (other.peerId !== peer || this.at(other.uri) !== other) continue;
      if (other.peers.get(endpoint.peerId) === endpoint.uri && sameCluster(other, endpoint)) return other;
    }
    return undefined;
  }

  /** Each node looks after a while who is there. */
  linksChanged(): void {
    for (const endpoint of this.#endpoints.values()) if (endpoint.life.alive) endpoint.lookSoon();
  }

  /** Times after which a batch arrives: none when it is lost, two when it is doubled. */
  arrivals(from: string, to: string): number[] {
    if (this.isCut(from, to)) {
      this.counts.cut += 1;
      return [];
    }
    const { lossRate, duplicateRate, delayMs, reorder } = this.settings;
    if (lossRate > 0 && this.random.chance(lossRate)) {
      this.counts.lost += 1;
      return [];
    }
    const copies = duplicateRate > 0 && this.random.chance(duplicateRate) ? 2 : 1;
    if (copies === 2) this.counts.duplicated += 1;
    const { nowMs } = this.world;
    const link = `${from}>${to}`;
    const times: number[] = [];
    for (let copy = 0; copy < copies; copy++) {
      const last = this.#lastArrivalMs.get(link) ?? 0;
      let arrivalMs = nowMs + this.random.between(delayMs.low, delayMs.high);
      if (arrivalMs < last) {
        if (reorder) this.counts.reordered += 1;
        else arrivalMs = last;
      }
      this.#lastArrivalMs.set(link, Math.max(last, arrivalMs));
      times.push(arrivalMs - nowMs);
    }
    return times;
  }
}

/** What calls to a peer go by. */
interface Line {
  readonly to: Endpoint;
  /** Tells those who wait for answers that none will come. */
  readonly waiting: Set<() => void>;
  broken: boolean;
}

export class Endpoint implements PeerTransport {
  listener: TransportListener | null = null;
  peerId: PeerId = 0;
  clusterId: () => string | null = () => null;
  peers: ReadonlyMap<PeerId, string> = new Map();
  readonly #connections = new Map<PeerId, PeerConnection>();
  readonly #lines = new Map<PeerId, Line>();
  #looking = false;

  constructor(
    readonly network: VirtualNetwork,
    readonly host: string,
    readonly uri: string,
    readonly life: Life,
  ) {}

  async start(self: { readonly peerId: PeerId; readonly clusterId: () => string | null }, listener: TransportListener): Promise<void> {
    this.peerId = self.peerId;
    this.clusterId = self.clusterId;
    this.listener = listener;
    this.network.listen(this);
  }

  setPeers(uris: ReadonlyMap<PeerId, string>): void {
    this.peers = new Map(uris);
    for (const peer of [...this.#connections.keys()]) if (!this.peers.has(peer)) this.#connections.delete(peer);
    for (const peer of this.peers.keys()) if (!this.#connections.has(peer)) this.#connections.set(peer, NO_CONNECTION);
    this.network.linksChanged();
  }

  send(to: PeerId, messages: readonly PeerMessage[]): void {
    const { network } = this;
    const other = network.peerOf(this, to);
    if (other === undefined) {
      if (this.peers.has(to)) network.world.after(network.random.between(1, 100), () => this.listener?.unreachable(to), this.life);
      return;
    }
    const arrivals = network.arrivals(this.host, other.host);
    if (arrivals.length === 0 && network.isCut(this.host, other.host))
      network.world.after(network.random.between(100, 2000), () => this.listener?.unreachable(to), this.life);
    if (arrivals.length === 0) return;
    const bytes = encodeMessages(messages);
    for (const delayMs of arrivals) network.world.after(delayMs, () => this.#deliver(other, to, bytes), other.life);
  }

  request(uri: string, request: PeerRequest, timeoutMs: number): Promise<PeerReply> {
    const { network, life } = this;
    const { world } = network;
    return new Promise((resolve, reject) => {
      world.after(timeoutMs, () => reject(new TroupeError('timeout', `${uri} did not answer within ${timeoutMs} ms`)), life);
      const other = network.at(uri);
      if (other === undefined) {
        const gone = () => reject(new TroupeError('unavailable', `nobody answers at ${uri}`));
        world.after(network.random.between(1, 50), gone, life);
        return;
      }
      const back = (settle: () => void) => {
        for (const delayMs of network.arrivals(other.host, this.host)) world.after(delayMs, settle, life);
      };
      for (const delayMs of network.arrivals(this.host, other.host).slice(0, 1)) {
        const arrive = () =>
          other.listener?.requested(asSent(request), this.host).then(
            (reply) =>
              back(() => resolve(asAnswered(network.pledgesAll && reply.kind === 'pledged' ? { ...reply, granted: true } : reply))),
            (error: unknown) => back(() => reject(errorFromFacts(errorFacts(error)))),
          );
        world.after(delayMs, arrive, other.life);
      }
    });
  }

  /** The host of a process that has ended says so, where its answer arrives. */
  refuses(uri: string): Promise<boolean> {
    const { life, network } = this;
    if (network.silenceRefuses) return Promise.resolve(true);
    const host = network.hostAt(uri) ?? this.host;
    return new Promise((resolve) => {
      network.world.after(REFUSAL_MS, () => resolve(false), life);
      for (const thereMs of network.arrivals(this.host, host).slice(0, 1))
        network.world.after(thereMs, () => {
          const refused = network.at(uri) === undefined;
          for (const backMs of network.arrivals(host, this.host)) network.world.after(backMs, () => resolve(refused), life);
        });
    });
  }

  call(peer: PeerId, call: DataCall, timeoutMs: number): Promise<DataAnswer> {
    const { network, life } = this;
    const { world } = network;
    const other = network.peerOf(this, peer);
    if (other === undefined || this.#lines.get(peer)?.to !== other)
      return Promise.reject(new NotReached(`there is no connection with peer ${peer}`));
    const line = this.#lines.get(peer) as Line;
    const sent = calledAs(this.peerId, peer, call);
    const made = network.intercept(peer, call);
    if (made !== null) return Promise.resolve(made);
    return new Promise((resolve, reject) => {
      const end = (settle: () => void) => {
        line.waiting.delete(lose);
        stopTimer();
        settle();
      };
      const lose = () => reject(new LostAnswer('unavailable', `the connection with peer ${peer} broke`));
      line.waiting.add(lose);
      const late = () => reject(new LostAnswer('timeout', `peer ${peer} has not answered within ${timeoutMs} ms`));
      const stopTimer = world.after(timeoutMs, () => end(late), life);
      const back = (reply: DataReply) => {
        const received = decodeReply(encodeReply(reply));
        const settle = () => (received.kind === 'error' ? reject(errorFromFacts(received.error)) : resolve(received));
        this.#carry(line, other, this, () => end(settle));
      };
      this.#carry(line, this, other, () => {
        if (other.listener === null || other.peerId !== peer || !sameCluster(this, other)) return;
        network.tell(other.host, `← ${this.host}  call ${call.kind}`);
        other.listener
          .called(this.peerId, sent)
          .then(back, (error: unknown) => back({ kind: 'error', error: factsForPeer(errorFacts(error)) }));
      });
    });
  }

  /** As a connection does: what is lost on the way is sent again, as long as it holds. */
  #carry(line: Line, from: Endpoint, to: Endpoint, arrive: () => void): void {
    const { network } = this;
    if (line.broken) return;
    const [delayMs] = network.arrivals(from.host, to.host);
    if (delayMs !== undefined) network.world.after(delayMs, arrive, to.life);
    else network.world.after(network.random.between(RESEND_MS.low, RESEND_MS.high), () => this.#carry(line, from, to, arrive), from.life);
  }

  connections(): ReadonlyMap<PeerId, PeerConnection> {
    return this.#connections;
  }

  internalPort(): InternalPort {
    return { connections: 0, plainConnections: 0, callStreams: 0, calls: 0 };
  }

  async close(): Promise<void> {
    this.listener = null;
    this.network.linksChanged();
  }

  /** Tells the listener which links came up and which broke, after a while. */
  lookSoon(): void {
    if (this.#looking) return;
    this.#looking = true;
    const { world, random } = this.network;
    world.after(random.between(LINK_MS.low, LINK_MS.high), () => this.#look(), this.life);
  }

  #look(): void {
    this.#looking = false;
    for (const peer of this.peers.keys()) {
      const other = this.network.peerOf(this, peer);
      this.#keepLine(peer, other);
      const cut = other === undefined || this.network.isCut(this.host, other.host) || this.network.isCut(other.host, this.host);
      if (this.#connections.get(peer)?.connected === !cut) continue;
      this.#connections.set(peer, cut ? NO_CONNECTION : CONNECTION);
      this.listener?.connectionChanged(peer, !cut);
    }
  }

  /** Calls end with the connection that they went by. */
  #keepLine(peer: PeerId, other: Endpoint | undefined): void {
    const cut = other === undefined || this.network.isCut(this.host, other.host) || this.network.isCut(other.host, this.host);
    const line = this.#lines.get(peer);
    if (line !== undefined && (cut || line.to !== other)) {
      this.#lines.delete(peer);
      line.broken = true;
      for (const lose of [...line.waiting]) lose();
    }
    if (!cut && this.#lines.get(peer) === undefined) this.#lines.set(peer, { to: other, waiting: new Set(), broken: false });
  }

  #deliver(other: Endpoint, to: PeerId, bytes: Uint8Array): void {
    if (other.listener === null) return;
    if (this.network.isCut(this.host, other.host)) {
      this.network.counts.cut += 1;
      return;
    }
    // The handshake of a node that has become another peer meanwhile would have failed.
    if (!sameCluster(this, other) || other.peerId !== to) return;
    this.network.counts.delivered += 1;
    const { messages } = decodeFrame(bytes, { from: this.peerId, to });
    for (const message of messages) this.network.tell(other.host, `← ${this.host}  ${summary(message)}`);
    other.listener.received(this.peerId, messages);
  }
}

const CONNECTION: PeerConnection = {
  connected: true,
  failures: 0,
  lastError: null,
  lastErrorMs: null,
  protocolVersion: 1,
  queued: 0,
};
const NO_CONNECTION: PeerConnection = { ...CONNECTION, connected: false, protocolVersion: null };

/** What comes out of the bytes that go over the wire. */
function asSent(request: PeerRequest): PeerRequest {
  const { request: received } = decodeRequest(encodeRequest(request, PROTOCOL_VERSIONS));
  if (received === null) throw new Error(`nobody understands ${request.kind}`);
  return received;
}

function calledAs(from: PeerId, to: PeerId, call: DataCall): DataCall {
  const hello = { versions: PROTOCOL_VERSIONS, clusterId: '', from, to, session: 0, release: '' };
  const received = unpackCall(decodeCall(encodeCall(hello, packCall(call))).call);
  if (received === null) throw new Error(`nobody understands ${call.kind}`);
  return received;
}

function asAnswered(reply: PeerReply): PeerReply {
  const answer = decodeAnswer(encodeAnswer(reply));
  if (answer.kind === 'failure') throw new Error('an answer became a failure');
  return answer;
}

function sameCluster(one: Endpoint, other: Endpoint): boolean {
  const [a, b] = [one.clusterId(), other.clusterId()];
  return a === null || b === null || a === b;
}

/** One line for a message, with the figures that a reader of Raft looks for. */
function summary(message: PeerMessage): string {
  if (message.kind === 'diskFull') return message.kind;
  if (message.kind !== 'raft') return `${message.kind} ${message.index}`;
  const raft = message.message;
  const head = `${raft.kind} t${raft.term}`;
  switch (raft.kind) {
    case 'preVote':
    case 'vote':
      return `${head} last ${raft.lastIndex}/${raft.lastTerm}${raft.transfer ? ' transfer' : ''}`;
    case 'preVoteReply':
    case 'voteReply':
      return `${head} ${raft.granted ? 'granted' : 'refused'}`;
    case 'append':
      return `${head} prev ${raft.prevIndex}/${raft.prevTerm} +${raft.entries.length} commit ${raft.commit} round ${raft.round}`;
    case 'appendReply':
      return `${head} ${raft.matched ? 'matched' : `differs (t${raft.logTerm})`} ${raft.index} round ${raft.round}`;
    case 'installSnapshot':
      return `${head} ${raft.snapshot.index}/${raft.snapshot.term} bytes ${raft.offset}+${raft.chunk.length} of ${raft.totalBytes}`;
    case 'installSnapshotReply':
      return `${head} ${raft.index} ${raft.done ? 'done' : `next ${raft.nextOffset}`}`;
    case 'propose':
      return `${head} #${raft.id} ${raft.proposal.kind}`;
    case 'proposeReply':
      return `${head} #${raft.id} ${raft.outcome.kind === 'accepted' ? `accepted ${raft.outcome.index}/${raft.outcome.term}` : raft.outcome.reason}`;
    case 'readIndex':
      return `${head} #${raft.id}`;
    case 'readIndexReply':
      return `${head} #${raft.id} ${raft.index ?? 'no'}`;
    default:
      return head;
  }
}
