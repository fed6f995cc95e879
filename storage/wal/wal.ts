/**
 * The write-ahead log: operations by number. An operation is acknowledged when its record is on disk. It stays here until it is applied,
 * and after that as long as there is room (`wal_capacity_mb`, and the node's budget: `log-budget.ts`).
 *
 * Large operations lie in files named after their first operation. When a file has a quarter of what the log may keep, a new one begins; a file
 * is deleted when none of its operations is left.
 */

import { TroupeError } from '../../protocols/errors.js';
import { invariant } from '../../protocols/invariant.js';
import { isSameTag, type LogReach, type LogTag, type ShardEntry } from '../../protocols/model/shard-log.js';
import { decodeUpdate, encodeUpdate, type LoggedOperation } from '../../protocols/update-codec.js';
import type { AppendFolder } from '../disk/append-file.js';
import type { Environment } from '../disk/lmdb.js';
import { RECORD_COST_BYTES } from './log-budget.js';
import { LogEntries, type LogEntry } from './log-entries.js';
import {
  behind,
  decodeLogTags,
  encodeLogTags,
  type Leader,
  LOG_KEY,
  type LogTags,
  logBehind,
  NO_TAGS,
  tagOf,
  upTo,
  withOperation,
} from './log-tags.js';
import { decodeValue, headBytes, operationKey, operationOfKey, timeOfValue } from './records.js';
import { isInline, loadValue, OPERATION_INLINE_BYTES_MAX, storeValue, valueRoom } from './stored-value.js';

const FIRST_KEY = operationKey(0);
const LAST_KEY = Buffer.alloc(9, 0xff);
/** Least size at which a file is closed, however small the capacity is. */
const FILE_BYTES_MIN = 2 ** 18;
/** Most records that one transaction removes for want of room: further ones go with the next. */
const TRIM_RECORDS_MAX = 8192;

/**
 * The log. Changes are made within a write transaction of the environment; `files` must be synchronised before its commit. Call `keep`
 * after the commit, or `forget` after a failed one.
 */
export class WriteAheadLog {
  private readonly entries = new LogEntries();
  private appended: LogEntry[] = [];
  private trimmed = 0;
  private total = 0;
  /** The file that is being written; null if there is none. */
  private current: number | null = null;
  /** Number of records in each file. */
  private readonly uses = new Map<number, number>();
  /** Number of the newest operation that the log has ever had, 0 if none. */
  private newest: number;
  private tags: LogTags;
  /** The tags after the transaction; null if they do not change. */
  private changedTags: LogTags | null = null;
  /** Number of the operation that the log begins after, or ends with, by this transaction; null if it goes on. */
  private resetTo: number | null = null;
  /** Number of the newest operation that the transaction applies without a record; null if there is none. */
  private passedTo: number | null = null;
  /** Number of the newest records that the transaction removes. */
  private cut = 0;

  /**
   * Finds the place of each record. Damage is found when an operation is read. warn: gets torn files, as files with only applied operations
   * are not read. applied: number of the newest applied operation.
   */
  constructor(
    private readonly environment: Environment,
    readonly files: AppendFolder,
    applied: number,
    warn: (message: string) => void,
  ) {
    const tags = environment.get('meta', LOG_KEY);
    this.tags = tags === undefined ? NO_TAGS : decodeLogTags(tags);
    for (const { key, value } of environment.range('wal', FIRST_KEY, LAST_KEY)) this.add(this.entryOf(operationOfKey(key), value));
    this.newest = Math.max(applied, this.newestEntry);
    const damaged = files.settle();
    for (const complaint of damaged.values()) warn(complaint);
    const newest = Math.max(...this.uses.keys());
    if (this.uses.has(newest) && !damaged.has(newest)) this.current = newest;
  }

  /** What all records cost on disk. */
  get bytes(): number {
    return this.total;
  }

  /** Number of the newest operation that the log has, 0 if none. */
  private get newestEntry(): number {
    return this.entries.length === 0 ? 0 : this.entries.operationAt(this.entries.length - 1);
  }

