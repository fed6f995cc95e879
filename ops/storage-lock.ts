/**
 * One process per storage folder: a lock file that names the process holding it. A lock whose process is gone is
 * taken over, so a kill leaves nothing to clean up by hand.
 */

import { linkSync, mkdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';

const LOCK_FILE = '.lock';
const LOOK_AGAIN_MS = 50;

interface Holder {
  readonly pid: number;
  /** When the process started, in the system's own count; tells apart two processes that had one number. Null where unknown. */
  readonly started: string | null;
}

/** The storage folder is in use. */
export class StorageInUse extends Error {
  constructor(folder: string, pid: number) {
    super(`the storage folder ${folder} is in use by another process (pid ${pid})`);
    this.name = 'StorageInUse';
  }
}

/** Locks the folder, which is made when missing. Returns the release. Throws StorageInUse. */
export function lockStorage(folder: string): () => void {
  mkdirSync(folder, { recursive: true });
  const path = join(folder, LOCK_FILE);
  const own = JSON.stringify({ pid: process.pid, started: startOf(process.pid) } satisfies Holder);
  for (;;) {
    if (create(path, own)) return () => release(path, own);
    const content = readOrUndefined(path);
    if (content === undefined) continue;
    const holder = parseHolder(content);
    if (holder !== undefined && isAlive(holder)) throw new StorageInUse(folder, holder.pid);
    takeAway(path, content, folder);
  }
}

/**
 * As `lockStorage`, with patience: a killed node may take a moment to go (its memory is given back first), and who
 * restarts it at once should not be sent away. Throws StorageInUse after `patienceMs`.
 */
export async function lockStorageSoon(folder: string, patienceMs: number): Promise<() => void> {
  const endMs = performance.now() + patienceMs;
  for (;;) {
    try {
      return lockStorage(folder);
    } catch (error) {
      if (!(error instanceof StorageInUse) || performance.now() >= endMs) throw error;
    }
    await delay(LOOK_AGAIN_MS);
  }
}

/** Creates the lock with its content at once, so that nobody reads half of it. False when there is one. */
function create(path: string, content: string): boolean {
  const draft = `${path}.${process.pid}`;
  writeFileSync(draft, content);
  try {
    linkSync(draft, path);
    return true;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'EEXIST') return false;
    return createWithoutLinks(path, content, error);
  } finally {
    rmSync(draft, { force: true });
  }
}

/** For file systems that know no hard links. */
function createWithoutLinks(path: string, content: string, cause: unknown): boolean {
  const code = (cause as NodeJS.ErrnoException).code;
  if (code !== 'EPERM' && code !== 'ENOTSUP' && code !== 'EOPNOTSUPP' && code !== 'ENOSYS') throw cause;
  try {
    writeFileSync(path, content, { flag: 'wx' });
    return true;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'EEXIST') return false;
    throw error;
  }
}

/** Removes a stale lock, and puts back what it took if another process had just replaced it. */
function takeAway(path: string, stale: string, folder: string): void {
  const aside = `${path}.stale.${process.pid}`;
  try {
    renameSync(path, aside);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return;
    throw error;
  }
  const taken = readOrUndefined(aside);
  if (taken === stale) {
    rmSync(aside, { force: true });
    return;
  }
  renameSync(aside, path);
  throw new StorageInUse(folder, parseHolder(taken ?? '')?.pid ?? 0);
}

function release(path: string, own: string): void {
  if (readOrUndefined(path) === own) rmSync(path, { force: true });
}

function isAlive(holder: Holder): boolean {
  // A restarted container gives the same number again; only its start tells the two processes apart.
  if (holder.pid === process.pid) return holder.started !== null && holder.started === startOf(process.pid);
  try {
    process.kill(holder.pid, 0);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ESRCH') return false;
  }
  if (hasEnded(holder.pid)) return false;
  const started = startOf(holder.pid);
  return holder.started === null || started === null || started === holder.started;
}

/** A killed process whose parent has not asked for its end yet still has its number, but no memory and no files. */
function hasEnded(pid: number): boolean {
  const state = statFields(pid)?.[0];
  return state === 'Z' || state === 'X';
}

/** When a process started, since boot and with the boot's id; null where the system does not tell. */
function startOf(pid: number): string | null {
  const boot = readOrUndefined('/proc/sys/kernel/random/boot_id');
  const ticks = statFields(pid)?.[19];
  return boot === undefined || ticks === undefined ? null : `${boot.trim()}/${ticks}`;
}

/** The fields of `/proc/<pid>/stat` after the program's name (which may hold spaces): state first, start time the 20th. */
function statFields(pid: number): string[] | undefined {
  const stat = readOrUndefined(`/proc/${pid}/stat`);
  return stat?.slice(stat.lastIndexOf(')') + 2).split(' ');
}

function parseHolder(content: string): Holder | undefined {
  try {
    const value = JSON.parse(content) as Holder;
    return Number.isInteger(value.pid) && value.pid > 0 ? value : undefined;
  } catch {
    return undefined;
  }
}

function readOrUndefined(path: string): string | undefined {
  try {
    return readFileSync(path, 'utf8');
  } catch {
    return undefined;
  }
}
