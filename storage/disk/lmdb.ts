/**
 * LMDB environments in the thread that writes them.
 *
 * - A write transaction is on disk when `write` returns: pages are written, `fdatasync` follows, then the meta page goes
 *   through a file descriptor that was opened with O_DSYNC (seen with strace; `overlappingSync` would change that order).
 * - One process has one native environment per file, whatever number of threads opens it; a thread that only reads
 *   opens it with `openReadOnly` (`lmdb-reader.ts`) after the writer has opened it, since opening a database that is new to the
 *   environment is no thread-safe act.
 * - Opening is tried only where it cannot fail in native code, which would end the process (`lmdb-open.ts`).
 * - An environment begins with a small address space. A transaction that needs more has LMDB map the file anew, to twice the size; the older
 *   maps stay for readers until the environment is closed. Mapping must not fail either (`MapRoom`; Room-R3).
 */

import { existsSync, mkdirSync } from 'node:fs';
import os from 'node:os';
import { errorFacts, type TroupeError } from '../../protocols/errors.js';
import { invariant } from '../../protocols/invariant.js';
import { beat } from '../threads/pulse.js';
import { noteFailedCommit } from './lmdb-meta.js';
import { MapRoom, prepareOpening, WriteRoom } from './lmdb-open.js';
import {
  copyOf,
  type DatabaseName,
  type DatabaseTable,
  environmentFile,
  floorOf,
  type LmdbEntry,
  LmdbError,
  mapStateOf,
  ofReplica,
  openRoot,
  openTables,
  type Reading,
  type Root,
  storageError,
  type Tables,
  viewOf,
} from './lmdb-tables.js';
import { type OwnedFolder, ownedFolderOf } from './owned-folder.js';

/** Of an environment's file. */
export interface DatabaseSpace {
  readonly bytes: number;
  /** In pages that later writes use again. */
  readonly freeBytes: number;
}

/** What lmdb says of a tree of pages; its types leave that out. */
interface TreeStats {
  readonly pageSize: number;
  readonly entryCount: number;
  readonly treeBranchPageCount: number;
  readonly treeLeafPageCount: number;
  readonly overflowPages: number;
}

interface TableStats extends TreeStats {
  /** Of the databases' names, and of the free pages. */
  readonly root: TreeStats;
  readonly free: TreeStats;
}

const META_PAGES = 2;

/** A transaction that stays open over turns of the event loop. One of both ends it; what is called after that does nothing. */
export interface OpenWrite {
  /** It is on disk on return. Errors: as those of `Environment.write`. */
  commit(): void;
  abort(): void;
}

/** How lmdb ends a transaction that stays open; each throws what goes wrong, `abort` also its argument. */
interface Ends {
  commit(): void;
  abort(error: unknown): void;
}

/**
 * Open transactions of this thread. lmdb holds a lock for each, and at the thread's end it waits for the same lock: for ever (Slice-S6). What ends
 * a thread from outside (`terminate`, `process.exit` of the main thread) leaves no time for this, as it does in the middle of `write`.
 */
const openWrites = new Set<OpenWrite>();

function watchExit(): void {
  if (openWrites.size > 0) return;
  process.removeListener('exit', abortOpenWrites);
  process.once('exit', abortOpenWrites);
}

function abortOpenWrites(): void {
  for (const open of openWrites) open.abort();
}

/** One environment in the thread that writes it. Name: its databases. */
export class Environment<Name extends string = DatabaseName> implements Reading<Name> {
  readonly folder: string;
  readonly file: string;
  /** Int32 [1], shared with threads that read: another number after each commit, before anybody is told of it. */
  readonly commits = new Int32Array(new SharedArrayBuffer(Int32Array.BYTES_PER_ELEMENT));
  /** Nothing was ever committed to it before. */
  readonly isNew: boolean;
  private root: Root;
  private readonly room: MapRoom;
  private readonly writeRoom: WriteRoom;
  private readonly owned: OwnedFolder | null;
  private tables!: Tables<Name>;
  /** The transaction of `begin`. */
  private open: OpenWrite | null = null;
  /** Within `write`. */
  private isWriting = false;
  /** Why the file that has replaced this one may not stay, or readers could not be told of it. */
  private lostBy: unknown;
  /** As of this commit. */
  private knownSpace: { readonly transaction: number; readonly space: DatabaseSpace } | null = null;

