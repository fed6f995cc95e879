/**
 * Calls of peers for each other's replicas: small ones together on a stream of their own, large ones each alone on another connection,
 * beside the stream of the two peers, so that large bodies hold up no heartbeat. All that lives as long as the stream does: when that is lost, so are the calls that wait for an answer.
 */

import { type Client, type ClientUnaryCall, type ServiceError, status } from '@grpc/grpc-js';
import { errorFacts, errorFromFacts, TroupeError } from '../../protocols/errors.js';
import type { PeerId } from '../../protocols/model/cluster.js';
import { type AnswerCall, type DataAnswer, type DataCall, type DataReply, LostAnswer, NotReached } from '../data-messages.js';
import { channelTarget } from './address.js';
import { CallStream, greetingOf } from './call-stream.js';
import type { ShownCertificate } from './certified.js';
import { decodeCall, decodeReply, encodeCall, encodeReply, packCall, packReply, type SaidCall, unpackCall } from './codec/calls.js';
import type { Hello } from './codec/frames.js';
import type { Way } from './entrance.js';
import { judgeHello, type OwnSide } from './handshake.js';
import type { Reachable } from './link.js';
import { asIs, CALL_PATH, newCallClient, whyUnreachable } from './streams.js';

/** Calls to one peer that wait for their answers, and calls of all peers that are being carried out: more are `busy`. */
const WAITING_MAX = 4096;
const SERVED_MAX = 16_384;
const BUSY_RETRY_MS = 100;

interface Line extends Reachable {
  readonly target: string;
  readonly client: Client;
  readonly waiting: Set<ClientUnaryCall>;
  /** Null until it is needed. */
  stream: CallStream | null;
}

/** Calls that are larger, and those of transfers, go alone: they would hold up others. */
const TOGETHER_BYTES_MAX = 64 << 10;
const ALONE: ReadonlySet<DataCall['kind']> = new Set([
  'entriesAfter',
  'digest',
  'replaceBuckets',
  'putFile',
  'installFiles',
  'putRestored',
  'installRestored',
  'installUntil',
]);

/** This node's calls. */
export class OutgoingCalls {
  readonly #lines = new Map<PeerId, Line>();

  constructor(private readonly way: () => Way) {}

  /** reachable: as of now. Errors: as `PeerCalls`. */
  async call(peer: PeerId, reachable: Reachable | null, hello: Hello, call: DataCall, timeoutMs: number): Promise<DataAnswer> {
    if (reachable === null) throw new NotReached(`there is no connection with peer ${peer}`);
    const line = this.#line(peer, reachable);
    if (line.waiting.size + (line.stream?.size ?? 0) >= WAITING_MAX) {
      throw new TroupeError('busy', `${WAITING_MAX} calls to peer ${peer} are pending: retry later`, { retryAfterMs: BUSY_RETRY_MS });
    }
    const packed = packCall(call);
    const alone = ALONE.has(call.kind) || packed.length > TOGETHER_BYTES_MAX;
    const reply = await (alone
      ? this.#send(peer, line, encodeCall(hello, packed), timeoutMs)
      : this.#stream(peer, line, hello).call(packed, timeoutMs));
    if (reply.kind === 'error') throw errorFromFacts(reply.error);
    return reply;
  }

  /** Its process is gone: whoever waits for an answer hears of it. */
  cut(peer: PeerId): void {
    const line = this.#lines.get(peer);
    if (line === undefined) return;
    this.#lines.delete(peer);
    for (const call of [...line.waiting]) call.cancel();
    line.stream?.close();
    line.client.close();
  }

  close(): void {
    for (const peer of [...this.#lines.keys()]) this.cut(peer);
  }

  #line(peer: PeerId, reachable: Reachable): Line {
    const there = this.#lines.get(peer);
    if (there !== undefined && there.uri === reachable.uri && there.session === reachable.session) return there;
    this.cut(peer);
    const target = channelTarget(reachable.uri);
    const line: Line = { ...reachable, target, client: newCallClient(target, this.way()), waiting: new Set(), stream: null };
    this.#lines.set(peer, line);
    return line;
  }

  #stream(peer: PeerId, line: Line, hello: Hello): CallStream {
    if (line.stream === null || line.stream.isOver) line.stream = new CallStream(peer, line.target, greetingOf(hello), this.way());
    return line.stream;
  }

  #send(peer: PeerId, { client, waiting }: Line, request: Uint8Array, timeoutMs: number): Promise<DataReply> {
    return new Promise((resolve, reject) => {
      const done = (error: ServiceError | null, reply?: Buffer) => {
        waiting.delete(sent);
        if (error !== null) {
          reject(lostBy(peer, error, timeoutMs));
          return;
        }
        try {
          resolve(decodeReply(reply as Buffer));
        } catch (broken) {
          reject(new LostAnswer('unavailable', `peer ${peer} answers with what is no reply of a peer`, broken));
        }
      };
      const sent = client.makeUnaryRequest(CALL_PATH, asIs, asIs, asBuffer(request), { deadline: Date.now() + timeoutMs }, done);
      waiting.add(sent);
    });
  }
}

