/**
 * Decides which leads go back to the leader before.
 *
 * A replica may become its shard's leader while its files are gone: its node was down when the leader before became Dead, and nobody knew.
 * Only its node can tell that nothing was acknowledged in its term. Then the leader before has everything that was: it was Active as long
 * as it led (Log-L3), and nobody has led between the two.
 */

import type { PeerId, ShardId } from '../../protocols/model/cluster.js';
import type { CommandOf } from './commands.js';
import type { ClusterState } from './state.js';

/** Who led a shard, and in which term. since: of the leader's replica, see `ShardRecord`. */
export interface Lead {
  readonly leader: PeerId;
  readonly term: number;
  readonly since: number;
}

/** Leads by `leadName`. */
export type Leads = ReadonlyMap<string, Lead>;

export interface NamedShard {
  readonly collection: string;
  readonly uid: number;
  readonly shardId: ShardId;
}

/** The lead of a shard in this term goes back from the peer that has it to an earlier leader, whose replica is not Active any more. */
export interface GivingBack extends NamedShard {
  readonly from: PeerId;
  readonly to: PeerId;
  readonly term: number;
  /** Of the replica that gets the lead. */
  readonly since: number;
}

export function leadName({ shardId, uid }: Pick<NamedShard, 'shardId' | 'uid'>): string {
  return `${uid}/${shardId}`;
}

/** The leads that other peers have of shards with an Active replica on this peer. */
export function leadsOfOthers({ collections }: Pick<ClusterState, 'collections'>, self: PeerId): Leads {
  const leads = new Map<string, Lead>();
  for (const { shards, uid } of collections.values()) {
    for (const [shardId, { leader, replicas, since, term }] of shards) {
      if (leader === null || leader === self || replicas.get(self) !== 'Active') continue;
      leads.set(leadName({ uid, shardId }), { leader, term, since: since.get(leader) ?? 0 });
    }
  }
  return leads;
}

/**
 * The leads that this peer has to give back. before: who led when this peer's process began. lost: shards whose files were gone by then, and
 * have not been there since.
 *
 * A lead goes back where the leader of `before` led until this peer's term began: the terms follow each other. So no earlier process of this
 * peer has led in its term, and this one cannot.
 */
export function leadsToGiveBack(
  { collections }: Pick<ClusterState, 'collections'>,
  self: PeerId,
  before: Leads,
  lost: Iterable<NamedShard>,
): GivingBack[] {
  const leads: GivingBack[] = [];
  for (const { collection, shardId, uid } of lost) {
    const record = collections.get(collection);
    const shard = record?.uid === uid ? record.shards.get(shardId) : undefined;
    const known = before.get(leadName({ uid, shardId }));
    if (shard === undefined || known === undefined) continue;
    const { leader, replicas, since, term } = shard;
    if (leader !== self || term !== known.term + 1) continue;
    // With another Active replica, this one becomes Dead as all that are lost.
    if ([...replicas].some(([peer, state]) => peer !== self && state === 'Active')) continue;
    if (!replicas.has(known.leader) || (since.get(known.leader) ?? 0) !== known.since) continue;
    leads.push({ collection, uid, shardId, from: self, to: known.leader, term, since: known.since });
  }
  return leads;
}

/** The command that gives a lead back: both replicas change their states, or, once the shard has another term, none. */
export function givenBack({ collection, from, shardId, term, to, uid }: GivingBack): CommandOf<'setReplicaStates'> {
  const replica = { collection, uid, shardId };
  return {
    kind: 'setReplicaStates',
    changes: [
      // Without a term, as the last Active replica becomes Dead with one only by the term of the change below.
      { ...replica, peerId: from, from: 'Active', to: 'Dead', term: null },
      { ...replica, peerId: to, from: null, to: 'Active', term },
    ],
  };
}
