/** What the actors of one node share: the engine, what it tells, the collections on disk, the build budget. */

import type { PeerCalls } from '../../cluster/data-messages.js';
import type { ClusterCommand } from '../../cluster/state/commands.js';
import type { CollectionStore } from '../collection/store.js';
import type { AliasStore } from '../node/alias-store.js';
import type { BuildBudget } from '../optimizer/budget.js';
import type { ReplicaFiles } from '../replica/files.js';
import type { EnginePort } from '../runtime/ports.js';
import type { EngineSignals } from '../runtime/signals.js';
import type { Assignments } from '../shard-log/assignments.js';
import type { VerifiedReplicas } from './verified-replicas.js';

/**
 * Has the cluster agree on an operation. Resolves once it is applied on this node, whatever others have carried out; rejects with
 * what it was refused for, or with an error whose `outcome` is `unknown`. Errors: `standalone` outside of a cluster.
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
  readonly cpus: number;
  /** To other nodes; `unavailable` on a node of its own. */
  readonly calls: PeerCalls;
  readonly propose: Propose;
  /** What the cluster has agreed on; it knows nothing on a node of its own. */
  readonly assignments: Assignments;
  /**
   * Once everything that was agreed anywhere before the call is applied here; null on a node of its own. Errors: `unavailable`
   * without a leader, `timeout`.
   */
  readonly barrier: ((timeoutMs: number) => Promise<void>) | null;
}
