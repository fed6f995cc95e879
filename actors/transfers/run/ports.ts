/** What a transfer needs of others: the leader's log of its shard, agreement, and files that are sent. */

import type { ClusterCommand } from '../../../cluster/state/commands.js';
import type { BucketDifferences } from '../../../cluster/transfer/batches.js';
import type { TransferRun } from '../../../cluster/transfer/runs.js';
import type { PeerId } from '../../../protocols/model/cluster.js';

export interface AttachResult {
  /**
   * delta: what the target has is the beginning of the leader's log, and the rest is on its way. rewound: so it is now, but points that it had
   * changed without the leader may differ. reset: its log begins anew at the
   * leader's position; what it has there is anything. refused: only a reset would do, and none was wanted: nothing has changed.
   */
  readonly how: 'delta' | 'rewound' | 'reset' | 'refused';
}

export interface CompareResult extends BucketDifferences {
  /** Of the leader's replica. */
  readonly total: number;
}

export interface FillResult {
  /** Points that were changed, added or removed on the target. */
  readonly changed: number;
  readonly points: number;
  readonly bytes: number;
}

/**
 * The replica that leads a shard, and its channel to another one (`actors/shard-log`). Errors: `conflict` where it leads no more;
 * any other one: another try may do.
 */
export interface LeadingShard {
  attach(peer: PeerId, mayReset: boolean): Promise<AttachResult>;
  /** Buckets that differ after the same operation. */
  compare(peer: PeerId): Promise<CompareResult>;
  fill(peer: PeerId, buckets: readonly number[]): Promise<FillResult>;
  /** Resolves when it has everything, and whatever is acknowledged from now on, it has, too. */
  require(peer: PeerId): Promise<void>;
  /** It is a stranger again. */
  release(peer: PeerId): void;
  /** Resolves when no write of the shard is under way; none is taken until another one leads, or `resume`, or for some seconds. */
  pause(): Promise<void>;
  resume(): void;
}

export interface TransferPorts {
  /** Whether the target is agreed to be Partial, as far as this node knows. */
  readonly isAnnounced: (run: TransferRun) => boolean;
  /** Null: no replica here leads the shard, or none is open. */
  readonly leadingShard: (run: TransferRun) => LeadingShard | null;
  /** Resolves when it is agreed and applied here. */
  readonly propose: (command: ClusterCommand) => Promise<void>;
  /** The leader's files to the target, which has them in place of its own when it resolves. */
  readonly sendFiles: (run: TransferRun, onSent: (sent: number, total: number) => void, signal: AbortSignal) => Promise<void>;
  readonly nowMs: () => number;
}
