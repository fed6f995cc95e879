/**
 * Large records of a replica, kept beside LMDB in files that only grow: what passes through LMDB's map once stays in
 * memory for long and in its file for good (measured: 74 MB resident and 200 MB of file after 60k × 784 had gone through).
 *
 * LMDB keeps an entry for each record. The record is written and synced before the commit that brings its entry, so an
 * entry on disk always finds its record; what no entry leads to is overwritten. Records are sealed (`replica/records.ts`).
 *
 * | bytes of an entry | what |
 * |-------------------|------|
 * | 0..4              | 0: the record follows at byte 8; 1: it is in a file |
 * | 4..8              | bytes of the record, u32 LE |
 * | 8..16, 16..24     | in a file: its number and the record's offset there, f64 LE |
 */

import fs from 'node:fs';
import path from 'node:path';
import { TroupeError } from '../protocols/errors.js';
import { LmdbError } from './lmdb.js';
import { damagedRecord, unseal } from './replica/records.js';
import { DamagedFile, readFully, syncFolder } from './segment/file.js';

/** Smaller records stay in LMDB: that saves a sync. */
const FILED_BYTES_MIN = 4096;
const ENTRY_BYTES = 8;
const FILED_ENTRY_BYTES = 24;
const KEPT_HERE = 0;
const FILED = 1;

/** Where an entry says its record is. */
interface FiledRecord {
  readonly file: number;
  readonly offset: number;
  readonly bytes: number;
}

interface OpenFile {
  readonly path: string;
  readonly fd: number;
  /** Where the next record goes. */
  end: number;
  /** `end` as of the last commit. */
  keptEnd: number;
  dirty: boolean;
}

/**
 * The files of one kind of record: `<folder>/<number>`. Records are put within a write transaction of LMDB; `sync` comes
 * last in it, then `keep` when it is on disk or `forget` when it failed.
 */
export class RecordFiles {
  private readonly files = new Map<number, OpenFile>();
  private created = false;

  constructor(private readonly folder: string) {}

  /** Writes a record; returns the entry for LMDB. file: which file takes it, if it is large. Errors: `storage`. */
  put(file: number, record: Uint8Array): Uint8Array {
    if (record.length < FILED_BYTES_MIN) return keptHere(record);
    const open = this.open(file);
    const offset = open.end;
    open.dirty = true;
    open.end += record.length;
    guarded(open.path, false, () => {
      for (let done = 0; done < record.length; ) done += fs.writeSync(open.fd, record, done, record.length - done, offset + done);
    });
    return filedEntry({ file, offset, bytes: record.length });
  }

  /** The body of the record an entry stands for; a copy where it is filed. name: how errors call it. Errors: `storage`. */
  get(entry: Uint8Array, name: string): Uint8Array {
    const filed = filedRecord(entry, name);
    if (filed === null) return unseal(entry.subarray(ENTRY_BYTES), name);
    const open = this.open(filed.file);
    const record = new Uint8Array(filed.bytes);
    readFully(open.fd, record, filed.offset, open.path);
    try {
      return unseal(record, name);
    } catch {
      throw new DamagedFile(open.path, `record \`${name}\` at byte ${filed.offset} is damaged`);
    }
  }

  /** Tells of an entry that is there, so that its record is not overwritten. */
  note(entry: Uint8Array, name: string): void {
    const filed = filedRecord(entry, name);
    if (filed === null) return;
    const open = this.open(filed.file);
    open.end = Math.max(open.end, filed.offset + filed.bytes);
    open.keptEnd = open.end;
  }

  /** Bytes of a file, 0 for none. */
  bytesOf(file: number): number {
    return this.files.get(file)?.end ?? 0;
  }

  /** All that was put is on disk on return. Errors: `storage`; fatal, as nobody knows then what is on disk. */
  sync(): void {
    for (const open of this.files.values()) {
      if (open.dirty) guarded(open.path, true, () => fs.fdatasyncSync(open.fd));
      open.dirty = false;
    }
    if (this.created) guarded(this.folder, true, () => syncFolder(this.folder));
    this.created = false;
  }

  /** The transaction is on disk. */
  keep(): void {
    for (const open of this.files.values()) open.keptEnd = open.end;
  }

