/** What a migration calls for in each state. A state says all that its call needs, so a call that has failed is made again from it. */

import type { CopyFence } from '../../cluster/data-messages.js';
import { parseStored } from '../../protocols/json.js';
import { decideInRow, type Row } from '../../protocols/machine.js';
import type { ShardId } from '../../protocols/model/cluster.js';
import type { Filter } from '../../protocols/model/filter.js';
import { decodeFilter } from '../../protocols/rest/filter.js';
import { become, type Step } from '../runtime/behaviour.js';
import type { MigrationEffect } from './messages.js';
import type { LeaderAsk, LeaderCall, MigrationWrite } from './ports.js';
import type { Cleansing, ComparingMigration, MigrationStage, MigrationState, Passing, Settled, Working } from './state.js';

type MigrationStep = Step<MigrationState, MigrationEffect>;

/** The state with its call, after the effects `before`. */
export function enter(state: Working, ...before: MigrationEffect[]): MigrationStep {
  const called = { ...state, call: state.call + 1, sequence: state.sequence + 1 };
  return become<MigrationState, MigrationEffect>(called, ...before, ...decideInRow(CALLS, undefined, called));
}

/** Has the next page of one side counted, while the other one may be under way. */
export function countOn(state: ComparingMigration, side: 'points' | 'copies'): MigrationStep {
  const called = { ...state, sequence: state.sequence + 1 };
  return become<MigrationState, MigrationEffect>(called, COUNTS[side](called));
}

const CALLS: Row<Working, undefined, readonly MigrationEffect[]> = {
  Informing: (_, { call, informed, part }) => {
    const peers = part.readers.filter((peer) => !informed.includes(peer));
    return [{ kind: 'askShardMaps', call, peers, shardMapVersion: part.shardMapVersion }];
  },
  Indexing: (_, { call, target }) => [{ kind: 'copyIndexes', call, target }],
  Settling: (_, state) => [{ kind: 'passBarrier', call: state.call, to: ownLeader(state) }],
  Counting: (_, state) => [readHere(state, { kind: 'count', filter: filterOf(state) })],
  Reading: (_, state) => {
    const { copiedUpTo: after, from, part } = state;
    return [readHere(state, { kind: 'leaving', ring: part.migration.target, filter: filterOf(state), after, from })];
  },
  Copying: (_, state) => [write(state, state.copied.shard, 'upsertPoints', state.copied.operation)],
  Fencing: (_, state) => [{ kind: 'passBarrier', call: state.call, to: leaderOf(state, state.target) }],
  Comparing: (_, state) => {
    const sides = (['points', 'copies'] as const).filter((side) => !state[side].isWhole);
    return sides.map((side) => COUNTS[side](state));
  },
  Listing: (_, state) => [readCopies(state, state.from, false)],
  Checking: (_, state) => [readHere(state, { kind: 'gone', filter: filterOf(state), ids: state.ids })],
  Removing: (_, state) => [write(state, state.target, 'deletePoints', state.deletion)],
  Sweeping: (_, state) => [readHere(state, { kind: 'stray', ring: state.part.migration.source, from: state.from })],
  Deleting: (_, state) => [write(state, state.task.shardId, 'deletePoints', state.deletion)],
  Finishing: (_, { call, part }) => [{ kind: 'finish', call, stage: part.migration.stage }],
};

const COUNTS: { readonly [Side in 'points' | 'copies']: (state: ComparingMigration) => MigrationEffect } = {
  points: (state) => {
    const { part, points, target } = state;
    const ring = part.migration.target;
    return readHere(state, { kind: 'owned', ring, owner: target, filter: filterOf(state), countOnly: true, from: points.from });
  },
  copies: (state) => readCopies(state, state.copies.from, true),
};

function readHere(state: Settled, ask: LeaderAsk): MigrationEffect {
  return { kind: 'read', call: state.call, to: ownLeader(state), ask, index: state.index };
}

/** Copies in the target of points that are this shard's, or were. */
function readCopies(state: Cleansing, from: ComparingMigration['copies']['from'], countOnly: boolean): MigrationEffect {
  const { call, part, target, targetIndex, task } = state;
  const ask = { kind: 'owned', ring: part.migration.source, owner: task.shardId, filter: null, countOnly, from } as const;
  return { kind: 'read', call, to: leaderOf(state, target), ask, index: targetIndex };
}

function write(state: Passing | Settled, shardId: ShardId, operation: MigrationWrite['operation'], bytes: Uint8Array): MigrationEffect {
  return { kind: 'write', call: state.call, to: leaderOf(state, shardId), write: { operation, bytes } };
}

function ownLeader(state: MigrationStage): LeaderCall {
  return leaderOf(state, state.task.shardId);
}

function leaderOf({ part, sequence, task }: MigrationStage, shardId: ShardId): LeaderCall {
  const fence: CopyFence = { startedAt: task.startedAt, from: task.shardId, term: task.term, sequence };
  return { shardId, shardMapVersion: part.shardMapVersion, fence };
}

/** Of the points that go. */
function filterOf({ part }: MigrationStage): Filter | null {
  const { filter } = part.migration;
  return filter === null ? null : decodeFilter(parseStored(Buffer.from(filter)), 'filter');
}
