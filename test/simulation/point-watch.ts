/**
 * Looks at replicas' files for what must never be, and for what must be at the end.
 *
 * - P1: a tick of a shard belongs to one operation, whoever has it in its log.
 * - P2: at rest, all replicas of a shard are Active (Listener where the node listens only), at the same operation, and the same point by point.
 */

import type { ClusterState, CollectionRecord, TransferRecord } from '../../cluster/state.js';
import type { PeerId, ReplicaState } from '../../protocols/model/cluster.js';
import type { ShardEntry } from '../../protocols/model/shard-log.js';
import type { SimulatedNode } from './node.js';
import { POINTS } from './point-clients.js';
import { lastOf, type StoredReplica } from './replica-files.js';
import { difference, Sameness } from './same.js';

export class PointWatch {
  /** How many were begun, done and given up, by method. */
  readonly transfers = new Map<string, number>();
  /** By shard's life and tick. */
  readonly #operations = new Map<string, Map<number, ShardEntry>>();
  readonly #sameness = new Sameness();
  readonly #uids = new Map<string, number>();
  #followed: ClusterState | null = null;

  constructor(
    private readonly nodes: readonly SimulatedNode[],
    private readonly violation: (what: string) => void,
  ) {
    for (const { disk, host } of nodes) disk.logged = (folder, entries) => this.#lookAt(host, folder, entries);
  }

  /** Shards are known by the lives of their collections. */
  follow(agreed: ClusterState | null): void {
    if (agreed === this.#followed) return;
    this.#count(this.#followed, agreed);
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
    for (const [key, { method }] of now) if (!old.has(key)) this.#add(`${method} begun`);
    for (const [key, { collection, method, shardId, to }] of old) {
      if (now.has(key)) continue;
      const state = agreed?.collections.get(collection)?.shards.get(shardId)?.replicas.get(to);
      this.#add(`${method} ${state === 'Active' || state === 'Listener' ? 'done' : 'given up'}`);
    }
  }

  #add(what: string): void {
    this.transfers.set(what, (this.transfers.get(what) ?? 0) + 1);
  }

  /** P1. */
  #lookAt(host: string, folder: string, entries: readonly ShardEntry[]): void {
    const shard = folder.slice(folder.indexOf('/', 1) + 1);
    const life = `${shard} of ${this.#uids.get(shard.slice(0, shard.lastIndexOf('/')))}`;
    const known = this.#operations.get(life) ?? new Map<number, ShardEntry>();
    this.#operations.set(life, known);
    for (const entry of entries) {
      const other = known.get(entry.tag.tick);
      if (other === undefined) known.set(entry.tag.tick, entry);
      else if (!this.#sameness.same(other, entry))
        this.violation(`P1: ${host} logs another operation as ${entry.tag.tick} of ${shard}: ${difference(other, entry)}`);
    }
  }

  /** P2. */
  #unrestOf(name: string, { shards, transfers }: CollectionRecord): string | null {
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
        if (lastOf(stored).tick !== stored.applied.tick) return `${name}/${shardId} on ${node.host} has not applied its log`;
        if (first === null) first = { host: node.host, stored };
        else {
          const what = `${name}/${shardId} differs between ${first.host} and ${node.host}`;
          if (lastOf(first.stored).tick !== lastOf(stored).tick)
            return `${what}: they end at ${lastOf(first.stored).tick} and ${lastOf(stored).tick}`;
          const found = difference(first.stored.points, stored.points);
          if (found !== '') return `${what}: ${found}`;
        }
      }
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

/** By what no other transfer has. */
function transfersOf(agreed: ClusterState | null): Map<string, TransferRecord & { readonly collection: string }> {
  const transfers = new Map<string, TransferRecord & { readonly collection: string }>();
  for (const [collection, record] of agreed?.collections ?? [])
    for (const transfer of record.transfers)
      transfers.set(`${record.uid}/${transfer.shardId}/${transfer.to}/${transfer.startedAt}`, { ...transfer, collection });
  return transfers;
}
