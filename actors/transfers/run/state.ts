/**
 * States of one run of a transfer.
 *
 * | state      | waits for |
 * |------------|-----------|
 * | Copying    | the leader's files being sent to the target and put in place |
 * | Attaching  | the target's log to go on from the leader's, or to begin anew |
 * | Announcing | the agreement that the target takes writes (`Partial`) |
 * | Comparing  | the digests of both |
 * | Filling    | a batch of buckets that differed |
 * | Requiring  | the target to have everything, and to be needed for whatever is acknowledged |
 * | Pausing    | the leader to have answered what is under way, as it is to lead no more |
 * | Finishing  | the agreement that it is Active |
 * | Restarting | the agreement that it goes on with another method |
 * | Aborting   | the agreement that it ends without success |
 * | Waiting    | a pause after a failure |
 * | Done       | to be stopped: what it came to is agreed |
 */

import type { BucketDifferences } from '../../../cluster/transfer/batches.js';
import type { TransferProgress } from '../../../cluster/transfer/progress.js';
import type { TransferRun } from '../../../cluster/transfer/runs.js';
import type { TransferMethod } from '../../../protocols/model/cluster.js';

export type TransferState =
  | Copying
  | Attaching
  | Announcing
  | Comparing
  | Filling
  | Requiring
  | Pausing
  | Finishing
  | Restarting
  | Aborting
  | Waiting
  | Done;

interface Common {
  readonly run: TransferRun;
  readonly progress: TransferProgress;
  /** The target takes writes, as agreed. */
  readonly announced: boolean;
  /** Its log has lost what the leader does not have: points that this had changed differ. */
  readonly rewound: boolean;
  /** Comparisons of this run that found a difference. */
  readonly rounds: number;
  /** Of what was sent; null: nothing was. */
  readonly bytesPerPoint: number | null;
}

export interface Copying extends Common {
  readonly kind: 'Copying';
}

export interface Attaching extends Common {
  readonly kind: 'Attaching';
}

export interface Announcing extends Common {
  readonly kind: 'Announcing';
}

export interface Comparing extends Common {
  readonly kind: 'Comparing';
}

export interface Filling extends Common {
  readonly kind: 'Filling';
  readonly differences: BucketDifferences;
  /** Of the first bucket behind the batch that is on its way. */
  readonly next: number;
}

export interface Requiring extends Common {
  readonly kind: 'Requiring';
}

export interface Pausing extends Common {
  readonly kind: 'Pausing';
}

export interface Finishing extends Common {
  readonly kind: 'Finishing';
}

export interface Restarting extends Common {
  readonly kind: 'Restarting';
  readonly method: TransferMethod;
}

export interface Aborting extends Common {
  readonly kind: 'Aborting';
  readonly reason: string;
}

export interface Waiting extends Common {
  readonly kind: 'Waiting';
  readonly retried: Retried;
}

/** What is tried again after a pause. */
export type Retried =
  | { readonly kind: 'copy' }
  | { readonly kind: 'attach' }
  | { readonly kind: 'finish' }
  | { readonly kind: 'restart'; readonly method: TransferMethod; readonly reason: string }
  | { readonly kind: 'abort'; readonly reason: string };

export interface Done extends Common {
  readonly kind: 'Done';
}
