/** What an actor tells about itself. */

import type { Recorded } from './recorder.js';

export interface ActorTelemetry {
  /** `/node/my-collection/shard-0`. */
  readonly path: string;
  readonly kind: string;
  /** Tag of the current state, `Restarting` while it waits after a crash. */
  readonly state: string;
  /** See `Behaviour.facts`. */
  readonly facts: Readonly<Record<string, string | number>>;
  readonly mailbox: { readonly depth: number; readonly capacity: number };
  readonly processed: number;
  readonly restarts: number;
  /** Messages refused because the mailbox was full. */
  readonly busyRefusals: number;
  readonly lastError: { readonly message: string; readonly timeMs: number } | null;
  /** Since the last start or restart. */
  readonly uptimeMs: number;
  /** Oldest first. */
  readonly recent: readonly Recorded[];
  /** Each is made when it is read, since a node has some actors for each collection. */
  readonly children: Iterable<ActorTelemetry>;
}