  private constructor(folder: string, root: Root, initialize: (environment: Environment<Name>) => void, databases: readonly Name[]) {
    this.folder = folder;
    this.file = environmentFile(folder);
    this.root = root;
    this.room = new MapRoom(`${this.file}: cannot write`);
    this.writeRoom = new WriteRoom(folder, `${this.file}: cannot write`, () => this.space().freeBytes);
    this.beginRoom();
    this.owned = ownedFolderOf(folder);
    this.isNew = root.transactionSync(() => {
      const first = root.getWriteTxnId() === 1;
      this.tables = openTables(root, databases);
      if (first) initialize(this);
      return first;
    });
  }

  /**
   * Opens or makes the environment. `initialize` writes the first records of a new one, in the transaction that makes
   * the databases: an environment that has databases has these records. databases: a replica's unless given. threads: that may read it.
   * No other thread may have the environment open. Errors: `storage`; of outcome `none` if something is lacking that others may give back.
   */
  static open<Name extends string = DatabaseName>(
    folder: string,
    initialize: (environment: Environment<Name>) => void,
    databases: readonly Name[] = ofReplica(),
    threads = os.availableParallelism(),
  ): Environment<Name> {
    let root: Root | null = null;
    try {
      if (!existsSync(folder)) mkdirSync(folder, { recursive: true });
      root = openRoot(folder, prepareOpening(folder, threads), false, databases.length);
      return new Environment(folder, root, initialize, databases);
    } catch (error) {
      root?.close().catch(() => {});
      throw storageError(`cannot open ${folder}`, error);
    }
  }

  /**
   * Runs `action` in one transaction that is on disk on return; aborts it when `action` throws (its error comes through).
   * Errors: `storage` when the disk refuses; nothing has changed then. `unavailable` when another process has taken over the storage folder
   * (Owner-F1): nobody may be told that it is written.
   */
  write<T>(action: () => T): T {
    let ended = false;
    let number = 0;
    this.mustBeFree();
    this.owned?.checkSoon();
    let result: T;
    this.isWriting = true;
    try {
      result = this.root.transactionSync(() => {
        number = this.hasBegun();
        const value = action();
        ended = true;
        return value;
      });
    } catch (error) {
      if (!ended) throw error;
      throw this.notCommitted(number, error);
    } finally {
      this.isWriting = false;
      this.countCommit();
    }
    this.owned?.check();
    return result;
  }

  /**
   * Begins a transaction that stays open until it is committed or aborted: `put` and the like change it, and all reads of this object see what
   * they changed. Other environments of the thread can be written meanwhile. Errors: as those of `write`.
   */
  begin(): OpenWrite {
    this.mustBeFree();
    this.owned?.checkSoon();
    const held: { ends: Ends | null } = { ends: null };
    const aborted = new Error('aborted');
    // lmdb takes an object with a `then` for an action that goes on, and each of the two functions ends the transaction at once.
    const goesOn = {
      // biome-ignore lint/suspicious/noThenProperty: see above
      then: (commit: () => void, abort: (error: unknown) => void) => {
        held.ends = { commit, abort };
      },
    };
    let number = 0;
    this.root.transactionSync(() => {
      number = this.hasBegun();
      return goesOn;
    });
    const end = (how: (ends: Ends) => void): void => {
      if (this.open !== open || held.ends === null) return;
      this.open = null;
      openWrites.delete(open);
      how(held.ends);
    };
    const open: OpenWrite = {
      commit: () => {
        end(({ commit }) => {
          try {
            commit();
          } catch (error) {
            throw this.notCommitted(number, error);
          } finally {
            this.countCommit();
          }
          this.owned?.check();
        });
      },
      abort: () => {
        end(({ abort }) => {
          try {
            abort(aborted);
          } catch (error) {
            if (error !== aborted) throw error;
          }
        });
      },
    };
    watchExit();
    openWrites.add(open);
    this.open = open;
    return open;
  }

