/**
 * States of an optimizer.
 *
 * - `Idle`: nothing to do, or it waits for an upload to pause;
 * - `Waiting`: has a plan and waits for threads;
 * - `Building`: one build runs or more; a further plan may wait for threads;
 * - `Cooling`: a build failed; the next one waits a while. Other builds go on.
 */

import type { ErrorFacts } from '../../protocols/errors.js';
import type { CollectionConfig } from '../../protocols/model/collection.js';
import type { ReplicaStats } from '../../storage/threads/messages.js';
import type { PlannedBuild, TooLargeBuild } from './plan.js';
import type { FinishedBuild, OptimizerStatus, RunningBuild } from './status.js';

export type OptimizerState = IdleOptimizer | WaitingOptimizer | BuildingOptimizer | CoolingOptimizer;

/** What every state knows. */
export interface Knowledge {
  readonly config: CollectionConfig;
  /** Null until the replica told its figures. */
  readonly stats: ReplicaStats | null;
  /** Since when its rows without a graph have gathered; null: there are none but those of builds. */
  readonly gathering: Gathering | null;
  /** See `PlanFacts`. */
  readonly paceBytesPerSecond: number;
  readonly cpus: number;
  readonly readers: number;
  /** See `PlanFacts`. */
  readonly resultBytesMax: number;
  /** As `resultBytesMax`, as there was room for at last: until the next build has ended. */
  readonly roomBytesMax: number;
  /** See `PlanFacts`. */
  readonly tooLarge: TooLargeBuild | null;
  readonly nextBuildId: number;
  /** Failures since the last build that went well, null for none. */
  readonly trouble: BuildTrouble | null;
  /** Newest first. */
  readonly finished: readonly FinishedBuild[];
  readonly published: { readonly builds: number; readonly points: number };
}

interface Gathering {
  readonly sinceMs: number;
  /** Of vectors, by now. */
  readonly bytes: number;
}

export interface BuildTrouble {
  readonly error: ErrorFacts;
  readonly failures: number;
}

export interface WantedBuild {
  readonly id: number;
  readonly plan: PlannedBuild;
}

export interface IdleOptimizer {
  readonly kind: 'Idle';
  readonly known: Knowledge;
}

export interface WaitingOptimizer {
  readonly kind: 'Waiting';
  readonly known: Knowledge;
  readonly wanted: WantedBuild;
}

export interface BuildingOptimizer {
  readonly kind: 'Building';
  readonly known: Knowledge;
  /** At least one. */
  readonly builds: readonly RunningBuild[];
  readonly wanted: WantedBuild | null;
}

export interface CoolingOptimizer {
  readonly kind: 'Cooling';
  readonly known: Knowledge;
  readonly builds: readonly RunningBuild[];
  readonly trouble: BuildTrouble;
}

/** The state that `builds` and `wanted` make. */
export function working(known: Knowledge, builds: readonly RunningBuild[], wanted: WantedBuild | null): OptimizerState {
  if (builds.length > 0) return { kind: 'Building', known, builds, wanted };
  return wanted === null ? { kind: 'Idle', known } : { kind: 'Waiting', known, wanted };
}

export function cooling(known: Knowledge, builds: readonly RunningBuild[], trouble: BuildTrouble): CoolingOptimizer {
  return { kind: 'Cooling', known, builds, trouble };
}

export function buildsOf(state: OptimizerState): readonly RunningBuild[] {
  return state.kind === 'Building' || state.kind === 'Cooling' ? state.builds : [];
}

export function wantedOf(state: OptimizerState): WantedBuild | null {
  return state.kind === 'Waiting' || state.kind === 'Building' ? state.wanted : null;
}

export function optimizerStatus(state: OptimizerState): OptimizerStatus {
  return {
    state: state.kind,
    builds: buildsOf(state),
    wanted: wantedOf(state)?.plan ?? null,
    error: state.known.trouble?.error ?? null,
    finished: state.known.finished,
    published: state.known.published,
  };
}
