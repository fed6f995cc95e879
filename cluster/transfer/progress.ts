/** How far a transfer is, and how that is told. */

import type { TransferMethod } from '../../protocols/model/cluster.js';
import type { ReshardingStage } from '../state/commands.js';

/** What a transfer, or points that go to other shards, are at. */
export type TransferStage =
  | 'copying files'
  | 'attaching'
  | 'announcing'
  | 'comparing'
  | 'filling'
  | 'catching up'
  | 'finishing'
  | 'falling back'
  | 'aborting'
  // Of points that go to other shards.
  | ReshardingStage
  | 'waiting'
  | 'done';

export interface TransferProgress {
  readonly method: TransferMethod;
  readonly stage: TransferStage;
  /** When this run began, by the runner's clock. */
  readonly startedMs: number;
  /** Points, or bytes of files, that were to be sent in this stage, and were; 0 where there are none. */
  readonly total: number;
  readonly sent: number;
  readonly unit: 'points' | 'bytes';
  /** When the first of them was to be sent. */
  readonly sendingSinceMs: number;
  /** Bytes of all that was sent. */
  readonly bytes: number;
  /** Tries that failed since anything went well. */
  readonly failures: number;
  /** Of the last try that failed; null where none did since. */
  readonly cause: string | null;
}

export function noProgress(method: TransferMethod, stage: TransferStage, nowMs: number): TransferProgress {
  return {
    method,
    stage,
    startedMs: nowMs,
    total: 0,
    sent: 0,
    unit: 'points',
    sendingSinceMs: nowMs,
    bytes: 0,
    failures: 0,
    cause: null,
  };
}

/** Per second; 0 before anything was sent. */
export function rateOf({ sendingSinceMs, sent }: TransferProgress, nowMs: number): number {
  const seconds = (nowMs - sendingSinceMs) / 1000;
  return sent === 0 || seconds <= 0 ? 0 : sent / seconds;
}

/** Seconds until everything of this stage is sent; null where nobody can say. */
export function etaSeconds(progress: TransferProgress, nowMs: number): number | null {
  const rate = rateOf(progress, nowMs);
  return rate === 0 || progress.sent >= progress.total ? null : (progress.total - progress.sent) / rate;
}

/** One line for people. */
export function progressText(progress: TransferProgress, nowMs: number): string {
  const { bytes, cause, failures, sent, stage, total, unit } = progress;
  const parts: string[] = [stage];
  if (total > 0) parts.push(`${sent} of ${total} ${unit} (${Math.floor((100 * sent) / total)} %)`);
  const rate = rateOf(progress, nowMs);
  if (rate > 0) parts.push(`${Math.round(rate)} ${unit}/s`);
  const eta = etaSeconds(progress, nowMs);
  if (eta !== null) parts.push(`ETA ${Math.ceil(eta)} s`);
  if (bytes > 0 && unit === 'points') parts.push(`${bytes} bytes`);
  parts.push(`running for ${Math.max(0, Math.round((nowMs - progress.startedMs) / 1000))} s`);
  if (cause !== null) parts.push(`${failures} failed ${failures === 1 ? 'try' : 'tries'}, the last one: ${cause}`);
  return parts.join(', ');
}
