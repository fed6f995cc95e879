/** Why a node or its cluster is slow, yellow or Dead: what was found, in sentences, the gravest first. */

import type { ActorReport, CollectionCluster, CollectionInfo, Optimizations, ShownCluster, Telemetry } from './api-types.js';
import { peerNames, shardRows } from './cluster-map.js';
import { conditionOf, type Tone } from './condition.js';
import { bytes, count } from './format.js';
import { type ReasonFacts, replicaReason } from './replica-reasons.js';

export interface NodeFinding {
  readonly tone: Tone;
  /** What it is about: a collection, the cluster, this node. */
  readonly subject: string;
  readonly sentence: string;
  /** Parts of the address of the page that shows more. */
  readonly more: readonly string[];
}

export interface CollectionFacts {
  readonly name: string;
  readonly info: CollectionInfo;
  readonly cluster: CollectionCluster;
  readonly optimizations?: Optimizations | undefined;
}

export interface FindingFacts {
  readonly collections: readonly CollectionFacts[];
  /** Undefined: the caller may not see it. */
  readonly cluster?: ShownCluster | undefined;
  readonly telemetry?: Telemetry | undefined;
}

const ORDER: readonly Tone[] = ['bad', 'busy', 'wait', 'good'];
/** From this part of the budget on builds wait for memory. */
const MEMORY_SHARE = 0.8;
/** Below this part of a disk that is free it is told. */
const DISK_SHARE = 0.05;

export function findingsOf(facts: FindingFacts): NodeFinding[] {
  const found = [
    ...clusterFindings(facts),
    ...nodeFindings(facts.telemetry),
    ...facts.collections.flatMap((one) => collectionFindings(one, facts)),
  ];
  return found.sort((one, other) => ORDER.indexOf(one.tone) - ORDER.indexOf(other.tone));
}

/** What `PeerHead` and the reasons of replicas know of peers that cannot be reached. */
export function peerFailure(status: ShownCluster | undefined, peerId: number): string | null {
  const failures = status?.message_send_failures;
  const failure = failures?.[status?.peers?.[peerId]?.uri ?? ''] ?? failures?.[peerId];
  return failure === undefined ? null : (failure.latest_error ?? 'it does not answer');
}

function clusterFindings({ cluster }: FindingFacts): NodeFinding[] {
  if (cluster === undefined || cluster.status === 'disabled') return [];
  const found: NodeFinding[] = [];
  const names = peerNames(cluster.peers ?? {});
  const about = { subject: 'Cluster', more: ['cluster'] };
  if (cluster.raft_info?.leader == null)
    found.push({
      ...about,
      tone: 'bad',
      sentence: 'The cluster has no leader: collections and replica states cannot change until most of its nodes hear each other.',
    });
  for (const [peerId, name] of names) {
    const failure = peerFailure(cluster, peerId);
    if (failure !== null)
      found.push({ ...about, tone: 'bad', sentence: `${name} (${cluster.peers?.[peerId]?.uri}) cannot be reached: ${failure}.` });
  }
  return found;
}

function nodeFindings(telemetry: Telemetry | undefined): NodeFinding[] {
  const engine = telemetry?.app.engine;
  const found: NodeFinding[] = [];
  const add = (tone: Tone, sentence: string, page: string): void => void found.push({ subject: 'This node', tone, sentence, more: [page] });
  const stuck = engine?.workers.find((worker) => worker.stuck !== null);
  if (stuck !== undefined)
    add('bad', `The thread ${stuck.name} gives no sign of life: what it was asked waits, and it is replaced.`, 'actors');
  const waiting = engine?.waitingReads ?? 0;
  if (waiting > 0)
    add('busy', `${count(waiting)} reads wait for a reader: all readers are at work, so each request takes longer.`, 'metrics');
  const { disk, memory } = engine ?? {};
  if (disk?.refuses_writes)
    add('bad', `The disk has only ${bytes(disk.free_bytes)} left: writes are refused, reads and deletions go on.`, 'advice');
  else if (disk !== undefined && disk.total_bytes > 0 && disk.free_bytes < disk.total_bytes * DISK_SHARE)
    add('wait', `The disk has ${bytes(disk.free_bytes)} of ${bytes(disk.total_bytes)} left.`, 'advice');
  if (memory !== undefined && memory.used_bytes > memory.budget_bytes * MEMORY_SHARE)
    add(
      'busy',
      `${bytes(memory.used_bytes)} of ${bytes(memory.budget_bytes)} of memory are used: builds wait, and beyond it writes are refused.`,
      'metrics',
    );
  for (const { lastError, path, restarts } of crashing(telemetry?.app.actors))
    add('bad', `The actor ${path} has crashed and waits for its ${restarts + 1}. restart: ${lastError ?? 'without a reason'}`, 'actors');
  return found;
}

function* crashing(actor: ActorReport | undefined): Iterable<{ path: string; restarts: number; lastError: string | null }> {
  if (actor === undefined) return;
  const { lastError, path, restarts, state } = actor;
  if (state === 'Restarting') yield { path, restarts, lastError: lastError?.message ?? null };
  for (const child of actor.children) yield* crashing(child);
}

function collectionFindings({ cluster, info, name, optimizations }: CollectionFacts, { cluster: status }: FindingFacts): NodeFinding[] {
  const found: NodeFinding[] = [];
  const { sentence, tone } = conditionOf(info, cluster, optimizations);
  if (tone !== 'good') found.push({ subject: name, tone, sentence, more: ['collections', name, pageFor(info, cluster)] });
  const writes = info.update_queue?.length ?? 0;
  if (writes > 0)
    found.push({
      subject: name,
      tone: 'busy',
      sentence: `${count(writes)} operations are on disk and wait to be applied: reads do not see them yet.`,
      more: ['collections', name, 'info'],
    });
  for (const reason of replicaSentences(cluster, status))
    found.push({ subject: name, tone: reason.tone, sentence: reason.sentence, more: ['collections', name, 'replicas'] });
  return found;
}

/** Sentences about the replicas of a collection that do not serve. */
export function replicaSentences(
  cluster: CollectionCluster,
  status: ShownCluster | undefined,
): { readonly tone: Tone; readonly sentence: string }[] {
  const names = peerNames(status?.peers ?? {});
  const nameOf = (peerId: number): string => names.get(peerId) ?? `peer ${peerId}`;
  return shardRows(cluster).flatMap(({ replicas }) =>
    replicas.flatMap((replica) => {
      const facts: ReasonFacts = {
        others: replicas.filter((other) => other !== replica),
        transfers: cluster.shard_transfers,
        peerFailure: peerFailure(status, replica.peerId),
        nameOf,
      };
      const sentence = replicaReason(replica, facts);
      return sentence === null ? [] : [{ sentence, tone: toneOfReplica(replica.state) }];
    }),
  );
}

function toneOfReplica(state: string): Tone {
  if (state === 'Dead') return 'bad';
  return state === 'Listener' ? 'good' : 'busy';
}

function pageFor(info: CollectionInfo, cluster: CollectionCluster): string {
  const isWell = [...cluster.local_shards, ...cluster.remote_shards].every(({ state }) => state === 'Active' || state === 'Listener');
  if (!isWell || cluster.shard_transfers.length > 0) return 'replicas';
  return info.status === 'green' ? 'info' : 'optimizations';
}
