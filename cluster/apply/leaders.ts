/**
 * Chooses the leader of each shard. A leader is one of the Active replicas. It leads until it is not Active any more or gives the lead away
 * (`changeLeader`); the next leader has the next term. So no two leaders share a term, and late messages of an earlier leader can be told
 * from those of the newest.
 */

import type { PeerId, ShardId } from '../../protocols/model/cluster.js';
import type { ClusterCommand } from '../state/commands.js';
import type { ClusterState, CollectionRecord, ShardRecord } from '../state/state.js';
import { withCollections } from './change.js';

/** The state after `command`, with leaders for its shards. */
export function afterCommand(state: ClusterState, command: ClusterCommand): ClusterState {
  // The replica that a leader has moved to has all its points, and is meant to take its load.
  const heir = command.kind === 'finishTransfer' ? command.transfer.to : null;
  const led: [string, CollectionRecord][] = [];
  for (const name of collectionsOf(state, command)) {
    const record = state.collections.get(name);
    const next = record === undefined ? undefined : withLeaders(record, heir);
    if (next !== undefined && next !== record) led.push([name, next]);
  }
  return led.length === 0 ? state : withRecords(state, led);
}

/**
 * The collections after a peer has left: the shards that it led get other leaders. Shards that had no leader get one with the next command.
 */
export function afterLeaving(collections: ClusterState['collections'], peerId: PeerId): ClusterState['collections'] {
  const next = new Map(collections);
  for (const [name, record] of collections)
    if ([...record.shards.values()].some(({ leader }) => leader === peerId)) next.set(name, withLeaders(record, null));
  return next;
}

/** Whether a shard waits for a leader although it could have one: see `electLeaders`. */
export function lacksLeader({ shards, uid }: CollectionRecord): boolean {
  for (const [shardId, shard] of shards) if (shard.leader === null && electedOf(uid, shardId, shard) !== null) return true;
  return false;
}

/** Names of the collections that a command may change. */
export function collectionsOf(state: ClusterState, command: ClusterCommand): Iterable<string> {
  switch (command.kind) {
    case 'electLeaders':
      return state.collections.keys();
    case 'setReplicaStates':
      return new Set(command.changes.map(({ collection }) => collection));
    default:
      if ('collection' in command) return [command.collection];
      return 'name' in command ? [command.name] : [];
  }
}

function withRecords(state: ClusterState, records: readonly [string, CollectionRecord][]): ClusterState {
  return withCollections(state, (collections) => {
    for (const [name, record] of records) collections.set(name, record);
  });
}

function withLeaders(record: CollectionRecord, heir: PeerId | null): CollectionRecord {
  let shards: Map<ShardId, ShardRecord> | null = null;
  for (const [shardId, shard] of record.shards) {
    if (shard.leader !== null && shard.replicas.get(shard.leader) === 'Active') continue;
    const inherits = heir !== null && shard.leader !== null && shard.replicas.get(heir) === 'Active';
    const leader = inherits ? heir : electedOf(record.uid, shardId, shard);
    if (leader === shard.leader) continue;
    shards ??= new Map(record.shards);
    shards.set(shardId, { ...shard, leader, term: leader === null ? shard.term : shard.term + 1 });
  }
  return shards === null ? record : { ...record, shards };
}

/**
 * The peer that leads the shard next; null if none may. The choice rotates over shards and terms, so that the lead of a lost node's shards
 * spreads over the others. Until a shard has had a leader, its Initializing replicas have their turn too; otherwise the node that was made
 * first would lead everything. A turn that falls on one of these is waited for.
 */
function electedOf(uid: number, shardId: ShardId, { replicas, term }: ShardRecord): PeerId | null {
  const mayLead = [...replicas.keys()].filter((peerId) => {
    const state = replicas.get(peerId);
    return state === 'Active' || (state === 'Initializing' && term === 0);
  });
  mayLead.sort((one, other) => one - other);
  const turn = mayLead[(uid + shardId + term) % mayLead.length];
  return turn !== undefined && replicas.get(turn) === 'Active' ? turn : null;
}
