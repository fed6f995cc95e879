/**
 * Streams of calls from a reader's thread to peers, for portions of reads. They are the streams that the main thread has, over connections of
 * their own: the peer checks who calls, and answers, as it does there.
 */

import type { CallStream } from '../../cluster/transport/call-stream.js';
import { silentWay } from '../../cluster/transport/entrance.js';
import type { PeerId } from '../../protocols/model/cluster.js';
import type { AskPeers, PortionQuestion } from '../../storage/reader/reader.js';
import type { PeerCard, PortionResult } from '../../storage/threads/messages.js';

/** Until a peer is called again that has ended a stream or taken none. */
const AGAIN_MS = 1000;

interface Line {
  card: PeerCard;
  stream: CallStream;
  dialedMs: number;
}

/** Loaded when there are peers: a node without a cluster needs none of it. */
interface Modules {
  readonly calls: typeof import('../../cluster/transport/call-stream.js');
  readonly codec: typeof import('../../cluster/transport/codec/calls.js');
}

export class PeerStreams implements AskPeers {
  readonly #lines = new Map<PeerId, Line>();
  #peers: ReadonlyMap<PeerId, PeerCard> = new Map();
  #modules: Modules | null = null;
  #loading: Promise<void> | null = null;

  show(peers: ReadonlyMap<PeerId, PeerCard>): void {
    this.#peers = peers;
    for (const [peer, { card, stream }] of [...this.#lines]) {
      const now = peers.get(peer);
      if (now?.session === card.session && now.target === card.target) {
        (this.#lines.get(peer) as Line).card = now;
        continue;
      }
      this.#lines.delete(peer);
      stream.close();
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
    const reply = await line.stream.call(this.#modules.codec.packCall({ kind: 'read', measured: false, ...question }), waitMs);
    if (reply.kind !== 'answered') throw new Error(`peer ${peer} has answered a read with ${reply.kind}`);
    return reply;
  }

  async #load(): Promise<void> {
    const [calls, codec] = await Promise.all([
      import('../../cluster/transport/call-stream.js'),
      import('../../cluster/transport/codec/calls.js'),
    ]);
    this.#modules = { calls, codec };
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
      });
    }
  }

  #dialAgain(peer: PeerId, line: Line, { calls }: Modules): void {
    const nowMs = performance.now();
    if (!line.stream.isOver || nowMs - line.dialedMs < AGAIN_MS) return;
    line.stream = new calls.CallStream(peer, line.card.target, line.card.greeting, silentWay(line.card.entrance));
    line.dialedMs = nowMs;
  }
}
