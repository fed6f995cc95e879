/**
 * Connections of a reader's thread with peers, for portions of reads: a stream of calls with the peer's main thread, as this node's own has, and a
 * connection with one of its readers, at a port that the peer tells on that stream. A reader answers without the peer's main thread; what it does
 * not answer, for whatever reason, the main thread is asked.
 */

import type { CallStream } from '../../cluster/transport/call-stream.js';
import { silentWay } from '../../cluster/transport/entrance.js';
import type { PeerId } from '../../protocols/model/cluster.js';
import type { AskPeers, PortionQuestion } from '../../storage/reader/reader.js';
import type { PeerCard, PortionResult } from '../../storage/threads/messages.js';
import { packedPortion } from '../../storage/threads/portion-codec.js';
import { PortionStream } from './portion-stream.js';

/**
 * A reader of a peer that has not answered for so long is stuck, or something on the way drops what is sent to ports that it does not know: a
 * portion that takes longer is not a reader's to answer.
 */
const DIRECT_MS = 1000;
/** Until a peer is called again that has ended a stream or taken none. */
const AGAIN_MS = 1000;

interface Line {
  card: PeerCard;
  stream: CallStream;
  dialedMs: number;
  /** With a reader of the peer, at that port; null: it has told of none. */
  direct: { readonly stream: PortionStream; readonly dialedMs: number; readonly port: number } | null;
}

/** Loaded when there are peers: a node without a cluster needs none of it. */
interface Modules {
  readonly calls: typeof import('../../cluster/transport/call-stream.js');
  readonly codec: typeof import('../../cluster/transport/codec/calls.js');
  readonly dial: typeof import('../../cluster/transport/dial-calls.js');
}

export class PeerStreams implements AskPeers {
  readonly #lines = new Map<PeerId, Line>();
  #peers: ReadonlyMap<PeerId, PeerCard> = new Map();
  #thread = 0;
  #modules: Modules | null = null;
  #loading: Promise<void> | null = null;

  show(peers: ReadonlyMap<PeerId, PeerCard>, thread: number): void {
    this.#peers = peers;
    this.#thread = thread;
    for (const [peer, { card, direct, stream }] of [...this.#lines]) {
      const now = peers.get(peer);
      if (now?.session === card.session && now.target === card.target) {
        (this.#lines.get(peer) as Line).card = now;
        continue;
      }
      this.#lines.delete(peer);
      stream.close();
      direct?.stream.close();
    }
    if (this.#modules !== null) this.#dialAll();
    else if (peers.size > 0) this.#loading ??= this.#load();
  }

  async ask(peer: PeerId, question: PortionQuestion, waitMs: number): Promise<PortionResult> {
    const line = this.#lines.get(peer);
    if (line === undefined || this.#modules === null) throw new Error(`there is no stream to peer ${peer}`);
    if (!line.stream.isOpen) {
      this.#dialAgain(peer, line, this.#modules);
      throw new Error(`there is no stream to peer ${peer} yet`);
    }
    const askedMs = performance.now();
    const direct = this.#direct(line, this.#modules, askedMs);
    const result = direct === null ? null : await answerOf(direct, question, waitMs);
    if (result !== null) return result;
    const restMs = Math.max(1, askedMs + waitMs - performance.now());
    const body = packedPortion(question.body);
    const reply = await line.stream.call(this.#modules.codec.packCall({ kind: 'read', measured: false, ...question, body }), restMs);
    if (reply.kind !== 'answered') throw new Error(`peer ${peer} has answered a read with ${reply.kind}`);
    return reply;
  }

  async #load(): Promise<void> {
    const [calls, codec, dial] = await Promise.all([
      import('../../cluster/transport/call-stream.js'),
      import('../../cluster/transport/codec/calls.js'),
      import('../../cluster/transport/dial-calls.js'),
    ]);
    this.#modules = { calls, codec, dial };
    this.#dialAll();
  }

  #dialAll(): void {
    for (const [peer, card] of this.#peers) {
      if (this.#lines.has(peer) || this.#modules === null) continue;
      const { CallStream } = this.#modules.calls;
      this.#lines.set(peer, {
        card,
        stream: new CallStream(peer, card.target, card.greeting, silentWay(card.entrance)),
        dialedMs: performance.now(),
        direct: null,
      });
    }
  }

  /** The connection with a reader of the peer; null while there is none. */
  #direct(line: Line, { dial }: Modules, nowMs: number): PortionStream | null {
    const { readerPorts } = line.stream;
    const port = readerPorts[this.#thread % readerPorts.length];
    const isLost = line.direct?.stream.isOver === true && nowMs - line.direct.dialedMs >= AGAIN_MS;
    if (port !== undefined && (line.direct?.port !== port || isLost)) {
      line.direct?.stream.close();
      const { entrance, greeting, target } = line.card;
      const stream = new PortionStream(greeting, dial.dialPlain(withPort(target, port), silentWay(entrance)));
      line.direct = { port, stream, dialedMs: nowMs };
    }
    return line.direct?.stream.isOpen === true ? line.direct.stream : null;
  }

  #dialAgain(peer: PeerId, line: Line, { calls }: Modules): void {
    const nowMs = performance.now();
    if (!line.stream.isOver || nowMs - line.dialedMs < AGAIN_MS) return;
    line.stream = new calls.CallStream(peer, line.card.target, line.card.greeting, silentWay(line.card.entrance));
    line.dialedMs = nowMs;
  }
}

/** Null: the main thread has to be asked. Rejects if there is no answer within `waitMs`. */
async function answerOf(stream: PortionStream, question: PortionQuestion, waitMs: number): Promise<PortionResult | null> {
  try {
    return await stream.ask(question, Math.min(waitMs, DIRECT_MS));
  } catch (error) {
    if (waitMs <= DIRECT_MS) throw error;
    stream.close();
    return null;
  }
}

/** target: `host:port`; another port of that host. */
function withPort(target: string, port: number): string {
  return `${target.slice(0, target.lastIndexOf(':'))}:${port}`;
}
