/** Peers over gRPC: the internal port, and a link to each peer. */

import type { Socket } from 'node:net';
import {
  logVerbosity,
  Server,
  ServerCredentials,
  type ServerDuplexStream,
  type ServerUnaryCall,
  type ServiceError,
  type sendUnaryData,
  setLogVerbosity,
  status,
} from '@grpc/grpc-js';
import { errorFacts, errorFromFacts, TroupeError } from '../../protocols/errors.js';
import type { PeerId } from '../../protocols/model/cluster.js';
import type { DataAnswer, DataCall } from '../data-messages.js';
import type { PeerMessage, PeerReply, PeerRequest } from '../peer-messages.js';
import type { CallerCard, InternalPort, PeerConnection, PeerTransport, TransportListener } from '../ports.js';
import { channelTarget, hostOf } from './address.js';
import { CallsServer, greetingOf } from './call-stream.js';
import { IncomingCalls, OutgoingCalls } from './calls.js';
import { certificateOf, judgeCertificate, type ShownCertificate } from './certified.js';
import { encodeHello, type Hello, type VersionRange } from './codec/frames.js';
import { type Answer, decodeAnswer, decodeRequest, encodeAnswer, encodeRequest } from './codec/requests.js';
import { type Entrance, OPEN_ENTRANCE, type PeerTls, type Way } from './entrance.js';
import { commonVersion, type OwnSide, PROTOCOL_VERSIONS, versionsDiffer } from './handshake.js';
import { HANDSHAKE_MS, judgeAnswer, LINK_TICK_MS, type LinkHost, PeerLink } from './link.js';
import { PLAIN_PREFACE, plainStream } from './plain-stream.js';
import { PeerPortError } from './port-error.js';
import { PortListener } from './port-listener.js';
import { CALL_BYTES_MAX, FRAME_BYTES_MAX } from './queue.js';
import { refusesConnections, type Survivor } from './refusal.js';
import { RefusalLog } from './refusal-log.js';
import { connectionsOf } from './sockets.js';
import { Strangers } from './strangers.js';
import {
  ASK_PATH,
  acceptedStream,
  asIs,
  CALL_PATH,
  CALLS_PATH,
  CONNECT_PATH,
  type FrameStream,
  KEEPALIVE_MS,
  NO_PEER,
  newClient,
  type StreamEvents,
  whyUnreachable,
} from './streams.js';

export interface PeerTransportOptions {
  readonly host: string;
  /** 0 for any free one. */
  readonly port: number;
  /** Troupe's version. */
  readonly release: string;
  /** Milliseconds since the epoch. */
  readonly dateMs?: () => number;
  /** 0 to 1. */
  readonly random?: () => number;
  /** `cluster.survivor`: whose refusal counts as the end of its process: this machine's own addresses', anybody's, nobody's. Default: `local`. */
  readonly survivor?: Survivor;
  /** What this node and its peers ask of those that connect; left out: nothing. */
  readonly entrance?: Entrance;
  /** Told who was not let in and why, and which peer did not let this node in: at most once a minute for each. */
  readonly log?: { warn(message: string, facts: Record<string, unknown>): void };
  /** Versions of the protocol, for tests of releases that don't exist yet. */
  readonly versions?: VersionRange;
}

/** A transport that listens on `port`. */
export interface ListeningTransport extends PeerTransport {
  readonly port: number;
  /** What this node asks of those that connect, as of now. */
  readonly entrance: Entrance;
  /** Other certificates for connections from now on, where they have TLS. */
  renew(tls: PeerTls): void;
  /** Where readers of this node take streams of calls: peers are told. */
  tellReaderPorts(ports: readonly number[]): void;
  /** Whether whoever begins a stream of calls with this hello, on a connection that has shown this certificate, may call this node. */
  admits(hello: Hello, certificate: ShownCertificate): boolean;
}

/** Takes the internal port; until `start` everybody is turned away. Errors: `PeerPortError`. */
export async function openPeerTransport(options: PeerTransportOptions): Promise<ListeningTransport> {
  const transport = new GrpcTransport(options);
  await transport.listen();
  return transport;
}

/** Streams that have not said hello yet, and requests that wait for their answers: more are turned away. */
const UNGREETED_MAX = 64;
const ASKED_MAX = 256;
/** Most streams of guests: peers that are not, or not yet, members that this node knows. */
const GUESTS_MAX = 64;
const CLOSING_MS = 500;