/**
 * What gRPC says when it had no connection to send on: the first words, or what it was doing at the deadline. A stream that is refused has
 * not been looked at. Source: RFC 9113, section 8.7.
 */
const UNSENT =
  /^No connection established|^Stream refused by server|^Name resolution failed|Waiting for LB pick|Waiting for name resolution/;

function lostBy(peer: PeerId, error: ServiceError, timeoutMs: number): TroupeError {
  const { code, details } = error;
  if (UNSENT.test(details)) return new NotReached(`peer ${peer} cannot be reached: ${whyUnreachable(details)}`);
  if (code === status.DEADLINE_EXCEEDED) return new LostAnswer('timeout', `peer ${peer} has not answered within ${timeoutMs} ms`, error);
  if (code === status.UNIMPLEMENTED) {
    return new TroupeError('unsupported', `peer ${peer} runs a release without calls for replicas: update that peer`, { cause: error });
  }
  if (code === status.CANCELLED) return new LostAnswer('unavailable', `the connection with peer ${peer} was lost`, error);
  return new LostAnswer('unavailable', `peer ${peer} has not answered: ${details || error.message}`, error);
}

/** Calls of peers. */
export class IncomingCalls {
  #served = 0;

  /** own: this node; null while it takes no calls. whyNot: why whoever has shown a certificate is not the peer; null: it may be. */
  constructor(
    private readonly own: () => OwnSide | null,
    private readonly whyNot: (peer: PeerId, certificate: ShownCertificate) => string | null,
    private readonly answer: AnswerCall,
  ) {}

  /** Calls that are being carried out. */
  get size(): number {
    return this.#served;
  }

  /** Why whoever says this hello and has shown this certificate may not call; null: it may. */
  refusalOf(hello: Hello, certificate: ShownCertificate): string | null {
    const own = this.own();
    if (own === null) return 'this node accepts no calls from peers now';
    const judged = judgeHello(own, hello, null);
    return judged.kind === 'refused' ? judged.reason : this.whyNot(hello.from, certificate);
  }

  /** The bytes of the reply to a call that came alone. */
  async serve(bytes: Uint8Array, certificate: ShownCertificate): Promise<Buffer> {
    return asBuffer(encodeReply(await this.#replyTo(() => decodeCall(bytes), certificate)));
  }

  /** The packed reply to a call of a stream. */
  async serveOne(hello: Hello, call: Uint8Array, certificate: ShownCertificate): Promise<Uint8Array> {
    return packReply(await this.#replyTo(() => ({ hello, call }), certificate));
  }

  async #replyTo(said: () => SaidCall, certificate: ShownCertificate): Promise<DataReply> {
    this.#served++;
    try {
      return await this.#carryOut(said, certificate);
    } catch (error) {
      return { kind: 'error', error: errorFacts(error) };
    } finally {
      this.#served--;
    }
  }

  async #carryOut(said: () => SaidCall, certificate: ShownCertificate): Promise<DataReply> {
    if (this.own() === null)
      throw new TroupeError('conflict', 'this node accepts no calls from peers now', { retryAfterMs: 1000, reason: 'peerRefused' });
    if (this.#served > SERVED_MAX) {
      throw new TroupeError('busy', 'too many calls from peers are running: retry later', { retryAfterMs: BUSY_RETRY_MS });
    }
    const { call: packed, hello } = said();
    if (hello === null) throw new TroupeError('wrongInput', 'a call says not who calls');
    const reason = this.refusalOf(hello, certificate);
    if (reason !== null) throw new TroupeError('conflict', reason, { reason: 'peerRefused' });
    const call = unpackCall(packed);
    if (call === null) throw new TroupeError('unsupported', 'this node runs a release that does not know the call: update this node');
    return this.answer(hello.from, call);
  }
}

function asBuffer(bytes: Uint8Array): Buffer {
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length);
}
