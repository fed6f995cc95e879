/**
 * The storage folders that this process owns, as all of its threads see them. The lock file of a folder holds the owner's own text; who
 * takes the folder over replaces the file. So the file says at any time whose the folder is, also after this process was stopped or its
 * machine was asleep, when no clock of its own can tell.
 *
 * - **Owner-F1** A look at the lock file follows each commit before anything of it is acknowledged, and one precedes it by a tenth of a
 *   second at most. Nothing is written after a look found the folder lost.
 * - **Owner-F2** A folder that is lost is lost for good: the process ends, or closes what it had opened there.
 */

import { closeSync, linkSync, openSync, readFileSync, readSync, rmSync, statSync, utimesSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { getEnvironmentData, setEnvironmentData } from 'node:worker_threads';
import { TroupeError } from '../../protocols/errors.js';
import { steadyNowMs } from '../threads/clock.js';

/** What threads share of a folder's ownership. */
interface OwnedFacts {
  /** Absolute. */
  readonly folder: string;
  readonly lockFile: string;
  /** All of the lock file's text, which no other owner has. */
  readonly content: string;
  /** Of the lock file, as long as nothing put it back. */
  readonly inode: number;
  /** Its time when the folder was taken, in milliseconds, and `steadyNowMs()` then: the owner counts on from there. */
  readonly takenMs: number;
  readonly takenAtMs: number;
  readonly memory: SharedArrayBuffer;
}

/** How often the owner touches its lock file. Who wants the folder waits for several of these. */
export const BEAT_MS = 1000;

const ENVIRONMENT_KEY = 'troupe.ownedFolders';
const OWNED = 0;
const LOST = 1;
const RELEASED = 2;
/** The state, then two times. */
const MEMORY_BYTES = 24;
/** A look this long ago is as good as one now before a commit, since one follows it. */
const RECENT_MS = 100;

export class OwnedFolder {
  private readonly state: Int32Array;
  /** Times of the last touch, and of the last look that found the folder owned, by any thread. */
  private readonly times: Float64Array;
  private readonly content: Buffer;
  private readonly found: Buffer;

  constructor(private readonly facts: OwnedFacts) {
    this.state = new Int32Array(facts.memory, 0, 1);
    this.times = new Float64Array(facts.memory, 8, 2);
    this.content = Buffer.from(facts.content);
    // With room for one byte more, which another owner's text may have.
    this.found = Buffer.alloc(this.content.length + 1);
  }

  get isLost(): boolean {
    return Atomics.load(this.state, 0) === LOST;
  }

  /**
   * Looks whether the folder is still this process's, and touches the lock file once a second. Errors: `unavailable` when it is not;
   * `storage` when that cannot be found out.
   */
  check(): void {
    if (Atomics.load(this.state, 0) !== OWNED) throw folderLost(this.facts.folder);
    const found = this.look();
    if (found === 'other' || (found === 'missing' && !putBack(this.facts))) {
      Atomics.store(this.state, 0, LOST);
      throw folderLost(this.facts.folder);
    }
    const nowMs = steadyNowMs();
    this.times[1] = nowMs;
    if (nowMs - (this.times[0] as number) >= BEAT_MS) this.beat(nowMs);
  }

  /** As `check`, but without a look when some thread has looked just now: for what another `check` follows. */
  checkSoon(): void {
    if (Atomics.load(this.state, 0) !== OWNED || steadyNowMs() - (this.times[1] as number) > RECENT_MS) this.check();
  }

  /** Removes the lock file; nothing is written here any more. */
  release(): void {
    const wasOwned = Atomics.compareExchange(this.state, 0, OWNED, RELEASED) === OWNED;
    setEnvironmentData(
      ENVIRONMENT_KEY,
      ownedFacts().filter(({ content }) => content !== this.facts.content),
    );
    if (wasOwned && this.look() === 'own') rmSync(this.facts.lockFile, { force: true });
  }

  /** Whose text the lock file has. Opening it asks the server of a network file system, where looking at its name may not. */
  private look(): 'own' | 'other' | 'missing' {
    const { inode, lockFile } = this.facts;
    try {
      const file = openSync(lockFile, 'r');
      try {
        const length = readSync(file, this.found, 0, this.found.length, 0);
        return this.content.equals(this.found.subarray(0, length)) ? 'own' : 'other';
      } finally {
        closeSync(file);
      }
    } catch (error) {
      const { code } = error as NodeJS.ErrnoException;
      if (code === 'ENOENT') return 'missing';
      // Without a descriptor to spare, its number is as good on a disk of this machine.
      if ((code === 'EMFILE' || code === 'ENFILE') && statSync(lockFile, { throwIfNoEntry: false })?.ino === inode) return 'own';
      throw new TroupeError('storage', `${lockFile}: cannot be read (${code ?? String(error)})`, { cause: error });
    }
  }

  /** Another time each time, whatever happens to the system's clock. */
  private beat(nowMs: number): void {
    const { lockFile, takenAtMs, takenMs } = this.facts;
    this.times[0] = nowMs;
    const seconds = (takenMs + nowMs - takenAtMs) / 1000;
    try {
      utimesSync(lockFile, seconds, seconds);
    } catch {
      // The next look finds out what has become of it; where the disk takes no times, the owner is found by what it is.
    }
  }
}

/** From here on this process owns the folder: its lock file, which was just made, has this text. Threads that start later know of it. */
export function ownFolder(folder: string, lockFile: string, content: string): OwnedFolder {
  const { ino: inode, mtimeMs: takenMs } = statSync(lockFile);
  const memory = new SharedArrayBuffer(MEMORY_BYTES);
  const facts: OwnedFacts = { folder: path.resolve(folder), lockFile, content, inode, takenMs, takenAtMs: steadyNowMs(), memory };
  new Float64Array(memory, 8, 2).fill(facts.takenAtMs);
  setEnvironmentData(ENVIRONMENT_KEY, [...ownedFacts(), facts]);
  return new OwnedFolder(facts);
}

/** The owned folder that a path lies in; null where none is known, as in tests of parts. */
export function ownedFolderOf(target: string): OwnedFolder | null {
  const resolved = path.resolve(target);
  const facts = ownedFacts().find(({ folder }) => resolved === folder || resolved.startsWith(folder + path.sep));
  return facts === undefined ? null : new OwnedFolder(facts);
}

/** Looks whether the folder that a path lies in is still this process's. Errors: as of `OwnedFolder.check`. */
export function checkOwned(target: string): void {
  ownedFolderOf(target)?.check();
}

/** Creates a lock file with its content at once, so that nobody reads half of it. False when there is one. */
export function createLockFile(lockFile: string, content: string, draftName: string): boolean {
  const draft = `${lockFile}.${draftName}`;
  try {
    writeFileSync(draft, content);
    linkSync(draft, lockFile);
    return true;
  } catch (error) {
    const { code, syscall } = error as NodeJS.ErrnoException;
    if (code === 'EEXIST') return false;
    if (syscall === 'link' && NO_LINKS.has(code ?? '')) return createWithoutLinks(lockFile, content);
    throw error;
  } finally {
    rmSync(draft, { force: true });
  }
}

/** What file systems say that know no hard links. */
const NO_LINKS: ReadonlySet<string> = new Set(['EPERM', 'ENOTSUP', 'EOPNOTSUPP', 'ENOSYS']);

function createWithoutLinks(lockFile: string, content: string): boolean {
  let file: number;
  try {
    file = openSync(lockFile, 'wx');
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'EEXIST') return false;
    throw error;
  }
  try {
    writeFileSync(file, content);
  } finally {
    closeSync(file);
  }
  return true;
}

/** Somebody removed the file, or looks at it aside for a moment. Whether it is this process's again. */
function putBack({ content, lockFile }: OwnedFacts): boolean {
  try {
    return createLockFile(lockFile, content, `again-${process.pid}`) || readFileSync(lockFile, 'utf8') === content;
  } catch {
    return false;
  }
}

function ownedFacts(): readonly OwnedFacts[] {
  return (getEnvironmentData(ENVIRONMENT_KEY) as unknown as readonly OwnedFacts[] | undefined) ?? [];
}

function folderLost(folder: string): TroupeError {
  const detail = `another process has taken over the storage folder ${folder}; this one writes nothing there any more`;
  return new TroupeError('unavailable', detail, { outcome: 'unknown' });
}