class GrpcTransport implements ListeningTransport, LinkHost {
  port = 0;
  listener: TransportListener = NO_LISTENER;
  readonly dateMs: () => number;
  readonly random: () => number;
  private readonly versions: VersionRange;
  private readonly session: number;
  private readonly server: Server;
  private self: { readonly peerId: PeerId; readonly clusterId: () => string | null } | null = null;
  /** Peers by `setPeers`, and those that have called without being one of them. */
  private readonly links = new Map<PeerId, PeerLink>();
  private readonly uris = new Map<PeerId, string>();
  /** As `setPeers` has told them last, this node's own included where it is a member. */
  private agreedUris: ReadonlyMap<PeerId, string> = new Map();
  /** What peers have shown that called before this node knew their addresses, while there is a stream with them. */
  private readonly guests = new Map<PeerId, ShownCertificate>();
  entrance: Entrance;
  private readonly refusals: RefusalLog;
  private readonly outgoing = new OutgoingCalls(() => this.way());
  private readonly incoming: IncomingCalls;
  private readonly calls: CallsServer;
  private readonly listening: PortListener;
  private readonly strangers = new Strangers(SERVICE);
  private readonly ticking: NodeJS.Timeout;
  private ungreeted = 0;
  private asked = 0;
  private closing: Promise<void> | null = null;

  constructor(private readonly options: PeerTransportOptions) {
    this.dateMs = options.dateMs ?? Date.now;
    this.random = options.random ?? Math.random;
    this.versions = options.versions ?? PROTOCOL_VERSIONS;
    this.entrance = options.entrance ?? OPEN_ENTRANCE;
    this.refusals = new RefusalLog(options.log);
    this.session = 1 + Math.floor(this.random() * 2 ** 47);
    this.incoming = new IncomingCalls(
      () => (this.self === null || this.closing !== null ? null : this.own()),
      (peer, certificate) => this.whyNot(peer, certificate),
      (from, call) => this.listener.called(from, call),
    );
    this.calls = new CallsServer((hello, packed, certificate) => this.incoming.serveOne(hello, packed, certificate));
    this.server = new Server({
      'grpc.max_receive_message_length': CALL_BYTES_MAX,
      'grpc.max_send_message_length': -1,
      'grpc.keepalive_time_ms': KEEPALIVE_MS,
      'grpc.keepalive_timeout_ms': KEEPALIVE_MS,
    });
    this.server.addService(SERVICE, {
      Connect: (call: ServerDuplexStream<Buffer, Buffer>) => this.accept(call),
      Ask: (call: ServerUnaryCall<Buffer, Buffer>, callback: sendUnaryData<Buffer>) => void this.answer(call, callback),
      Call: (call: ServerUnaryCall<Buffer, Buffer>, callback: sendUnaryData<Buffer>) =>
        void this.incoming.serve(call.request, shownBy(call)).then((reply) => callback(null, reply)),
      Calls: (call: ServerDuplexStream<Buffer, Buffer>) => this.calls.accept((events) => acceptedStream(call, events), shownBy(call)),
    });
    const injector = this.server.createConnectionInjector(ServerCredentials.createInsecure());
    const users = {
      grpc: (socket: Socket) => injector.injectConnection(socket),
      plain: (socket: Socket) => this.calls.accept((events) => acceptedPlain(socket, events), certificateOf(socket)),
      refused: (address: string, reason: string) => this.refusals.note('a connection to the internal port was refused', address, reason),
      tell: (socket: Socket, kind: 'grpc' | 'plain', reason: string) => {
        if (kind === 'plain') acceptedPlain(socket, { frame: () => {}, ended: () => {} }).close(reason);
        else this.strangers.take(socket, reason);
      },
    };
    this.listening = new PortListener(users, this.entrance);
    this.ticking = setInterval(() => {
      for (const link of [...this.links.values()]) link.tick();
    }, LINK_TICK_MS);
    this.ticking.unref();
  }

  /** Errors: `PeerPortError`. */
  async listen(): Promise<void> {
    // What the library would print on its own is in its errors, too.
    if (process.env.GRPC_VERBOSITY === undefined) setLogVerbosity(logVerbosity.NONE);
    try {
      this.port = await this.listening.listen(this.options.host, this.options.port);
    } catch (error) {
      clearInterval(this.ticking);
      this.server.forceShutdown();
      throw new PeerPortError(error as NodeJS.ErrnoException);
    }
  }

