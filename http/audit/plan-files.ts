/** The files of the audit log: which one a record belongs to, and which ones are too old. Only files of these names are ever touched. */

export type AuditRotation = 'daily' | 'hourly';

/** A file, and how long records belong to it. */
export interface AuditPeriod {
  readonly file: string;
  readonly startMs: number;
  /** The first millisecond, since the epoch, of the next file. */
  readonly endMs: number;
}

const NAME = /^audit-\d{4}-\d{2}-\d{2}(?:T\d{2})?\.jsonl$/;
const HOUR_MS = 3_600_000;
const PERIOD_MS: Readonly<Record<AuditRotation, number>> = { daily: 24 * HOUR_MS, hourly: HOUR_MS };
/** Of `2026-11-25T18:05:00.000Z`. */
const NAMED_CHARACTERS: Readonly<Record<AuditRotation, number>> = { daily: 10, hourly: 13 };

/** The file of a time, by days and hours of UTC: `audit-2026-11-25.jsonl`, `audit-2026-11-25T18.jsonl`. */
export function auditPeriod(timeMs: number, rotation: AuditRotation): AuditPeriod {
  const length = PERIOD_MS[rotation];
  const startMs = Math.floor(timeMs / length) * length;
  const named = new Date(startMs).toISOString().slice(0, NAMED_CHARACTERS[rotation]);
  return { file: `audit-${named}.jsonl`, startMs, endMs: startMs + length };
}

/** The files of the log among the names of a folder, oldest first. */
export function auditFiles(names: readonly string[]): string[] {
  return names.filter((name) => NAME.test(name)).sort();
}

/** The files of the log that are beyond the number to keep, oldest first. current: the one that is written, which stays. */
export function filesToDelete(names: readonly string[], current: string, filesMax: number): string[] {
  const others = auditFiles(names).filter((name) => name !== current);
  return others.slice(0, Math.max(0, others.length + 1 - filesMax));
}
