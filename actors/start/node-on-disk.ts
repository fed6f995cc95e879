/** What a node answers from what is on it, in a cluster or not. */

import type { ShardFigures } from '../../cluster/data-messages.js';
import type { CollectionRecord } from '../../cluster/state/state.js';
import { errorFromFacts, TroupeError } from '../../protocols/errors.js';
import type { AliasAction } from '../../protocols/model/alias.js';
import type { PeerId, ShardId } from '../../protocols/model/cluster.js';
import type { CollectionConfig } from '../../protocols/model/collection.js';
import type { OptimizationsView } from '../../protocols/model/optimizations.js';
import type { HardwareUsage } from '../../protocols/model/usage.js';
import type { PoolDepths } from '../../storage/pool/pool.js';
import { beyondLimit } from '../../storage/pool/replica-limit.js';
import type { OwnReadsChange, RawRequest, ReadOperation, ReplicaStats, WriteOperation } from '../../storage/threads/messages.js';
import { BackupBoard } from '../backups/board.js';
import { backupHolder } from '../backups/holder.js';
import { backupsBehaviour } from '../backups/shell.js';
import { localShards } from '../collection/state.js';
import type { ClusterApi } from '../consensus/cluster-api.js';
import { USAGE_UNKNOWN } from '../context/node-usage.js';
import { type ReplicaEntry, STATE_ALONE } from '../context/view.js';
import { NodeSources } from '../live/node-sources.js';
import type { LiveGroup, LiveSources, Topic } from '../live/topics.js';
import type { Found, Names } from '../requests/collection-names.js';
import { replicaFacts } from '../requests/figures.js';
import { CollectionLimits, IndexChanges } from '../requests/limits/collection-limits.js';
import { limitedPoints } from '../requests/limits/limited-points.js';
import type { AliasView, LiveStreams, LocalShard, NodeApi, ReplicaReport } from '../requests/node-api.js';
import { OwnPoints } from '../requests/own-points.js';
import { OwnReadsChanges } from '../requests/own-reads.js';
import {
  type AgreedFacts,
  buildViews,
  type CollectionView,
  collectionView,
  optimizationsView,
  type ReportFacts,
  replicaStatus,
  reportFacts,
  shardFigures,
} from '../requests/report.js';
import { CollectionUsages } from '../requests/usages.js';
import type { EnginePort } from '../runtime/ports.js';
import type { ActorTelemetry } from '../runtime/telemetry.js';
import type { ReplicationEntry, ReplicationStatus } from '../shard-log/view.js';
import { NO_SNAPSHOTS } from '../snapshots/no-snapshots.js';
import { snapshotsBehaviour } from '../snapshots/shell.js';
import type { SnapshotApi } from '../snapshots/snapshot-api.js';
import { Snapshots } from '../snapshots/snapshots.js';
import type { LiveNode } from './node-base.js';

type PointsApi = Pick<NodeApi, 'read' | 'write'>;

const CLOSE_MS = 60_000;

export abstract class NodeOnDisk implements NodeApi {
  abstract readonly cluster: ClusterApi | null;
  protected readonly pool: EnginePort;
  protected readonly usages = new CollectionUsages();
  readonly #limited: PointsApi;
  readonly #limits: CollectionLimits;
  readonly #own: OwnPoints;
  readonly backups = new BackupBoard();
  readonly #closing = new AbortController();
  #snapshots: Snapshots | null = null;
  #live: Promise<LiveStreams> | null = null;
  #closed = false;
  /** Replicas of collections that are being created. */
  #making = 0;