  /** Whether the log has more than so many bytes of operations up to `applied` and others. */
  exceeds(applied: number, bytesMax: number): boolean {
    return this.total > bytesMax && this.entries.length > 0 && this.entries.operationAt(0) <= applied;
  }

  /** Tag of the newest operation that was on disk, even if the log has removed it. */
  get last(): LogTag {
    return tagOf(this.tags, this.newest);
  }

  /** Number of the newest operation, including the transaction under way. */
  get end(): number {
    return this.appended.at(-1)?.operation ?? this.passedTo ?? this.resetTo ?? this.newest;
  }

  /** Tag of the operation before the oldest one in the log. */
  get base(): LogTag {
    if (this.isOrdered) return this.tags.base;
    return tagOf(this.tags, this.entries.length === 0 ? this.newest : this.entries.operationAt(0) - 1);
  }

  /** Whether the log's operations have had leaders. */
  get isOrdered(): boolean {
    return this.tags.runs.length > 0;
  }

  /** Index of the newest operation that failed or was skipped, 0 if none. */
  get failed(): number {
    return (this.changedTags ?? this.tags).failed;
  }

  /** Remembers an operation that failed or was skipped; within a transaction. */
  markFailed(operation: number): void {
    this.changedTags = { ...(this.changedTags ?? this.tags), failed: operation };
  }

  /** The tag of an operation in the log; null if the log does not have it. */
  tagOf(operation: number): LogTag | null {
    const at = this.entries.positionOf(operation);
    return at < this.entries.length && this.entries.operationAt(at) === operation ? tagOf(this.tags, operation) : null;
  }

  /** Tag of the newest operation before this number, or the base; null if the log does not go back so far. */
  tagBefore(operation: number): LogTag | null {
    const at = this.entries.positionOf(operation);
    if (at > 0) return tagOf(this.tags, this.entries.operationAt(at - 1));
    return this.base.index < operation ? this.base : null;
  }

  /**
   * Writes an operation; within a transaction. capacity: intended size of the log in bytes. timeMs: the date, by its leader; null: not known.
   */
  append(operation: number, by: Leader, logged: LoggedOperation, capacity: number, timeMs: number | null): void {
    invariant(operation > this.end, 'Op-O1', () => `operation ${operation} is logged after operation ${this.end}`);
    const before = this.changedTags ?? this.tags;
    const tags = withOperation(before, by, operation);
    if (tags !== before) this.changedTags = before.runs.length > 0 ? tags : { ...tags, base: this.base };
    const value = encodeUpdate(logged, headBytes(timeMs), (bytes) => valueRoom(bytes, OPERATION_INLINE_BYTES_MAX));
    const file = isInline(value, OPERATION_INLINE_BYTES_MAX) ? null : this.fileFor(operation, capacity);
    const record = storeValue(this.files, file ?? 0, value, OPERATION_INLINE_BYTES_MAX, timeMs);
    this.environment.put('wal', operationKey(operation), record);
    this.appended.push({ operation, bytes: value.length + RECORD_COST_BYTES, file });
  }

  /**
   * Takes an operation that is applied in the same transaction, without a record; within a transaction that appends nothing. The log begins
   * after it, so earlier records go, all of which are applied.
   */
  passOver(operation: number): void {
    invariant(operation > this.end, 'Op-O1', () => `operation ${operation} is passed over after operation ${this.end}`);
    invariant(this.appended.length === 0, 'Op-O1', () => `operation ${operation} would leave a gap in the log`);
    this.removeFrom(this.trimmed);
    this.trimmed = this.entries.length;
    this.passedTo = operation;
  }

  /** Removes some of the oldest records up to `applied`, until the rest fits in `bytesMax`; within a transaction. */
  trim(applied: number, bytesMax: number): void {
    const { entries } = this;
    let total = this.total + this.appended.reduce((sum, entry) => sum + entry.bytes, 0);
    const before = this.trimmed;
    const end = Math.min(entries.length, before + TRIM_RECORDS_MAX);
    for (let at = before; at < end && total > bytesMax; at++) {
      const operation = entries.operationAt(at);
      if (operation > applied) break;
      this.environment.remove('wal', operationKey(operation));
      total -= entries.bytesAt(at);
      this.trimmed++;
    }
    if (this.trimmed === before) return;
    const tags = this.changedTags ?? this.tags;
    this.changedTags = behind(tags, tagOf(tags, entries.operationAt(this.trimmed - 1)));
  }