  /** A second transaction would become a part of the open one. */
  private mustBeFree(): void {
    invariant(this.open === null, 'Slice-S4', () => `${this.folder} is written while a transaction is open`);
    if (this.lostBy !== undefined) throw this.closedToWrites(this.lostBy);
  }

  /** Returns the transaction's number. */
  private hasBegun(): number {
    const number = this.root.getWriteTxnId();
    if (number === 0) throw this.closedToWrites();
    this.beginRoom();
    return number;
  }

  private closedToWrites(cause?: unknown): LmdbError {
    const why = cause === undefined ? '' : `: ${cause instanceof Error ? cause.message : String(cause)}`;
    return new LmdbError(`${this.folder} takes no more writes until it is opened again${why}`, true, cause);
  }

  private notCommitted(number: number, error: unknown): TroupeError {
    noteFailedCommit(environmentFile(this.folder), BigInt(number));
    return storageError(`${environmentFile(this.folder)}: cannot commit`, error);
  }

  /** Within a transaction only. */
  put(database: Name, key: Uint8Array, value: Uint8Array): void {
    try {
      beat();
      this.take(value);
      this.tables[database].putSync(key, value);
    } catch (error) {
      throw storageError(`${environmentFile(this.folder)}: cannot write to \`${database}\``, error);
    }
  }

  /** Within `write` only. Whether there was something to remove. */
  remove(database: Name, key: Uint8Array): boolean {
    try {
      beat();
      this.take(null);
      return this.tables[database].removeSync(key);
    } catch (error) {
      throw storageError(`${environmentFile(this.folder)}: cannot write to \`${database}\``, error);
    }
  }

  /**
   * Removes up to `countMax` entries with `from <= key < to`; within `write` only.
   * Returns how many were removed: fewer than `countMax` says that none is left.
   */
  removeRange(database: Name, from: Uint8Array, to: Uint8Array, countMax: number): number {
    const keys: Uint8Array[] = [];
    for (const key of this.tables[database].getKeys({ start: from, end: to, limit: countMax })) keys.push(key);
    for (const key of keys) this.remove(database, key);
    return keys.length;
  }

  /** Removes all entries; within `write` only. */
  clear(database: Name): void {
    try {
      this.take(null);
      this.tables[database].clearSync();
    } catch (error) {
      throw storageError(`${environmentFile(this.folder)}: cannot write to \`${database}\``, error);
    }
  }

  /**
   * Copies the newest commit, as it is at some moment of the call, to the empty folder `target`, while writes go on. isCompact: without free
   * pages; the meta pages of such a copy do not follow each other until it has had two commits. Errors: `storage`.
   */
  async backup(target: string, isCompact = false): Promise<void> {
    try {
      await this.root.backup(target, isCompact);
    } catch (error) {
      throw storageError(`${environmentFile(this.folder)}: cannot copy to ${target}`, error);
    }
  }

  get(database: Name, key: Uint8Array): Uint8Array | undefined {
    beat();
    return copyOf(this.tables[database].getBinaryFast(key));
  }

  peek(database: Name, key: Uint8Array): Uint8Array | undefined {
    return viewOf(this.tables[database].getBinaryFast(key));
  }

  getUint32(database: Name, key: Uint8Array): number | undefined {
    return this.tables[database].getBinaryFast(key)?.readUInt32LE(0);
  }

