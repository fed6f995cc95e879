/** What is wrong with a node and its cluster at one moment, by figures. Pure. */

import type { ClusterState } from '../../cluster/state/state.js';
import type { PeerId, ReplicaState, ShardId } from '../../protocols/model/cluster.js';
import type { Issue } from './issue.js';

export type FoundIssue = Omit<Issue, 'timestamp' | 'count'>;

/** A collection with what its vectors take on this node. */
export interface CollectionMemory {
  readonly name: string;
  /** Original vectors of the replicas on this node. */
  readonly vectorBytes: number;
  /** Some of them stay in memory by the collection's settings. */
  readonly inMemory: boolean;
  readonly quantized: boolean;
}

export interface MemoryFacts {
  readonly budgetBytes: number;
  readonly usedBytes: number;
}

export interface DiskFacts {
  readonly freeBytes: number;
  readonly freeBytesMin: number;
  readonly isLow: boolean;
}

/** A replica that serves no reads as it is Dead. */
export interface DeadReplica {
  readonly collection: string;
  readonly shardId: ShardId;
  readonly peerId: PeerId;
  /** Since it was first seen so. */
  readonly deadMs: number;
  /** Whether this node hears its peer. */
  readonly peerConnected: boolean;
  /** The others of its shard, by state. */
  readonly others: readonly ReplicaState[];
  /** Why it does not serve, where this node knows that. */
  readonly reason: string | null;
}

/** Replicas of each peer that takes some. */
export type Loads = ReadonlyMap<PeerId, number>;

/** From this part of the budget on, memory is short. */
const MEMORY_SHARE = 0.8;
/** A collection that takes this part of the budget is worth a change. */
const COLLECTION_SHARE = 0.2;
/** Below so many times the mark, the disk is nearly full. */
const DISK_MARKS = 2;
/** Peers with so many replicas more than others are out of balance; they are never quite equal. */
const LOAD_DIFFERENCE = 3;
const LOAD_RATIO = 1.5;
/** Replicas that come back by themselves are Dead for less. */
const DEAD_MS = 60_000;
const GIBIBYTE = 2 ** 30;

/** collections: those of this node; asked for only where memory is short. */
export function memoryIssues({ budgetBytes, usedBytes }: MemoryFacts, collections: () => Iterable<CollectionMemory>): FoundIssue[] {
  if (usedBytes < budgetBytes * MEMORY_SHARE) return [];
  const large = [...collections()].filter(({ vectorBytes }) => vectorBytes >= budgetBytes * COLLECTION_SHARE);
  const use = `The process uses ${bytes(usedBytes)} of the ${bytes(budgetBytes)} that it may have`;
  if (large.length === 0)
    return [
      {
        id: 'MEMORY',
        description: `${use}. Builds wait for memory, and beyond the budget writes are refused.`,
        solution: 'Give the node more memory (`storage.performance.memory_budget_mb`), or delete what is not needed.',
      },
    ];
  return large.map((collection) => ({ ...tooLarge(collection, use), collection: collection.name }));
}

function tooLarge({ inMemory, name, quantized, vectorBytes }: CollectionMemory, use: string): FoundIssue {
  const id = `MEMORY/${name}`;
  const description = `${use}, and the vectors of collection \`${name}\` take ${bytes(vectorBytes)} on this node.`;
  const path = `/collections/${encodeURIComponent(name)}`;
  if (!quantized)
    return {
      id,
      description,
      solution:
        'Quantize the vectors and leave the originals on disk (`on_disk: true` for each vector): an 8-bit code takes a quarter of a float32. Or give ' +
        'the node more memory, or the collection more nodes.',
      action: { method: 'PATCH', path, body: { quantization_config: { scalar: { type: 'int8', always_ram: true } } } },
    };
  return {
    id,
    description,
    solution: inMemory
      ? 'Leave the originals on disk (`on_disk: true` for each vector): the codes answer searches. Or give the node more memory.'
      : 'Codes and graphs alone take too much: give the node more memory, or spread the collection over more nodes.',
  };
}

