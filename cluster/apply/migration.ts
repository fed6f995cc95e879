/**
 * Points that go from some shards of a collection to others while requests go on, in stages that are agreed on: for resharding
 * (`resharding.ts`), or to another shard key (`KeyCopy`). Each shard's leader does its part of a stage, as the agreed state has it.
 *
 * Its rules are Migr-D1 to Migr-D3 in cluster/README.md.
 *
 * To a key that takes writes of its own, points are copied for everybody to see, there is nothing to switch, and what is deleted
 * behind the copy stays there.
 */

import type { PeerId, ShardId } from '../../protocols/model/cluster.js';
import type { ReshardingStage } from '../state/commands.js';
import type { ClusterState, CollectionRecord, KeyCopy, Resharding, ShardRecord, TransferRecord } from '../state/state.js';
import { busyShards, comingRing, hidingRing, readingPeers } from './resharding.js';

export interface Migration {
  /** Index of the entry that began it. */
  readonly startedAt: number;
  readonly stage: ReshardingStage;
  /** Shards that have something to do in the stage, and those of them that have done it. */
  readonly busy: readonly ShardId[];
  readonly done: readonly ShardId[];
  /** As a ring: whose each point is now. By it a copy's shard of origin is known. */
  readonly source: readonly ShardId[];
  /** As a ring: whose it is to be. */
  readonly target: readonly ShardId[];
  /** Those of them that get points. */
  readonly receiving: readonly ShardId[];
  /** Which points, as in `KeyCopy`. */
  readonly filter: string | null;
  /** What is there is copies only: those whose point is gone are removed, and indexes of payload keys are as the source's. */
  readonly mirrors: boolean;
}

/** What goes on in the collection; null: nothing. */
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

/** Whether the copy opens its target at the end. */
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
 * What replicas go by: while points go to other shards, none are held back (`prevent_unoptimized`), as nobody could copy them. Whether
 * that is so goes with the record's `revision`, as all of its configuration does.
 */
export function effectiveConfig(record: CollectionRecord): CollectionRecord['config'] {
  const { config } = record;
  if (config.optimizer_config.prevent_unoptimized !== true || migrationOf(record) === null) return config;
  return { ...config, optimizer_config: { ...config.optimizer_config, prevent_unoptimized: false } };
}

/** `after`, an operation's, with a new revision where what replicas go by begins or ends to be another configuration. */
export function withRevision(before: CollectionRecord, after: CollectionRecord, index: number): CollectionRecord {
  const isSame = (migrationOf(before) === null) === (migrationOf(after) === null);
  return isSame || after.config.optimizer_config.prevent_unoptimized !== true ? after : { ...after, revision: index };
}

/** What the leader of a shard does for a migration, in all of its stages. Another leader of the shard has another task. */
export interface MigrationTask {
  /** The same for the same task only. */
  readonly name: string;
  readonly collection: string;
  readonly uid: number;
  readonly shardId: ShardId;
  /** Of the shard. */
  readonly term: number;
  /** Index of the entry that began the migration. */
  readonly startedAt: number;
}

/** What is agreed on for a task at the moment. */
export interface MigrationPart {
  readonly migration: Migration;
  /** The shard has finished this stage. */
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

/** Null: the task is over, or another leader's. self: the peer that has it. */
export function partOf({ collections }: ClusterState, task: MigrationTask, self: PeerId): MigrationPart | null {
  const record = collections.get(task.collection);
  const migration = record?.uid === task.uid ? migrationOf(record) : null;
  if (record === undefined || migration?.startedAt !== task.startedAt || !migration.busy.includes(task.shardId)) return null;
  const shard = record.shards.get(task.shardId);
  if (shard?.leader !== self || shard.term !== task.term) return null;
  const isDone = migration.done.includes(task.shardId);
  return { migration, isDone, shardMapVersion: record.shardMapVersion, readers: readingPeers(record) };
}

/** A copy to another key as the API shows it: a transfer from each shard of the one to each shard of the other. */
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
