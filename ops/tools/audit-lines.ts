/** Lines of the audit log: which ones are asked for, and how they are shown to people. */

import type { AuditRecord } from '../../http/audit/record.js';

export interface AuditFilter {
  /** Milliseconds since the epoch; infinite where there is no bound. */
  readonly sinceMs: number;
  readonly untilMs: number;
  /** A part of what is shown of the caller; null: any. */
  readonly who: string | null;
  readonly operation: string | null;
  readonly collection: string | null;
  readonly deniedOnly: boolean;
}

/** So many records were lost before the time of this line. */
export interface AuditLoss {
  readonly time: string;
  readonly event: 'records_lost';
  readonly records: number;
}

export type AuditLine = AuditRecord | AuditLoss;

const COLUMNS = [24, 30, 15, 24, 18, 6, 10] as const;

/** Null for what is no line of the log: the end of one that was not written whole. */
export function readAuditLine(line: string): AuditLine | null {
  try {
    const value = JSON.parse(line) as AuditLine;
    return typeof value === 'object' && value !== null && typeof value.time === 'string' ? value : null;
  } catch {
    return null;
  }
}

export function isLoss(line: AuditLine): line is AuditLoss {
  return 'event' in line;
}

/** A loss is shown whatever is asked for: what was lost may have been it. */
export function isAskedFor(line: AuditLine, { collection, deniedOnly, operation, sinceMs, untilMs, who }: AuditFilter): boolean {
  const timeMs = Date.parse(line.time);
  if (timeMs < sinceMs || timeMs > untilMs) return false;
  if (isLoss(line)) return true;
  return (
    (who === null || shownCaller(line).includes(who)) &&
    (operation === null || line.operation === operation) &&
    (collection === null || line.collection === collection) &&
    (!deniedOnly || line.access === 'denied')
  );
}

export const AUDIT_HEADING = cells(['time', 'who', 'from', 'operation', 'collection', 'status', 'ms', '']);

export function shownLine(line: AuditLine): string {
  if (isLoss(line)) return `${line.time} (${line.records} records before this one were lost: the log could not be written)\n`;
  const { collection, duration_ms: ms, from, operation, reason, status, time } = line;
  const denied = reason === undefined ? '' : `denied: ${reason}`;
  return cells([
    time,
    shownCaller(line),
    from,
    operation,
    collection ?? '-',
    status === null ? 'gone' : String(status),
    ms.toFixed(3),
    denied,
  ]);
}

/** `key api_key`, `token reports 00ff…`, `stranger missing` */
function shownCaller({ who }: AuditRecord): string {
  return Object.values(who)
    .map((value) => value.replace(/^service\./, ''))
    .join(' ');
}

/** Control characters of names could change what a terminal shows. */
function cells(values: readonly string[]): string {
  const padded = values.map((value, at) => value.replace(/\p{Cc}/gu, '\u{fffd}').padEnd(COLUMNS[at] ?? 0));
  return `${padded.join(' ').trimEnd()}\n`;
}