export function diskIssues({ freeBytes, freeBytesMin, isLow }: DiskFacts): FoundIssue[] {
  if (!isLow && freeBytes >= freeBytesMin * DISK_MARKS) return [];
  const now = `${bytes(freeBytes)} are free on the disk of the storage folder`;
  const mark = `${bytes(freeBytesMin)} (\`storage.disk_free_min_mb\`)`;
  return [
    {
      id: 'DISK',
      description: isLow ? `${now}: below ${mark} writes are refused.` : `${now}. From ${mark} on writes are refused.`,
      solution: 'Delete points, collections or snapshots that are not needed, or give the disk more room.',
    },
  ];
}

/** Other peers whose disk is full, while writes go on elsewhere; the disk of this one is another issue. status: null without a cluster. */
export function fullPeerIssues(status: { readonly peerId: PeerId; readonly fullPeers: ReadonlySet<PeerId> } | null): FoundIssue[] {
  const others = [...(status?.fullPeers ?? [])].filter((peer) => peer !== status?.peerId);
  return others.map((peer) => ({
    id: `DISK/peer ${peer}`,
    description: `The disk of peer ${peer} is nearly full: other peers lead its shards where they can, and shards that it alone could lead take no writes.`,
    solution: 'Give its disk more room, or drain it, so that its replicas go to other peers.',
  }));
}

/** Replicas that every peer which takes some has; null: not a matter here. */
export function replicaLoads({ collections, marks, membership }: ClusterState): Loads {
  const loads = new Map<PeerId, number>();
  for (const { peerId } of membership) {
    const mark = marks.get(peerId);
    if (mark?.listens !== true && (mark?.leaving ?? null) === null) loads.set(peerId, 0);
  }
  for (const { shards } of collections.values())
    for (const { replicas } of shards.values())
      for (const peerId of replicas.keys()) if (loads.has(peerId)) loads.set(peerId, (loads.get(peerId) as number) + 1);
  return loads;
}

/** underWay: moves that are planned or run, which may mend it. */
export function balanceIssues(loads: Loads, underWay: number): FoundIssue[] {
  if (loads.size < 2 || underWay > 0) return [];
  const sorted = [...loads].sort(([, one], [, other]) => one - other);
  const [least, fewest] = sorted[0] as [PeerId, number];
  const [most, largest] = sorted[sorted.length - 1] as [PeerId, number];
  if (largest - fewest < LOAD_DIFFERENCE || largest < fewest * LOAD_RATIO) return [];
  return [
    {
      id: 'BALANCE',
      description: `Peer ${most} has ${largest} replicas, and peer ${least} has ${fewest}: one works more than the other.`,
      solution: 'Have replicas moved to where there are few. `dry_run=true` lists the moves first, and does nothing.',
      action: { method: 'POST', path: '/cluster/rebalance' },
    },
  ];
}

export function deadIssues(replicas: readonly DeadReplica[]): FoundIssue[] {
  return replicas.filter(({ deadMs }) => deadMs >= DEAD_MS).map(deadIssue);
}

function deadIssue({ collection, deadMs, others, peerConnected, peerId, reason, shardId }: DeadReplica): FoundIssue {
  const active = others.filter((state) => state === 'Active').length;
  const rest =
    active > 0
      ? `${active} Active ${active === 1 ? 'replica answers' : 'replicas answer'} meanwhile.`
      : 'No replica of the shard is Active: its points can be neither read nor written.';
  const why = reason === null ? '' : ` (${reason})`;
  return {
    id: `DEAD_REPLICA/${collection}/${shardId}/${peerId}`,
    collection,
    description: `The replica of shard ${shardId} of collection \`${collection}\` on peer ${peerId} is Dead since at least ${minutes(deadMs)}${why}. ${rest}`,
    solution: peerConnected
      ? 'The node is there, so the replica is filled by itself: the transfers page says how far that is, and its log what hinders it.'
      : 'Start the node again, or look why it cannot be reached. If it does not come back, remove the peer, and have replicas made elsewhere.',
  };
}

function minutes(ms: number): string {
  const number = Math.floor(ms / 60_000);
  return number < 120 ? `${number} minute${number === 1 ? '' : 's'}` : `${Math.floor(number / 60)} hours`;
}

function bytes(number: number): string {
  return number >= GIBIBYTE ? `${(number / GIBIBYTE).toFixed(1)} GB` : `${Math.round(number / 2 ** 20)} MB`;
}