  /** The transaction failed: its records will be overwritten. */
  forget(): void {
    for (const open of this.files.values()) open.end = open.keptEnd;
  }

  /** Removes a file that no entry leads to. */
  remove(file: number): void {
    const open = this.files.get(file);
    if (open !== undefined) fs.closeSync(open.fd);
    this.files.delete(file);
    fs.rmSync(this.pathOf(file), { force: true });
  }

  /** Removes all files but those of which entries were noted or which are named. */
  clean(named: ReadonlySet<number> = new Set()): void {
    if (!fs.existsSync(this.folder)) return;
    for (const name of fs.readdirSync(this.folder)) {
      if (!this.files.has(Number(name)) && !named.has(Number(name))) fs.rmSync(path.join(this.folder, name), { force: true });
    }
  }

  close(): void {
    for (const open of this.files.values()) fs.closeSync(open.fd);
    this.files.clear();
  }

  private open(file: number): OpenFile {
    const known = this.files.get(file);
    if (known !== undefined) return known;
    const name = this.pathOf(file);
    const opened = guarded(name, false, (): OpenFile => {
      const { O_RDWR, O_CREAT, O_NOFOLLOW } = fs.constants;
      if (fs.mkdirSync(this.folder, { recursive: true }) !== undefined) syncFolder(path.dirname(this.folder));
      this.created ||= !fs.existsSync(name);
      return { path: name, fd: fs.openSync(name, O_RDWR | O_CREAT | O_NOFOLLOW, 0o644), end: 0, keptEnd: 0, dirty: false };
    });
    this.files.set(file, opened);
    return opened;
  }

  private pathOf(file: number): string {
    return path.join(this.folder, String(file));
  }
}

/** Bytes of the record an entry stands for. Errors: `storage`. */
export function recordBytes(entry: Uint8Array, name: string): number {
  return filedRecord(entry, name)?.bytes ?? entry.length - ENTRY_BYTES;
}

/** The file of an entry's record; null where the entry holds it. Errors: `storage`. */
export function fileOf(entry: Uint8Array, name: string): number | null {
  return filedRecord(entry, name)?.file ?? null;
}

/** Checks what an entry itself holds. Errors: `storage`. */
export function verifyEntry(entry: Uint8Array, name: string): void {
  if (filedRecord(entry, name) === null) unseal(entry.subarray(ENTRY_BYTES), name);
}

function keptHere(record: Uint8Array): Uint8Array {
  const entry = new Uint8Array(ENTRY_BYTES + record.length);
  const view = new DataView(entry.buffer);
  view.setUint32(0, KEPT_HERE, true);
  view.setUint32(4, record.length, true);
  entry.set(record, ENTRY_BYTES);
  return entry;
}

function filedEntry({ file, offset, bytes }: FiledRecord): Uint8Array {
  const view = new DataView(new ArrayBuffer(FILED_ENTRY_BYTES));
  view.setUint32(0, FILED, true);
  view.setUint32(4, bytes, true);
  view.setFloat64(8, file, true);
  view.setFloat64(16, offset, true);
  return new Uint8Array(view.buffer);
}

/** Null where the entry holds the record. Numbers that cannot be are damage; others are found out by the record's checksum. */
function filedRecord(entry: Uint8Array, name: string): FiledRecord | null {
  if (entry.length < ENTRY_BYTES) throw damagedRecord(name);
  const view = new DataView(entry.buffer, entry.byteOffset, entry.length);
  const kind = view.getUint32(0, true);
  const bytes = view.getUint32(4, true);
  if (kind === KEPT_HERE && entry.length === ENTRY_BYTES + bytes) return null;
  if (kind !== FILED || entry.length !== FILED_ENTRY_BYTES) throw damagedRecord(name);
  const file = view.getFloat64(8, true);
  const offset = view.getFloat64(16, true);
  if (!Number.isSafeInteger(file) || file < 0 || !Number.isSafeInteger(offset) || offset < 0) throw damagedRecord(name);
  return { file, offset, bytes };
}

function guarded<T>(file: string, fatal: boolean, act: () => T): T {
  try {
    return act();
  } catch (error) {
    if (error instanceof TroupeError) throw error;
    const code = (error as NodeJS.ErrnoException).code ?? String(error);
    throw new LmdbError(`${file}: cannot be written (${code})`, fatal, error);
  }
}
