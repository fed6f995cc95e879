/** Decides whether the log of a shard can bring a snapshot of it to a point in time. */

import { TroupeError } from '../../protocols/errors.js';
import type { ShardId } from '../../protocols/model/cluster.js';
import type { LogReach, LogTag } from '../../protocols/model/shard-log.js';

/** An operation of a shard's log, and when it was acknowledged. */
export interface TimedOperation {
  readonly tag: LogTag;
  /** A date in milliseconds, by the clock of the leader that acknowledged it. */
  readonly timeMs: number;
}

/** What a restore to a point in time does with one shard. */
export interface ShardReach {
  readonly shardId: ShardId;
  /** The last operation of the snapshot. */
  readonly from: TimedOperation;
  /** The last operation that is there afterwards. */
  readonly to: TimedOperation;
  /** How many the log adds to the snapshot, and their bytes in it. */
  readonly operations: number;
  readonly bytes: number;
  /** When the first operation was acknowledged that is left out; null: none is. */
  readonly nextMs: number | null;
}

export interface ReachFacts {
  readonly shardId: ShardId;
  /** The last operation of the snapshot. */
  readonly at: LogTag;
  /** When it was acknowledged; null: the snapshot does not say. */
  readonly timeMs: number | null;
  readonly untilMs: number;
  readonly nowMs: number;
}

/** Errors: `wrongInput` for a time or a snapshot that cannot be, whatever the log has. */
export function requireTimes({ nowMs, shardId, timeMs, untilMs }: ReachFacts): number {
  if (untilMs > nowMs) throw new TroupeError('wrongInput', `\`until\` is ${shownTime(untilMs)}, and it is ${shownTime(nowMs)} now`);
  if (timeMs === null)
    throw new TroupeError(
      'wrongInput',
      `the snapshot does not say when the last operation of shard ${shardId} was: nothing had been written, or an earlier release wrote it or made ` +
        'the snapshot. Leave out `until`, or take a newer snapshot',
    );
  if (untilMs < timeMs)
    throw new TroupeError(
      'wrongInput',
      `\`until\` is ${shownTime(untilMs)}, and the snapshot has operations of shard ${shardId} up to ${shownTime(timeMs)}: take an older snapshot`,
    );
  return timeMs;
}

/**
 * What a restore adds to the snapshot of a shard. reach: what its log has after the snapshot's last operation. Lineage: the log has that very operation, with
 * the same time to the millisecond. Errors: `wrongInput`, with the figures.
 */
export function reachOfShard(facts: ReachFacts, reach: LogReach): ShardReach {
  const timeMs = requireTimes(facts);
  const { at, shardId } = facts;
  switch (reach.kind) {
    case 'reaches': {
      if (reach.fromMs === null)
        throw new TroupeError(
          'wrongInput',
          `the log of shard ${shardId} does not know when operation ${at.index} was, the last one of the snapshot`,
        );
      if (reach.fromMs !== timeMs)
        throw otherLog(
          facts,
          `operation ${at.index} of the log is of ${shownTime(reach.fromMs)}, and that of the snapshot of ${shownTime(timeMs)}`,
        );
      const { bytes, nextMs, operations, to, toMs } = reach;
      return { shardId, from: { tag: at, timeMs }, to: { tag: to, timeMs: toMs ?? timeMs }, operations, bytes, nextMs };
    }
    case 'compacted': {
      const since = reach.firstMs === null ? '' : `, of ${shownTime(reach.firstMs)}`;
      throw new TroupeError(
        'wrongInput',
        `the log of shard ${shardId} does not reach back to the snapshot: it begins after operation ${reach.base.index}${since}, and the snapshot ends ` +
          `with operation ${at.index}, of ${shownTime(timeMs)}. Take a newer snapshot; logs keep \`wal_capacity_mb\` of their collection, and on a ` +
          'node without a cluster only with `storage.point_in_time_restore`',
      );
    }
    case 'diverged':
      throw otherLog(facts, `the log ends with operation ${reach.last.index} and does not have operation ${at.index} of the snapshot`);
    case 'untimed':
      throw new TroupeError(
        'wrongInput',
        `operation ${reach.at.index} of shard ${shardId} has no time, as an earlier release wrote it: take a snapshot that has it already`,
      );
    default:
      return reach satisfies never;
  }
}

function otherLog({ shardId }: ReachFacts, why: string): TroupeError {
  return new TroupeError(
    'wrongInput',
    `the snapshot is not one of what shard ${shardId} has now, so its log cannot follow it: ${why}. It may be of another collection or node, or of a ` +
      'time before a restore',
  );
}

export function shownTime(timeMs: number): string {
  return new Date(timeMs).toISOString();
}

/** For people. */
export function shownReach({ from, nextMs, operations, shardId, to }: ShardReach): string {
  const left = nextMs === null ? 'nothing is left out' : `left out is what follows from ${shownTime(nextMs)} on`;
  const begin = `the snapshot ends with operation ${from.tag.index} of ${shownTime(from.timeMs)}`;
  return `shard ${shardId}: ${begin}, the log adds ${operations} up to operation ${to.tag.index} of ${shownTime(to.timeMs)}; ${left}`;
}
