/**
 * A lock of the kernel on a storage folder: it ends with its process, whatever ends it, and holds between containers and, where the file
 * system supports it, between machines. Node.js locks no files, but the SQLite that it has on board does (`fcntl`, on a file that
 * stays empty). Without it (Node.js before 26, where it is not stable yet) there is no such lock.
 */

import { statSync } from 'node:fs';
import { join } from 'node:path';
import type { LockedFile } from './judge-owner.js';

/** Stays in the folder: a lock on a file that somebody removed excludes nobody. */
const KERNEL_LOCK_FILE = '.lock.kernel';
const STABLE_FROM = 26;
/** SQLITE_BUSY: another process has the lock, or another part of this one. */
const BUSY = 5;

export interface KernelLock {
  readonly file: LockedFile;
  release(): void;
}

/** Takes the lock of a folder. 'taken': another process has it. Null: there is no such lock here. */
export function takeKernelLock(folder: string): KernelLock | 'taken' | null {
  const sqlite = loadSqlite();
  if (sqlite === null) return null;
  const path = join(folder, KERNEL_LOCK_FILE);
  let database: InstanceType<Sqlite['DatabaseSync']> | undefined;
  try {
    database = new sqlite.DatabaseSync(path, { timeout: 0 });
    database.exec('PRAGMA locking_mode = EXCLUSIVE; BEGIN EXCLUSIVE');
    const { dev, ino } = statSync(path, { bigint: true });
    const held = database;
    return { file: { device: String(dev), inode: String(ino) }, release: () => held.close() };
  } catch (error) {
    database?.close();
    // Everything else (a file system without locks, a full or read-only disk) leaves the folder without this lock.
    return (error as { errcode?: number }).errcode === BUSY ? 'taken' : null;
  }
}

/** What is used of `node:sqlite`. */
interface Sqlite {
  readonly DatabaseSync: new (path: string, options: { readonly timeout: number }) => { exec(sql: string): void; close(): void };
}

function loadSqlite(): Sqlite | null {
  if (Number.parseInt(process.versions.node, 10) < STABLE_FROM) return null;
  return (process.getBuiltinModule('node:sqlite') as Sqlite | undefined) ?? null;
}