  /** Empties the log, which then begins after `at`; within a transaction that changes nothing else of it. */
  reset(at: LogTag): void {
    this.removeFrom(0);
    this.trimmed = this.entries.length;
    this.resetTo = at.index;
    this.changedTags = logBehind(at);
  }

  /** Removes everything after an operation of the log or its base; within a transaction that changes nothing else of it. */
  rewind(to: LogTag): void {
    const from = this.entries.positionOf(to.index + 1);
    this.cut = this.entries.length - from;
    this.removeFrom(from);
    this.resetTo = to.index;
    this.changedTags = upTo(this.tags, to.index);
  }

  /** Removes the records from a position on; within a transaction. */
  private removeFrom(from: number): void {
    for (let at = from; at < this.entries.length; at++) this.environment.remove('wal', operationKey(this.entries.operationAt(at)));
  }

  /** Writes changed tags; the last step of a transaction. */
  flush(): void {
    const { changedTags } = this;
    if (changedTags !== null && changedTags !== this.tags) this.environment.put('meta', LOG_KEY, encodeLogTags(changedTags));
  }

  /** Takes over the changes of a transaction that is on disk. */
  keep(): void {
    this.files.keep();
    this.tags = this.changedTags ?? this.tags;
    const { length } = this.entries;
    this.unuse(length - this.cut, length);
    this.entries.dropLast(this.cut);
    this.unuse(0, this.trimmed);
    this.entries.dropFirst(this.trimmed);
    for (const entry of this.appended) this.add(entry);
    this.newest = this.resetTo ?? this.passedTo ?? this.appended.at(-1)?.operation ?? this.newest;
    // Later operations may have the numbers of files that are deleted now.
    if (this.resetTo !== null) this.current = null;
    this.settle();
    this.removeFiles((file) => file !== this.current || this.files.end(file) >= FILE_BYTES_MIN);
  }

  /** The log is used no more. */
  close(): void {
    this.removeFiles(() => true);
    this.files.close();
  }

  /** Removes files without operations. */
  private removeFiles(isWanted: (file: number) => boolean): void {
    for (const [file, records] of this.uses) {
      if (records > 0 || !isWanted(file)) continue;
      if (file === this.current) this.current = null;
      this.uses.delete(file);
      this.files.remove(file);
    }
  }

  /** Forgets the changes of a transaction that failed. */
  forget(): void {
    this.files.forget();
    this.settle();
    // A file that was not begun may get another first operation.
    if (this.current !== null && !this.uses.has(this.current)) this.current = null;
  }

  private settle(): void {
    this.appended = [];
    this.trimmed = 0;
    this.cut = 0;
    this.changedTags = null;
    this.resetTo = null;
    this.passedTo = null;
  }

  /**
   * Operations after `after`, as they were encoded, at least `bytesMax` bytes of them if the log has as many. Null if one of them cannot be
   * read: it was applied, and no other use needs it.
   */
  entriesAfter(after: number, bytesMax: number): ShardEntry[] | null {
    const found: ShardEntry[] = [];
    let bytes = 0;
    for (let at = this.entries.positionOf(after + 1); at < this.entries.length && bytes < bytesMax; at++) {
      const operation = this.entries.operationAt(at);
      const encoded = this.encodedOf(operation);
      if (encoded === null) return null;
      const timeMs = this.timeOf(operation);
      found.push({ tag: tagOf(this.tags, operation), operation: encoded, ...(timeMs === null ? {} : { timeMs }) });
      bytes += encoded.length;
    }
    return found;
  }

  /** When the oldest operation in the log was acknowledged; null: there is none, or its time is not known. */
  private get firstMs(): number | null {
    return this.entries.length === 0 ? null : this.timeOf(this.entries.operationAt(0));
  }

