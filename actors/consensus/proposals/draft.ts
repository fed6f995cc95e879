/** A member's next state while one message is being worked on: what the parts of the step change and cause, in order. */

import type { PeerMessage } from '../../../cluster/peer-messages.js';
import type { RaftInput } from '../../../cluster/raft/messages.js';
import type { ErrorFacts } from '../../../protocols/errors.js';
import type { PeerId } from '../../../protocols/model/cluster.js';
import type { ConsensusWrite } from '../../../protocols/model/consensus.js';
import type { ReplyTo } from '../../runtime/behaviour.js';
import type { ConsensusEffect } from '../messages.js';
import type { Calls, MemberConsensus, ProposalCaller, ReadCall } from '../state.js';
import { afterWrites, type Outgoing, withWrite } from './outbox.js';

/** What a draft has done for it: the parts of the step use each other through it. */
export interface DraftActs {
  /** Works on an input of Raft. */
  readonly raft: (draft: ConsensusDraft, input: RaftInput) => void;
  /** What a barrier was for, once it is passed. */
  readonly afterRead: (draft: ConsensusDraft, call: ReadCall) => void;
  /** A peer that is to be removed is marked, as agreed. */
  readonly afterMark: (draft: ConsensusDraft, caller: Extract<ProposalCaller, { kind: 'removal' }>, deadlineTick: number) => void;
}

export class ConsensusDraft {
  readonly effects: ConsensusEffect[] = [];
  /** The cluster does not have this peer any more. */
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

  /** Works on an input of Raft, once what came before is worked on: the effects of one step are carried on as a whole. */
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

  /** Raft-R1 */
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
