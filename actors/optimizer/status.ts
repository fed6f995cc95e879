/** What the doors see of an optimizer. */

import type { ErrorFacts } from '../../protocols/errors.js';
import type { BuildProgress } from '../../storage/pool/pool.js';
import type { PlannedBuild } from './plan.js';

/** A segment a build takes. */
export interface SourceSegment {
  readonly id: number;
  readonly points: number;
}

export interface RunningBuild {
  /** Unique within the replica's process. */
  readonly id: number;
  readonly plan: PlannedBuild;
  readonly sources: readonly SourceSegment[];
  readonly threads: number;
  readonly startedMs: number;
  readonly progress: BuildProgress | null;
}

export interface FinishedBuild {
  readonly build: RunningBuild;
  readonly finishedMs: number;
  /** Null: it was published. */
  readonly error: ErrorFacts | null;
}

export interface OptimizerStatus {
  /** `Idle`, `Waiting`, `Building`, `Cooling`, or `Stopped` after too many crashes. */
  readonly state: string;
  readonly builds: readonly RunningBuild[];
  /** Waits for threads. */
  readonly wanted: PlannedBuild | null;
  /** Why it has to wait for memory; absent if it has not. */
  readonly waitsFor?: string;
  /** Of the last build, null when it went well. */
  readonly error: ErrorFacts | null;
  /** Newest first, a bounded number. */
  readonly finished: readonly FinishedBuild[];
  /** Builds that were published since the replica was opened, and the points that they took. */
  readonly published?: { readonly builds: number; readonly points: number };
}
