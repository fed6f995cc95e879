/** Decides what a restore does with each shard of an archive. */

import { TroupeError } from '../../protocols/errors.js';
import type { PeerId, ReplicaState, ShardId, ShardKey } from '../../protocols/model/cluster.js';
import type { ArchiveKind, ArchiveShard } from '../../storage/archive/manifest.js';
import { type ArchivedKey, isSameKey } from './archived-collection.js';
import type { SnapshotPriority } from './snapshot-api.js';

/** A shard of the collection as it is agreed on. */
export interface TargetShard {
  readonly id: ShardId;
  readonly key: ShardKey | null;
  readonly replicas: ReadonlyMap<PeerId, ReplicaState>;
  readonly leader: PeerId | null;
}

export interface RestorePlan {
  /**
   * Shards that get files of the archive, each on one peer. leads: the peer leads the shard, and what it then has is the shard's data; else
   * only that replica is changed (`no_sync`).
   */
  readonly installs: readonly { readonly from: ArchiveShard; readonly to: ShardId; readonly peer: PeerId; readonly leads: boolean }[];
  /** Shards of the archive that are left as they are, as others have their data. */
  readonly kept: readonly ShardId[];
}

export interface RestoreFacts {
  readonly kind: ArchiveKind;
  /** Shards of the archive. */
  readonly archived: readonly ArchiveShard[];
  /** Its shard keys. */
  readonly keys: readonly ArchivedKey[];
  /** Shards of the collection. */
  readonly shards: readonly TargetShard[];
  /** The one shard that is restored; null for all that the archive has. */
  readonly only: ShardId | null;
  readonly priority: SnapshotPriority;
  readonly self: PeerId;
  readonly inCluster: boolean;
  /** Whether this restore has created the collection. */
  readonly isNew: boolean;
}

/**
 * The plan of a restore. Errors: `wrongInput` for an archive whose shards are not those of the collection; `unavailable` for a shard without
 * a leader.
 */
export function planRestore(facts: RestoreFacts): RestorePlan {
  const installs: RestorePlan['installs'][number][] = [];
  const kept: ShardId[] = [];
  for (const { from, to } of pairs(facts)) {
    const peer = placeOf(to, facts);
    if (peer === null) kept.push(to.id);
    else installs.push({ from, to: to.id, peer, leads: peer === to.leader });
  }
  return { installs, kept };
}

/** The peer whose replica gets the files; null: the shard is left as it is. */
function placeOf(shard: TargetShard, { inCluster, isNew, priority, self }: RestoreFacts): PeerId | null {
  if (priority === 'no_sync' && shard.replicas.has(self)) return self;
  if (priority === 'replica' && inCluster && (isNew || hasOtherActive(shard, self))) return null;
  if (shard.leader === null)
    throw new TroupeError('unavailable', `no replica of shard ${shard.id} leads it now: retry`, { retryAfterMs: 1000 });
  return shard.leader;
}

function hasOtherActive({ replicas }: TargetShard, self: PeerId): boolean {
  return [...replicas].some(([peer, state]) => peer !== self && state === 'Active');
}

/** The archive's shards, each with the collection's shard that it is. */
function pairs(facts: RestoreFacts): { from: ArchiveShard; to: TargetShard }[] {
  const { archived, kind, only, shards } = facts;
  if (only !== null) return [{ from: archivedFor(only, kind, archived), to: shardOf(only, shards) }];
  return archived.map((from) => ({ from, to: from.key === null ? shardOf(from.id, shards) : shardOfKey(from, facts) }));
}

function archivedFor(shardId: ShardId, kind: ArchiveKind, archived: readonly ArchiveShard[]): ArchiveShard {
  const found = kind === 'shard' ? archived[0] : archived.find(({ id }) => id === shardId);
  if (found !== undefined) return found;
  throw new TroupeError('wrongInput', `the snapshot has no shard ${shardId}: ${listed(archived)}`);
}

function shardOf(id: ShardId, shards: readonly TargetShard[]): TargetShard {
  const found = shards.find((shard) => shard.id === id);
  if (found !== undefined) return found;
  throw new TroupeError('wrongInput', `the snapshot has shard ${id}, the collection has ${listed(shards)}`);
}

/** Shards of a key have other ids in each cluster: they are taken in their order. */
function shardOfKey({ id, key }: ArchiveShard, { keys, shards }: RestoreFacts): TargetShard {
  const before = keys.find((one) => isSameKey(one.key, key))?.shards ?? [];
  const now = shards.filter((shard) => isSameKey(shard.key, key)).sort((one, other) => one.id - other.id);
  const found = now[before.indexOf(id)];
  if (found !== undefined && now.length === before.length) return found;
  throw new TroupeError(
    'wrongInput',
    `the snapshot has ${before.length} shards of key ${JSON.stringify(String(key))}, the collection has ${now.length}`,
  );
}

function listed(shards: readonly { readonly id: ShardId }[]): string {
  return shards.length === 0 ? 'it has none' : `it has ${shards.map(({ id }) => id).join(', ')}`;
}
