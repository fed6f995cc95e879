/**
 * States of a shard's part in a migration: points of the shard go to other shards, in the stages that are agreed on.
 *
 * | state      | waits for |
 * |------------|-----------|
 * | Idle       | a stage in which this shard is not done |
 * | Informing  | all peers that serve reads to know the shard map version |
 * | Indexing   | a target to have the indexes of payload keys that this shard has |
 * | Settling   | a barrier of this shard |
 * | Counting   | the number of points that are to be copied |
 * | Reading    | a page of the points that have changed since the last pass |
 * | Copying    | the points of that page that go to one target, in the target's log |
 * | Fencing    | a barrier of a target |
 * | Comparing  | the numbers of points here and of copies in the target |
 * | Listing    | a page of the ids of the target's copies |
 * | Checking   | those of the page whose point is gone here |
 * | Removing   | the deletion of these, in the target's log |
 * | Sweeping   | a page of the points here that are another shard's by now |
 * | Deleting   | the deletion of these, in this shard's log |
 * | Finishing  | the agreement that this shard is done with the stage |
 * | Waiting    | a pause after a failure |
 * | Over       | to be stopped: the migration has ended, or another replica leads the shard |
 */

import type { MigrationPart, MigrationTask } from '../../cluster/apply/migration.js';
import type { TransferProgress } from '../../cluster/transfer/progress.js';
import type { PeerId, ShardId } from '../../protocols/model/cluster.js';
import type { PointId } from '../../protocols/model/point-id.js';
import type { Leaving } from '../../storage/threads/portion.js';

export type MigrationState = Idle | Working | WaitingMigration | Over;

/** States that have called for something. */
export type Working =
  | Informing
  | Indexing
  | Settling
  | Counting
  | ReadingMigration
  | CopyingMigration
  | Fencing
  | ComparingMigration
  | Listing
  | Checking
  | Removing
  | Sweeping
  | Deleting
  | FinishingMigration;

/** What is kept over all stages. */
export interface MigrationMemory {
  readonly task: MigrationTask;
  /** Number of the last call. Answers to earlier ones are ignored. */
  readonly call: number;
  /** Of the last call that carries a fence (Migr-D4). */
  readonly sequence: number;
  /** The version up to which the shard's points are copied, as far as this actor knows; -1: none are. */
  readonly copiedUpTo: number;
}

export interface MigrationStage extends MigrationMemory {
  readonly part: MigrationPart;
  readonly progress: TransferProgress;
}

export interface Idle extends MigrationMemory {
  readonly kind: 'Idle';
}

export interface Over extends MigrationMemory {
  readonly kind: 'Over';
}

export interface Informing extends MigrationStage {
  readonly kind: 'Informing';
  /** Those that know it. */
  readonly informed: readonly PeerId[];
}

export interface Indexing extends MigrationStage {
  readonly kind: 'Indexing';
  readonly target: ShardId;
  /** The next ones. */
  readonly targets: readonly ShardId[];
}

export interface Settling extends MigrationStage {
  readonly kind: 'Settling';
}

/** A barrier has passed. */
export interface Settled extends MigrationStage {
  /** Of the barrier's entry: reads of this shard take in all up to it. */
  readonly index: number;
}

export interface Counting extends Settled {
  readonly kind: 'Counting';
}

/** One walk through the points of the shard (Migr-D5). */
export interface Pass {
  /** From 1 in each stage. */
  readonly number: number;
  /** That were copied. */
  readonly points: number;
  /** The version up to which all points are copied when it ends. */
  readonly upTo: number;
}

export interface Passing extends Settled {
  readonly pass: Pass;
}

export interface ReadingMigration extends Passing {
  readonly kind: 'Reading';
  /** Null: from the first point. */
  readonly from: PointId | null;
}

export interface CopyingMigration extends Passing {
  readonly kind: 'Copying';
  readonly copied: Leaving['parts'][number];
  /** The next ones of the page. */
  readonly parts: Leaving['parts'];
  /** Of the next page; null: this is the last one. */
  readonly next: PointId | null;
}

export interface Fencing extends Passing {
  readonly kind: 'Fencing';
  readonly target: ShardId;
  readonly targets: readonly ShardId[];
}

/** Copies whose point is gone are removed from a target. */
export interface Cleansing extends Passing {
  readonly target: ShardId;
  readonly targets: readonly ShardId[];
  /** Of the target's barrier: reads of the target take in all up to it. */
  readonly targetIndex: number;
}

/** What has been counted on one side. */
export interface Tally {
  readonly count: number;
  readonly isWhole: boolean;
  /** Of the next page to be counted. */
  readonly from: PointId | null;
}

export interface ComparingMigration extends Cleansing {
  readonly kind: 'Comparing';
  readonly points: Tally;
  readonly copies: Tally;
}

export interface Listing extends Cleansing {
  readonly kind: 'Listing';
  readonly from: PointId | null;
}

export interface Checking extends Cleansing {
  readonly kind: 'Checking';
  readonly ids: Uint8Array;
  readonly next: PointId | null;
}

export interface Removing extends Cleansing {
  readonly kind: 'Removing';
  readonly deletion: Uint8Array;
  readonly next: PointId | null;
}

/** Points that are another shard's are removed from this one, until a walk through all of them finds none. */
export interface Tidying extends Settled {
  /** In this walk. */
  readonly removed: number;
}

export interface Sweeping extends Tidying {
  readonly kind: 'Sweeping';
  readonly from: PointId | null;
}

export interface Deleting extends Tidying {
  readonly kind: 'Deleting';
  readonly deletion: Uint8Array;
  /** Points that it removes. */
  readonly count: number;
  readonly next: PointId | null;
}

export interface FinishingMigration extends MigrationStage {
  readonly kind: 'Finishing';
}

export interface WaitingMigration extends MigrationMemory {
  readonly kind: 'Waiting';
  /** What it goes on with. */
  readonly next: Working;
}

export function idle({ call, copiedUpTo, sequence, task }: MigrationMemory): Idle {
  return { kind: 'Idle', task, call, sequence, copiedUpTo };
}

export function over({ call, copiedUpTo, sequence, task }: MigrationMemory): Over {
  return { kind: 'Over', task, call, sequence, copiedUpTo };
}

export function waiting(next: Working): WaitingMigration {
  const { call, copiedUpTo, sequence, task } = next;
  return { kind: 'Waiting', task, call, sequence, copiedUpTo, next };
}

/** What is the same in all states of a stage. */
export function stageOf({ call, copiedUpTo, part, progress, sequence, task }: MigrationStage): MigrationStage {
  return { task, call, sequence, copiedUpTo, part, progress };
}

export function settledOf(state: Settled): Settled {
  return { ...stageOf(state), index: state.index };
}

export function passingOf(state: Passing): Passing {
  return { ...settledOf(state), pass: state.pass };
}

export function cleansingOf(state: Cleansing): Cleansing {
  const { target, targetIndex, targets } = state;
  return { ...passingOf(state), target, targets, targetIndex };
}
