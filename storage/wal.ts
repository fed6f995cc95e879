/**
 * The write-ahead log: operations by number. An operation is acknowledged when its record is on disk; it stays here
 * until it is applied, and behind that as long as there is room (`wal_capacity_mb`).
 *
 * Large operations lie in files named after their first operation. A file that is large enough is followed by a new one,
 * and deleted when none of its operations is left.
 */

import { TroupeError } from '../protocols/errors.js';
import { decodeOperation, encodeOperation, type LoggedOperation } from '../protocols/operation-codec.js';
import type { AppendFolder } from './append-file.js';
import type { Environment } from './lmdb.js';
import { decodeValue, operationKey, operationOfKey, VALUE_HEAD_BYTES } from './replica/records.js';
import { isInline, loadValue, storeValue, valueRoom } from './replica/stored-value.js';

const FIRST_KEY = operationKey(0);
const LAST_KEY = Buffer.alloc(9, 0xff);
/** A file is not closed for being smaller than this, however small the capacity is. */
const FILE_BYTES_MIN = 2 ** 20;

/** Sizes of the records that are there, oldest first. */
interface Entry {
  readonly operation: number;
  readonly bytes: number;
  /** Null: within LMDB. */
  readonly file: number | null;
}

/**
 * Changes happen within a write transaction of the environment, before whose commit `files` must be synchronised. They
 * count once `keep` is called after it; `forget` after one that failed.
 */
export class WriteAheadLog {
  private entries: Entry[] = [];
  private appended: Entry[] = [];
  private trimmed = 0;
  private total = 0;
  /** File that is written. */
  private current: number | null = null;
  /** Records in each file. */
  private readonly uses = new Map<number, number>();

  /**
   * Reads where all records lie. Damage is found when an operation is read; `warn` is told of files that are torn, as
   * those with nothing but applied operations are not read.
   */
  constructor(
    private readonly environment: Environment,
    readonly files: AppendFolder,
    warn: (message: string) => void,
  ) {
    for (const { key, value } of environment.range('wal', FIRST_KEY, LAST_KEY)) this.add(this.entryOf(operationOfKey(key), value));
    const damaged = files.settle();
    for (const complaint of damaged.values()) warn(complaint);
    const newest = Math.max(...this.uses.keys());
    if (this.uses.has(newest) && !damaged.has(newest)) this.current = newest;
  }

  /** Bytes of all records. */
  get bytes(): number {
    return this.total;
  }

  /** Number of the newest operation, 0 for none. */
  get lastOperation(): number {
    return (this.appended.at(-1) ?? this.entries.at(-1))?.operation ?? 0;
  }

  /** Writes an operation; within a transaction. capacity: bytes the log is to have. */
  append(operation: number, logged: LoggedOperation, capacity: number): void {
    const value = encodeOperation(logged, VALUE_HEAD_BYTES, valueRoom);
    const file = isInline(value) ? null : this.fileFor(operation, capacity);
    this.environment.put('wal', operationKey(operation), storeValue(this.files, file ?? 0, value));
    this.appended.push({ operation, bytes: value.length, file });
  }

  /** Removes the oldest of the records up to `applied` until all others fit in `bytesMax`; within a transaction. */
  trim(applied: number, bytesMax: number): void {
    let total = this.total + this.appended.reduce((sum, entry) => sum + entry.bytes, 0);
    for (let at = this.trimmed; at < this.entries.length && total > bytesMax; at++) {
      const entry = this.entries[at] as Entry;
      if (entry.operation > applied) return;
      this.environment.remove('wal', operationKey(entry.operation));
      total -= entry.bytes;
      this.trimmed++;
    }
  }

  /** The transaction is on disk. */
  keep(): void {
    this.files.keep();
    for (const entry of this.entries.splice(0, this.trimmed)) {
      this.total -= entry.bytes;
      this.use(entry.file, -1);
    }
    for (const entry of this.appended) this.add(entry);
    this.appended = [];
    this.trimmed = 0;
    for (const [file, records] of this.uses) {
      if (records > 0 || file === this.current) continue;
      this.uses.delete(file);
      this.files.remove(file);
    }
  }

  /** The transaction failed. */
  forget(): void {
    this.files.forget();
    this.appended = [];
    this.trimmed = 0;
    // A file that was to be begun may get another first operation.
    if (this.current !== null && !this.uses.has(this.current)) this.current = null;
  }

  /** Operations behind `applied`, in order. Errors: `storage` for a damaged record. */
  *after(applied: number): Generator<{ operation: number; logged: LoggedOperation; bytes: number }> {
    for (const { operation, bytes } of [...this.entries]) {
      if (operation <= applied) continue;
      const record = this.environment.get('wal', operationKey(operation)) ?? new Uint8Array(0);
      const value = loadValue(this.files, record, `wal/${operation}`, `operation ${operation}`);
      yield { operation, logged: decodeOperation(value), bytes };
    }
  }

  private fileFor(operation: number, capacity: number): number {
    const { current } = this;
    if (current !== null && this.files.end(current) < Math.max(FILE_BYTES_MIN, capacity / 4)) return current;
    this.current = operation;
    return operation;
  }

  /** A damaged record is told of when its operation is read. */
  private entryOf(operation: number, record: Uint8Array): Entry {
    try {
      const value = decodeValue(record, `wal/${operation}`);
      if (value instanceof Uint8Array) return { operation, bytes: record.length, file: null };
      this.files.claim(value);
      return { operation, bytes: value.length, file: value.file };
    } catch (error) {
      if (!(error instanceof TroupeError)) throw error;
      return { operation, bytes: record.length, file: null };
    }
  }

  private add(entry: Entry): void {
    this.entries.push(entry);
    this.total += entry.bytes;
    this.use(entry.file, 1);
  }

  private use(file: number | null, records: number): void {
    if (file !== null) this.uses.set(file, (this.uses.get(file) ?? 0) + records);
  }
}
