/** A node of a cluster. */

import { servingShards } from '../../cluster/apply/resharding.js';
import type { AnswerCall, ShardFigures } from '../../cluster/data-messages.js';
import type { PeerDetails } from '../../cluster/peer-messages.js';
import { TroupeError } from '../../protocols/errors.js';
import type { AliasAction } from '../../protocols/model/alias.js';
import { type CollectionConfig, vectorNamesOf } from '../../protocols/model/collection.js';
import { joinedOptimizations, type OptimizationsView } from '../../protocols/model/optimizations.js';
import type { RawRequest, ReadOperation, WriteOperation } from '../../storage/threads/messages.js';
import type { ClusterApi, ClusterOptions } from '../consensus/cluster-api.js';
import { CallStats, countedAnswers, countedCalls } from '../context/call-stats.js';
import type { NodeServices } from '../context/services.js';
import { deadReplicas, type NodeView } from '../context/view.js';
import type { IndexAs } from '../migration/start.js';
import { answerCalls } from '../requests/answer-call.js';
import { type Found, Names } from '../requests/collection-names.js';
import { FIGURES_MS, figuresOf, optimizationsElsewhere, replicaFacts } from '../requests/figures.js';
import { sizesOf } from '../requests/limits/collection-limits.js';
import { indexAs } from '../requests/new-shards.js';
import { type Agreed, ClusterPoints } from '../requests/points.js';
import { type CollectionView, type ReportFacts, replicaStatus, reportFacts, viewOfFigures } from '../requests/report.js';
import { Routes } from '../requests/routes.js';
import { clusterUpdateInSteps } from '../requests/update-collection-cluster.js';
import type { EnginePort } from '../runtime/ports.js';
import { hasGoneAlone } from '../shard-log/ahead.js';
import { retire } from '../shard-log/retiring.js';
import { transfersProps } from '../transfers/start.js';
import { type LiveNode, type NodeBase, runNode } from './node-base.js';
import { agreedFacts, configOf, NodeOnDisk } from './node-on-disk.js';
import { type StartedCluster, startCluster } from './start-cluster.js';

export function startClusterNode(base: NodeBase, options: ClusterOptions): ClusterNode {
  const { clock, ports, view, watch } = base;
  const calls = { made: new CallStats(), answered: new CallStats() };
  // Who asks for these does so once the cluster is started.
  const barrier = (timeoutMs: number) => cluster.api.barrier(timeoutMs);
  const services: NodeServices = {
    ...base.services,
    calls: countedCalls(options.transport, calls.made, watch),
    propose: (command, timeoutMs) => cluster.propose(command, timeoutMs),
    barrier,
  };
  const asked = new Set<string>();
  const answer: AnswerCall = answerCalls({ fences: new Map(), asked, view, services, clock });
  const { assignments, engine, store } = services;
  const routes = new Routes({ assignments, calls: services.calls, answer, barrier, clock, timers: ports.timers, random: ports.random });
  const cluster = startCluster({
    options,
    clock,
    timers: ports.timers,
    assignments,
    calls,
    answer: countedAnswers(answer, calls.answered, watch),
    replicas: () => replicaDetails(view, engine, reportFacts(services, clock)),
    deadReplicas: () => deadReplicas(view, store),
    hasGoneAlone: () => hasGoneAlone(assignments, view),
    isDiskFull: () => base.options.disk?.isFull ?? false,
    transfers: (board) =>
      transfersProps(services, view, options, board, clock, {
        asked,
        callPeer: (peer, call, timeoutMs) => routes.call(peer, call, timeoutMs),
        indexAs: (collection, from, to) => node.indexAs(collection, from, to),
      }),
  });
  const node: ClusterNode = new ClusterNode(runNode(base, services, cluster.startConsensus), cluster, routes);
  return node;
}

export class ClusterNode extends NodeOnDisk {
  readonly cluster: ClusterApi;
  readonly #points: ClusterPoints;
  /** For migrations. */
  readonly indexAs: IndexAs;

