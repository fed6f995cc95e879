/**
 * Moves points from some shards of a collection to others while requests go on, in stages that are agreed on: for resharding
 * (`resharding.ts`) or to another shard key (`KeyCopy`). Each shard's leader does its part of a stage, as the agreed state says.
 *
 * Its rules are Migr-D1 to Migr-D3 in cluster/README.md.
 *
 * A copy to a key that takes writes of its own is visible while it is made: there is nothing to switch. A point that is deleted from the
 * source after it was copied stays in the target.
 */

import type { PeerId, ShardId } from '../../protocols/model/cluster.js';
import type { ReshardingStage } from '../state/commands.js';
import type { ClusterState, CollectionRecord, KeyCopy, Resharding, ShardRecord, TransferRecord } from '../state/state.js';
import { busyShards, comingRing, hidingRing, readingPeers } from './resharding.js';

export interface Migration {
  /** Index of the entry that began the migration. */
  readonly startedAt: number;
  readonly stage: ReshardingStage;
  /** busy: shards that have a task in this stage. done: those of them that have finished it. */
  readonly busy: readonly ShardId[];
  readonly done: readonly ShardId[];
  /** Ring of the shards that own the points now. It tells the shard that a copy came from. */
  readonly source: readonly ShardId[];
  /** Ring of the shards that are to own the points. */
  readonly target: readonly ShardId[];
  /** The shards of `target` that get points. */
  readonly receiving: readonly ShardId[];
  /** The filter that selects points, as in `KeyCopy`; null for all points. */
  readonly filter: string | null;
  /** The target has only copies: copies whose point is gone are removed, and payload indexes are made as on the source. */
  readonly mirrors: boolean;
}

/** The migration of the collection; null if there is none. */
export function migrationOf(record: CollectionRecord): Migration | null {
  const { keyCopy, resharding } = record;
  if (resharding !== null) return migrationOfResharding(record, resharding);
  return keyCopy === null ? null : migrationOfCopy(record, keyCopy);
}

function migrationOfResharding(record: CollectionRecord, resharding: Resharding): Migration {
  const { direction, done, shardId, stage, startedAt } = resharding;
  const target = comingRing(record, resharding);
  return {
    startedAt,
    stage,
    busy: busyShards(record, resharding),
    done,
    source: hidingRing(record) ?? [],
    target,
    receiving: direction === 'up' ? [shardId] : target,
    filter: null,
    mirrors: true,
  };
}

function migrationOfCopy(record: CollectionRecord, copy: KeyCopy): Migration {
  const source = shardsOfKey(record, copy.source);
  const target = shardsOfKey(record, copy.target);
  const { done, filter, stage, startedAt } = copy;
  return { startedAt, stage, busy: source, done, source, target, receiving: target, filter, mirrors: opensKey(record, copy) };
}

/** Whether the copy opens its target key at the end. */
export function opensKey({ closedKeys }: CollectionRecord, { target }: KeyCopy): boolean {
  return closedKeys.includes(target);
}

export function shardsOfKey({ shards }: CollectionRecord, key: ShardRecord['key']): ShardId[] {
  return [...shards].filter(([, shard]) => shard.key === key).map(([shardId]) => shardId);
}

/** Whether writes of the collection wait for the last copies. */
export function isSwitching({ keyCopy, resharding }: CollectionRecord): boolean {
  return resharding?.stage === 'switching' || keyCopy?.stage === 'switching';
}

/** Whether the shard takes no writes now (Migr-D3). */
export function holdsWrites(record: CollectionRecord, shardId: ShardId): boolean {
  return isSwitching(record) && migrationOf(record)?.busy.includes(shardId) === true;
}

/**
 * The configuration that replicas use: while points move to other shards, none are deferred (`prevent_unoptimized`), as deferred points
 * could not be copied. A change of this comes with a new `revision` of the record, as every change of the configuration does.
 */
export function effectiveConfig(record: CollectionRecord): CollectionRecord['config'] {
  const { config } = record;
  if (config.optimizer_config.prevent_unoptimized !== true || migrationOf(record) === null) return config;
  return { ...config, optimizer_config: { ...config.optimizer_config, prevent_unoptimized: false } };
}

/** `after`, with a new revision if the configuration that replicas use has changed. */
export function withRevision(before: CollectionRecord, after: CollectionRecord, index: number): CollectionRecord {
  const isSame = (migrationOf(before) === null) === (migrationOf(after) === null);
  return isSame || after.config.optimizer_config.prevent_unoptimized !== true ? after : { ...after, revision: index };
}

/** The task of a shard's leader in a migration, in all of its stages. Another leader of the shard has another task. */
export interface MigrationTask {
  /** Names the task; no other task has the same name. */
  readonly name: string;
  readonly collection: string;
  readonly uid: number;
  readonly shardId: ShardId;
  /** Term of the shard. */
  readonly term: number;
  /** Index of the entry that began the migration. */
  readonly startedAt: number;
}

/** The agreed state of a task. */
export interface MigrationPart {
  readonly migration: Migration;
  /** Whether the shard has finished this stage. */
  readonly isDone: boolean;
  readonly shardMapVersion: number;
  /** Peers that serve reads of the collection, or may do so soon. */
  readonly readers: readonly PeerId[];
}

/** Tasks of the shards that the peer leads, by name. */
export function migrationTasks({ collections }: ClusterState, self: PeerId): Map<string, MigrationTask> {
  const tasks = new Map<string, MigrationTask>();
  for (const [collection, record] of collections) {
    const { shards, uid } = record;
    const migration = migrationOf(record);
    if (migration === null) continue;
    const { busy, startedAt } = migration;
    for (const shardId of busy) {
      const { leader, term } = shards.get(shardId) as ShardRecord;
      const name = `${uid}.${shardId}-migration-${startedAt}-${term}`;
      if (leader === self) tasks.set(name, { name, collection, uid, shardId, term, startedAt });
    }
  }
  return tasks;
}

/** The agreed state of a task; null if the task is over or belongs to another leader. self: the peer that has the task. */
export function partOf({ collections }: ClusterState, task: MigrationTask, self: PeerId): MigrationPart | null {
  const record = collections.get(task.collection);
  const migration = record?.uid === task.uid ? migrationOf(record) : null;
  if (record === undefined || migration?.startedAt !== task.startedAt || !migration.busy.includes(task.shardId)) return null;
  const shard = record.shards.get(task.shardId);
  if (shard?.leader !== self || shard.term !== task.term) return null;
  const isDone = migration.done.includes(task.shardId);
  return { migration, isDone, shardMapVersion: record.shardMapVersion, readers: readingPeers(record) };
}

/** A copy to another key in the API's form: one transfer from each shard of the source to each shard of the target. */
export function copyTransfers(record: CollectionRecord): TransferRecord[] {
  const { keyCopy, shards } = record;
  if (keyCopy === null) return [];
  const { startedAt } = keyCopy;
  const holderOf = (shardId: ShardId): PeerId | null => {
    const { leader, replicas } = shards.get(shardId) as ShardRecord;
    return leader ?? [...replicas.keys()].sort((one, other) => one - other)[0] ?? null;
  };
  return shardsOfKey(record, keyCopy.source).flatMap((shardId) =>
    shardsOfKey(record, keyCopy.target).flatMap((toShardId): TransferRecord[] => {
      const [from, to] = [holderOf(shardId), holderOf(toShardId)];
      if (from === null || to === null) return [];
      return [{ shardId, from, to, toShardId, method: 'stream_records', sync: true, targetIsNew: false, startedAt }];
    }),
  );
}
