/**
 * The part of a collection's record about one peer. Records never change, and each agreement looks at up to ten thousand of them, so
 * results are cached.
 */

import { effectiveConfig } from '../../../cluster/apply/migration.js';
import type { CollectionRecord, ShardRecord } from '../../../cluster/state/state.js';
import type { PeerId, ReplicaState } from '../../../protocols/model/cluster.js';
import type { DesiredCollection } from '../../context/desired.js';

export interface OwnPart {
  readonly peerId: PeerId;
  readonly desired: DesiredCollection;
  /** The states of the peer's replicas. */
  readonly states: ReadonlySet<ReplicaState>;
}

/** Cache for the peer that asked last, which is the only one outside of tests. */
const known = new WeakMap<CollectionRecord, OwnPart>();

export function ownPart(record: CollectionRecord, peerId: PeerId): OwnPart {
  const found = known.get(record);
  if (found?.peerId === peerId) return found;
  const own = [...record.shards].filter(([, { replicas }]) => replicas.has(peerId));
  own.sort(([one], [other]) => one - other);
  const shards = own.map(([shardId]) => shardId);
  const since = own.map(([, shard]) => sinceOf(record, shard, peerId));
  const part: OwnPart = {
    peerId,
    desired: { uid: record.uid, revision: record.revision, config: effectiveConfig(record), shards, since },
    states: new Set(own.flatMap(([, { replicas }]) => replicas.get(peerId) ?? [])),
  };
  known.set(record, part);
  return part;
}

/** Index of the entry that made a peer's replica, as nodes are told. */
export function sinceOf({ uid }: CollectionRecord, { since }: ShardRecord, peerId: PeerId): number {
  return since.get(peerId) ?? uid;
}
