/**
 * The write-ahead log: operations by number. An operation is acknowledged when its record is on disk; it stays here
 * until it is applied, and behind that as long as there is room (`wal_capacity_mb`).
 */

import { decodeOperation, encodeOperation, type LoggedOperation } from '../protocols/operation-codec.js';
import type { Environment } from './lmdb.js';
import { operationKey, operationOfKey, SEAL_BYTES, seal, unseal } from './replica/records.js';

const FIRST_KEY = operationKey(0);
const LAST_KEY = Buffer.alloc(9, 0xff);

/** Sizes of the records that are there, oldest first. */
interface Entry {
  readonly operation: number;
  readonly bytes: number;
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

  /** Reads the sizes of all records. */
  constructor(private readonly environment: Environment) {
    for (const { key, value } of environment.range('wal', FIRST_KEY, LAST_KEY))
      this.add({ operation: operationOfKey(key), bytes: value.length });
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
    this.environment.put('wal', operationKey(operation), record);
    this.appended.push({ operation, bytes: record.length });
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
    for (const entry of this.entries.splice(0, this.trimmed)) this.total -= entry.bytes;
    for (const entry of this.appended) this.add(entry);
    this.forget();
  }

  /** The transaction failed. */
  forget(): void {
    this.appended = [];
    this.trimmed = 0;
  }

  /** Operations behind `applied`, in order. Errors: `storage` for a damaged record. */
  *after(applied: number): Generator<{ operation: number; logged: LoggedOperation; bytes: number }> {
    for (const { operation, bytes } of [...this.entries]) {
      if (operation <= applied) continue;
      const record = this.environment.get('wal', operationKey(operation));
      yield { operation, logged: decodeOperation(unseal(record ?? new Uint8Array(0), `wal/${operation}`)), bytes };
    }
  }

  private add(entry: Entry): void {
    this.entries.push(entry);
    this.total += entry.bytes;
  }
}
