/**
 * Applies entries of the log to the cluster's state: one function for leader, follower, restart and snapshot. It depends only on its
 * arguments, so all nodes that have applied the same entries have the same state.
 *
 * Its rules are State-S1 to State-S7 in cluster/README.md.
 */

import { invariant } from '../../protocols/invariant.js';
import { decideInRow, type Row } from '../../protocols/machine.js';
import type { Membership, PeerId } from '../../protocols/model/cluster.js';
import type { Entry } from '../../protocols/model/consensus.js';
import { decodeCommand } from '../state/command-codec.js';
import type { ClusterCommand, Outcome, ProposedCommand } from '../state/commands.js';
import type { ClusterState, Session } from '../state/state.js';
import {
  changeAliases,
  createCollection,
  createShardKey,
  deleteCollection,
  dropShardKey,
  setAutoReplication,
  setPayloadIndex,
  updateCollection,
} from './apply-collections.js';
import { startKeyCopy } from './apply-key-copy.js';
import { setMetadata } from './apply-metadata.js';
import { markPeer, planMoves } from './apply-peers.js';
import {
  abortTransfer,
  changeLeader,
  dropReplica,
  finishTransfer,
  recreateShard,
  restartTransfer,
  setReplicaStates,
  startTransfer,
  withoutPeer,
} from './apply-replicas.js';
import { abortResharding, finishStage, startResharding } from './apply-resharding.js';
import { asBatch, type Change, unchanged, withCollection } from './change.js';
import { afterCommand, afterLeaving, collectionsOf } from './leaders.js';
import { withRevision } from './migration.js';
import { checkCollections } from './promises.js';

export interface Applied {
  readonly state: ClusterState;
  /** Null for entries without a proposal, for those applied before, and if the origin has the outcome already. */
  readonly outcome: ProposalResult | null;
}

/** The outcome of a proposal, which it names as `ProposedCommand` does. */
export interface ProposalResult {
  readonly origin: PeerId;
  readonly session: number;
  readonly sequence: number;
  readonly outcome: Outcome;
}

/** The state after `entry`. Errors: `storage` if this release cannot read the command; throws if entries are missing in between. */
export function applyEntry(state: ClusterState, entry: Entry): Applied {
  const { index, payload } = entry;
  if (index <= state.appliedIndex) return { state, outcome: null };
  invariant(index === state.appliedIndex + 1, 'State-S1', () => `entry ${index} cannot follow entry ${state.appliedIndex}`);
  const next = { ...state, appliedIndex: index };
  switch (payload.kind) {
    case 'empty':
      return { state: next, outcome: null };
    case 'membership':
      return { state: withMembership(next, payload.membership), outcome: null };
    case 'operation':
      return applyProposal(next, decodeCommand(payload.bytes));
    default:
      return payload satisfies never;
  }
}

/** Applies entries in order, with a single copy of the map of collections. Errors: as of `applyEntry`; `state` is unchanged then. */
export function applyEntries(
  state: ClusterState,
  entries: readonly Entry[],
): { readonly state: ClusterState; readonly outcomes: readonly (ProposalResult & { readonly index: number })[] } {
  return asBatch(() => {
    let next = state;
    const outcomes: (ProposalResult & { index: number })[] = [];
    for (const entry of entries) {
      const applied = applyEntry(next, entry);
      next = applied.state;
      if (applied.outcome !== null) outcomes.push({ ...applied.outcome, index: entry.index });
    }
    return { state: next, outcomes };
  });
}

/** The state with a new membership. The replicas and sessions of peers that left are dropped: such a peer may not propose any more. */
function withMembership(state: ClusterState, membership: Membership): ClusterState {
  const peers = new Set(membership.map(({ peerId }) => peerId));
  let { collections } = state;
  for (const { peerId } of state.membership) if (!peers.has(peerId)) collections = afterLeaving(withoutPeer(collections, peerId), peerId);
  const ofMembers = <Value>(map: ReadonlyMap<PeerId, Value>) => new Map([...map].filter(([peerId]) => peers.has(peerId)));
  return { ...state, membership, collections, marks: ofMembers(state.marks), sessions: ofMembers(state.sessions) };
}

function applyProposal(state: ClusterState, proposed: ProposedCommand): Applied {
  const { origin, session: number, sequence, doneBelow, command } = proposed;
  const resultOf = (outcome: Outcome): ProposalResult => ({ origin, session: number, sequence, outcome });
  if (!state.membership.some(({ peerId }) => peerId === origin))
    return { state, outcome: resultOf(refusedAsGone(`peer ${origin} is not part of the cluster`)) };
  const known = state.sessions.get(origin);
  // The process that proposed it has ended. The command may have been applied before; its outcome was forgotten with its session.
  if (known !== undefined && number < known.session)
    return { state, outcome: resultOf(refusedAsGone(`peer ${origin} was restarted after it had sent this change`)) };
  const session: Session = known?.session === number ? known : { session: number, doneBelow: 1, outcomes: new Map() };
  if (sequence < session.doneBelow) return { state, outcome: null };
  const remembered = session.outcomes.get(sequence);
  if (remembered !== undefined) return { state, outcome: resultOf(remembered) };
  const before = new Map([...collectionsOf(state, command)].map((name) => [name, state.collections.get(name)]));
  const { outcome, state: changedTo } = applyCommand(state, command);
  const after = outcome.kind === 'done' ? afterMigration(state, changedTo, command) : changedTo;
  const changed = outcome.kind === 'done' ? afterCommand(after, command) : after;
  checkCollections(before, changed);
  const sessions = new Map(changed.sessions).set(origin, withOutcome(session, Math.max(session.doneBelow, doneBelow), sequence, outcome));
  return { state: { ...changed, sessions }, outcome: resultOf(outcome) };
}

/** See `withRevision`. */
function afterMigration(before: ClusterState, after: ClusterState, command: ClusterCommand): ClusterState {
  if (!('collection' in command)) return after;
  const { collection } = command;
  const [known, record] = [before.collections.get(collection), after.collections.get(collection)];
  if (known === undefined || record === undefined || known === record) return after;
  const next = withRevision(known, record, after.appliedIndex);
  return next === record ? after : withCollection(after, collection, next);
}

function withOutcome(session: Session, doneBelow: number, sequence: number, outcome: Outcome): Session {
  const outcomes = new Map([...session.outcomes].filter(([number]) => number >= doneBelow)).set(sequence, outcome);
  return { session: session.session, doneBelow, outcomes };
}

/** The refusal of a command whose outcome was forgotten with its origin's session. */
function refusedAsGone(detail: string): Outcome {
  return { kind: 'refused', error: { code: 'unavailable', detail, outcome: 'unknown' } };
}

const APPLY: Row<ClusterCommand, ClusterState, Change> = {
  createCollection,
  updateCollection,
  deleteCollection,
  changeAliases,
  createShardKey,
  dropShardKey,
  setPayloadIndex,
  setMetadata,
  startResharding,
  startKeyCopy,
  finishStage,
  abortResharding,
  setReplicaStates,
  dropReplica,
  recreateShard,
  startTransfer,
  restartTransfer,
  finishTransfer,
  abortTransfer,
  markPeer,
  planMoves,
  setAutoReplication,
  changeLeader,
  // Leaders are elected after every command, so this one has nothing to do.
  electLeaders: unchanged,
  noop: unchanged,
};

/** Applies a command to a state whose `appliedIndex` is the index of the command's entry. */
function applyCommand(state: ClusterState, command: ClusterCommand): Change {
  return decideInRow(APPLY, state, command);
}
