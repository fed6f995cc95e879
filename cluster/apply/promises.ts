/**
 * Invariants of shards in the agreed state (State-S4, State-S7), checked after each command: a node that finds one broken applies nothing
 * more.
 */

import { invariant } from '../../protocols/invariant.js';
import type { PeerId } from '../../protocols/model/cluster.js';
import type { ClusterState, CollectionRecord, ShardRecord } from '../state/state.js';

type Records = ReadonlyMap<string, CollectionRecord | undefined>;

/** Checks the collections that a command names. before: their records before it. Errors: `BrokenInvariant`. */
export function checkCollections(before: Records, { collections, membership }: ClusterState): void {
  if (before.size === 0) return;
  const members = new Set(membership.map(({ peerId }) => peerId));
  for (const [name, known] of before) {
    const record = collections.get(name);
    if (record !== undefined && record !== known) checkRecord(name, known, record, members);
  }
}

function checkRecord(name: string, before: CollectionRecord | undefined, after: CollectionRecord, members: ReadonlySet<PeerId>): void {
  for (const [shardId, shard] of after.shards) {
    const where = `shard ${shardId} of ${name}`;
    for (const peerId of shard.replicas.keys())
      invariant(members.has(peerId), 'State-S4', () => `${where} has a replica on peer ${peerId}, no member`);
    const known = before?.uid === after.uid ? before.shards.get(shardId) : undefined;
    if (known !== shard) checkLead(where, known, shard);
  }
}

function checkLead(where: string, before: ShardRecord | undefined, { leader, replicas, term }: ShardRecord): void {
  invariant(
    leader === null || replicas.get(leader) === 'Active',
    'State-S7',
    () => `${where} is led by peer ${leader}, whose replica is ${replicas.get(leader as PeerId) ?? 'not there'}`,
  );
  if (before === undefined) return;
  invariant(term >= before.term, 'State-S7', () => `${where} goes back from term ${before.term} to ${term}`);
  invariant(
    leader === null || leader === before.leader || term > before.term,
    'State-S7',
    () => `${where} is led by peers ${before.leader} and ${leader} in term ${term}`,
  );
}
