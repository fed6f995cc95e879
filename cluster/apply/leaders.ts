/**
 * Who leads each shard. A leader is one of the Active replicas, and stays it until it is Active no more, or gives the lead away
 * (`changeLeader`); then the next one has the next term. So terms never repeat a leader by chance, and what a leader of an earlier term still says can be told from the newest one's.
 */

import type { PeerId, ShardId } from '../../protocols/model/cluster.js';
import type { ClusterCommand } from '../state/commands.js';
import type { ClusterState, CollectionRecord, ShardRecord } from '../state/state.js';
import { withCollections } from './change.js';

/** The state after `operation`, whose shards have got the leaders that follow from it. */
export function afterCommand(state: ClusterState, command: ClusterCommand): ClusterState {
  // The replica that a leading one has moved to has all that it had, and is there to take its load.
  const heir = command.kind === 'finishTransfer' ? command.transfer.to : null;
  const led: [string, CollectionRecord][] = [];
  for (const name of collectionsOf(state, command)) {
    const record = state.collections.get(name);
    const next = record === undefined ? undefined : withLeaders(record, heir);
    if (next !== undefined && next !== record) led.push([name, next]);
  }
  return led.length === 0 ? state : withRecords(state, led);
}

/** The state without a peer that led: its shards have other leaders. Those that had none yet get them with the next operation. */
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
 * Shards take turns among the peers that hold them, and so do a shard's terms: what a lost node led spreads over the others. As
 * long as a shard has had no leader, its Initializing replicas have their turn too, or the node that was made first would lead
 * everything; a turn that falls on one is waited for.
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
