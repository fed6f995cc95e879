/** What a replica's log keeps of applied operations: as the node's budget and checkpoints have it (`wal/log-budget.ts`). */

import { TroupeError } from '../../protocols/errors.js';
import { checkpointBytesWanted, type LogHolder, type LogNeed } from '../wal/log-budget.js';
import type { WriteAheadLog } from '../wal/wal.js';

/** The part of a replica that this needs. */
export interface RetainingHost {
  readonly wal: WriteAheadLog;
  /** Number of the newest applied operation that is on disk. */
  readonly appliedOperation: number;
  /** `wal_capacity_mb`, in bytes. */
  readonly capacityBytes: number;
  readonly lastWriteMs: number;
  /** Kept-K5 */
  readonly isRestorable: boolean;
  warn(message: string): void;
}

/** Least bytes that a replica in a cluster wants to keep: another replica that missed them can still get them. As many are kept for restores. */
const WANTED_BYTES = 64 * 2 ** 20;
/** A log is read or written for so long after each time. */
const IN_USE_MS = 60_000;

export class LogRetention {
  /** The log keeps all operations after this one: a checkpoint has the earlier ones. */
  private keptFrom = Number.POSITIVE_INFINITY;
  private hasCheckpoint = false;
  /** The checkpoint that exists is of no use: the log could not keep what follows it (Kept-K4). */
  isCheckpointLost = false;
  /** The node's budget leaves so many bytes for this log (Kept-K1). */
  private bytesMax = Number.POSITIVE_INFINITY;
  /** When another replica read it last; null: never. */
  private readMs: number | null = null;

  constructor(private readonly host: RetainingHost) {}

  get keepsLog(): boolean {
    return this.keptFrom !== Number.POSITIVE_INFINITY;
  }

  /** What the log may have of applied operations. */
  get capacity(): number {
    return Math.min(this.wantedBytes, this.bytesMax);
  }

  private get wantedBytes(): number {
    const { capacityBytes, isRestorable, wal } = this.host;
    return Math.max(capacityBytes, wal.isOrdered || isRestorable ? WANTED_BYTES : 0);
  }

  /** Keeps what follows an operation, for a checkpoint; null: nobody goes on from it. Errors: `conflict` while another checkpoint exists. */
  beginCheckpoint(at: number | null): void {
    if (this.hasCheckpoint) throw new TroupeError('conflict', 'another checkpoint of the replica has not been released yet');
    this.hasCheckpoint = true;
    if (at !== null) this.keptFrom = at;
  }

  endCheckpoint(): void {
    this.hasCheckpoint = false;
    this.keptFrom = Number.POSITIVE_INFINITY;
    this.isCheckpointLost = false;
  }

  /** Another replica reads the log. */
  noteRead(nowMs: number): void {
    this.readMs = nowMs;
  }

  /** What the plan goes by. partBytes: see `planLogs`. */
  holder(partBytes: number, nowMs: number): LogHolder {
    const { lastWriteMs, wal } = this.host;
    const { keepsLog, wantedBytes } = this;
    const isRead = keepsLog || (this.readMs !== null && nowMs - this.readMs < IN_USE_MS);
    const need: LogNeed = isRead ? 'followed' : nowMs - lastWriteMs < IN_USE_MS ? 'written' : 'idle';
    return { need, keptBytes: wal.bytes, wantedBytes: keepsLog ? checkpointBytesWanted(partBytes, wantedBytes) : wantedBytes };
  }

  limit(bytesMax: number): void {
    this.bytesMax = bytesMax;
  }

  /** Whether a transaction would remove some of the log. */
  get isTooLong(): boolean {
    const { appliedOperation: applied, wal } = this.host;
    return wal.exceeds(Math.min(applied, this.keptFrom), this.capacity) || (this.keepsLog && wal.exceeds(applied, this.bytesMax));
  }

  /** Removes what the log has beyond its limit; within a transaction. applied: the newest operation that is applied then. */
  trim(applied: number): void {
    const { wal } = this.host;
    // All that is left is for the checkpoint, and too much.
    if (this.keepsLog && wal.exceeds(applied, this.bytesMax) && !wal.exceeds(this.keptFrom, this.bytesMax)) this.loseCheckpoint();
    wal.trim(Math.min(applied, this.keptFrom), this.capacity);
  }

  private loseCheckpoint(): void {
    this.keptFrom = Number.POSITIVE_INFINITY;
    this.isCheckpointLost = true;
    const { bytes } = this.host.wal;
    this.host.warn(`a checkpoint for a transfer is given up: the log has ${bytes} bytes after it and may keep ${this.bytesMax}`);
  }
}