  constructor(
    protected readonly running: LiveNode,
    protected readonly names: Names,
  ) {
    const { clock, options, ports } = running;
    this.pool = options.pool;
    this.#own = new OwnPoints(options.pool, clock, ports.timers);
    const points: PointsApi = {
      read: (name, operation, request) => this.readPoints(name, operation, request),
      write: (name, operation, wait, request) => this.writePoints(name, operation, wait, request),
    };
    // What an earlier process has left of snapshots is removed.
    running.ready.then(
      () => this.#beginSnapshots(),
      () => {},
    );
    this.#limits = new CollectionLimits({
      engine: options.pool,
      usage: options.usage ?? USAGE_UNKNOWN,
      figures: options.cluster == null ? null : (found) => this.limitFigures(found),
      clock,
    });
    this.#limited = limitedPoints(points, {
      limits: this.#limits,
      find: (name) => names.find(name),
      engine: options.pool,
      updates: options.updateRateLimit ?? null,
      room: running.services.room,
      clock,
      timers: ports.timers,
    });
  }

  get snapshots(): SnapshotApi {
    return this.#keptSnapshots() ?? NO_SNAPSHOTS;
  }

  #beginSnapshots(): void {
    const { options, services, system } = this.running;
    const snapshots = this.#keptSnapshots();
    const plans = options.backups ?? [];
    if (snapshots === null || plans.length === 0 || this.#closed) return;
    const props = {
      plans,
      snapshots,
      collections: () => this.names.list().filter((name) => this.localShards(name).size > 0),
      sharesOf: (collection: string) => this.#backupShares(collection),
      peer: () => services.assignments.peerId,
      board: this.backups,
      signal: this.#closing.signal,
    };
    system.spawn(backupsBehaviour(), 'backups', props, (error) => options.log.error(`no more backups: ${error.detail}`));
  }

  /** Null on a node of its own, whose snapshots have all of its shards. */
  #backupShares(collection: string): readonly ShardId[] | null {
    const { assignments } = this.running.services;
    const { record } = this.names.find(collection);
    if (record === null) return null;
    const isReachable = (peer: PeerId) => peer === assignments.peerId || assignments.connected.has(peer);
    return [...record.shards].flatMap(([shardId, { replicas }]) =>
      backupHolder(shardId, replicas, isReachable) === assignments.peerId ? [shardId] : [],
    );
  }

  #keptSnapshots(): Snapshots | null {
    const { clock, options, ports, services, system } = this.running;
    if (options.snapshots == null) return null;
    this.#snapshots ??= new Snapshots({
      options: options.snapshots,
      actor: system.spawn(snapshotsBehaviour(), 'snapshots', null, (error) => options.log.error(`no more snapshots: ${error.detail}`)),
      services,
      names: this.names,
      cluster: this.cluster,
      createCollection: (name, config, timeoutMs) => this.createCollection(name, config, timeoutMs),
      deleteCollection: (name, timeoutMs) => this.deleteCollection(name, timeoutMs),
      clock,
      timers: ports.timers,
      log: options.log,
    });
    return this.#snapshots;
  }

  /** Runs `make`, which adds so many replicas to this node, if it has room for them. Errors: `wrongInput` with the figures; nothing is done then. */
  protected async withReplicaRoom<T>(name: string, added: number, make: () => Promise<T>): Promise<T> {
    const { replicas } = this.pool.depths();
    const beyond = beyondLimit(replicas, replicas.open + this.#making, added);
    if (beyond !== null && !this.exists(name)) throw new TroupeError('wrongInput', `Can't create collection with name ${name}: ${beyond}`);
    this.#making += added;
    try {
      return await make();
    } finally {
      this.#making -= added;
    }
  }

  abstract createCollection(name: string, config: CollectionConfig, timeoutMs?: number): Promise<boolean>;
  abstract updateCollection(name: string, change: (config: CollectionConfig) => CollectionConfig, timeoutMs?: number): Promise<boolean>;
  abstract deleteCollection(name: string, timeoutMs?: number): Promise<boolean>;
  abstract changeAliases(actions: readonly AliasAction[], timeoutMs?: number): Promise<boolean>;
  abstract wholeInfo(name: string, timeoutMs?: number): Promise<CollectionView>;

  listCollections(): string[] {
    return this.names.list();
  }

  exists(name: string): boolean {
    return this.names.exists(name);
  }

  aliases(collection: string | null): AliasView[] {
    return [...this.names.aliases()]
      .map(([alias_name, collection_name]) => ({ alias_name, collection_name }))
      .filter((alias) => collection === null || alias.collection_name === collection)
      .sort((one, other) => (one.alias_name < other.alias_name ? -1 : 1));
  }

  info(name: string): CollectionView {
    const found = this.names.find(name);
    const agreed = found.record && agreedFacts(found.record, this.running.services.assignments.peerId);
    return collectionView(configOf(found), replicaFacts(found.entry, this.pool), this.facts(), agreed);
  }

  optimizations(name: string): OptimizationsView {
    const found = this.names.find(name);
    return optimizationsView(configOf(found), replicaFacts(found.entry, this.pool), this.facts());
  }

  async wholeOptimizations(name: string): Promise<OptimizationsView> {
    return this.optimizations(name);
  }

  replicas(name: string): ReplicaReport[] {
    const found = this.names.find(name);
    const [config, facts] = [configOf(found), this.facts()];
    return replicaFacts(found.entry, this.pool).map((replica) => {
      return { ...replica, status: replicaStatus(config, replica, facts), builds: buildViews(replica, facts) };
    });
  }

  localShards(name: string): ReadonlyMap<ShardId, LocalShard> {
    const { entry } = this.names.find(name);
    const shards = entry?.config == null ? [] : localShards({ belonging: entry.belonging, config: entry.config });
    return new Map(
      shards.map((shardId) => [shardId, localShard(entry?.replicas.get(shardId), entry?.replications.get(shardId), this.pool)]),
    );
  }

  stats(name: string): readonly ReplicaStats[] {
    return replicaFacts(this.names.find(name).entry, this.pool).flatMap(({ stats }) => (stats === null ? [] : [stats]));
  }

  read(name: string, operation: ReadOperation, request: RawRequest): Promise<Uint8Array> {
    return this.#limited.read(name, operation, request);
  }

  write(name: string, operation: WriteOperation, wait: boolean, request: RawRequest): Promise<Uint8Array> {
    return this.#limited.write(name, operation, wait, request);
  }

  /** Figures of one replica of each shard, which limits are judged by. */
  protected async limitFigures({ entry }: Found): Promise<readonly ShardFigures[]> {
    if (entry?.config == null) return [];
    const { config } = entry;
    const facts = this.facts();
    return replicaFacts(entry, this.pool).map((replica) => shardFigures(config, replica, facts));
  }

  watchOwnReads(listener: (take: () => OwnReadsChange) => void): void {
    const { options, services, view } = this.running;
    const cardOf = (peer: PeerId) => options.cluster?.transport.cardOf?.(peer) ?? null;
    const changes = new OwnReadsChanges(this.names, { assignments: services.assignments, cardOf, limits: this.#limits });
    const take = () => changes.take();
    const note = (collection: string | null) => {
      changes.note(collection);
      listener(take);
    };
    view.watch(note);
    const indexes = new IndexChanges((collection) => changes.judgesByIndexes(collection), note);
    this.pool.onStats((stats) => indexes.look(stats));
    services.assignments.watchReads(() => note(null));
    note(null);
  }

  hardware(): Iterable<readonly [collection: string, usage: HardwareUsage]> {
    return this.usages.byName(this.running.view.collections, this.pool);
  }

  telemetry(): ActorTelemetry {
    const [node = STOPPED_TREE, ...others] = this.running.system.tree();
    return { ...node, children: { [Symbol.iterator]: () => chained(node.children, others) } };
  }

  async live(): Promise<LiveStreams> {
    this.#live ??= import('../live/streams.js').then(({ liveChanges }) => {
      const { clock, services, system } = this.running;
      const sources = new NodeSources({ api: this, system, assignments: services.assignments, clock });
      const changes = liveChanges(sources);
      return {
        subscribe: (listener) => {
          const subscription = changes.subscribe(listener);
          return () => subscription.unsubscribe();
        },
        snapshot: (topic) => snapshotOf(sources, topic),
      };
    });
    return this.#live;
  }

  depths(): PoolDepths {
    return this.pool.depths();
  }

  buildBudget(): { readonly threads: number; readonly threadsMax: number; readonly waiting: number } {
    return this.running.services.budget.usage();
  }

  whenReady(): Promise<void> {
    return this.running.ready;
  }

  async close(): Promise<void> {
    if (this.#closed) return;
    this.#closed = true;
    this.#closing.abort(new TroupeError('unavailable', 'the node stops'));
    await this.#snapshots?.close();
    await this.leave();
    const { actor, hideShardKeys, options, services, system } = this.running;
    await actor
      .ask<boolean>((replyTo) => ({ kind: 'close', replyTo }), CLOSE_MS)
      .catch((error: unknown) => options.log.warn(`not every collection closed in order: ${String(error)}`));
    system.stop();
    services.signals.close();
    hideShardKeys();
  }

  /** Before collections close: others take over what this node leads. */
  protected async leave(): Promise<void> {}

  /** Of replicas that are all here. */
  protected async readPoints(name: string, operation: ReadOperation, request: RawRequest): Promise<Uint8Array> {
    const { entry, shards } = this.names.points(name);
    const body = await this.#own.read(entry, shards, operation, request);
    this.usages.add(entry, request);
    return body;
  }

  protected async writePoints(name: string, operation: WriteOperation, wait: boolean, request: RawRequest): Promise<Uint8Array> {
    const { entry, shards } = this.names.points(name);
    const body = await this.#own.write(entry, shards, operation, wait, request);
    this.usages.add(entry, request);
    return body;
  }

  protected facts(): ReportFacts {
    return reportFacts(this.running.services, this.running.clock);
  }
}

function* snapshotOf(sources: LiveSources, topic: Topic): Iterable<LiveGroup> {
  for (const group of sources.groups(topic)) {
    const items = sources.read({ topic, group });
    if (items.length > 0) yield { group, items };
  }
}

function* chained<Item>(...lists: readonly Iterable<Item>[]): Generator<Item> {
  for (const list of lists) yield* list;
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

export function agreedFacts(record: CollectionRecord, self: PeerId): AgreedFacts {
  const shards = [...record.shards.values()];
  return {
    wanted: shards.filter(({ replicas }) => replicas.has(self)).length,
    shards: shards.map(({ replicas }) => [...replicas.values()]),
    indexes: record.payloadIndexes,
  };
}

/** As agreed, or, on a node of its own, as it is. */
export function configOf({ entry, name, record }: Found): CollectionConfig {
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
