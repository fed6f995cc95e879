/** What the doors call: one node, its collections, and their points. */

import os from 'node:os';
import { servingShards } from '../../cluster/apply/resharding.js';
import type { PeerDetails } from '../../cluster/peer-messages.js';
import type { CollectionRecord } from '../../cluster/state/state.js';
import { type ErrorFacts, errorFromFacts, TroupeError } from '../../protocols/errors.js';
import type { AliasAction } from '../../protocols/model/alias.js';
import type { PeerId, ReplicaState, ShardId } from '../../protocols/model/cluster.js';
import type { CollectionConfig } from '../../protocols/model/collection.js';
import type { HardwareUsage } from '../../protocols/model/usage.js';
import type { PoolDepths } from '../../storage/pool/pool.js';
import type { RawRequest, ReadOperation, ReplicaStats, WriteOperation } from '../../storage/threads/messages.js';
import { verifyReplicas } from '../../storage/verify/verify-lmdb.js';
import { localShards } from '../collection/state.js';
import { type CollectionStore, openCollectionStore } from '../collection/store.js';
import type { ClusterApi, ClusterOptions } from '../consensus/cluster-api.js';
import { CallStats, countedAnswers, countedCalls } from '../context/call-stats.js';
import { folderName } from '../context/folder-name.js';
import type { NodeServices } from '../context/services.js';
import { VerifiedReplicas, type VerifyReplicas } from '../context/verified-replicas.js';
import { deadReplicas, NodeView, type ReplicaEntry, STATE_ALONE } from '../context/view.js';
import { runResharding } from '../migration/runs.js';
import { AliasFile, type AliasStore } from '../node/alias-store.js';
import { nodeBehaviour } from '../node/shell.js';
import { BuildBudget } from '../optimizer/budget.js';
import { buildThreadsMax } from '../optimizer/decide.js';
import { ReplicaFiles } from '../replica/files.js';
import { answerCalls, NO_CALLS } from '../requests/answer-call.js';
import { type Found, Names } from '../requests/collection-names.js';
import { handingOverFirst } from '../requests/dropping.js';
import { figuresOf, replicaFacts } from '../requests/figures.js';
import { withLimits } from '../requests/limits/limited-node.js';
import { findingLost } from '../requests/lost-replicas.js';
import { indexAs, indexingNewShards } from '../requests/new-shards.js';
import { OwnPoints } from '../requests/own-points.js';
import { type Agreed, ClusterPoints } from '../requests/points.js';
import {
  type AgreedFacts,
  type CollectionView,
  collectionView,
  type OptimizationsView,
  optimizationsView,
  type ReportFacts,
  replicaStatus,
  viewOfFigures,
} from '../requests/report.js';
import { Routes } from '../requests/routes.js';
import { showShardKeys } from '../requests/shard-keys.js';
import { CollectionUsages } from '../requests/usages.js';
import { ActorSystem } from '../runtime/actor.js';
import type { Clock, EnginePort, Log, RuntimePorts } from '../runtime/ports.js';
import { EngineSignals } from '../runtime/signals.js';
import { systemClock, systemPorts } from '../runtime/system-ports.js';
import type { ActorTelemetry } from '../runtime/telemetry.js';
import { hasGoneAlone } from '../shard-log/ahead.js';
import { Assignments } from '../shard-log/assignments.js';
import { retire } from '../shard-log/retiring.js';
import type { ReplicationEntry, ReplicationStatus } from '../shard-log/view.js';
import { transfersProps } from '../transfers/start.js';
import { startCluster } from './start-cluster.js';

export type { CollectionView, OptimizationsView } from '../requests/report.js';
export type { ActorTelemetry } from '../runtime/telemetry.js';