  constructor(
    running: LiveNode,
    private readonly started: StartedCluster,
    private readonly routes: Routes,
  ) {
    const { api } = started;
    const agreedHere = () => {
      const state = api.state();
      return state === null ? null : { state, peerId: started.peerId() };
    };
    const names = new Names(running.view, agreedHere, () => started.checkKnows());
    super(running, names);
    const find = (name: string) => agreedOf(names.find(name));
    this.#points = new ClusterPoints({
      routes,
      engine: this.pool,
      find,
      propose: (command, timeoutMs) => started.propose(command, timeoutMs),
    });
    const parts = { find, points: this.#points, routes };
    this.cluster = { ...api, updateCollectionCluster: clusterUpdateInSteps(api.updateCollectionCluster, parts) };
    this.indexAs = (collection, from, to) => indexAs(parts, collection, from, to);
  }

  createCollection(name: string, config: CollectionConfig, timeoutMs?: number): Promise<boolean> {
    return this.withReplicaRoom(name, this.ownShareOf(config), () =>
      this.started.submit({ kind: 'createCollection', name, config }, timeoutMs),
    );
  }

  updateCollection(name: string, change: (config: CollectionConfig) => CollectionConfig, timeoutMs?: number): Promise<boolean> {
    return this.started.submit({ kind: 'updateCollection', name, change }, timeoutMs);
  }

  deleteCollection(name: string, timeoutMs?: number): Promise<boolean> {
    return this.started.submit({ kind: 'operation', operation: { kind: 'deleteCollection', name } }, timeoutMs);
  }

  changeAliases(actions: readonly AliasAction[], timeoutMs?: number): Promise<boolean> {
    return this.started.submit({ kind: 'operation', operation: { kind: 'changeAliases', actions } }, timeoutMs);
  }

  override read(name: string, operation: ReadOperation, request: RawRequest): Promise<Uint8Array> {
    const held = this.#whenStarted(request);
    return held === null ? super.read(name, operation, request) : held.then(() => super.read(name, operation, request));
  }

  override write(name: string, operation: WriteOperation, wait: boolean, request: RawRequest): Promise<Uint8Array> {
    const held = this.#whenStarted(request);
    return held === null ? super.write(name, operation, wait, request) : held.then(() => super.write(name, operation, wait, request));
  }

  #whenStarted({ deadlineMs }: RawRequest): Promise<void> | null {
    return this.cluster.whenStarted(deadlineMs - this.running.clock.nowMs());
  }

  protected override async limitFigures(found: Found): Promise<readonly ShardFigures[]> {
    if (found.record === null) return super.limitFigures(found);
    return figuresOf(this.routes, found.name, found.record.uid, [...servingShards(found.record).keys()]);
  }

  async wholeInfo(name: string, timeoutMs = FIGURES_MS): Promise<CollectionView> {
    const found = this.names.find(name);
    if (found.record === null) return this.info(name);
    const wanted = servingShards(found.record);
    const limitMs = Math.min(timeoutMs, FIGURES_MS);
    const figures = await figuresOf(this.routes, found.name, found.record.uid, [...wanted.keys()], limitMs);
    return viewOfFigures(configOf(found), figures, { ...agreedFacts(found.record, 0), wanted: wanted.size });
  }

  override async wholeOptimizations(name: string, timeoutMs = FIGURES_MS): Promise<OptimizationsView> {
    const { name: own, record } = this.names.find(name);
    const here = this.optimizations(name);
    if (record === null) return here;
    const elsewhere = await optimizationsElsewhere(this.routes, own, record, Math.min(timeoutMs, FIGURES_MS));
    return joinedOptimizations([here, ...elsewhere]);
  }

  /** Replicas that this node gets of a new collection, where each node gets as many. Others judge their own part when they make it. */
  private ownShareOf({ params }: CollectionConfig): number {
    if (params.sharding_method === 'custom') return 0;
    const peers = Math.max(1, this.cluster.state()?.membership.length ?? 1);
    return Math.ceil((params.shard_number * Math.min(params.replication_factor, peers)) / peers);
  }

  protected override async readPoints(name: string, operation: ReadOperation, request: RawRequest): Promise<Uint8Array> {
    this.cluster.checkStarted();
    const found = this.names.find(name);
    if (found.record === null) return super.readPoints(name, operation, request);
    const body = await this.#points.read(agreedOf(found), operation, request);
    if (found.entry !== null) this.usages.add(found.entry, request);
    return body;
  }

  protected override async writePoints(name: string, operation: WriteOperation, wait: boolean, request: RawRequest): Promise<Uint8Array> {
    this.cluster.checkStarted();
    const found = this.names.find(name);
    if (found.record === null) return super.writePoints(name, operation, wait, request);
    const body = await this.#points.write(agreedOf(found), operation, wait, request);
    if (found.entry !== null) this.usages.add(found.entry, request);
    return body;
  }

  protected override async leave(): Promise<void> {
    const { options, services, view } = this.running;
    // One that was removed has nothing to hand over, and nobody to tell.
    if (this.cluster.status().phase !== 'Removed') {
      await retire(services, view, (ms) => this.routes.pause(ms)).catch((error: unknown) =>
        options.log.info(`other nodes find out by themselves that this one stops: ${String(error)}`),
      );
    }
    this.started.handOver();
  }
}

/** Errors: `unavailable` where a node is without its cluster. */
function agreedOf({ entry, name, record }: Found): Agreed {
  if (record !== null) return { name, entry, record };
  throw new TroupeError('unavailable', `collection ${name} is not one of the cluster`);
}

/** What this node tells its peers of its replicas. */
function replicaDetails(view: NodeView, pool: EnginePort, facts: ReportFacts): PeerDetails['replicas'] {
  return [...view.collections.values()].flatMap((entry) => {
    const names = entry.config === null ? 1 : vectorNamesOf(entry.config.params).length;
    return replicaFacts(entry, pool).map((replica) => {
      const rows = (replica.stats?.segments ?? []).map((segment) => segment.rows - segment.deleted);
      return {
        collection: entry.name,
        shardId: replica.shardId,
        status: replicaStatus(entry.config, replica, facts),
        pointsCount: replica.stats?.points ?? 0,
        vectorsCount: names * rows.reduce((total, count) => total + count, 0),
        bytes: (replica.stats?.segments ?? []).reduce((total, { vectorBytes }) => total + vectorBytes, 0),
        payloadBytes: Math.round(replica.stats === null ? 0 : sizesOf(replica.stats).payloadBytes),
        optimizedPoints: replica.optimizer?.published?.points ?? 0,
      };
    });
  });
}
