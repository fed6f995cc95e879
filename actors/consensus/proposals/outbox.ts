/**
 * Keeps effects that depend on a write until it is on disk (Raft-R1). Writes and their effects keep the order in which they were decided;
 * only effects that are marked as early are performed before.
 */

import type { RaftEffect } from '../../../cluster/raft/messages.js';
import { checkHardState } from '../../../protocols/hard-state.js';
import { type ConsensusWrite, NOTHING_STORED } from '../../../protocols/model/consensus.js';
import type { ConsensusEffect } from '../messages.js';
import type { Outbox, OutboxWrite } from '../state.js';

export interface Outgoing {
  readonly outbox: Outbox;
  /** Effects that may be performed at once. */
  readonly effects: readonly ConsensusEffect[];
}

/** Adds a write. raftWrite: Raft's number of it; null for a write of the actor itself. */
export function withWrite(outbox: Outbox, write: ConsensusWrite, raftWrite: RaftWriteNumber | null): Outgoing {
  const before = write.reset ? NOTHING_STORED.hardState : outbox.hardState;
  const hardState = write.hardState ?? before;
  checkHardState(before, hardState);
  const number = outbox.writes + 1;
  const pending = [...outbox.pending, { number, raftWrite, held: [] }];
  return { outbox: { writes: number, pending, hardState }, effects: [{ kind: 'write', number, write }] };
}

/** Performs `effect` once every earlier write is on disk. */
export function afterWrites(outbox: Outbox, effect: ConsensusEffect): Outgoing {
  const last = outbox.pending.at(-1);
  if (last === undefined) return { outbox, effects: [effect] };
  const pending = [...outbox.pending.slice(0, -1), { ...last, held: [...last.held, effect] }];
  return { outbox: { ...outbox, pending }, effects: [] };
}

/**
 * Takes the news that writes up to `number` are on disk. Their effects may be performed now. raftWrite: Raft's number of the newest of
 * them.
 */
export function settled(outbox: Outbox, number: number): Outgoing & { readonly raftWrite: RaftWriteNumber | null } {
  const done = outbox.pending.filter((write) => write.number <= number);
  const pending = outbox.pending.slice(done.length);
  const raftWrites = done.flatMap(({ raftWrite }) => (raftWrite === null ? [] : [raftWrite]));
  return { outbox: { ...outbox, pending }, effects: done.flatMap(({ held }: OutboxWrite) => held), raftWrite: raftWrites.at(-1) ?? null };
}

type RaftWriteNumber = Extract<RaftEffect, { kind: 'persist' }>['number'];