export interface NodeOptions {
  /** Holds `collections/`. */
  readonly storagePath: string;
  /** The engine's workers. The caller started them and closes them, after the node. */
  readonly pool: EnginePort;
  readonly log: Log;
  /** Null or left out: a node of its own. */
  readonly cluster?: ClusterOptions | null;
  /** Where collections and aliases are kept. Default: below `storagePath`. */
  readonly store?: CollectionStore;
  readonly aliases?: AliasStore;
  /** Looks for databases that would take the process down (tests). */
  readonly verify?: VerifyReplicas;
  /** `storage.performance.optimizer_cpu_budget`. Default 0: half the CPUs. */
  readonly optimizerCpuBudget?: number;
  /** `storage.performance.update_rate_limit`: updates that go on at a time; others wait. Default: any number. */
  readonly updateRateLimit?: number | null;
  readonly cpus?: number;
  readonly clock?: Clock;
  /** The node's actor crashed too often: the process should end. */
  readonly onFatal?: (error: ErrorFacts) => void;
  /** Clock, timers, randomness and mailboxes of the actors (tests). */
  readonly ports?: RuntimePorts;
}

export interface LocalShard {
  readonly points: number;
  /** Of the replica on this node, as if it were the only one of its shard. */
  readonly state: ReplicaState;
  /** Its part in the shard's log; left out outside of a cluster. mayBeAhead: see `ReplicationEntry`. */
  readonly replication?: ReplicationStatus & { readonly mayBeAhead: boolean };
}

export interface AliasView {
  readonly alias_name: string;
  readonly collection_name: string;
}

/**
 * Where a name of a collection is asked for, an alias serves as well, but to create or delete one. In a cluster, collections and
 * aliases are changed by agreement: answered when this node, and up to `timeoutMs` every peer that can be reached, has carried it
 * out. Errors then also: `unavailable` without a leader, `timeout`, after which it may still be carried out.
 */
export interface NodeApi {
  /** Null: a node of its own. */
  readonly cluster: ClusterApi | null;
  /** Names in the order of their code units. */
  listCollections(): string[];
  exists(name: string): boolean;
  /** True when it is on disk and takes requests. Errors: `conflict` when there is one of this name, `wrongInput` when an alias has it. */
  createCollection(name: string, config: CollectionConfig, timeoutMs?: number): Promise<boolean>;
  /** True when the changed configuration is on disk. Errors: `notFound`; what `change` throws. */
  updateCollection(name: string, change: (config: CollectionConfig) => CollectionConfig, timeoutMs?: number): Promise<boolean>;
  /** True when it is gone for good, false when there was none. */
  deleteCollection(name: string, timeoutMs?: number): Promise<boolean>;
  /** Aliases in the order of their code units; of one collection by its own name, or of all (null). */
  aliases(collection: string | null): AliasView[];
  /** True when all actions are done and on disk. Errors: `notFound`, `conflict`; nothing has changed then. */
  changeAliases(actions: readonly AliasAction[], timeoutMs?: number): Promise<boolean>;
  /** With the figures of the replicas on this node. Errors: `notFound`; `storage` when its configuration cannot be read. */
  info(name: string): CollectionView;
  /** With the figures of one replica of each shard; a shard that nobody tells of is left out, and the collection is not green then. Errors: as `info`. */
  wholeInfo(name: string): Promise<CollectionView>;
  optimizations(name: string): OptimizationsView;
  /** Figures of the collection's replicas on this node. */
  stats(name: string): readonly ReplicaStats[];
  /** The collection's shards on this node: their points, and states in the words of the API. */
  localShards(name: string): ReadonlyMap<ShardId, LocalShard>;
  /** JSON of the result. Errors: `notFound`, `unavailable` with the reason, `busy`, `timeout`, and those of the operation. */
  read(name: string, operation: ReadOperation, request: RawRequest): Promise<Uint8Array>;
  /**
   * JSON of the result. wait: answer when it is applied (for `createFieldIndex`: when every segment has the index), else when
   * it is safe on disk. The body is given away. Errors: as `read`.
   */
  write(name: string, operation: WriteOperation, wait: boolean, request: RawRequest): Promise<Uint8Array>;
  /** What measured requests (`RawRequest.usage`) have cost since the start, by collection; others are left out. */
  hardware(): ReadonlyMap<string, HardwareUsage>;
  /** The tree of actors, from the node's. */
  telemetry(): ActorTelemetry;
  depths(): PoolDepths;
  /** Threads of running builds. */
  buildBudget(): { readonly threads: number; readonly threadsMax: number; readonly waiting: number };
  /** Resolves when every collection found at start is open or known not to be. */
  whenReady(): Promise<void>;
  /** Closes every collection: queued writes are done. The engine's workers are the caller's to close. */
  close(): Promise<void>;
}

