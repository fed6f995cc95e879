/** What the conductor and the probe say to each other. */

import type { Waits } from '../common/waits.js';

export interface ProbeJob {
  readonly port: number;
  readonly pid: number;
  /** The collection that is written to and searched. */
  readonly collection: string;
  readonly dim: number;
}

export type ToProbe = { readonly kind: 'begin'; readonly job: ProbeJob } | { readonly kind: 'take' };

/** What the probe has seen since it was asked last. */
export interface Probed {
  readonly writes: Waits;
  readonly searches: Waits;
  /** Requests that only the main thread answers, and that cost it next to nothing. */
  readonly main: Waits;
  /** How late a timer of the probe itself was at most: what is no fault of the node. */
  readonly ownLateMs: number;
  readonly peakAnonymousMegabytes: number;
  readonly peakResidentMegabytes: number;
}
