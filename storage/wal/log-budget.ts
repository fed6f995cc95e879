/**
 * How much of their logs the replicas of a node keep. What a log keeps of applied operations is for replicas that missed some: without it they are
 * compared and filled, which costs more and loses nothing. So all logs share a budget of bytes.
 *
 * - **Kept-K1** All logs of a node together keep at most its budget (`storage.log_budget_mb`), beyond what is not applied yet. Each writer
 *   divides an equal part among its replicas.
 * - **Kept-K2** While there is enough, each log keeps what it wants. Otherwise logs that another replica reads or a checkpoint needs come first, then
 *   those that are written, then the others; within a class small wants are met before large ones.
 * - **Kept-K3** A replica that falls asleep keeps little. What those asleep keep counts, too.
 * - **Kept-K4** A checkpoint keeps the log from its operation on within half of the writer's part. Beyond that the checkpoint is lost: its
 *   transfer ends with that reason, and goes on with another method.
 * - **Kept-K5** With `storage.point_in_time_restore`, operations of a node without a cluster get records, too, and a replica that falls asleep keeps its
 *   log as long as those asleep keep half of the budget at most.
 */

/** followed: another replica reads the log, or a checkpoint keeps it. written: it grows. */
export type LogNeed = 'followed' | 'written' | 'idle';

/** The log of one replica. */
export interface LogHolder {
  readonly need: LogNeed;
  /** Now. */
  readonly keptBytes: number;
  /** As many as it keeps where there is room. */
  readonly wantedBytes: number;
}

export interface LogPlan {
  /** The most bytes that each holder may keep, in the order of the holders. */
  readonly bytesMax: readonly number[];
  /** Of a log that is opened before the next plan. */
  readonly bytesMaxOfNew: number;
}

/** What each writer starts with. */
export interface LogShare {
  /** Of the node. */
  readonly budgetBytes: number;
  readonly writers: number;
  /** Int32Array [1] in shared memory: KiB that the logs of replicas keep that are asleep. */
  readonly asleep: Int32Array;
  /** Logs are kept for restores to a point in time, too (Kept-K5). */
  readonly isRestorable: boolean;
}

const MEBIBYTE = 1 << 20;
/** A log that is written may grow by so much until the next plan, which is a second or less away, and double. */
const GROWTH_BYTES = 8 * MEBIBYTE;
const NEEDS: readonly LogNeed[] = ['followed', 'written', 'idle'];

/** What a record costs beyond its bytes: key and head in LMDB, its place in memory. */
export const RECORD_COST_BYTES = 48;

/** Share of the disk for logs, where the settings say nothing; no more than the memory that the node plans with, as each record takes some. */
const DISK_SHARE = 0.05;
const BUDGET_BYTES_MIN = 64 * MEBIBYTE;

/** A node has fewer replicas; if all slept, they would keep the budget. */
const SLEEPERS_MAX = 16_384;
const SLEEPING_BYTES_MAX = MEBIBYTE / 4;

/** megabytes: the setting; null for 5 % of the disk, between 64 MB and the budget of memory. */
export function logBudgetBytes(megabytes: number | null, diskBytes: number, memoryBytes: number): number {
  if (megabytes !== null) return megabytes * MEBIBYTE;
  return Math.max(BUDGET_BYTES_MIN, Math.floor(Math.min(diskBytes * DISK_SHARE, memoryBytes)));
}

/** A writer's part. asleepBytes: kept by all replicas that are asleep. */
export function writersPart(budgetBytes: number, asleepBytes: number, writers: number): number {
  return Math.max(0, budgetBytes - asleepBytes) / writers;
}

/** What a replica keeps that falls asleep (Kept-K3, Kept-K5). asleepBytes: what those keep that sleep already. */
export function sleepingBytesMax(
  { budgetBytes, isRestorable }: Pick<LogShare, 'budgetBytes' | 'isRestorable'>,
  asleepBytes: number,
): number {
  const little = Math.min(SLEEPING_BYTES_MAX, Math.floor(budgetBytes / SLEEPERS_MAX));
  return isRestorable ? Math.max(little, budgetBytes / 2 - asleepBytes) : little;
}

/** What a log wants that a checkpoint needs (Kept-K4). */
export function checkpointBytesWanted(partBytes: number, wantedBytes: number): number {
  return Math.max(partBytes / 2, Math.min(partBytes, wantedBytes));
}

/** Divides a part of the budget among its holders (Kept-K1, Kept-K2). */
export function planLogs(holders: readonly LogHolder[], partBytes: number): LogPlan {
  const wanted = holders.reduce((sum, { wantedBytes }) => sum + wantedBytes, 0);
  if (wanted <= partBytes) return { bytesMax: holders.map(({ wantedBytes }) => wantedBytes), bytesMaxOfNew: Number.POSITIVE_INFINITY };
  const bytesMax = new Array<number>(holders.length).fill(0);
  let left = partBytes;
  for (const need of NEEDS) {
    const demands = holders.flatMap((holder, at) => (holder.need === need ? [{ at, bytes: demandOf(holder) }] : []));
    const level = levelOf(
      demands.map(({ bytes }) => bytes),
      left,
    );
    for (const { at, bytes } of demands) {
      const given = Math.floor(Math.min(bytes, level));
      bytesMax[at] = given;
      left -= given;
    }
  }
  return { bytesMax, bytesMaxOfNew: Math.min(GROWTH_BYTES, Math.floor(left)) };
}

function demandOf({ keptBytes, need, wantedBytes }: LogHolder): number {
  switch (need) {
    case 'followed':
      return wantedBytes;
    case 'written':
      return Math.min(wantedBytes, 2 * keptBytes + GROWTH_BYTES);
    case 'idle':
      return Math.min(wantedBytes, keptBytes);
    default:
      return need satisfies never;
  }
}

/** The level up to which all demands are met, so that together they come to `bytes` at most. */
function levelOf(demands: readonly number[], bytes: number): number {
  const ascending = [...demands].sort((one, other) => one - other);
  let left = bytes;
  for (const [at, demand] of ascending.entries()) {
    const share = left / (ascending.length - at);
    if (demand > share) return share;
    left -= demand;
  }
  return Number.POSITIVE_INFINITY;
}