  async start(self: { readonly peerId: PeerId; readonly clusterId: () => string | null }, listener: TransportListener): Promise<void> {
    this.self = self;
    this.listener = listener;
  }

  own(): OwnSide {
    return { peerId: this.self?.peerId ?? 0, clusterId: this.self?.clusterId() ?? null, versions: this.versions };
  }

  helloTo(peer: PeerId): Hello {
    const { peerId, clusterId, versions } = this.own();
    return { versions, clusterId: clusterId ?? '', from: peerId, to: peer, session: this.session, release: this.options.release };
  }

  way(): Way {
    return {
      entrance: this.entrance,
      failed: (host, reason) => this.refusals.note('a peer does not let this node in', host, reason),
    };
  }

  renew(peerTls: PeerTls): void {
    this.entrance = { ...this.entrance, tls: peerTls };
    this.listening.renew(peerTls);
  }

  tellReaderPorts(ports: readonly number[]): void {
    this.calls.tellReaderPorts(ports);
  }

  admits(hello: Hello, certificate: ShownCertificate): boolean {
    return this.incoming.refusalOf(hello, certificate) === null;
  }

  deserted(link: PeerLink): void {
    if (this.links.get(link.peerId) !== link) return;
    this.links.delete(link.peerId);
    this.guests.delete(link.peerId);
  }

  disconnected(peer: PeerId): void {
    this.outgoing.cut(peer);
  }

  setPeers(uris: ReadonlyMap<PeerId, string>): void {
    if (this.closing !== null || this.self === null) return;
    this.agreedUris = new Map(uris);
    for (const peer of [...this.uris.keys()]) {
      if (uris.has(peer)) continue;
      this.uris.delete(peer);
      this.links.get(peer)?.cutOff();
      this.links.delete(peer);
    }
    for (const [peer, uri] of uris) {
      if (peer === this.self.peerId) continue;
      this.uris.set(peer, uri);
      this.judgeGuest(peer);
      this.linkTo(peer).setUri(uri);
    }
  }

  /** A peer that called before this node knew its address may not have been that peer. */
  private judgeGuest(peer: PeerId): void {
    if (!this.guests.has(peer)) return;
    const reason = this.whyNot(peer, this.guests.get(peer));
    this.guests.delete(peer);
    if (reason === null) return;
    this.refusals.note('a connection to the internal port was refused', `peer ${peer}`, reason);
    this.links.get(peer)?.cutOff();
    this.links.delete(peer);
  }

  /** Why whoever has shown this certificate is not the peer; null: it may be. */
  private whyNot(peer: PeerId, certificate: ShownCertificate): string | null {
    return this.entrance.tls === null ? null : judgeCertificate(certificate, peer, this.agreedUris.get(peer));
  }

  send(to: PeerId, messages: readonly PeerMessage[]): void {
    if (messages.length === 0 || this.closing !== null) return;
    const link = this.links.get(to);
    if (link !== undefined) link.send(messages);
    else queueMicrotask(() => this.listener.unreachable(to));
  }

  connections(): ReadonlyMap<PeerId, PeerConnection> {
    return new Map([...this.links].map(([peer, link]) => [peer, link.connection()]));
  }

  internalPort(): InternalPort {
    const { plainConnections } = this.listening;
    return {
      connections: connectionsOf(this.server) + plainConnections,
      plainConnections,
      callStreams: this.calls.size,
      calls: this.incoming.size,
    };
  }

  async request(uri: string, request: PeerRequest, timeoutMs: number): Promise<PeerReply> {
    if (this.closing !== null) throw new TroupeError('unavailable', 'this node is stopping');
    const answer = await ask(uri, this.way(), encodeRequest(request, this.versions), timeoutMs);
    if (answer.kind === 'failure') throw errorFromFacts(answer.facts);
    return answer;
  }

  async refuses(uri: string): Promise<boolean> {
    const { survivor = 'local' } = this.options;
    // Where a proxy is on the way, others can be there although nothing gets to them from here.
    const anywhere = survivor === 'always' && process.env.grpc_proxy === undefined;
    return survivor !== 'never' && (await refusesConnections(uri, anywhere));
  }

