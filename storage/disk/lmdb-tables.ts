/**
 * What environments of LMDB have in common, for the thread that writes one and for those that read it. The only importer of lmdb. Keys and values are
 * binary.
 */

import { createRequire } from 'node:module';
import path from 'node:path';
import type { Database, RootDatabase, Transaction } from 'lmdb';
import { TroupeError } from '../../protocols/errors.js';
import type { MapState, OpeningPlan } from './lmdb-open.js';

/** Names of the databases of a replica; see `replica/records.ts`. */
export const DATABASES = ['meta', 'wal', 'ids', 'rows', 'payload', 'index', 'deleted'] as const;

export type DatabaseName = (typeof DATABASES)[number];

/** Longest key LMDB takes with pages of 4096 bytes. */
export const KEY_BYTES_MAX = 1978;

/** LMDB or the disk refused. Whatever was asked for has not happened. */
export class LmdbError extends TroupeError {
  /** The environment takes no more writes until it is opened again: LMDB could not even write its meta page. */
  readonly fatal: boolean;

  constructor(detail: string, fatal: boolean, cause?: unknown) {
    super('storage', detail, cause === undefined ? {} : { cause });
    this.fatal = fatal;
  }
}

export interface LmdbEntry {
  readonly key: Uint8Array;
  readonly value: Uint8Array;
}

/** What can be read at one moment: within the write transaction, or in a snapshot. */
export interface Reading<Name extends string = DatabaseName> {
  /** A copy of the value; undefined when there is none. */
  get(database: Name, key: Uint8Array): Uint8Array | undefined;
  /** As `get` without copying: valid until the next call on any environment of this thread. */
  peek(database: Name, key: Uint8Array): Uint8Array | undefined;
  /** The value, a u32 (little-endian). */
  getUint32(database: Name, key: Uint8Array): number | undefined;
  /** Entries with `from <= key < to` in key order, copied. Go through all of them or leave by `break`: a walk left open holds its snapshot. */
  range(database: Name, from: Uint8Array, to: Uint8Array): Iterable<LmdbEntry>;
  /** The last entry up to `key`, inclusive, and not before `from`, copied. */
  floor(database: Name, from: Uint8Array, key: Uint8Array): LmdbEntry | undefined;
}

export type Root = RootDatabase<Uint8Array, Uint8Array>;
export type ReadTransaction = Transaction;
export type DatabaseTable = Database<Uint8Array, Uint8Array>;
export type Tables<Name extends string> = Record<Name, DatabaseTable>;

/** Key behind every key that starts with `prefix`. */
export function afterPrefix(prefix: Uint8Array): Uint8Array {
  const end = Buffer.from(prefix);
  for (let at = end.length - 1; at >= 0; at--) {
    if ((end[at] as number) < 0xff) {
      end[at] = (end[at] as number) + 1;
      return end.subarray(0, at + 1);
    }
  }
  return Buffer.alloc(KEY_BYTES_MAX, 0xff);
}

export function environmentFile(folder: string): string {
  return path.join(folder, 'data.mdb');
}

let library: typeof import('lmdb') | undefined;

/** Loads LMDB, so that what fails later is not for want of it. Errors: those of loading a module. */
export function loadLmdb(): void {
  lmdb();
}

/** LMDB is loaded with the first environment that this thread opens: a thread that has none starts sooner and stays smaller. */
function lmdb(): typeof import('lmdb') {
  library ??= createRequire(import.meta.url)('lmdb') as typeof import('lmdb');
  return library;
}

export function openRoot(folder: string, plan: OpeningPlan, readOnly: boolean, databases: number): Root {
  return lmdb().open<Uint8Array, Uint8Array>({
    path: folder,
    noSubdir: false,
    readOnly,
    overlappingSync: false,
    noSync: false,
    noMetaSync: false,
    mapSize: plan.mapBytes,
    maxReaders: plan.maxReaders,
    maxDbs: databases + 1,
    encoding: 'binary',
    keyEncoding: 'binary',
  });
}

/** lmdb's types leave the native environment out. */
export function mapStateOf(root: Root): MapState {
  return (root as unknown as { readonly env: { info(): MapState } }).env.info();
}

export function ofReplica<Name extends string>(): readonly Name[] {
  return DATABASES as readonly string[] as readonly Name[];
}

export function openTables<Name extends string>(root: Root, databases: readonly Name[]): Tables<Name> {
  const tables: Partial<Tables<Name>> = {};
  for (const name of databases) {
    const table = root.openDB<Uint8Array, Uint8Array>(name, { encoding: 'binary', keyEncoding: 'binary' });
    if (table === undefined) throw new Error(`database \`${name}\` is missing`);
    tables[name] = table;
  }
  return tables as Tables<Name>;
}

/** The entry of a walk backwards that ends with its first entry; undefined for one before `from`. */
export function floorOf(walk: Iterable<LmdbEntry>, from: Uint8Array): LmdbEntry | undefined {
  const [entry] = [...walk];
  return entry !== undefined && Buffer.compare(entry.key, from) >= 0 ? entry : undefined;
}

/** What lmdb hands out is one large buffer whose `length` says how much of it counts. */
export function viewOf(bytes: Buffer | undefined): Uint8Array | undefined {
  return bytes === undefined ? undefined : new Uint8Array(bytes.buffer, bytes.byteOffset, bytes.length);
}

/** A copy that starts at its buffer's start, so that typed views of any width may lie on it. */
export function copyOf(bytes: Buffer | undefined): Uint8Array | undefined {
  if (bytes === undefined) return undefined;
  const copy = new Uint8Array(bytes.length);
  copy.set(new Uint8Array(bytes.buffer, bytes.byteOffset, bytes.length));
  return copy;
}

export function storageError(doing: string, error: unknown): TroupeError {
  if (error instanceof TroupeError) return error;
  return new LmdbError(`${doing}: ${error instanceof Error ? error.message : String(error)}`, false, error);
}
