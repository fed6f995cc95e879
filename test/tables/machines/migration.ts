/** Sample messages of a migration. */

import type { MigrationMessage } from '../../../actors/migration/messages.js';
import type { MigrationState } from '../../../actors/migration/state.js';
import { startMigration, stepMigration } from '../../../actors/migration/step.js';
import type { Migration, MigrationPart } from '../../../cluster/apply/migration.js';
import type { ReshardingStage } from '../../../cluster/state/commands.js';
import type { Machine } from '../walk.js';

const nowMs = 1000;
const TASK = { name: 'm', collection: 'c', uid: 5, shardId: 0, term: 3, startedAt: 5 };

function partOf(stage: ReshardingStage, isDone = false): MigrationPart {
  const shards = { source: [0], target: [1], receiving: [1] };
  const migration: Migration = { startedAt: 5, stage, busy: [0], done: [], ...shards, filter: null, mirrors: true };
  return { migration, isDone, shardMapVersion: 5, readers: [1] };
}

/** Calls have no number here, and failures are not counted: states that differ in nothing else are the same. */
const call = 0;
const ids = { ids: new Uint8Array(), next: null };
const MESSAGES: readonly MigrationMessage[] = [
  { kind: 'agreed', part: partOf('copying'), nowMs },
  { kind: 'agreed', part: partOf('switching'), nowMs },
  { kind: 'agreed', part: partOf('cleaning'), nowMs },
  { kind: 'agreed', part: partOf('copying', true), nowMs },
  { kind: 'agreed', part: null, nowMs },
  { kind: 'informed', call, peers: [] },
  { kind: 'informed', call, peers: [1] },
  { kind: 'indexed', call },
  { kind: 'barrierPassed', call, index: 9 },
  { kind: 'counted', call, count: 1, nowMs },
  { kind: 'pageRead', call, parts: [{ shard: 1, points: 1, operation: new Uint8Array() }], next: null, position: 9 },
  { kind: 'pageRead', call, parts: [], next: null, position: 9 },
  { kind: 'idsRead', call, shardId: 0, count: 1, ...ids },
  { kind: 'idsRead', call, shardId: 1, count: 1, ...ids },
  { kind: 'idsRead', call, shardId: 1, count: 0, ...ids },
  { kind: 'deletionMade', call, count: 1, deletion: new Uint8Array(), next: null },
  { kind: 'deletionMade', call, count: 0, deletion: null, next: null },
  { kind: 'written', call },
  { kind: 'failed', call, error: { code: 'busy', detail: 'too much' } },
  { kind: 'failed', call, error: { code: 'storage', detail: 'no disk' } },
  { kind: 'retry', call },
];

function unnumbered(state: MigrationState): MigrationState {
  const plain = { ...state, call, sequence: 0, copiedUpTo: 0 };
  if (plain.kind === 'Waiting') return { ...plain, next: unnumbered(plain.next) as typeof plain.next };
  if (!('progress' in plain)) return plain;
  const progress = { ...plain.progress, failures: 0, cause: null, sent: 0, total: 0, bytes: 0 };
  return { ...plain, progress } as MigrationState;
}

export const MIGRATION: Machine<MigrationState, MigrationMessage> = {
  step: (state, message) => ({ state: unnumbered(stepMigration(state, message).state) }),
  starts: [unnumbered(startMigration(TASK).state)],
  inputs: () => MESSAGES,
};