  async call(peer: PeerId, call: DataCall, timeoutMs: number): Promise<DataAnswer> {
    if (this.closing !== null || this.self === null) throw new TroupeError('unavailable', 'this node makes no calls now');
    const reachable = this.links.get(peer)?.reachable ?? null;
    return this.outgoing.call(peer, reachable, this.helloTo(peer), call, timeoutMs);
  }

  cardOf(peer: PeerId): CallerCard | null {
    const reachable = this.closing === null && this.self !== null ? (this.links.get(peer)?.reachable ?? null) : null;
    if (reachable === null) return null;
    const { session, uri } = reachable;
    return { target: channelTarget(uri), session, greeting: greetingOf(this.helloTo(peer)), entrance: this.entrance };
  }

  close(): Promise<void> {
    this.closing ??= this.shutDown();
    return this.closing;
  }

  private async shutDown(): Promise<void> {
    clearInterval(this.ticking);
    this.listener = NO_LISTENER;
    // Links go later: a peer takes the end of its link for the end of this process, and what it has called for here for lost.
    await this.calls.close();
    const links = [...this.links.values()];
    this.links.clear();
    for (const link of links) link.cutOff();
    this.outgoing.close();
    this.listening.close();
    this.strangers.close();
    await new Promise<void>((resolve) => {
      const cut = setTimeout(() => {
        this.server.forceShutdown();
        this.listening.cut();
      }, CLOSING_MS);
      this.server.tryShutdown(() => {
        clearTimeout(cut);
        resolve();
      });
    });
  }

  private linkTo(peer: PeerId): PeerLink {
    const there = this.links.get(peer);
    if (there !== undefined) return there;
    const link = new PeerLink(peer, this);
    this.links.set(peer, link);
    return link;
  }

  /** A peer calls. */
  private accept(call: ServerDuplexStream<Buffer, Buffer>): void {
    let link: PeerLink | null = null;
    let waiting = true;
    const greeted = () => {
      if (waiting) this.ungreeted--;
      waiting = false;
      clearTimeout(patience);
    };
    const stream = acceptedStream(call, {
      frame: (bytes) => {
        if (link !== null) {
          link.received(stream, bytes);
          return;
        }
        if (!waiting) return;
        greeted();
        link = this.greet(stream, bytes, call);
      },
      ended: (reason) => {
        greeted();
        link?.ended(stream, reason);
      },
    });
    this.ungreeted++;
    const patience = setTimeout(() => {
      greeted();
      stream.close(`no hello within ${HANDSHAKE_MS / 1000} s`);
    }, HANDSHAKE_MS);
    if (this.self === null || this.closing !== null || this.ungreeted > UNGREETED_MAX) {
      greeted();
      stream.close(this.self === null ? 'this node is starting' : 'this node takes no calls now');
    }
  }

  /** The first frame of a peer that calls: its link when the stream is good. */
  private greet(stream: FrameStream, bytes: Uint8Array, call: ServerDuplexStream<Buffer, Buffer>): PeerLink | null {
    const judged = judgeAnswer(this.own(), bytes, null);
    const from = judged.hello?.from ?? 0;
    const certificate = shownBy(call);
    const whyNot = judged.kind === 'agreed' ? this.whyNot(from, certificate) : null;
    if (whyNot !== null) {
      this.refusals.note('a connection to the internal port was refused', hostOf(call.getPeer()), whyNot);
      stream.close(whyNot);
      return null;
    }
    const known = this.links.get(from);
    if (judged.kind === 'agreed' && known === undefined && this.links.size - this.uris.size >= GUESTS_MAX) {
      stream.close('too many peers call that this node does not know');
      return null;
    }
    // Also to those who are refused: they find out by themselves why.
    if (judged.hello !== null) stream.write(encodeHello(this.helloTo(from)), () => {});
    if (judged.kind === 'refused') {
      known?.note(`its call was refused: ${judged.reason}`);
      stream.close(judged.reason);
      return null;
    }
    const link = known ?? this.linkTo(from);
    if (!this.uris.has(from)) this.guests.set(from, certificate);
    link.adopt(stream, judged.hello, judged.version, from);
    return link;
  }

  private async answer(call: ServerUnaryCall<Buffer, Buffer>, callback: sendUnaryData<Buffer>): Promise<void> {
    this.asked++;
    let answer: Answer;
    try {
      answer = await this.answerTo(call.request, hostOf(call.getPeer()), shownBy(call));
    } catch (error) {
      answer = { kind: 'failure', facts: errorFacts(error) };
    } finally {
      this.asked--;
    }
    callback(null, Buffer.from(encodeAnswer(answer)));
  }

