/**
 * Gives the free pages of a replica's database back to the disk. LMDB uses free pages again, but its file never becomes smaller: after a build, a
 * deletion or a shortened log most of it may be free. When and how is Room-R6 in storage/README.md.
 */

import fs from 'node:fs';
import path from 'node:path';
import { rethrowBroken } from '../../protocols/invariant.js';
import { syncFolderNow } from '../disk/file.js';
import { DATABASES, type DatabaseSpace, Environment } from '../disk/lmdb.js';
import { freeBytes } from '../disk/machine.js';
import { damagedRecord, STATE_KEY } from '../wal/records.js';
import { removeSleepRecord } from './sleep-record.js';

const FREE_BYTES_MIN = 4 * 2 ** 20;
/** So much stays free on the disk beside the copy. */
const SPARE_BYTES = 8 * 2 ** 20;
const FILE = 'data.mdb';

/** Puts the copy in the place of the file. Returns its bytes. */
export type Replacement = () => number;

/** Whether a copy without free pages is worth its while: at most as much is copied as is given back. */
export function isWorthCompacting({ bytes, freeBytes }: DatabaseSpace): boolean {
  return freeBytes >= FREE_BYTES_MIN && freeBytes >= bytes / 2;
}

/** Whether the disk has room for the copy. diskFreeBytes: null where it is not known. */
export function hasRoomForCopy({ bytes, freeBytes }: DatabaseSpace, diskFreeBytes: number | null): boolean {
  return diskFreeBytes !== null && diskFreeBytes >= bytes - freeBytes + SPARE_BYTES;
}

/**
 * Makes a compact copy of the environment of the replica in `folder`, to which nothing may be written meanwhile and afterwards. Returns what puts
 * the copy in its place once the environment is closed; null if it is not worth it or not possible: then the file stays. warn: gets why.
 */
export async function compactCopy(environment: Environment, folder: string, warn: (message: string) => void): Promise<Replacement | null> {
  const target = path.join(folder, 'compact');
  if (fs.existsSync(target)) fs.rmSync(target, { recursive: true, force: true });
  const space = environment.space();
  if (!isWorthCompacting(space)) return null;
  try {
    if (!hasRoomForCopy(space, freeBytes(folder))) return null;
    fs.mkdirSync(target);
    await environment.backup(target, true);
    await settle(environment, target);
    return () => replace(target, folder);
  } catch (error) {
    rethrowBroken(error);
    fs.rmSync(target, { recursive: true, force: true });
    warn(`its database cannot be made smaller: ${String(error)}`);
    return null;
  }
}

/**
 * Compares the copy with what it is of, and commits twice: LMDB's copy has meta pages that do not follow each other, which a later start would
 * take for damage.
 */
async function settle(environment: Environment, target: string): Promise<void> {
  const copy = Environment.open(target, () => {
    throw new Error(`the copy in ${target} is empty`);
  });
  try {
    const state = environment.get('meta', STATE_KEY);
    const copied = copy.get('meta', STATE_KEY);
    if (state === undefined || copied === undefined || Buffer.compare(state, copied) !== 0) throw damagedRecord('meta/state');
    for (const database of DATABASES)
      if (copy.entryCount(database) !== environment.entryCount(database)) throw new Error(`the copy lacks records of \`${database}\``);
    for (let commits = 0; commits < 2; commits++) copy.write(() => copy.put('meta', STATE_KEY, state));
  } finally {
    await copy.close();
  }
}

/** No thread has the environment open. Errors: of the system; the file is the old one or the copy, whole. */
function replace(target: string, folder: string): number {
  // The copy counts its transactions on its own, and a record of an earlier one might seem to fit a later one.
  removeSleepRecord(folder);
  syncFolderNow(folder);
  const lmdb = path.join(folder, 'lmdb');
  fs.renameSync(path.join(target, FILE), path.join(lmdb, FILE));
  // It knows transactions of the old file.
  fs.rmSync(path.join(lmdb, 'lock.mdb'), { force: true });
  syncFolderNow(lmdb);
  fs.rmSync(target, { recursive: true, force: true });
  return fs.statSync(path.join(lmdb, FILE)).size;
}
