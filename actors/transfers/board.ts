/**
 * What doors see of this node's transfers: how far each is, what became of the last ones, how far points are that go to other shards,
 * and what comparing digests has found.
 */

import type { MigrationTask } from '../../cluster/apply/migration.js';
import type { TransferRecord } from '../../cluster/state/state.js';
import { etaSeconds, progressText, rateOf, type TransferProgress } from '../../cluster/transfer/progress.js';
import type { RunOutcome, TransferRun } from '../../cluster/transfer/runs.js';

const ENDED_MAX = 32;

export interface EndedTransfer {
  readonly run: TransferRun;
  readonly outcome: RunOutcome;
  readonly endedMs: number;
  readonly progress: TransferProgress | null;
}

export interface DigestCounts {
  /** Of a follower's digest with its leader's. */
  comparisons: number;
  /** That could not be carried out. */
  failures: number;
  /** Buckets that differed. */
  differences: number;
  /** Points that were changed, added or removed because of that. */
  repaired: number;
}

/** One moment by the clock that durations go by, and as a date. */
export interface TransferTimes {
  readonly nowMs: number;
  readonly dateMs: number;
}

/** Written by the `transfers` actor and its children, and by whoever brings points to other shards. */
export class TransferBoard {
  readonly running = new Map<string, { readonly run: TransferRun; readonly progress: TransferProgress | null }>();
  readonly migrations = new Map<string, { readonly task: MigrationTask; readonly progress: TransferProgress }>();
  /** The newest last. */
  readonly ended: EndedTransfer[] = [];
  readonly outcomes: Record<RunOutcome, number> = { finished: 0, aborted: 0, restarted: 0, left: 0 };
  /** Leads of shards that this node, as the leader of consensus, had others take. */
  readonly handOvers = { done: 0, failed: 0 };
  readonly digests: DigestCounts = { comparisons: 0, failures: 0, differences: 0, repaired: 0 };

  show(name: string, run: TransferRun, progress: TransferProgress | null): void {
    this.running.set(name, { run, progress });
  }

  end(name: string, outcome: RunOutcome, endedMs: number): void {
    const known = this.running.get(name);
    if (known === undefined) return;
    this.running.delete(name);
    this.outcomes[outcome] += 1;
    this.ended.push({ ...known, outcome, endedMs });
    if (this.ended.length > ENDED_MAX) this.ended.shift();
  }

  /** progress: null: it is over, or another node's. */
  showMigration(task: MigrationTask, progress: TransferProgress | null): void {
    if (progress === null) this.migrations.delete(task.name);
    else this.migrations.set(task.name, { task, progress });
  }

  /** One line about a transfer that this node carries out; null about any other one. */
  comment(collection: string, transfer: TransferRecord, nowMs: number): string | null {
    for (const { task, progress } of this.migrations.values()) {
      const isIt = task.shardId === transfer.shardId && task.startedAt === transfer.startedAt && transfer.toShardId !== null;
      if (isIt && task.collection === collection) return progressText(progress, nowMs);
    }
    for (const { run, progress } of this.running.values()) {
      const { from, shardId, startedAt, to } = run.transfer;
      const isIt = shardId === transfer.shardId && from === transfer.from && to === transfer.to && startedAt === transfer.startedAt;
      if (isIt && run.collection === collection) return progress === null ? 'starting' : progressText(progress, nowMs);
    }
    return null;
  }

  /** For telemetry. times: of its clock, which is never set, and of the system's. */
  report({ dateMs, nowMs }: TransferTimes, shown: (collection: string) => string, withCauses: boolean): Record<string, unknown> {
    const transferOf = (run: TransferRun, progress: TransferProgress | null, atMs: number) => ({
      collection: shown(run.collection),
      shard_id: run.transfer.shardId,
      from: run.transfer.from,
      to: run.transfer.to,
      sync: run.transfer.sync,
      method: run.transfer.method,
      ...(progress === null ? {} : figuresOf(progress, atMs, withCauses)),
    });
    return {
      running: [...this.running.values()].map(({ progress, run }) => transferOf(run, progress, nowMs)),
      ended: this.ended.map(({ endedMs, outcome, progress, run }) => ({
        ...transferOf(run, progress, endedMs),
        outcome,
        ended: new Date(dateMs + endedMs - nowMs).toISOString(),
      })),
      // Of resharding, and of copies to another shard key.
      migrations: [...this.migrations.values()].map(({ task, progress }) => ({
        collection: shown(task.collection),
        shard_id: task.shardId,
        ...figuresOf(progress, nowMs, withCauses),
      })),
      outcomes: { ...this.outcomes },
      digests: { ...this.digests },
      hand_overs: { ...this.handOvers },
    };
  }
}

function figuresOf(progress: TransferProgress, nowMs: number, withCauses: boolean) {
  const { bytes, cause, failures, sent, stage, startedMs, total, unit } = progress;
  return {
    stage,
    seconds: Math.max(0, (nowMs - startedMs) / 1000),
    [`${unit}_total`]: total,
    [`${unit}_sent`]: sent,
    rate: rateOf(progress, nowMs),
    eta_seconds: etaSeconds(progress, nowMs),
    ...(unit === 'points' ? { bytes } : {}),
    failures,
    cause: withCauses ? cause : cause === null ? null : 'hidden',
  };
}
