/** What a migration needs of others: what is agreed on, calls to the leaders of shards, and agreement. */

import type { MigrationPart, MigrationTask } from '../../cluster/apply/migration.js';
import type { CopyFence } from '../../cluster/data-messages.js';
import type { ReshardingStage } from '../../cluster/state/commands.js';
import type { PeerId, ShardId } from '../../protocols/model/cluster.js';
import type { WriteOperation } from '../../protocols/model/update.js';
import type { AnswerOf, CountAsk, GoneAsk, LeavingAsk, OwnedAsk, StrayAsk } from '../../storage/threads/portion.js';
import type { Cancel } from '../runtime/ports.js';

export type LeaderAsk = CountAsk | LeavingAsk | OwnedAsk | GoneAsk | StrayAsk;

export interface MigrationWrite {
  readonly operation: Extract<WriteOperation, 'upsertPoints' | 'deletePoints'>;
  /** As `encodeUpdate` makes it. */
  readonly bytes: Uint8Array;
}

/** For the leader of one shard of the task's collection. */
export interface LeaderCall {
  readonly shardId: ShardId;
  readonly shardMapVersion: number;
  readonly fence: CopyFence;
}

export interface ReadAnswer<Ask extends LeaderAsk> {
  readonly answer: AnswerOf[Ask['kind']];
  /** Index of the last entry that it takes in. */
  readonly position: number;
}

/**
 * Errors of calls to leaders: `unavailable` without a leader; `conflict` where the leader is another one by now or knows another shard map
 * version, and with the reason `staleCopy` behind a later call (Migr-D4); those of `PeerCalls`.
 */
export interface MigrationPorts {
  /** Calls `changed` now, and whenever the collection becomes another one. */
  watch(task: MigrationTask, changed: (part: MigrationPart | null) => void): Cancel;
  /** Whether the peer knows this shard map version, or a later one, and holds no points back. */
  isInformed(peer: PeerId, task: MigrationTask, shardMapVersion: number): Promise<boolean>;
  /** Gives the shard `target` the indexes of payload keys that the task's shard has. */
  copyIndexes(task: MigrationTask, target: ShardId): Promise<void>;
  /** Index of the barrier's entry. */
  passBarrier(task: MigrationTask, call: LeaderCall): Promise<number>;
  /** Errors: also `conflict` when the answer takes in less than all entries up to `index`. */
  read<Ask extends LeaderAsk>(task: MigrationTask, call: LeaderCall, ask: Ask, index: number): Promise<ReadAnswer<Ask>>;
  /** Resolves when reads of all replicas see it. */
  write(task: MigrationTask, call: LeaderCall, write: MigrationWrite): Promise<void>;
  /** Resolves when it is agreed that the shard is done with the stage. */
  finish(task: MigrationTask, stage: ReshardingStage): Promise<void>;
  nowMs(): number;
}
