/** One LMDB environment in a thread that reads it, and that another thread of the process has opened to write it. */

import type { TroupeError } from '../../protocols/errors.js';
import { prepareOpening } from './lmdb-open.js';
import {
  copyOf,
  type DatabaseName,
  environmentFile,
  floorOf,
  type LmdbEntry,
  ofReplica,
  openRoot,
  openTables,
  type Reading,
  type ReadTransaction,
  type Root,
  storageError,
  type Tables,
  viewOf,
} from './lmdb-tables.js';

/** One environment in a thread that reads it: everything between `refresh` and `release` is one snapshot. */
export class SnapshotReader<Name extends string = DatabaseName> implements Reading<Name> {
  private readonly folder: string;
  private readonly root: Root;
  private readonly tables: Tables<Name>;
  private transaction: ReadTransaction | null = null;

  private constructor(folder: string, root: Root, databases: readonly Name[]) {
    this.folder = folder;
    this.root = root;
    this.tables = openTables(root, databases);
  }

  /** hasOpened: called before anything but the meta pages is read. Errors: `storage`, also when the environment is not there. */
  static openReadOnly<Name extends string = DatabaseName>(
    folder: string,
    databases: readonly Name[] = ofReplica(),
    hasOpened = (): unknown => undefined,
  ): SnapshotReader<Name> {
    try {
      const root = openRoot(folder, prepareOpening(folder, null), true, databases.length);
      hasOpened();
      return new SnapshotReader(folder, root, databases);
    } catch (error) {
      throw storageError(`cannot open ${folder}`, error);
    }
  }

  /** Moves to the newest committed state. */
  refresh(): void {
    this.release();
    this.root.resetReadTxn();
    this.transaction = this.root.useReadTransaction();
  }

  /** Lets the snapshot go: one that is held keeps LMDB from using its old pages again. */
  release(): void {
    (this.transaction as { done(): void } | null)?.done();
    this.transaction = null;
  }

  get(database: Name, key: Uint8Array): Uint8Array | undefined {
    return copyOf(this.find(database, key));
  }

  peek(database: Name, key: Uint8Array): Uint8Array | undefined {
    return viewOf(this.find(database, key));
  }

  getUint32(database: Name, key: Uint8Array): number | undefined {
    return this.find(database, key)?.readUInt32LE(0);
  }

  *range(database: Name, from: Uint8Array, to: Uint8Array): Iterable<LmdbEntry> {
    try {
      yield* this.tables[database].getRange({ start: from, end: to, transaction: this.snapshot() });
    } catch (error) {
      throw this.unreadable(error);
    }
  }

  floor(database: Name, from: Uint8Array, key: Uint8Array): LmdbEntry | undefined {
    try {
      return floorOf(this.tables[database].getRange({ start: key, reverse: true, limit: 1, transaction: this.snapshot() }), from);
    } catch (error) {
      throw this.unreadable(error);
    }
  }

  /** The first `limit` entries of a range at once. */
  page(database: Name, from: Uint8Array, to: Uint8Array, limit: number): LmdbEntry[] {
    try {
      return [...this.tables[database].getRange({ start: from, end: to, limit, transaction: this.snapshot() })];
    } catch (error) {
      throw this.unreadable(error);
    }
  }

  /** Entries the database says it has: a walk finds fewer when a damaged page hides some. */
  entryCount(database: Name): number {
    return (this.tables[database].getStats() as { entryCount: number }).entryCount;
  }

  async close(): Promise<void> {
    this.release();
    await this.root.close();
  }

  private find(database: Name, key: Uint8Array): Buffer | undefined {
    const table = this.tables[database] as unknown as {
      getBinaryFast(key: Uint8Array, options: { transaction: ReadTransaction }): Buffer | undefined;
    };
    try {
      return table.getBinaryFast(key, { transaction: this.snapshot() });
    } catch (error) {
      throw this.unreadable(error);
    }
  }

  private unreadable(error: unknown): TroupeError {
    return storageError(`${environmentFile(this.folder)}: cannot read`, error);
  }

  private snapshot(): ReadTransaction {
    if (this.transaction === null) this.refresh();
    return this.transaction as ReadTransaction;
  }
}