  range(database: Name, from: Uint8Array, to: Uint8Array): Iterable<LmdbEntry> {
    return this.tables[database].getRange({ start: from, end: to });
  }

  floor(database: Name, from: Uint8Array, key: Uint8Array): LmdbEntry | undefined {
    return floorOf(this.tables[database].getRange({ start: key, reverse: true, limit: 1 }), from);
  }

  /** Entries with `from <= key < to`. */
  count(database: Name, from: Uint8Array, to: Uint8Array): number {
    return this.tables[database].getCount({ start: from, end: to });
  }

  entryCount(database: Name): number {
    return statsOf(this.tables[database]).entryCount;
  }

  /** The pages of the file, and those that no database uses. Errors: `storage` if LMDB has met damage. */
  space(): DatabaseSpace {
    const { lastTxnId } = mapStateOf(this.root);
    if (this.knownSpace?.transaction === lastTxnId) return this.knownSpace.space;
    const space = this.countedSpace();
    if (this.open === null && !this.isWriting) this.knownSpace = { transaction: lastTxnId, space };
    return space;
  }

  private countedSpace(): DatabaseSpace {
    const tables: DatabaseTable[] = Object.values(this.tables);
    let stats: TableStats[];
    try {
      stats = tables.map(statsOf);
    } catch (error) {
      throw storageError(`${environmentFile(this.folder)}: cannot read`, error);
    }
    const [first] = stats;
    if (first === undefined) return { bytes: 0, freeBytes: 0 };
    const used = [...stats, first.root, first.free].reduce((sum, tree) => sum + pagesOf(tree), META_PAGES);
    const pages = mapStateOf(this.root).lastPageNumber + 1;
    return { bytes: pages * first.pageSize, freeBytes: Math.max(0, pages - used) * first.pageSize };
  }

  /** Number of the newest commit. */
  get lastCommit(): number {
    return mapStateOf(this.root).lastTxnId;
  }

  /**
   * Goes on in the file of `copy`, which has taken the place of this environment's file: `copy` itself is not used any more. keep: makes sure
   * that the file stays in its place. Threads that read the replaced file go on to do so until they see its last commit, which is this `record`
   * (Room-R10). Errors: `LmdbError`, fatal: what would be written to the new file might be lost, or not seen.
   */
  async continueIn(copy: Environment<Name>, record: LmdbEntry & { readonly database: Name }, keep: () => void): Promise<void> {
    this.mustBeFree();
    const { root } = this;
    const { database, key, value } = record;
    const table = this.tables[database];
    this.root = copy.root;
    this.tables = copy.tables;
    this.knownSpace = null;
    this.beginRoom();
    try {
      keep();
      root.transactionSync(() => table.putSync(key, value));
    } catch (error) {
      this.lostBy = error;
      throw this.closedToWrites(error);
    } finally {
      this.countCommit();
      await root.close();
    }
  }

  /** Also after one that failed: who reads then looks at the file. */
  private countCommit(): void {
    Atomics.add(this.commits, 0, 1);
  }

  async close(): Promise<void> {
    await this.root.close();
  }

  private beginRoom(): void {
    const map = mapStateOf(this.root);
    this.room.begin(map);
    this.writeRoom.begin(map);
  }

  /** Errors: `LmdbError` if the map cannot grow, or the disk may have no room, for this value, or for the removal of a record. */
  private take(value: Uint8Array | null): void {
    try {
      this.room.take(value?.length ?? 0);
      if (value === null) this.writeRoom.remove();
      else this.writeRoom.put(value.length);
    } catch (error) {
      throw new LmdbError(errorFacts(error).detail, false, error);
    }
  }
}

function statsOf(table: DatabaseTable): TableStats {
  return table.getStats() as unknown as TableStats;
}

function pagesOf({ overflowPages, treeBranchPageCount, treeLeafPageCount }: TreeStats): number {
  return treeBranchPageCount + treeLeafPageCount + overflowPages;
}
