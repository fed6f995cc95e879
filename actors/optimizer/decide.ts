/** What an optimizer may do of what the planner proposes, and with how many threads. */

import type { CollectionConfig } from '../../protocols/model/collection.js';
import type { ReplicaStats } from '../../storage/threads/messages.js';
import { type PlanFacts, type PlannedBuild, planOptimization } from './plan.js';

export type Decision =
  | { readonly kind: 'build'; readonly plan: PlannedBuild }
  /** Nothing to do now; perhaps after `wakeAfterMs`. `pending`: there is work that waits for an upload to pause. */
  | { readonly kind: 'rest'; readonly wakeAfterMs: number | null; readonly pending: boolean }
  /** There is work, now or when an upload pauses, but the collection's optimizers are off (`max_optimization_threads: 0`). */
  | { readonly kind: 'off' };

/** The next thing to do for a replica. Missing field indexes and damaged files are made also when optimizers are off. */
export function decideOptimization(stats: ReplicaStats, config: CollectionConfig, facts: PlanFacts): Decision {
  const plan = planOptimization(stats, config, facts);
  const pending = plan.kind === 'none' && plan.waitingFor !== undefined;
  const isOff = config.optimizer_config.max_optimization_threads === 0;
  if (isOff && plan.kind === 'build' && plan.optional) return { kind: 'rest', wakeAfterMs: null, pending: false };
  if (isOff && (plan.kind === 'none' ? pending : plan.reason !== 'fieldIndex' && plan.reason !== 'repair')) return { kind: 'off' };
  if (plan.kind === 'none') return { kind: 'rest', wakeAfterMs: plan.wakeAfterMs ?? null, pending };
  return { kind: 'build', plan };
}

/** Threads a build is worth: those its collection allows when it makes graphs, else one; half of the CPUs beside a stream. */
export function threadsWanted(plan: PlannedBuild, config: CollectionConfig, cpus: number): number {
  if (!plan.withGraph) return 1;
  const limits = [config.optimizer_config.max_optimization_threads ?? 0, config.hnsw_config.max_indexing_threads ?? 0];
  return Math.min(plan.beside ? Math.max(1, Math.floor(cpus / 2)) : cpus, ...limits.filter((limit) => limit > 0));
}

/**
 * Threads of all builds of a node. setting: `optimizer_cpu_budget`: 0 all CPUs, negative all but so many. yielding: builders leave the CPUs to
 * searches at once; where they do not, 0 is half the CPUs.
 */
export function buildThreadsMax(setting: number, cpus: number, yielding: boolean): number {
  if (setting > 0) return setting;
  if (setting < 0) return Math.max(1, cpus + setting);
  return yielding ? cpus : Math.max(1, Math.floor(cpus / 2));
}
