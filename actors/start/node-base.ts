/** What every node starts with, whether it is part of a cluster or not. */

import os from 'node:os';
import type { ErrorFacts } from '../../protocols/errors.js';
import type { CopyDisk } from '../../storage/disk/disk-watch.js';
import { loadedBytes } from '../../storage/replica/loaded-bytes.js';
import { THREADS_HAVE_PRIORITIES } from '../../storage/threads/low-priority.js';
import { verifyReplicas } from '../../storage/verify/verify-lmdb.js';
import type { BackupPlan } from '../backups/plan.js';
import { type CollectionStore, openCollectionStore } from '../collection/store.js';
import type { ClusterOptions } from '../consensus/cluster-api.js';
import type { Stopwatch } from '../context/call-stats.js';
import { CopyRoom } from '../context/copy-room.js';
import { type MemoryFigures, MemoryRoom } from '../context/memory-room.js';
import type { NodeUsage } from '../context/node-usage.js';
import { openingGate } from '../context/opening-gate.js';
import { NO_OVERWRITE, type OptimizersOverwrite } from '../context/own-config.js';
import type { NodeServices } from '../context/services.js';
import { VerifiedReplicas, type VerifyReplicas } from '../context/verified-replicas.js';
import { NodeView } from '../context/view.js';
import { AliasFile, type AliasStore } from '../node/alias-store.js';
import type { NodeMessage } from '../node/messages.js';
import { nodeBehaviour, type StartConsensus } from '../node/shell.js';
import { BuildBudget } from '../optimizer/budget.js';
import { buildThreadsMax } from '../optimizer/decide.js';
import { NodePace } from '../optimizer/pace.js';
import { ReplicaFiles } from '../replica/files.js';
import { showShardKeys } from '../requests/shard-keys.js';
import { ActorSystem } from '../runtime/actor.js';
import type { ActorRef } from '../runtime/behaviour.js';
import type { Cancel, Clock, EnginePort, Log, RuntimePorts } from '../runtime/ports.js';
import { EngineSignals } from '../runtime/signals.js';
import { systemClock, systemPorts } from '../runtime/system-ports.js';
import { Assignments } from '../shard-log/assignments.js';
import { NO_ARCHIVES } from '../snapshots/no-snapshots.js';
import type { SnapshotOptions } from '../snapshots/snapshots.js';

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
  /** `storage.optimizers_overwrite`. Default: none. */
  readonly optimizersOverwrite?: OptimizersOverwrite;
  /** `storage.performance.update_rate_limit`: updates that go on at a time; others wait. Default: any number. */
  readonly updateRateLimit?: number | null;
  readonly cpus?: number;
  /** Default: a node that looks at no memory. */
  readonly memory?: NodeMemory;
  /** What the node uses, for limits of strict mode. Default: not known. */
  readonly usage?: NodeUsage;
  /** Default: a node that looks at no disk. */
  readonly disk?: CopyDisk;
  /** Default: a node without snapshots. */
  readonly snapshots?: SnapshotOptions | null;
  /** `storage.backups`. Default: none. */
  readonly backups?: readonly BackupPlan[];
  readonly clock?: Clock;
  /** The node's actor crashed too often: the process should end. */
  readonly onFatal?: (error: ErrorFacts) => void;
  /** Clock, timers, randomness and mailboxes of the actors (tests). */
  readonly ports?: RuntimePorts;
}

/** The memory of the process, and how the one before has ended. */
export interface NodeMemory {
  readonly figures: MemoryFigures;
  /** See `MemoryRoom`. */
  readonly caution: number;
  /** `storage.recovery_mode`, or what stands for it; null: none. */
  readonly recoveryMode: string | null;
}

/** Services that do not depend on the cluster. */
export type LocalServices = Omit<NodeServices, 'calls' | 'propose' | 'barrier'>;

export interface NodeBase {
  readonly options: NodeOptions;
  readonly ports: RuntimePorts;
  readonly clock: Clock;
  /** Measures calls of peers. */
  readonly watch: Stopwatch;
  readonly system: ActorSystem;
  readonly view: NodeView;
  readonly services: LocalServices;
  /** Ends what tells the engine of shard keys. */
  readonly hideShardKeys: Cancel;
}

/** A node whose actors run. */
export interface LiveNode extends NodeBase {
  readonly services: NodeServices;
  readonly actor: ActorRef<NodeMessage>;
  /** Every collection found at start is open or known not to be, and all threads that answer reads have answered. */
  readonly ready: Promise<void>;
}

export async function prepareNode(options: NodeOptions): Promise<NodeBase> {
  const { log, pool } = options;
  const clock = options.clock ?? systemClock;
  const cpus = options.cpus ?? os.availableParallelism();
  const ports = options.ports ?? systemPorts(log, clock);
  const precise = options.ports === undefined && options.clock === undefined;
  const room = new MemoryRoom(options.memory?.figures ?? null, options.memory?.caution);
  const verified = new VerifiedReplicas(options.verify ?? verifyReplicas);
  const services: LocalServices = {
    engine: pool,
    files: new ReplicaFiles(pool, verified),
    signals: new EngineSignals(pool),
    store:
      options.store ??
      (await openCollectionStore(options.storagePath, (path, error) => log.warn(`${path} could not be removed: ${String(error)}`))),
    aliases: options.aliases ?? new AliasFile(options.storagePath, (error) => log.error(error.detail)),
    verified,
    budget: new BuildBudget(
      buildThreadsMax(options.optimizerCpuBudget ?? 0, cpus, THREADS_HAVE_PRIORITIES),
      room,
      (delayMs, run) => void ports.timers.after(delayMs, run),
    ),
    pace: new NodePace(),
    room,
    copyRoom: new CopyRoom(options.disk ?? null, room),
    archive: options.snapshots?.archive ?? NO_ARCHIVES,
    openingGate: openingGate(options.memory?.recoveryMode ?? null, room, options.memory === undefined ? null : loadedBytes),
    timers: ports.timers,
    optimizersOverwrite: options.optimizersOverwrite ?? NO_OVERWRITE,
    cpus,
    readers: pool.readersMax ?? cpus,
    assignments: new Assignments(options.cluster == null),
  };
  return {
    options,
    ports,
    clock,
    watch: { clock, preciseMs: precise ? () => performance.now() : () => clock.nowMs() },
    system: new ActorSystem(ports),
    view: new NodeView(),
    services,
    hideShardKeys: showShardKeys(services.assignments, pool),
  };
}

/** Start reads everything from disk. */
const START_MS = 0x7fff_ffff;

/** Starts the node's actor; collections are being opened when it returns. */
export function runNode(base: NodeBase, services: NodeServices, startConsensus: StartConsensus | null): LiveNode {
  const { options, system, view } = base;
  const actor = system.spawn(nodeBehaviour(), 'node', { services, view, startConsensus }, (error) => {
    options.log.error(`the node cannot go on: ${error.detail}`);
    options.onFatal?.(error);
  });
  // Only then a request waits for nothing that the start has left in the queues of threads.
  const ready = actor.ask<boolean>((replyTo) => ({ kind: 'awaitReady', replyTo }), START_MS).then(() => options.pool.settled());
  // Whoever calls `whenReady` hears of a failure; nobody has to.
  ready.catch(() => {});
  return { ...base, services, actor, ready };
}