  private async answerTo(bytes: Uint8Array, address: string, certificate: ShownCertificate): Promise<PeerReply> {
    if (this.self === null || this.closing !== null) throw new TroupeError('unavailable', 'this node accepts no requests from peers now');
    if (this.asked > ASKED_MAX)
      throw new TroupeError('busy', 'too many requests from peers are pending: retry later', { retryAfterMs: 1000 });
    const { versions, request } = decodeRequest(bytes);
    if (commonVersion(this.versions, versions) === null) throw new TroupeError('unsupported', versionsDiffer(this.versions, versions));
    if (request === null) throw new TroupeError('unsupported', 'this node runs a release that does not know the request: update this node');
    const peer = peerOf(request);
    const whyNot = peer === null ? null : this.whyNot(peer, certificate);
    if (whyNot !== null) throw new TroupeError('conflict', whyNot, { reason: 'peerRefused' });
    return this.listener.requested(request, address);
  }
}

/** The certificate of the connection of a call; undefined: it has no TLS. */
function shownBy(call: Pick<ServerUnaryCall<Buffer, Buffer>, 'getAuthContext'>): ShownCertificate {
  return call.getAuthContext().sslPeerCertificate;
}

/** Whom the sender of a request says to be; null: it does not say. */
function peerOf(request: PeerRequest): PeerId | null {
  switch (request.kind) {
    case 'join':
    case 'pledge':
      return request.peerId;
    case 'announce':
      return request.member.peerId;
    case 'describe':
      return null;
    default:
      return request satisfies never;
  }
}

/** A plain connection that was taken. A caller that refuses its own stream has ended it. */
function acceptedPlain(socket: Socket, events: StreamEvents): FrameStream {
  const options = { bytesMax: FRAME_BYTES_MAX, preface: PLAIN_PREFACE };
  return plainStream(socket, options, { ...events, refused: (reason) => events.ended(reason) });
}

/** Errors: `wrongInput`, `unavailable`, `timeout`. */
function ask(uri: string, way: Way, request: Uint8Array, timeoutMs: number): Promise<Answer> {
  const client = newClient(channelTarget(uri), way);
  return new Promise<Answer>((resolve, reject) => {
    const done = (error: ServiceError | null, answer?: Buffer) => {
      client.close();
      if (error !== null) {
        reject(failureOf(uri, error, timeoutMs));
        return;
      }
      try {
        resolve(decodeAnswer(answer as Buffer));
      } catch (broken) {
        reject(new TroupeError('unavailable', `${uri} has sent an answer that is not one of a peer`, { cause: broken }));
      }
    };
    client.makeUnaryRequest(ASK_PATH, asIs, asIs, Buffer.from(request), { deadline: Date.now() + timeoutMs }, done);
  });
}

function failureOf(uri: string, error: ServiceError, timeoutMs: number): TroupeError {
  const { code, details } = error;
  if (code === status.DEADLINE_EXCEEDED)
    return new TroupeError('timeout', `${uri} has not answered within ${timeoutMs} ms`, { cause: error });
  const reason = code === status.UNIMPLEMENTED ? NO_PEER : whyUnreachable(details || error.message);
  return new TroupeError('unavailable', `${uri} cannot be asked: ${reason}`, { cause: error });
}

const SERVICE = {
  Connect: methodOf(CONNECT_PATH, true),
  Ask: methodOf(ASK_PATH, false),
  Call: methodOf(CALL_PATH, false),
  Calls: methodOf(CALLS_PATH, true),
};

function methodOf(path: string, streams: boolean) {
  const streaming = { requestStream: streams, responseStream: streams };
  const asBytes = { requestSerialize: asIs, requestDeserialize: asIs, responseSerialize: asIs, responseDeserialize: asIs };
  return { path, ...streaming, ...asBytes };
}

const NO_LISTENER: TransportListener = {
  received: () => {},
  connectionChanged: () => {},
  unreachable: () => {},
  requested: () => Promise.reject(new TroupeError('unavailable', 'this node accepts no requests from peers now')),
  called: () => Promise.reject(new TroupeError('unavailable', 'this node accepts no calls from peers now')),
};
