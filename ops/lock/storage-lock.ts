/**
 * One owner of a storage folder, among processes, containers and machines that share it.
 *
 * The lock file `.lock` names the owner and is touched by it every second (`storage/disk/owned-folder.ts`); where the runtime has it, a lock
 * of the kernel comes first. Who finds a lock file takes the folder at once when its owner has provably ended. When that cannot be known, it
 * watches the file, and takes the folder when nothing has touched it for three seconds.
 */

import { mkdirSync, readFileSync, renameSync, rmSync, statSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { BEAT_MS, createLockFile, type OwnedFolder, ownFolder } from '../../storage/disk/owned-folder.js';
import { ownIdentity, startTicksOf } from './identity.js';
import { judgeOwner, type LockHolder, parseHolder } from './judge-owner.js';
import { type KernelLock, takeKernelLock } from './kernel-lock.js';

const LOCK_FILE = '.lock';
const LOOK_AGAIN_MS = 50;
/** How long an owner of whom nothing is known may leave its lock file untouched. */
const STILL_MS = 3000;
const WATCH_EVERY_MS = 100;
/** Looks and not time are counted, as this process may have been stopped itself. */
const STILL_LOOKS = STILL_MS / WATCH_EVERY_MS;

/** The storage folder is in use. */
export class StorageInUse extends Error {
  constructor(folder: string, holder: LockHolder | null) {
    const who = holder === null ? '' : ` (pid ${holder.pid} on ${holder.host})`;
    super(`the storage folder ${folder} is in use by another process${who}`);
    this.name = 'StorageInUse';
  }
}

export interface StorageLock {
  /** Gives the folder free. */
  release(): void;
}

/**
 * Makes this process the owner of the folder, which is made when missing. patienceMs: how long an owner that is alive is waited for, since
 * a killed process may take a moment to go (its memory is given back first). onLost: another process has taken the folder over; nothing
 * more can be written to it. Throws StorageInUse.
 */
export async function lockStorage(folder: string, patienceMs: number, onLost: (error: unknown) => void): Promise<StorageLock> {
  mkdirSync(folder, { recursive: true });
  const lockFile = join(resolve(folder), LOCK_FILE);
  const endMs = performance.now() + patienceMs;
  for (;;) {
    const kernelLock = takeKernelLock(folder);
    let owned: OwnedFolder | null = null;
    try {
      owned = kernelLock === 'taken' ? null : await takeFile(folder, lockFile, kernelLock);
    } finally {
      if (owned === null && kernelLock !== 'taken') kernelLock?.release();
    }
    if (owned !== null && kernelLock !== 'taken') return keep(owned, kernelLock, onLost);
    if (performance.now() >= endMs) throw new StorageInUse(folder, parseHolder(read(lockFile)?.content ?? ''));
    await delay(LOOK_AGAIN_MS);
  }
}

/** Null: the folder has an owner that is alive. */
async function takeFile(folder: string, lockFile: string, kernelLock: KernelLock | null): Promise<OwnedFolder | null> {
  const self = ownIdentity();
  const session = newSession();
  const locked = kernelLock?.file ?? null;
  const content = JSON.stringify({ session, ...self, kernelLock: locked } satisfies LockHolder);
  for (;;) {
    if (createLockFile(lockFile, content, session)) return ownFolder(folder, lockFile, content);
    const found = read(lockFile);
    if (found === null) continue;
    const holder = parseHolder(found.content);
    const verdict = holder === null ? 'unknown' : judgeOwner(holder, self, locked, startTicksOf);
    if (verdict === 'alive' || (verdict === 'unknown' && (await isTouched(lockFile, found)))) return null;
    takeAway(lockFile, found.content, session);
  }
}

/** A name that no other process has. Not of `node:crypto`, which every node would load and keep (4 MB) for this alone. */
function newSession(): string {
  const parts = [process.pid, ...Array.from({ length: 4 }, () => Math.floor(Math.random() * 2 ** 32))];
  return parts.map((part) => part.toString(16)).join('-');
}

function keep(owned: OwnedFolder, kernelLock: KernelLock | null, onLost: (error: unknown) => void): StorageLock {
  const beating = setInterval(() => {
    try {
      owned.check();
    } catch (error) {
      // A disk that cannot be read now says nothing about whose the folder is.
      if (!owned.isLost) return;
      clearInterval(beating);
      onLost(error);
    }
  }, BEAT_MS);
  beating.unref();
  return {
    release: () => {
      clearInterval(beating);
      owned.release();
      kernelLock?.release();
    },
  };
}

interface Seen {
  readonly content: string;
  readonly touchedMs: number;
}

/** Watches the lock file until it is touched, or not touched for long enough. */
async function isTouched(lockFile: string, first: Seen): Promise<boolean> {
  for (let looks = 0; looks < STILL_LOOKS; looks++) {
    await delay(WATCH_EVERY_MS);
    const now = read(lockFile);
    // Its owner has ended in order meanwhile.
    if (now === null) return false;
    if (now.content !== first.content || now.touchedMs !== first.touchedMs) return true;
  }
  return false;
}

/** Removes a stale lock file, and puts back what it took if another process had just replaced it. */
function takeAway(lockFile: string, stale: string, session: string): void {
  const aside = `${lockFile}.stale-${session}`;
  try {
    renameSync(lockFile, aside);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return;
    throw error;
  }
  if (read(aside)?.content === stale) rmSync(aside, { force: true });
  else renameSync(aside, lockFile);
}

/** Null: there is none. */
function read(lockFile: string): Seen | null {
  try {
    // In this order, so that a network file system has asked its server before the time is looked at.
    const content = readFileSync(lockFile, 'utf8');
    return { content, touchedMs: statSync(lockFile).mtimeMs };
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return null;
    throw error;
  }
}
