/**
 * Gives the free pages of a replica's database back to the disk. LMDB uses free pages again, but its file never becomes smaller: after a build, a
 * deletion or a shortened log most of it may be free. When and how is Room-R6 in storage/README.md.
 */

import fs from 'node:fs';
import path from 'node:path';
import { TroupeError } from '../../protocols/errors.js';
import { rethrowBroken } from '../../protocols/invariant.js';
import { syncFolderNow } from '../disk/file.js';
import { type DatabaseSpace, Environment } from '../disk/lmdb.js';
import { DATABASES } from '../disk/lmdb-tables.js';
import { freeBytes } from '../disk/machine.js';
import { damagedRecord, STATE_KEY } from '../wal/records.js';
import { removeSleepRecord } from './sleep-record.js';

const FREE_BYTES_MIN = 4 * 2 ** 20;
/** So much stays free on the disk beside the copy. */
const SPARE_BYTES = 8 * 2 ** 20;
const FILE = 'data.mdb';
const LOCK_FILE = 'lock.mdb';
/** Folder of the copy in that of the replica. */
const COPY = 'compact';

/** Puts the copy in the place of the file. Returns its bytes; null where it cannot, and the file stays. Errors: as `keepCopyInPlace`. */
export type Replacement = () => number | null;

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
  if (!isWorthCompacting(environment.space())) return null;
  const copy = await openCompactCopy(environment, folder, warn);
  if (copy === null) return null;
  await copy.close();
  return () => {
    if (!movesInPlace(folder, warn)) return null;
    keepCopyInPlace(folder);
    return fs.statSync(path.join(folder, 'lmdb', FILE)).size;
  };
}

/**
 * The compact copy as an environment. threads: that may read it; this one unless given. Null where it is not possible, or something was committed
 * meanwhile, which the copy may lack. warn: gets what went wrong.
 */
export async function openCompactCopy(
  environment: Environment,
  folder: string,
  warn: (message: string) => void,
  threads?: number,
): Promise<Environment | null> {
  const target = path.join(folder, COPY);
  const { lastCommit } = environment;
  if (!succeeds(() => keepCopyInPlace(folder), warn)) return null;
  try {
    if (!hasRoomForCopy(environment.space(), freeBytes(folder))) return null;
    fs.mkdirSync(target);
    await environment.backup(target, true);
    if (environment.lastCommit === lastCommit) return await openSettled(environment, target, threads);
  } catch (error) {
    tellFailure(error, warn);
  }
  removeCopy(folder);
  return null;
}

/** Removes what there is of a copy that has not been moved. What cannot be removed stays for the next copy or opening. */
export function removeCopy(folder: string): void {
  try {
    fs.rmSync(path.join(folder, COPY), { recursive: true, force: true });
  } catch (error) {
    rethrowBroken(error);
  }
}

/**
 * Compares the copy with what it is of, and commits twice: LMDB's copy has meta pages that do not follow each other, which a later start would
 * take for damage.
 */
async function openSettled(environment: Environment, target: string, threads?: number): Promise<Environment> {
  const isEmpty = (): never => {
    throw new Error(`the copy in ${target} is empty`);
  };
  const copy = Environment.open(target, isEmpty, DATABASES, threads);
  try {
    const state = environment.get('meta', STATE_KEY);
    const copied = copy.get('meta', STATE_KEY);
    if (state === undefined || copied === undefined || Buffer.compare(state, copied) !== 0) throw damagedRecord('meta/state');
    for (const database of DATABASES)
      if (copy.entryCount(database) !== environment.entryCount(database)) throw new Error(`the copy lacks records of \`${database}\``);
    for (let commits = 0; commits < 2; commits++) copy.write(() => copy.put('meta', STATE_KEY, state));
    return copy;
  } catch (error) {
    await copy.close();
    throw error;
  }
}

/** As `moveCopyInPlace`. Returns whether it did; warn gets why not. */
export function movesInPlace(folder: string, warn: (message: string) => void): boolean {
  return succeeds(() => moveCopyInPlace(folder), warn);
}

/** warn: gets why not. */
function succeeds(act: () => void, warn: (message: string) => void): boolean {
  try {
    act();
    return true;
  } catch (error) {
    tellFailure(error, warn);
    return false;
  }
}

function tellFailure(error: unknown, warn: (message: string) => void): void {
  rethrowBroken(error);
  warn(`its database cannot be made smaller: ${String(error)}`);
}

/**
 * Puts the copy in the place of the file. Whoever has the file open goes on to read it, and whoever opens it from now on reads the copy. Its lock
 * file comes along: the other one knows transactions of the other file. Errors: of the system; the file stays.
 */
export function moveCopyInPlace(folder: string): void {
  // The copy counts its transactions on its own, and a record of an earlier one might seem to fit a later one.
  removeSleepRecord(folder);
  syncFolderNow(folder);
  const lmdb = path.join(folder, 'lmdb');
  for (const file of [LOCK_FILE, FILE]) fs.renameSync(path.join(folder, COPY, file), path.join(lmdb, file));
}

/**
 * A copy that has been moved is in its place for good when this returns, and nothing else is left of it: the folder of the copy is there until then,
 * as a process may end, or the disk fail, between the two. Nothing may be written to the file before. Errors: `storage`.
 */
export function keepCopyInPlace(folder: string): void {
  if (!fs.existsSync(path.join(folder, COPY))) return;
  const lmdb = path.join(folder, 'lmdb');
  try {
    syncFolderNow(lmdb);
  } catch (error) {
    const { message } = error as Error;
    throw new TroupeError('storage', `${lmdb}: it is not sure that its smaller file stays in its place: ${message}`, { cause: error });
  }
  removeCopy(folder);
}
