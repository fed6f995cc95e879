/**
 * What a replica tells of itself while no thread has it open: written when it is closed, and true for as long as its LMDB file ends with the
 * same transaction (Sleep-S2). So nothing has to take it away, and none that is old, torn or missing does harm: the replica is opened instead.
 */

import { closeSync, fstatSync, openSync, readFileSync, readSync, rmSync, statSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import type { FieldSchema } from '../../protocols/model/collection.js';
import { decodeChecked, encodeChecked } from '../disk/checked-file.js';
import { checksumStream, initChecksum } from '../disk/checksum.js';
import { isMarkedMade } from '../disk/format-marker.js';
import { newestTransaction } from '../disk/lmdb-meta.js';
import type { ReplicaStats } from '../threads/messages.js';

const FILE = 'asleep.json';
const KEY = 'asleep';
const FORMAT = 1;

interface SleepRecord {
  readonly format: number;
  readonly transaction: string;
  /** LMDB's file as it was left; missing for a large one, and in records of earlier releases. */
  readonly file?: LeftFile;
  readonly stats: Omit<ReplicaStats, 'fields' | 'fieldPoints'>;
  readonly fields: [string, FieldSchema][];
  readonly fieldPoints: [string, number][];
}

/** A file that nothing else can stand for: its number, its last change and its content. */
interface LeftFile {
  readonly inode: string;
  /** Nanoseconds since 1970 of the change of content or owner, which no program can set. */
  readonly changedNs: string;
  /** xxHash64 of all bytes, 16 hexadecimal digits. */
  readonly checksum: string;
}

/** Reading a larger file takes longer than is won: 10 ms for this one. */
const LEFT_BYTES_MAX = 32 << 20;
const CHUNK_BYTES = 1 << 20;

/** Writes the record of a replica that has been closed. A disk that refuses costs a later start the opening. */
export function writeSleepRecord(folder: string, { fieldPoints, fields, ...stats }: ReplicaStats): void {
  try {
    const transaction = newestTransaction(dataFile(folder));
    if (transaction === null) return;
    const file = lookAt(dataFile(folder));
    const record: SleepRecord = {
      format: FORMAT,
      transaction: String(transaction),
      ...(file === null ? {} : { file }),
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

/**
 * Whether the record need not be written again: nothing was written since, and LMDB's file is still the one that it tells of. The rest of the record
 * is not looked at, since a torn one does no harm.
 */
export function holdsSleepRecord(folder: string): boolean {
  try {
    const { ctimeNs, ino, size } = statSync(dataFile(folder), { bigint: true });
    if (size > LEFT_BYTES_MAX) {
      const record = holdingRecord(folder);
      return record !== null && record.file === undefined;
    }
    if (!isMarkedMade(folder)) return false;
    const text = readFileSync(path.join(folder, FILE), 'latin1');
    return text.includes(`"${KEY}":{"format":${FORMAT},`) && text.includes(`"inode":"${ino}","changedNs":"${ctimeNs}"`);
  } catch {
    return false;
  }
}

/**
 * Whether LMDB's file is byte for byte what it was when the replica was closed (Sleep-S7), so that who could read it to the end then can do so now.
 * False for a large file, and where nobody knows.
 */
export async function isAsClosed(folder: string): Promise<boolean> {
  await initChecksum();
  try {
    // A file that is the same to the last byte ends with the same transaction, too.
    const left = readRecord(folder)?.file;
    if (left === undefined) return false;
    const now = lookAt(dataFile(folder));
    return now !== null && now.inode === left.inode && now.changedNs === left.changedNs && now.checksum === left.checksum;
  } catch {
    return false;
  }
}

/** Null for a large file. Errors: of the system. */
function lookAt(file: string): LeftFile | null {
  const descriptor = openSync(file, 'r');
  try {
    const { ctimeNs, ino, size } = fstatSync(descriptor, { bigint: true });
    if (size > LEFT_BYTES_MAX) return null;
    const chunk = Buffer.allocUnsafeSlow(Math.min(CHUNK_BYTES, Number(size)));
    const stream = checksumStream();
    for (let read = readSync(descriptor, chunk); read > 0; read = readSync(descriptor, chunk)) stream.update(chunk.subarray(0, read));
    return { inode: String(ino), changedNs: String(ctimeNs), checksum: stream.digest().toString(16).padStart(16, '0') };
  } finally {
    closeSync(descriptor);
  }
}

/** Null without a record that still holds. */
function holdingRecord(folder: string): SleepRecord | null {
  try {
    const record = readRecord(folder);
    return record?.transaction === String(newestTransaction(dataFile(folder))) ? record : null;
  } catch {
    return null;
  }
}

/** Null for a replica that was never made. Errors: of the system, or `storage` for a damaged record. */
function readRecord(folder: string): SleepRecord | null {
  if (!isMarkedMade(folder)) return null;
  const file = path.join(folder, FILE);
  const record = decodeChecked(readFileSync(file), KEY, file, 'what a replica tells of itself') as SleepRecord;
  return record.format === FORMAT ? record : null;
}

function dataFile(folder: string): string {
  return path.join(folder, 'lmdb', 'data.mdb');
}