/** Longest time a collection may take to open, change or go. */
const ADMINISTRATION_MS = 600_000;
/** Start reads everything from disk. */
const START_MS = 0x7fff_ffff;
const CLOSE_MS = 60_000;
/** For the end of a stage in which points go to other shards to be agreed on. */
const FINISH_MS = 10_000;

/** Starts the node's actors; collections are being opened when it returns (see `whenReady`). */
export async function startNode(options: NodeOptions): Promise<NodeApi> {
  const { log, pool } = options;
  const clock = options.clock ?? systemClock;
  const cpus = options.cpus ?? os.availableParallelism();
  const ports = options.ports ?? systemPorts(log, clock);
  const system = new ActorSystem(ports);
  const view = new NodeView();
  const precise = options.ports === undefined && options.clock === undefined;
  const watch = { clock, preciseMs: precise ? () => performance.now() : () => clock.nowMs() };
  const calls = { made: new CallStats(), answered: new CallStats() };
  const verified = new VerifiedReplicas(options.verify ?? verifyReplicas);
  const services: NodeServices = {
    engine: pool,
    files: new ReplicaFiles(pool, verified),
    signals: new EngineSignals(pool),
    store:
      options.store ??
      (await openCollectionStore(options.storagePath, (path, error) => log.warn(`${path} could not be removed: ${String(error)}`))),
    aliases: options.aliases ?? new AliasFile(options.storagePath, (error) => log.error(error.detail)),
    verified,
    budget: new BuildBudget(buildThreadsMax(options.optimizerCpuBudget ?? 0, cpus)),
    cpus,
    calls: options.cluster == null ? NO_CALLS : countedCalls(options.cluster.transport, calls.made, watch),
    assignments: new Assignments(),
    propose: (operation, timeoutMs) =>
      cluster?.propose(operation, timeoutMs) ?? Promise.reject(new TroupeError('standalone', 'Distributed mode disabled')),
    barrier: options.cluster == null ? null : async (timeoutMs) => cluster?.api.barrier(timeoutMs),
  };
  const hideShardKeys = showShardKeys(services.assignments, pool);
  const facts = () => ({ nowMs: clock.nowMs(), cpus });
  const details = () => replicaDetails(view, pool, facts());
  const answer = answerCalls({ fences: new Map(), view, services, clock });
  const { cluster: joined } = options;
  const cluster =
    joined == null
      ? null
      : startCluster(
          joined,
          clock,
          services.assignments,
          details,
          () => deadReplicas(view, services.store),
          () => hasGoneAlone(services.assignments, view),
          countedAnswers(answer, calls.answered, watch),
          calls,
          (board) => transfersProps(services, view, joined, board, clock, (peer, call, timeoutMs) => routes.call(peer, call, timeoutMs)),
        );
  const startConsensus = cluster?.startConsensus ?? null;
  const node = system.spawn(nodeBehaviour(), 'node', { services, view, startConsensus }, (error) => {
    log.error(`the node cannot go on: ${error.detail}`);
    options.onFatal?.(error);
  });
  const ready = node.ask<boolean>((replyTo) => ({ kind: 'awaitReady', replyTo }), START_MS).then(() => {});
  // Whoever calls `whenReady` hears of a failure; nobody has to.
  ready.catch(() => {});
  const agreedHere = () => {
    const state = cluster?.api.state() ?? null;
    return state === null || cluster === null ? null : { state, peerId: cluster.peerId() };
  };
  const names = new Names(view, agreedHere, () => cluster?.checkKnows());
  const usages = new CollectionUsages();
  const own = new OwnPoints(pool, clock);
  const routes = new Routes({
    assignments: services.assignments,
    calls: services.calls,
    answer,
    barrier: (timeoutMs) => cluster?.api.barrier(timeoutMs) ?? Promise.resolve(),
    clock,
    timers: ports.timers,
    random: ports.random,
  });
  const agreed = (name: string) => agreedOf(names.find(name));
  const points = new ClusterPoints({ routes, engine: pool, find: agreed });
  const endResharding = runResharding({
    routes,
    log,
    indexAs: (collection, from, to) => indexAs({ find: agreed, points, routes }, collection, from, to),
    show: (duty, progress) => cluster?.api.transfers.showMigration(duty, progress),
    finish: async ({ collection, shardId, stage, startedAt, term }) => {
      await services.propose({ kind: 'finishStage', collection, startedAt, stage, shardId, term }, FINISH_MS);
    },
  });
  let closed = false;
  const asked = { find: agreed, routes };

  const api: NodeApi = {
    cluster: cluster && indexingNewShards(handingOverFirst(findingLost(cluster.api, asked), routes), { ...asked, points }),
    listCollections: () => names.list(),
    exists: (name) => names.exists(name),
    createCollection: (name, config, timeoutMs) =>
      cluster?.submit({ kind: 'createCollection', name, config }, timeoutMs) ??
      node.ask((replyTo) => ({ kind: 'create', name, folder: folderName(name), config, replyTo }), ADMINISTRATION_MS),
    updateCollection: async (name, change, timeoutMs) => {
      if (cluster !== null) return cluster.submit({ kind: 'updateCollection', name, change }, timeoutMs);
      return names.entry(name).actor.ask((replyTo) => ({ kind: 'update', change, replyTo }), ADMINISTRATION_MS);
    },
    deleteCollection: async (name, timeoutMs) => {
      if (cluster !== null) return cluster.submit({ kind: 'operation', operation: { kind: 'deleteCollection', name } }, timeoutMs);
      const folder = view.collections.get(name)?.folder ?? folderName(name);
      return node.ask((replyTo) => ({ kind: 'delete', folder, replyTo }), ADMINISTRATION_MS);
    },
    aliases: (collection) =>
      [...names.aliases()]
        .map(([alias_name, collection_name]) => ({ alias_name, collection_name }))
        .filter((alias) => collection === null || alias.collection_name === collection)
        .sort((one, other) => (one.alias_name < other.alias_name ? -1 : 1)),
    changeAliases: (actions, timeoutMs) =>
      cluster?.submit({ kind: 'operation', operation: { kind: 'changeAliases', actions } }, timeoutMs) ??
      node.ask((replyTo) => ({ kind: 'changeAliases', actions, replyTo }), ADMINISTRATION_MS),
    info: (name) => {
      const found = names.find(name);
      return collectionView(
        configOf(found),
        replicaFacts(found.entry, pool),
        facts(),
        found.record && agreedFacts(found.record, cluster?.peerId() ?? 0),
      );
    },
    wholeInfo: async (name) => {
      const found = names.find(name);
      if (found.record === null) return collectionView(configOf(found), replicaFacts(found.entry, pool), facts());
      const figures = await figuresOf(routes, found.name, found.record.uid, [...servingShards(found.record).keys()]);
      return viewOfFigures(configOf(found), figures, { ...agreedFacts(found.record, 0), wanted: servingShards(found.record).size });
    },
    optimizations: (name) => {
      const found = names.find(name);
      return optimizationsView(configOf(found), replicaFacts(found.entry, pool), facts());
    },
    localShards: (name) => {
      const { entry } = names.find(name);
      const shards = entry?.config == null ? [] : localShards({ belonging: entry.belonging, config: entry.config });
      return new Map(shards.map((shardId) => [shardId, localShard(entry?.replicas.get(shardId), entry?.replications.get(shardId), pool)]));
    },
    stats: (name) => replicaFacts(names.find(name).entry, pool).flatMap(({ stats }) => (stats === null ? [] : [stats])),
    read: async (name, operation, request) => {
      cluster?.api.checkStarted();
      const found = names.find(name);
      if (found.record !== null) {
        const body = await points.read(agreedOf(found), operation, request);
        if (found.entry !== null) usages.add(found.entry, request);
        return body;
      }
      const { entry, shards } = names.points(name);
      const body = await own.read(entry, shards, operation, request);
      usages.add(entry, request);
      return body;
    },
    write: async (name, operation, wait, request) => {
      cluster?.api.checkStarted();
      const found = names.find(name);
      if (found.record !== null) {
        const body = await points.write(agreedOf(found), operation, wait, request);
        if (found.entry !== null) usages.add(found.entry, request);
        return body;
      }
      const { entry, shards } = names.points(name);
      const body = await own.write(entry, shards, operation, wait, request);
      usages.add(entry, request);
      return body;
    },
    hardware: () => usages.byName(view.collections, pool),
    telemetry: () => system.tree()[0] ?? STOPPED_TREE,
    depths: () => pool.depths(),
    buildBudget: () => services.budget.usage(),
    whenReady: () => ready,
    close: async () => {
      if (closed) return;
      closed = true;
      if (cluster !== null) {
        // One that was removed has nothing to hand over, and nobody to tell.
        const leaves = cluster.api.status().phase === 'Removed' ? Promise.resolve() : retire(services, view, (ms) => routes.pause(ms));
        await leaves.catch((error: unknown) => log.info(`other nodes find out by themselves that this one stops: ${String(error)}`));
        cluster.handOver();
      }
      await node
        .ask<boolean>((replyTo) => ({ kind: 'close', replyTo }), CLOSE_MS)
        .catch((error: unknown) => log.warn(`not every collection closed in order: ${String(error)}`));
      system.stop();
      services.signals.close();
      hideShardKeys();
      endResharding();
    },
  };
  return withLimits(api, (name) => names.find(name).entry, pool, options.updateRateLimit ?? null, clock, ports.timers);
}

