/**
 * Looks at replicas' files for what must never be, and for what must be at the end.
 *
 * - **Sim-P1** an index of a shard belongs to one operation, whoever has it in its log.
 * - **Sim-P2** at rest, all replicas of a shard are Active (Listener where the node listens only), at the same operation, and the same point by point,
 *   with the same indexes of payload keys in all shards.
 * - **Sim-P3** at rest, nothing is resharded, each point is on the one shard that has it by the ring of its key, and `shard_number` is how many there are.
 */

import type { ClusterState, CollectionRecord, TransferRecord } from '../../cluster/state/state.js';
import type { PeerId, ReplicaState, ShardId } from '../../protocols/model/cluster.js';
import type { ShardEntry } from '../../protocols/model/shard-log.js';
import { ownerOf } from './engine-leaving.js';
import type { SimulatedNode } from './node.js';
import { POINTS } from './point-names.js';
import { lastOf, type StoredReplica } from './replica-files.js';
import { difference, Sameness } from './same.js';

export class PointWatch {
  /** How many were begun, done and given up, by method. */
  readonly transfers = new Map<string, number>();
  /** Shards that came and went: begun, done and given up, by direction. */
  readonly reshardings = new Map<string, number>();
  /** By shard's life and index. */
  readonly #operations = new Map<string, Map<number, ShardEntry>>();
  readonly #sameness = new Sameness();
  readonly #uids = new Map<string, number>();
  #followed: ClusterState | null = null;

  constructor(
    private readonly nodes: readonly SimulatedNode[],
    private readonly violation: (what: string) => void,
    /** The cluster did as it was told, and what that peer had is lost: there is nothing left that could be promised. */
    private readonly lastCopyRemoved: (peerId: PeerId, shardId: ShardId) => void,
  ) {
    for (const { disk, host } of nodes) disk.logged = (folder, entries) => this.#lookAt(host, folder, entries);
  }

  /** Shards are known by the lives of their collections. */
  follow(agreed: ClusterState | null): void {
    if (agreed === this.#followed) return;
    this.#count(this.#followed, agreed);
    this.#countReshardings(this.#followed, agreed);
    this.#lookForRemovals(this.#followed, agreed);
    this.#followed = agreed;
    for (const [name, { uid }] of agreed?.collections ?? []) this.#uids.set(name, uid);
  }

  /** Null when all is at rest; else what is not. */
  unrest(agreed: ClusterState | null): string | null {
    for (const [name, record] of agreed?.collections ?? []) {
      const found = this.#unrestOf(name, record);
      if (found !== null) return found;
    }
    return null;
  }

  /** Transfers that have begun since, and those that have ended: with a replica in use, or not. */
  #count(before: ClusterState | null, agreed: ClusterState | null): void {
    const [old, now] = [transfersOf(before), transfersOf(agreed)];
    for (const [key, { method }] of now) if (!old.has(key)) add(this.transfers, `${method} begun`);
    for (const [key, { collection, method, shardId, to }] of old) {
      if (now.has(key)) continue;
      const state = agreed?.collections.get(collection)?.shards.get(shardId)?.replicas.get(to);
      add(this.transfers, `${method} ${state === 'Active' || state === 'Listener' ? 'done' : 'given up'}`);
    }
  }

