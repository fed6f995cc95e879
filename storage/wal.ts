/**
 * The write-ahead log: operations by number. An operation is acknowledged when its record is on disk; it stays here
 * until it is applied, and behind that as long as there is room (`wal_capacity_mb`).
 */

import { decodeOperation, encodeOperation, type LoggedOperation } from '../protocols/operation-codec.js';
import type { Environment } from './lmdb.js';
import { fileOf, type RecordFiles, recordBytes } from './record-files.js';
import { operationKey, operationOfKey, SEAL_BYTES, seal } from './replica/records.js';

const FIRST_KEY = operationKey(0);
const LAST_KEY = Buffer.alloc(9, 0xff);
/** A file of records takes this much, then the next one begins: files go when all their records are trimmed. */
const FILE_BYTES_MAX = 8 * 2 ** 20;

/** Sizes of the records that are there, oldest first. */
interface Entry {
  readonly operation: number;
  readonly bytes: number;
  /** Number of the file that holds it: that of the file's first operation. Null: LMDB. */
  readonly file: number | null;
}

/**
 * Changes happen within a write transaction of the environment and count once `keep` is called after it;
 * `forget` after one that failed.
 */
export class WriteAheadLog {
  private entries: Entry[] = [];
  private appended: Entry[] = [];
  private trimmed = 0;
  private total = 0;
  /** The file that takes the next large record; null: one begins. */
  private file: number | null = null;

  /** Reads the entries of all records. Errors: `storage`. */
  constructor(
    private readonly environment: Environment,
    private readonly files: RecordFiles,
  ) {
    for (const { key, value } of environment.range('wal', FIRST_KEY, LAST_KEY)) {
      const operation = operationOfKey(key);
      const name = `wal/${operation}`;
      files.note(value, name);
      this.add({ operation, bytes: recordBytes(value, name), file: fileOf(value, name) });
    }
    files.clean();
  }

  /** Bytes of all records. */
  get bytes(): number {
    return this.total;
  }

  /** Number of the newest operation, 0 for none. */
  get lastOperation(): number {
    return (this.appended.at(-1) ?? this.entries.at(-1))?.operation ?? 0;
  }

  /** Writes an operation; within a transaction. Returns the bytes of its record. */
  append(operation: number, logged: LoggedOperation): number {
    const record = seal(encodeOperation(logged, SEAL_BYTES));
    if (this.file === null || this.files.bytesOf(this.file) >= FILE_BYTES_MAX) this.file = operation;
    const entry = this.files.put(this.file, record);
    this.environment.put('wal', operationKey(operation), entry);
    this.appended.push({ operation, bytes: record.length, file: fileOf(entry, 'wal') });
    return record.length;
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
    const trimmed = this.entries.splice(0, this.trimmed);
    for (const entry of trimmed) this.total -= entry.bytes;
    for (const entry of this.appended) this.add(entry);
    this.files.keep();
    this.begin();
    this.removeFiles(trimmed);
  }

  /** The transaction failed. */
  forget(): void {
    this.files.forget();
    this.begin();
  }

  private begin(): void {
    this.appended = [];
    this.trimmed = 0;
  }

  /** Removes the files whose last record was among `trimmed`. Records are trimmed in the order in which files were filled. */
  private removeFiles(trimmed: readonly Entry[]): void {
    const gone = new Set(trimmed.flatMap(({ file }) => (file === null ? [] : [file])));
    const needed = this.entries.find(({ file }) => file !== null)?.file ?? this.file;
    for (const file of gone) if (file !== needed && file !== this.file) this.files.remove(file);
  }

  /** Operations behind `applied`, in order. Errors: `storage` for a damaged record. */
  *after(applied: number): Generator<{ operation: number; logged: LoggedOperation; bytes: number }> {
    for (const { operation, bytes } of [...this.entries]) {
      if (operation <= applied) continue;
      const entry = this.environment.get('wal', operationKey(operation)) ?? new Uint8Array(0);
      yield { operation, logged: decodeOperation(this.files.get(entry, `wal/${operation}`)), bytes };
    }
  }

  private add(entry: Entry): void {
    this.entries.push(entry);
    this.total += entry.bytes;
  }
}
