/** Services that the actors of one node share: the engine and its reports, the collections on disk, the build budget. */

import type { PeerCalls } from '../../cluster/data-messages.js';
import type { ClusterCommand } from '../../cluster/state/commands.js';
import type { ArchivePort } from '../../storage/archive/port.js';
import type { CollectionStore } from '../collection/store.js';
import type { AliasStore } from '../node/alias-store.js';
import type { BuildBudget } from '../optimizer/budget.js';
import type { NodePace } from '../optimizer/pace.js';
import type { ReplicaFiles } from '../replica/files.js';
import type { EnginePort, Timers } from '../runtime/ports.js';
import type { EngineSignals } from '../runtime/signals.js';
import type { Assignments } from '../shard-log/assignments.js';
import type { CopyRoom } from './copy-room.js';
import type { MemoryRoom } from './memory-room.js';
import type { OpeningGate } from './opening-gate.js';
import type { OptimizersOverwrite } from './own-config.js';
import type { VerifiedReplicas } from './verified-replicas.js';

/**
 * Proposes a command to the cluster. Resolves once it is applied on this node, whether or not other nodes have executed it. Rejects with
 * the reason of a refusal, or with an error whose `outcome` is `unknown`. Errors: `standalone` outside of a cluster.
 */
export type Propose = (operation: ClusterCommand, timeoutMs: number) => Promise<boolean>;

export interface NodeServices {
  readonly engine: EnginePort;
  readonly files: ReplicaFiles;
  readonly signals: EngineSignals;
  readonly store: CollectionStore;
  readonly aliases: AliasStore;
  readonly verified: VerifiedReplicas;
  readonly budget: BuildBudget;
  readonly pace: NodePace;
  readonly room: MemoryRoom;
  readonly copyRoom: CopyRoom;
  readonly openingGate: OpeningGate;
  /** Makes and reads archives of snapshots. */
  readonly archive: ArchivePort;
  /** For waits that no actor's message ends. */
  readonly timers: Timers;
  /** Goes before the optimizer settings of collections, see `ownConfig`. */
  readonly optimizersOverwrite: OptimizersOverwrite;
  readonly cpus: number;
  /** Threads that may ever read segments. */
  readonly readers: number;
  /** Calls to other nodes; `unavailable` on a node without a cluster. */
  readonly calls: PeerCalls;
  readonly propose: Propose;
  /** The agreed state of the cluster; empty on a node without a cluster. */
  readonly assignments: Assignments;
  /**
   * Resolves once everything that was agreed anywhere before the call is applied here; null on a node without a cluster. Errors:
   * `unavailable` without a leader, `timeout`.
   */
  readonly barrier: ((timeoutMs: number) => Promise<void>) | null;
}
