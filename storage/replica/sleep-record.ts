/**
 * What a replica tells of itself while no thread has it open: written when it is closed, and true for as long as its LMDB file ends with the
 * same transaction (Sleep-S2). So nothing has to take it away, and none that is old, torn or missing does harm: the replica is opened instead.
 */

import { readFileSync, rmSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import type { FieldSchema } from '../../protocols/model/collection.js';
import { decodeChecked, encodeChecked } from '../disk/checked-file.js';
import { initChecksum } from '../disk/checksum.js';
import { isMarkedMade } from '../disk/format-marker.js';
import { newestTransaction } from '../disk/lmdb-meta.js';
import type { ReplicaStats } from '../threads/messages.js';

const FILE = 'asleep.json';
const KEY = 'asleep';
const FORMAT = 1;

interface SleepRecord {
  readonly format: number;
  readonly transaction: string;
  readonly stats: Omit<ReplicaStats, 'fields' | 'fieldPoints'>;
  readonly fields: [string, FieldSchema][];
  readonly fieldPoints: [string, number][];
}

/** Writes the record of a replica that has been closed. A disk that refuses costs a later start the opening. */
export function writeSleepRecord(folder: string, { fieldPoints, fields, ...stats }: ReplicaStats): void {
  try {
    const transaction = newestTransaction(dataFile(folder));
    if (transaction === null) return;
    const record: SleepRecord = {
      format: FORMAT,
      transaction: String(transaction),
      stats: { ...stats, commits: 0, lastWriteMs: 0 },
      fields: [...fields],
      fieldPoints: [...fieldPoints],
    };
    writeFileSync(path.join(folder, FILE), encodeChecked(KEY, record));
  } catch {
    // See above.
  }
}

/** Errors: of the system. */
export function removeSleepRecord(folder: string): void {
  rmSync(path.join(folder, FILE), { force: true });
}

/** The state of a replica that was closed in order and has not changed since; null: it has to be opened to know. */
export async function readSleepRecord(folder: string, key: string): Promise<ReplicaStats | null> {
  await initChecksum();
  const record = holdingRecord(folder);
  if (record === null || record.stats.key !== key) return null;
  return {
    ...record.stats,
    // Earlier releases did not know it.
    database: record.stats.database ?? null,
    fields: new Map(record.fields),
    fieldPoints: new Map(record.fieldPoints),
  };
}

/** Whether what the replica told of itself when it was closed before is still so: nothing was written since. */
export function holdsSleepRecord(folder: string): boolean {
  return holdingRecord(folder) !== null;
}

function holdingRecord(folder: string): SleepRecord | null {
  try {
    if (!isMarkedMade(folder)) return null;
    const file = path.join(folder, FILE);
    const record = decodeChecked(readFileSync(file), KEY, file, 'what a replica tells of itself') as SleepRecord;
    const isOfNow = record.format === FORMAT && record.transaction === String(newestTransaction(dataFile(folder)));
    return isOfNow ? record : null;
  } catch {
    return null;
  }
}

function dataFile(folder: string): string {
  return path.join(folder, 'lmdb', 'data.mdb');
}