  /** The same of shards that come and go. */
  #countReshardings(before: ClusterState | null, agreed: ClusterState | null): void {
    for (const [name, { resharding, shards, uid }] of agreed?.collections ?? []) {
      const earlier = before?.collections.get(name);
      const old = earlier?.uid === uid ? earlier.resharding : null;
      if (resharding !== null && resharding.startedAt !== old?.startedAt) add(this.reshardings, `${resharding.direction} begun`);
      if (old === null || old === undefined || old.startedAt === resharding?.startedAt) continue;
      const isThere = shards.has(old.shardId);
      add(this.reshardings, `${old.direction} ${isThere === (old.direction === 'up') ? 'done' : 'given up'}`);
    }
  }

  /** Peers that the operator removed by force, which had become the last ones to serve a shard until that was agreed. */
  #lookForRemovals(before: ClusterState | null, agreed: ClusterState | null): void {
    for (const { peerId } of before?.membership ?? []) {
      if (agreed === null || agreed.membership.some((member) => member.peerId === peerId)) continue;
      for (const [shardId, { replicas }] of before?.collections.get(POINTS)?.shards ?? []) {
        const served = [...replicas].flatMap(([peer, state]) => (state === 'Active' ? [peer] : []));
        if (served.length === 1 && served[0] === peerId) this.lastCopyRemoved(peerId, shardId);
      }
    }
  }

  /** Sim-P1. */
  #lookAt(host: string, folder: string, entries: readonly ShardEntry[]): void {
    const shard = folder.slice(folder.indexOf('/', 1) + 1);
    const life = `${shard} of ${this.#uids.get(shard.slice(0, shard.lastIndexOf('/')))}`;
    const known = this.#operations.get(life) ?? new Map<number, ShardEntry>();
    this.#operations.set(life, known);
    for (const entry of entries) {
      const other = known.get(entry.tag.index);
      if (other === undefined) known.set(entry.tag.index, entry);
      else if (!this.#sameness.same(other, entry))
        this.violation(`Sim-P1: ${host} logs another operation as ${entry.tag.index} of ${shard}: ${difference(other, entry)}`);
    }
  }

  /** Sim-P2 and Sim-P3. */
  #unrestOf(name: string, record: CollectionRecord): string | null {
    const { resharding, shards, transfers } = record;
    if (resharding !== null) {
      const leaders = [...shards].map(([shardId, { leader }]) => `peer ${leader} leads ${shardId}`).join(', ');
      return `${name} is resharded ${JSON.stringify(resharding)}; ${leaders}`;
    }
    const [transfer] = transfers;
    if (transfer !== undefined) {
      const { from, method, shardId, startedAt, to } = transfer;
      const shard = shards.get(shardId);
      const states = [...(shard?.replicas ?? [])].map(([peerId, state]) => `peer ${peerId} is ${state}`).join(', ');
      return `${name} has a transfer (${method}) of shard ${shardId} from ${from} to ${to} since ${startedAt}; peer ${shard?.leader} leads, ${states}`;
    }
    for (const [shardId, { replicas }] of shards) {
      // Of collections without points, whole shards may go with their peers.
      if (name !== POINTS && ![...replicas.values()].includes('Active')) continue;
      let first: { readonly host: string; readonly stored: StoredReplica } | null = null;
      for (const [peerId, state] of replicas) {
        if (state !== this.#wanted(peerId, replicas)) return `${name}/${shardId} on peer ${peerId} is ${state}`;
        const node = this.#nodeOf(peerId);
        const stored = node?.engine?.open.get(`${name}/${shardId}`)?.stored;
        if (node === undefined || stored === undefined) return `${name}/${shardId} is not open on peer ${peerId}`;
        if (lastOf(stored).index !== stored.applied.index) return `${name}/${shardId} on ${node.host} has not applied its log`;
        if (first === null) first = { host: node.host, stored };
        else {
          const what = `${name}/${shardId} differs between ${first.host} and ${node.host}`;
          if (lastOf(first.stored).index !== lastOf(stored).index)
            return `${what}: they end at ${lastOf(first.stored).index} and ${lastOf(stored).index}`;
          const found = difference(first.stored.points, stored.points);
          if (found !== '') return `${what}: ${found}`;
        }
      }
    }
    return name === POINTS ? this.#misplaced(record) : null;
  }

  /** Sim-P3. All replicas of a shard are the same. */
  #misplaced({ config, shards }: CollectionRecord): string | null {
    const { sharding_method, shard_number } = config.params;
    if (sharding_method !== 'custom' && shard_number !== shards.size)
      return `shard_number is ${shard_number}, and there are ${shards.size}`;
    let fields: StoredReplica['fields'] | null = null;
    for (const [shardId, { key, replicas }] of shards) {
      const [peerId] = replicas.keys();
      const stored = this.#nodeOf(peerId as PeerId)?.engine?.open.get(`${POINTS}/${shardId}`)?.stored as StoredReplica;
      const ring = [...shards].flatMap(([other, shard]) => (shard.key === key ? [other] : []));
      for (const id of stored.points.keys())
        if (ownerOf(ring, id) !== shardId) return `shard ${shardId} has point ${id}, which is shard ${ownerOf(ring, id)}'s`;
      const found = difference(fields ?? stored.fields, stored.fields);
      if (found !== '') return `shard ${shardId} has other indexes than the one before: ${found}`;
      fields = stored.fields;
    }
    return null;
  }

  /** A node that only listens serves a shard where nobody else would. */
  #wanted(peerId: PeerId, replicas: ReadonlyMap<PeerId, ReplicaState>): ReplicaState {
    if (this.#nodeOf(peerId)?.listens !== true) return 'Active';
    return [...replicas].some(([other, state]) => other !== peerId && state === 'Active') ? 'Listener' : 'Active';
  }

  #nodeOf(peerId: PeerId): SimulatedNode | undefined {
    return this.nodes.find((node) => node.cluster?.status().peerId === peerId);
  }
}

function add(counts: Map<string, number>, what: string): void {
  counts.set(what, (counts.get(what) ?? 0) + 1);
}

/** By what no other transfer has. */
function transfersOf(agreed: ClusterState | null): Map<string, TransferRecord & { readonly collection: string }> {
  const transfers = new Map<string, TransferRecord & { readonly collection: string }>();
  for (const [collection, record] of agreed?.collections ?? [])
    for (const transfer of record.transfers)
      transfers.set(`${record.uid}/${transfer.shardId}/${transfer.to}/${transfer.startedAt}`, { ...transfer, collection });
  return transfers;
}
