/** The part of a replica that is its shard's log: where the log begins and ends, what it has, and moves of its end. */

import { TroupeError } from '../../protocols/errors.js';
import type { LogReach, LogTag } from '../../protocols/model/shard-log.js';
import type { LogPart, ShardPosition } from '../threads/shard-log.js';
import type { WriteAheadLog } from '../wal/wal.js';
import type { Operations } from './operations.js';
import { ALL_STALE, withStale } from './stale.js';
import type { Transaction } from './transaction.js';

/** The part of a replica that its log uses. */
export interface ReplicaLogHost {
  readonly wal: WriteAheadLog;
  readonly operations: Operations;
  /** Runs `change` in a transaction (Wal-W3). trims: the log may lose applied operations. */
  transact(change: (transaction: Transaction) => void, trims: boolean): void;
}

export class ReplicaLog {
  constructor(private readonly host: ReplicaLogHost) {}

  get position(): ShardPosition {
    const { last, base } = this.host.wal;
    return { last, base };
  }

  /** See `ShardLogPort.entriesAfter`. */
  entriesAfter(after: LogTag, bytesMax: number): LogPart {
    const { wal } = this.host;
    if (after.index < wal.base.index) return { kind: 'compacted' };
    if (!wal.has(after)) return { kind: 'diverged', before: wal.tagBefore(after.index) };
    const entries = wal.entriesAfter(after.index, bytesMax);
    return entries === null ? { kind: 'compacted' } : { kind: 'entries', entries, last: wal.last };
  }

  /** See `ShardLogPort.reachOf`. */
  reachOf(after: LogTag, untilMs: number): LogReach {
    return this.host.wal.reachOf(after, untilMs);
  }

  /** See `ShardLogPort.resetLog`. Operations that are logged and not applied are dropped with the log. */
  reset(at: LogTag): void {
    const { operations, wal } = this.host;
    this.host.transact((transaction) => {
      wal.reset(at);
      transaction.appliedOperation = at.index;
      transaction.stale = ALL_STALE;
      transaction.endSlices();
    }, false);
    operations.forget();
  }

  /** See `ShardLogPort.rewindLog`. */
  rewind(to: LogTag): void {
    const { operations, wal } = this.host;
    operations.apply();
    if (!wal.has(to)) throw new TroupeError('conflict', `the log does not have operation ${to.index} (term ${to.term} of peer ${to.peer})`);
    const taken = [...wal.after(to.index)].map(({ logged }) => logged.operation);
    if (taken.length === 0) return;
    this.host.transact((transaction) => {
      wal.rewind(to);
      transaction.appliedOperation = to.index;
      transaction.stale = withStale(transaction.stale, taken);
    }, false);
  }
}
