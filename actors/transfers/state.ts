/** What the supervisor of a node's transfers knows. It has one state: what runs follows from what is agreed. */

import type { MigrationTask } from '../../cluster/apply/migration.js';
import { type HandOverTries, NO_HAND_OVER_TRIES } from '../../cluster/plans/hand-over-tries.js';
import type { ClusterState } from '../../cluster/state/state.js';
import type { ComparedAt, Comparison } from '../../cluster/transfer/comparing.js';
import type { HealingTries, TransferLimits } from '../../cluster/transfer/healing.js';
import type { IncomingFiles, TransferRun } from '../../cluster/transfer/runs.js';

export interface TransfersSettings {
  readonly limits: TransferLimits;
  /** Between two comparisons of a follower's digest; 0: digests are not compared in the background. */
  readonly comparePeriodTicks: number;
  /** Of rest, before the leads of shards are spread; 0: they are not. */
  readonly restTicks: number;
}

export interface TransfersState {
  readonly kind: 'Watching';
  readonly settings: TransfersSettings;
  readonly ticks: number;
  /** By name. */
  readonly runs: ReadonlyMap<string, TransferRun>;
  /** By name. */
  readonly migrations: ReadonlyMap<string, MigrationTask>;
  /** To this node, by name. */
  readonly incoming: ReadonlyMap<string, IncomingFiles>;
  readonly tries: HealingTries;
  /** Hand-overs from full disks and from drained peers that failed. */
  readonly handOverTries: HandOverTries;
  /** Healing is being agreed on. */
  readonly proposing: boolean;
  readonly compared: ComparedAt;
  /** That is under way. */
  readonly comparison: Comparison | null;
  readonly spreading: Spreading;
  /** The look from which a lead may be given back; null while one is. */
  readonly giveBackTick: number | null;
}

/** How the leads of shards come to be spread. */
export interface Spreading {
  /** For so many ticks nothing was going on; 0 on a node that does not lead consensus. */
  readonly restedTicks: number;
  /** Hand-overs under way. */
  readonly underWay: number;
  /** With these collections, and so many peers that answered and had full disks, nothing was left to be spread: they are not gone through again. */
  readonly spreadWith: { readonly collections: ClusterState['collections']; readonly reachable: number; readonly full: number } | null;
}

export const RESTLESS: Spreading = { restedTicks: 0, underWay: 0, spreadWith: null };

export function watching(settings: TransfersSettings): TransfersState {
  return {
    kind: 'Watching',
    settings,
    ticks: 0,
    runs: new Map(),
    migrations: new Map(),
    incoming: new Map(),
    tries: new Map(),
    handOverTries: NO_HAND_OVER_TRIES,
    proposing: false,
    compared: new Map(),
    comparison: null,
    spreading: RESTLESS,
    giveBackTick: 0,
  };
}
