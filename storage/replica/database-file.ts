/**
 * The LMDB file of a replica in use: how large it is, and when and how a smaller one takes its place (Room-R6, Room-R10). The copy is made while
 * reads and writes go on; a write that is committed meanwhile makes it worthless.
 */

import { rethrowBroken } from '../../protocols/invariant.js';
import type { DatabaseSpace, Environment } from '../disk/lmdb.js';
import { LEFT_STATE, STATE_KEY } from '../wal/records.js';
import { isWorthCompacting, keepCopyInPlace, movesInPlace, openCompactCopy, removeCopy } from './compact.js';
import { threadsReading } from './open-environment.js';

/** For so long the figures of the database are taken for those of now. */
const SPACE_AGE_MS = 5000;
/** Between two looks whether a copy is worth its while. */
export const FILE_LOOK_EVERY_MS = 5000;
/** After so many looks, a copy is tried although writes go on: they may leave it the time. */
const LOOKS_UNQUIET_MAX = 12;
/** Looks that are left out after the n-th copy in a row that came to nothing: 2 ** n, up to this. */
const LOOKS_LEFT_OUT_MAX = 256;

export interface SeenFile {
  readonly space: DatabaseSpace;
  /** Nothing has been committed since the look before. */
  readonly isQuiet: boolean;
  /** A build or a checkpoint is under way: the one will free more, the other reads the file. */
  readonly isBusy: boolean;
  /** Looks since it became worth a copy, or since the last try. */
  readonly looks: number;
  /** Copies in a row that came to nothing. */
  readonly failures: number;
}

/** What is to be done with a file: a copy, another look, or nothing until something is committed. */
export function planCompaction({ failures, isBusy, isQuiet, looks, space }: SeenFile): 'copy' | 'look' | 'nothing' {
  if (!isWorthCompacting(space)) return 'nothing';
  if (isBusy || (failures > 0 && looks < Math.min(2 ** failures, LOOKS_LEFT_OUT_MAX))) return 'look';
  return isQuiet || looks >= LOOKS_UNQUIET_MAX ? 'copy' : 'look';
}

export interface DatabaseFileHost {
  readonly environment: Environment;
  readonly folder: string;
  /** Threads that read the replica. */
  readonly readers: number;
  readonly isBusy: boolean;
  now(): number;
  warn(message: string): void;
}

export class DatabaseFile {
  /** What the database had when it was looked at last. */
  private known: (DatabaseSpace & { readonly readMs: number }) | null = null;
  /** The newest commit at the last look. */
  private seenCommit: number;
  /** After the last look there was nothing to do; the opening has looked, too. */
  private isDone = true;
  private looks = 0;
  private failures = 0;
  /** Settled when no copy is made. */
  private copying: Promise<unknown> = Promise.resolve();
  private copy: { readonly environment: Environment; readonly commit: number } | null = null;

  constructor(private readonly host: DatabaseFileHost) {
    this.seenCommit = host.environment.lastCommit;
  }

  /** A few calls of LMDB for each database: not for each commit. Null if LMDB has met damage: figures go along with every answer. */
  figures(): DatabaseSpace | null {
    const nowMs = this.host.now();
    if (this.known === null || nowMs - this.known.readMs >= SPACE_AGE_MS) return this.readOrNull();
    const { bytes, freeBytes } = this.known;
    return { bytes, freeBytes };
  }

  private readOrNull(): DatabaseSpace | null {
    try {
      return this.read();
    } catch (error) {
      rethrowBroken(error);
      return null;
    }
  }

  /** Errors: `storage` if LMDB has met damage. */
  read(): DatabaseSpace {
    const space = this.host.environment.space();
    this.known = { ...space, readMs: this.host.now() };
    return space;
  }

  /** Whether `look` is to be called in `FILE_LOOK_EVERY_MS`: something has been committed since there was nothing to do. */
  get wantsLook(): boolean {
    return !this.isDone || this.host.environment.lastCommit !== this.seenCommit;
  }

  /** Makes a copy if it is time for it. Returns whether there is one, to be taken by `takeCopy`. Never rejects but for a broken invariant. */
  async look(): Promise<boolean> {
    const { environment, isBusy } = this.host;
    const { lastCommit } = environment;
    const isQuiet = lastCommit === this.seenCommit;
    this.seenCommit = lastCommit;
    const space = this.readOrNull() ?? { bytes: 0, freeBytes: 0 };
    const plan = planCompaction({ space, isQuiet, isBusy, looks: this.looks, failures: this.failures });
    this.isDone = plan === 'nothing';
    this.looks = plan === 'look' ? this.looks + 1 : 0;
    if (plan !== 'copy') return false;
    const making = this.makeCopy(lastCommit);
    this.copying = making.catch(() => {});
    await making;
    if (this.copy === null) this.failures++;
    return this.copy !== null;
  }

  private async makeCopy(commit: number): Promise<void> {
    const { environment, folder, readers } = this.host;
    const copy = await openCompactCopy(environment, folder, (message) => this.host.warn(message), threadsReading(readers));
    if (copy !== null) this.copy = { environment: copy, commit };
  }

  /**
   * Goes on in the copy, if it has all that was committed; no transaction is open. Returns whether it did. Errors: `LmdbError`, fatal: readers
   * have not been told.
   */
  async takeCopy(): Promise<boolean> {
    const { copy } = this;
    if (copy === null) return false;
    const { environment, folder, isBusy } = this.host;
    this.copy = null;
    if (isBusy || environment.lastCommit !== copy.commit || !movesInPlace(folder, (message) => this.host.warn(message))) {
      this.failures++;
      await this.drop(copy.environment);
      return false;
    }
    this.failures = 0;
    this.known = null;
    await environment.continueIn(copy.environment, { database: 'meta', key: STATE_KEY, value: LEFT_STATE }, () => keepCopyInPlace(folder));
    return true;
  }

  private async drop(copy: Environment): Promise<void> {
    await copy.close();
    removeCopy(this.host.folder);
  }

  /** No copy is made or kept any more when it resolves. */
  async close(): Promise<void> {
    await this.copying;
    const { copy } = this;
    this.copy = null;
    if (copy !== null) await this.drop(copy.environment);
  }
}