  /** Whether the log has this operation, or begins after it. */
  has(tag: LogTag): boolean {
    const { base } = this;
    const own = tag.index === base.index ? base : this.tagOf(tag.index);
    return own !== null && isSameTag(own, tag);
  }

  /** See `ShardLogPort.reachOf`. Errors: `storage`. */
  reachOf(after: LogTag, untilMs: number): LogReach {
    if (after.index < this.base.index) return { kind: 'compacted', base: this.base, firstMs: this.firstMs };
    if (!this.has(after)) return { kind: 'diverged', last: this.last };
    const fromMs = this.timeOf(after.index);
    let [to, toMs, operations, bytes] = [after.index, fromMs, 0, 0];
    let nextMs: number | null = null;
    for (let at = this.entries.positionOf(after.index + 1); at < this.entries.length; at++) {
      const operation = this.entries.operationAt(at);
      const timeMs = this.timeOf(operation);
      if (timeMs === null) return { kind: 'untimed', at: tagOf(this.tags, operation) };
      if (timeMs > untilMs) {
        nextMs = timeMs;
        break;
      }
      [to, toMs] = [operation, timeMs];
      operations++;
      bytes += this.entries.bytesAt(at);
    }
    return { kind: 'reaches', fromMs, to: to === after.index ? after : tagOf(this.tags, to), toMs, operations, bytes, nextMs };
  }

  private encodedOf(operation: number): Uint8Array | null {
    try {
      return this.read(operation);
    } catch (error) {
      if (error instanceof TroupeError && error.code === 'storage') return null;
      throw error;
    }
  }

  /** Operations after `applied`, in order. Errors: `storage` for a damaged record. */
  *after(applied: number): Generator<{ operation: number; logged: LoggedOperation; bytes: number }> {
    // The log may lose its oldest records in between.
    let at = this.entries.positionOf(applied + 1);
    while (at < this.entries.length) {
      const operation = this.entries.operationAt(at);
      yield { operation, logged: decodeUpdate(this.read(operation)), bytes: this.entries.bytesAt(at) };
      at = this.entries.positionOf(operation + 1);
    }
  }

  private read(operation: number): Uint8Array {
    return loadValue(this.files, this.recordOf(operation), `wal/${operation}`, `operation ${operation}`);
  }

  private recordOf(operation: number): Uint8Array {
    return this.environment.get('wal', operationKey(operation)) ?? new Uint8Array(0);
  }

  /** When an operation was acknowledged, by its leader's clock: a date in milliseconds; null: the log does not know. Errors: `storage`. */
  timeOf(operation: number): number | null {
    const { origin } = this.tags;
    if (origin?.index === operation) return origin.timeMs;
    return this.tagOf(operation) === null ? null : timeOfValue(this.recordOf(operation), `wal/${operation}`);
  }

  private fileFor(operation: number, capacity: number): number {
    const { current } = this;
    if (current !== null && this.files.end(current) < Math.max(FILE_BYTES_MIN, capacity / 4)) return current;
    this.current = operation;
    return operation;
  }

  /** The entry of a record. Damage is reported when its operation is read. */
  private entryOf(operation: number, record: Uint8Array): LogEntry {
    try {
      const value = decodeValue(record, `wal/${operation}`);
      if (value instanceof Uint8Array) return { operation, bytes: record.length + RECORD_COST_BYTES, file: null };
      this.files.claim(value);
      return { operation, bytes: value.length + RECORD_COST_BYTES, file: value.file };
    } catch (error) {
      if (!(error instanceof TroupeError)) throw error;
      return { operation, bytes: record.length + RECORD_COST_BYTES, file: null };
    }
  }

  /** The entries from one position up to another are going. */
  private unuse(from: number, to: number): void {
    for (let at = from; at < to; at++) {
      this.total -= this.entries.bytesAt(at);
      this.use(this.entries.fileAt(at), -1);
    }
  }

  private add(entry: LogEntry): void {
    this.entries.push(entry);
    this.total += entry.bytes;
    this.use(entry.file, 1);
  }

  private use(file: number | null, records: number): void {
    if (file !== null) this.uses.set(file, (this.uses.get(file) ?? 0) + records);
  }
}
