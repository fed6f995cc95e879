/** Divides a writer's part of the budget of logs among its replicas, about once a second while any of them is used (Kept-K1 to Kept-K3). */

import type { LogRetention } from '../replica/log-retention.js';
import { type LogShare, planLogs, sleepingBytesMax, writersPart } from '../wal/log-budget.js';

/** A log that is open here. */
export interface KeptLog {
  readonly retention: LogRetention | null;
  /** Says how much the log may keep; what is beyond goes soon. */
  limitLog(bytesMax: number): void;
}

export interface LogKeepingClock {
  now(): number;
  after(ms: number, run: () => void): void;
}

const PLAN_EVERY_MS = 1000;

export class LogKeeping {
  private readonly logs = new Set<KeptLog>();
  private isPlanned = false;
  private bytesMaxOfNew = Number.POSITIVE_INFINITY;

  constructor(
    private readonly share: LogShare,
    private readonly clock: LogKeepingClock,
  ) {}

  get sleepingBytesMax(): number {
    return sleepingBytesMax(this.share, this.asleepBytes);
  }

  get isRestorable(): boolean {
    return this.share.isRestorable;
  }

  private get asleepBytes(): number {
    return Atomics.load(this.share.asleep, 0) * 1024;
  }

  begin(log: KeptLog): void {
    this.logs.add(log);
    if (this.bytesMaxOfNew !== Number.POSITIVE_INFINITY) log.limitLog(this.bytesMaxOfNew);
    this.used();
  }

  end(log: KeptLog): void {
    this.logs.delete(log);
  }

  /** A replica has got something to do. */
  used(): void {
    if (this.isPlanned || this.share.budgetBytes === Number.POSITIVE_INFINITY) return;
    this.isPlanned = true;
    this.clock.after(PLAN_EVERY_MS, () => {
      this.isPlanned = false;
      this.plan();
    });
  }

  plan(): void {
    const { budgetBytes, writers } = this.share;
    const partBytes = writersPart(budgetBytes, this.asleepBytes, writers);
    const nowMs = this.clock.now();
    const open = [...this.logs].flatMap((log) => (log.retention === null ? [] : [{ log, holder: log.retention.holder(partBytes, nowMs) }]));
    const { bytesMax, bytesMaxOfNew } = planLogs(
      open.map(({ holder }) => holder),
      partBytes,
    );
    this.bytesMaxOfNew = bytesMaxOfNew;
    for (const [at, { log }] of open.entries()) log.limitLog(bytesMax[at] as number);
  }
}
