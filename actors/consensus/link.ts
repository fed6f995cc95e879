/** This node's end of the transport. It is opened once and stays open across restarts of the consensus actor. */

import type { AnswerCall } from '../../cluster/data-messages.js';
import type { PeerDetails, PeerMessage, PeerReply, PeerRequest } from '../../cluster/peer-messages.js';
import type { PeerTransport } from '../../cluster/ports.js';
import { TroupeError } from '../../protocols/errors.js';
import type { PeerId } from '../../protocols/model/cluster.js';
import type { Clock, Random } from '../runtime/ports.js';
import type { Drawn } from './messages.js';
import type { ConsensusView } from './view.js';

/** Slightly more than consensus takes for a request, in milliseconds. */
const REQUEST_MS = 15_000;

export class ConsensusLink {
  #started: Promise<void> | null = null;
  #open = false;
  #uris: ReadonlyMap<PeerId, string> = new Map();
  #drawn: Drawn | null = null;

  /**
   * describe: describes this node to its peers. answer: answers their calls to its replicas. hasGoneAlone: whether this node may have
   * acknowledged alone (Log-L9).
   */
  constructor(
    readonly transport: PeerTransport,
    private readonly view: ConsensusView,
    private readonly describe: () => PeerDetails,
    private readonly answer: AnswerCall,
    private readonly hasGoneAlone: () => boolean,
  ) {}

  /** Random values of this start, the same at each call: a node that loads its log again becomes the peer that it was going to be. */
  drawn(random: Random, clock: Clock): Drawn {
    this.#drawn ??= {
      peerId: 1 + Math.floor(random.next() * 2 ** 47),
      clusterId: newUuid(random),
      seed: Math.floor(random.next() * 2 ** 32),
      seconds: Math.floor(clock.dateMs() / 1000),
    };
    return { ...this.#drawn, seed: Math.floor(random.next() * 2 ** 32) };
  }

  /** Opens the internal port. Errors: if the port cannot be used. */
  async listen(peerId: PeerId): Promise<void> {
    const { view } = this;
    this.#started ??= this.transport.start(
      { peerId, clusterId: () => view.clusterId },
      {
        received: (from, messages) => void view.actor?.tell({ kind: 'received', from, messages }),
        connectionChanged: (peer, connected) => void view.actor?.report({ kind: 'connectionChanged', peer, connected }),
        unreachable: (peer) => void view.actor?.tell({ kind: 'peerUnreachable', peer }),
        requested: (request, address) => this.#requested(request, address),
        called: this.answer,
      },
    );
    try {
      await this.#started;
    } catch (error) {
      this.#started = null;
      throw error;
    }
    this.#open = true;
    this.transport.setPeers(this.#uris);
    // A restarted actor has not heard of the connections.
    for (const [peer, { connected }] of this.transport.connections()) {
      if (connected) view.actor?.report({ kind: 'connectionChanged', peer, connected });
    }
  }

  setPeers(uris: ReadonlyMap<PeerId, string>): void {
    this.#uris = uris;
    if (this.#open) this.transport.setPeers(uris);
  }

  send(to: PeerId, messages: readonly PeerMessage[]): void {
    if (this.#open) this.transport.send(to, messages);
  }

  async #requested(request: PeerRequest, address: string): Promise<PeerReply> {
    const { actor, clusterId } = this.view;
    if (request.kind !== 'join' && request.clusterId !== clusterId) {
      throw new TroupeError('wrongInput', `this node is not part of cluster ${request.clusterId}`);
    }
    if (request.kind === 'describe') return { kind: 'described', details: this.describe() };
    if (actor === null) throw new TroupeError('unavailable', 'the node is starting', { retryAfterMs: 1000 });
    const reply = await actor.ask<PeerReply>((replyTo) => ({ kind: 'requested', request, address, replyTo }), REQUEST_MS);
    // Checked after the pledge: from then on nothing is begun alone.
    return reply.kind === 'pledged' && this.hasGoneAlone() ? { kind: 'pledged', granted: false } : reply;
  }
}

/** A random UUID (version 4). */
function newUuid(random: Random): string {
  const hex = Array.from({ length: 32 }, (_, at) => {
    const digit = Math.floor(random.next() * 16);
    return (at === 12 ? 4 : at === 16 ? 8 + (digit % 4) : digit).toString(16);
  }).join('');
  return [hex.slice(0, 8), hex.slice(8, 12), hex.slice(12, 16), hex.slice(16, 20), hex.slice(20)].join('-');
}
