/** A member's next state while one message is handled: the parts of the step change it and add effects in order. */

import type { PeerMessage } from '../../../cluster/peer-messages.js';
import type { RaftInput } from '../../../cluster/raft/messages.js';
import type { ErrorFacts } from '../../../protocols/errors.js';
import type { PeerId } from '../../../protocols/model/cluster.js';
import type { ConsensusWrite } from '../../../protocols/model/consensus.js';
import type { ReplyTo } from '../../runtime/behaviour.js';
import type { ConsensusEffect } from '../messages.js';
import type { Calls, MemberConsensus, ReadCall, RemovalCaller } from '../state.js';
import { afterWrites, type Outgoing, withWrite } from './outbox.js';

/** Functions that a draft calls, so that the parts of the step can use each other through it. */
export interface DraftActs {
  /** Handles an input of Raft. */
  readonly raft: (draft: ConsensusDraft, input: RaftInput) => void;
  /** Performs the action of a barrier that has passed. */
  readonly afterRead: (draft: ConsensusDraft, call: ReadCall) => void;
  /** Continues a removal once the mark of the peer is agreed on. */
  readonly afterMark: (draft: ConsensusDraft, caller: RemovalCaller, deadlineTick: number) => void;
}

export class ConsensusDraft {
  readonly effects: ConsensusEffect[] = [];
  /** The cluster has removed this peer. */
  removed = false;
  /** This node cannot go on as a member. */
  failure: ErrorFacts | null = null;
  readonly #inputs: RaftInput[] = [];
  #busy = false;

  constructor(
    public member: MemberConsensus,
    readonly acts: DraftActs,
  ) {}

  change(part: Partial<MemberConsensus>): void {
    this.member = { ...this.member, ...part };
  }

  changeCalls(part: Partial<Calls>): void {
    this.change({ calls: { ...this.member.calls, ...part } });
  }

  /** Handles an input of Raft after the earlier ones, so that the effects of one step stay together. */
  raft(input: RaftInput): void {
    this.#inputs.push(input);
    if (this.#busy) return;
    this.#busy = true;
    for (let next = this.#inputs.shift(); next !== undefined; next = this.#inputs.shift()) this.acts.raft(this, next);
    this.#busy = false;
  }

  emit(...effects: ConsensusEffect[]): void {
    this.effects.push(...effects);
  }

  /** Emits an effect once all earlier writes are on disk (Raft-R1). */
  emitAfterWrites(effect: ConsensusEffect): void {
    this.go(afterWrites(this.member.outbox, effect));
  }

  write(write: ConsensusWrite, raftWrite: number | null): void {
    this.go(withWrite(this.member.outbox, write, raftWrite));
  }

  go({ effects, outbox }: Outgoing): void {
    if (outbox !== this.member.outbox) this.change({ outbox });
    this.emit(...effects);
  }

  tell(peer: PeerId, message: PeerMessage): void {
    this.emit({ kind: 'send', to: peer, messages: [message] });
  }

  reply(replyTo: ReplyTo<never>, answer: boolean): void {
    this.emit({ kind: 'reply', replyTo, answer });
  }

  refuse(replyTo: ReplyTo<never>, error: ErrorFacts): void {
    this.emit({ kind: 'refuse', replyTo, error });
  }
}
