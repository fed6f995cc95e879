/** What an optimizer hears and what it causes. `nowMs` is the time a message was made at: the step has no clock. */

import type { ErrorFacts } from '../../protocols/errors.js';
import type { CollectionConfig } from '../../protocols/model/collection.js';
import type { BuildProgress } from '../../storage/pool/pool.js';
import type { BuildReport, ReplicaStats } from '../../storage/threads/messages.js';
import type { PlannedBuild } from './plan.js';
import type { OptimizerStatus } from './status.js';

export type OptimizerMessage =
  /** The replica changed. `paceBytesPerSecond`: see `PlanFacts`. */
  | { readonly kind: 'stats'; readonly stats: ReplicaStats; readonly paceBytesPerSecond: number; readonly nowMs: number }
  | { readonly kind: 'configure'; readonly config: CollectionConfig; readonly nowMs: number }
  /** Time to look again. */
  | { readonly kind: 'wake'; readonly nowMs: number }
  /** The build `id` may use so many threads. */
  | { readonly kind: 'granted'; readonly id: number; readonly threads: number; readonly nowMs: number }
  /** The build `id` waits for memory that nobody gives back; one that needs no more than `leftBytes` would not have to. */
  | { readonly kind: 'lacksRoom'; readonly id: number; readonly leftBytes: number; readonly nowMs: number }
  | { readonly kind: 'progress'; readonly id: number; readonly progress: BuildProgress }
  /** The build is published; `stats` are the figures after it. */
  | {
      readonly kind: 'built';
      readonly id: number;
      readonly report: BuildReport;
      readonly stats: ReplicaStats | null;
      readonly nowMs: number;
    }
  | { readonly kind: 'buildFailed'; readonly id: number; readonly error: ErrorFacts; readonly nowMs: number }
  /** The pause after a failure is over. */
  | { readonly kind: 'cooled'; readonly nowMs: number };

export type OptimizerEffect =
  /** Have the newest figures told: after a restart nobody else may tell them for long. */
  | { readonly kind: 'askStats' }
  | { readonly kind: 'requestThreads'; readonly id: number; readonly plan: PlannedBuild; readonly threads: number }
  /** Give back the threads of a build, or withdraw its request. */
  | { readonly kind: 'releaseThreads'; readonly id: number }
  | { readonly kind: 'build'; readonly id: number; readonly plan: PlannedBuild; readonly threads: number }
  /** Look again after so long; null: no need. Replaces what was set before. */
  | { readonly kind: 'wakeLater'; readonly delayMs: number | null }
  /** So many bytes of vectors have been written to the replica. */
  | { readonly kind: 'tellPace'; readonly bytes: number; readonly nowMs: number }
  | { readonly kind: 'coolDown'; readonly failures: number }
  | { readonly kind: 'note'; readonly text: string; readonly facts: Record<string, unknown> }
  | { readonly kind: 'announce'; readonly status: OptimizerStatus };
