/** The LMDB environment of a replica: opened, made, and freed of what an unfinished start has left. */

import { rmSync } from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { Environment } from '../disk/lmdb.js';
import { DATABASES } from '../disk/lmdb-tables.js';
import { compactCopy, keepCopyInPlace, type Replacement } from './compact.js';
import { writeFirstRecords } from './load.js';

/** Asked once: newer Node.js reads files of the system for it, some tenths of a millisecond each time. */
let cpus: number | undefined;

/** Opens or makes the environment of the replica in `folder`, with a smaller file if that is worth it (Room-R6). */
export async function openEnvironment(folder: string, readers: number, warn: (message: string) => void): Promise<Environment> {
  const threads = threadsReading(readers);
  const open = (): Environment => Environment.open(path.join(folder, 'lmdb'), writeFirstRecords, DATABASES, threads);
  const environment = open();
  let replace: Replacement | null;
  try {
    keepCopyInPlace(folder);
    replace = environment.isNew ? null : await compactCopy(environment, folder, warn);
  } catch (error) {
    await environment.close();
    throw error;
  }
  if (replace === null) return environment;
  await environment.close();
  replace();
  return open();
}

/** Number of threads that may read an environment: the readers, its writer, and builders. */
export function threadsReading(readers: number): number {
  cpus ??= os.availableParallelism();
  return readers + cpus + 1;
}

/** Removes what a replica that was never made to the end has left (Room-R2): LMDB may not survive its file. */
export function sweep(folder: string): void {
  for (const part of ['lmdb', 'wal', 'rows']) rmSync(path.join(folder, part), { recursive: true, force: true });
}