const STOPPED_TREE: ActorTelemetry = {
  path: '/node',
  kind: 'node',
  state: 'Stopped',
  facts: {},
  mailbox: { depth: 0, capacity: 0 },
  processed: 0,
  restarts: 0,
  busyRefusals: 0,
  lastError: null,
  uptimeMs: 0,
  recent: [],
  children: [],
};

/** Errors: `unavailable` where a node is without its cluster. */
function agreedOf({ entry, name, record }: Found): Agreed {
  if (record !== null) return { name, entry, record };
  throw new TroupeError('unavailable', `collection ${name} is not one of the cluster`);
}

function agreedFacts(record: CollectionRecord, self: PeerId): AgreedFacts {
  const shards = [...record.shards.values()];
  return {
    wanted: shards.filter(({ replicas }) => replicas.has(self)).length,
    shards: shards.map(({ replicas }) => [...replicas.values()]),
  };
}

/** As agreed, or, on a node of its own, as it is. */
function configOf({ entry, name, record }: Found): CollectionConfig {
  if (record !== null) return record.config;
  if (entry === null || entry.config === null)
    throw errorFromFacts(entry?.error ?? { code: 'unavailable', detail: `collection ${name} has no configuration` });
  return entry.config;
}

/** replica: undefined until its actor has begun. */
function localShard(replica: ReplicaEntry | undefined, replication: ReplicationEntry | undefined, pool: EnginePort): LocalShard {
  const stats = replica === undefined ? undefined : pool.stats(replica.key);
  const status =
    replication === undefined
      ? {}
      : { replication: { ...withPosition(replication.status(), stats), mayBeAhead: replication.mayBeAhead() } };
  if (replica === undefined) return { points: 0, state: 'Initializing', ...status };
  return { points: stats?.points ?? 0, state: STATE_ALONE[replica.state], ...status };
}

/** Only a leader keeps its own position in mind; the engine knows that of each. */
function withPosition(status: ReplicationStatus, stats: ReplicaStats | null | undefined): ReplicationStatus {
  return status.position === null && stats ? { ...status, position: stats.position.last.index } : status;
}

/** What this node tells its peers of its replicas. */
function replicaDetails(view: NodeView, pool: EnginePort, facts: ReportFacts): PeerDetails['replicas'] {
  return [...view.collections.values()].flatMap((entry) => {
    return replicaFacts(entry, pool).map((replica) => {
      const rows = (replica.stats?.segments ?? []).map((segment) => segment.rows - segment.deleted);
      return {
        collection: entry.name,
        shardId: replica.shardId,
        status: replicaStatus(entry.config, replica, facts),
        pointsCount: replica.stats?.points ?? 0,
        vectorsCount: rows.reduce((total, count) => total + count, 0),
        bytes: (replica.stats?.segments ?? []).reduce((total, { vectorBytes }) => total + vectorBytes, 0),
      };
    });
  });
}
