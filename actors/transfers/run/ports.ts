/** What a transfer needs of others: the leader's log of its shard, agreement, and files that are sent. */

import type { AttachResult, CompareResult, FillResult } from '../../../cluster/replication/messages.js';
import type { ClusterCommand } from '../../../cluster/state/commands.js';
import type { TransferRun } from '../../../cluster/transfer/runs.js';
import type { PeerId } from '../../../protocols/model/cluster.js';

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
  /** Nothing more goes to it, unless acknowledgements wait for it. */
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
