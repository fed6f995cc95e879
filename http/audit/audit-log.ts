/**
 * Writes the audit log. Each thread with a door has one of these; all of them append to the same files, each batch with one write, so lines
 * never mix. Records wait for at most FLUSH_MS, so a process that is killed loses those; one that ends in order loses none.
 *
 * - **Audit-A1** No request waits for the log, and none fails for it: what cannot be written is kept, up to KEPT_BYTES_MAX for each thread, and
 *   tried again; what comes beyond is counted as lost, and the log says so as soon as it can be written again.
 * - **Audit-A2** Nothing is written or deleted but regular files of the log's own names in its folder.
 */

import { constants } from 'node:fs';
import { type FileHandle, lstat, mkdir, open, readdir, stat, unlink } from 'node:fs/promises';
import { join } from 'node:path';
import type { Caller } from '../access/caller.js';
import type { CallLog, CallOperation, EndCall } from '../context/call-log.js';
import { type AuditBatch, restAfter } from './batches.js';
import { OriginNames, type RequestOrigin } from './origin.js';
import { type AuditPeriod, type AuditRotation, auditPeriod, filesToDelete } from './plan-files.js';
import { type AuditedCall, lossLine, recordLine } from './record.js';

/** Plain data, which goes to other threads as it is. */
export interface AuditSettings {
  readonly folder: string;
  readonly rotation: AuditRotation;
  readonly filesMax: number;
  /** `audit.trust_forwarded_headers` */
  readonly trustForwarded: boolean;
  /** Of `AUDIT_MEMORY_BYTES`, zero at first: counts of all threads. */
  readonly memory: SharedArrayBuffer;
}

export interface AuditCounts {
  readonly written: number;
  readonly lost: number;
  /** Threads whose last write failed. */
  readonly failing: number;
}

export const AUDIT_MEMORY_BYTES = 24;

const FLUSH_MS = 200;
/** After a write that failed. */
const RETRY_MS = 1000;
/** A batch is written at once when it is this long, unless another one is being written: then all that comes meanwhile is one. */
const BATCH_CHARACTERS = 65_536;
const KEPT_BYTES_MAX = 8 << 20;
const OWNER_ONLY = 0o600;
const FOLDER_MODE = 0o700;
// A link is not followed: what it leads to is not the log's.
const FLAGS = constants.O_WRONLY | constants.O_APPEND | constants.O_CREAT | constants.O_NOFOLLOW | constants.O_NONBLOCK;
/** Numbers of 32 bit in the shared memory, behind the two counts of 64. */
const TORN = 4;
const FAILING = 5;
const LINE_END = Buffer.from('\n');

interface OpenFile {
  readonly name: string;
  readonly handle: FileHandle;
  readonly inode: number;
}

export class AuditLog implements CallLog {
  readonly #counts: BigUint64Array;
  readonly #words: Int32Array;
  readonly #origins: OriginNames;
  #text = '';
  #records = 0;
  #period: AuditPeriod = { file: '', startMs: 0, endMs: Number.NEGATIVE_INFINITY };
  #waiting: AuditBatch[] = [];
  #waitingBytes = 0;
  #lostUntold = 0;
  #isFailing = false;
  #isClosing = false;
  #file: OpenFile | null = null;
  #timer: NodeJS.Timeout | null = null;
  #draining: Promise<void> | null = null;

  constructor(readonly settings: AuditSettings) {
    this.#counts = new BigUint64Array(settings.memory, 0, 2);
    this.#words = new Int32Array(settings.memory);
    this.#origins = new OriginNames(settings.trustForwarded);
  }

  /** Errors: the system's, if the folder cannot be made or no file of it be written. */
  async check(): Promise<void> {
    await this.#open(auditPeriod(Date.now(), this.settings.rotation).file);
  }

  /** Null for what is open to all: it has no record. */
  begin(
    protocol: AuditedCall['protocol'],
    { access, name }: CallOperation,
    caller: Caller,
    collection: string | null,
    origin: RequestOrigin,
  ): EndCall | null {
    if (access === 'open') return null;
    const call: AuditedCall = { ...this.#origins.of(origin), caller, protocol, operation: name, collection };
    const startedMs = performance.now();
    return (status, denied) => {
      const timeMs = Date.now();
      this.#enter(timeMs);
      this.#text += recordLine(timeMs, call, { denied, status, milliseconds: performance.now() - startedMs });
      this.#records++;
      if (this.#text.length > KEPT_BYTES_MAX) this.#seal();
      if (this.#text.length > BATCH_CHARACTERS && this.#draining === null) this.#flush();
      else this.#later(FLUSH_MS);
    };
  }

  counts(): AuditCounts {
    const [written, lost] = [0, 1].map((at) => Number(Atomics.load(this.#counts, at)));
    return { written: written as number, lost: lost as number, failing: Atomics.load(this.#words, FAILING) };
  }

  /** Writes what waits; what cannot be written then is lost. */
  async close(): Promise<void> {
    this.#isClosing = true;
    if (this.#timer !== null) clearTimeout(this.#timer);
    await this.#draining;
    this.#flush();
    await this.#draining;
    for (const { records } of this.#waiting) this.#lose(records);
    this.#waiting = [];
    await this.#file?.handle.close().catch(() => {});
    this.#file = null;
  }

  /** Records of another file than those before end their batch. */
  #enter(timeMs: number): void {
    if (timeMs < this.#period.endMs && timeMs >= this.#period.startMs) return;
    this.#seal();
    this.#period = auditPeriod(timeMs, this.settings.rotation);
  }

  #later(delayMs: number): void {
    if (this.#timer !== null || this.#isClosing) return;
    this.#timer = setTimeout(() => {
      this.#timer = null;
      this.#flush();
    }, delayMs);
    // An orderly end writes what waits.
    this.#timer.unref();
  }

  #flush(): void {
    this.#seal();
    this.#draining ??= this.#drain().finally(() => {
      this.#draining = null;
      if (this.#waiting.length > 0) this.#later(this.#isFailing ? RETRY_MS : 0);
    });
  }

  #seal(): void {
    if (this.#records === 0) return;
    const batch = { file: this.#period.file, bytes: Buffer.from(this.#text), records: this.#records };
    this.#text = '';
    this.#records = 0;
    if (this.#waitingBytes + batch.bytes.length > KEPT_BYTES_MAX) {
      this.#lose(batch.records);
      return;
    }
    this.#waiting.push(batch);
    this.#waitingBytes += batch.bytes.length;
  }

  /** Writes batches until there is none, or one cannot be written. Never rejects. */
  async #drain(): Promise<void> {
    for (let batch = this.#waiting[0]; batch !== undefined; batch = this.#waiting[0]) {
      const rest = await this.#written(batch).catch(() => batch as AuditBatch);
      this.#waitingBytes -= batch.bytes.length - rest.bytes.length;
      Atomics.add(this.#counts, 0, BigInt(batch.records - rest.records));
      if (rest.records > 0) {
        this.#waiting[0] = rest;
        this.#fail(true);
        return;
      }
      this.#waiting.shift();
      this.#fail(false);
      if (this.#waiting.length === 0 && this.#text.length > BATCH_CHARACTERS) this.#seal();
    }
  }

  /** What of a batch is still to be written. */
  async #written(batch: AuditBatch): Promise<AuditBatch> {
    const { handle } = await this.#open(batch.file);
    const lost = this.#lostUntold;
    const parts: Buffer[] = [];
    // Another write ended within a line.
    const isTorn = Atomics.exchange(this.#words, TORN, 0) === 1;
    if (isTorn) parts.push(LINE_END);
    if (lost > 0) parts.push(Buffer.from(lossLine(Date.now(), lost)));
    const ahead = parts.reduce((sum, { length }) => sum + length, 0);
    const bytes = ahead === 0 ? batch.bytes : Buffer.concat([...parts, batch.bytes]);
    let written = 0;
    try {
      ({ bytesWritten: written } = await handle.write(bytes));
    } finally {
      const endsWithin = written > 0 ? bytes[written - 1] !== LINE_END[0] : isTorn;
      if (endsWithin) Atomics.store(this.#words, TORN, 1);
      if (written >= ahead) this.#lostUntold -= lost;
    }
    return restAfter(batch, written - ahead);
  }

  /** The file of this name, open to append; made, and old ones deleted, if it is not there. */
  async #open(name: string): Promise<OpenFile> {
    const path = join(this.settings.folder, name);
    const current = this.#file;
    if (current !== null) {
      // Somebody may have moved it away.
      const isThere = current.name === name && (await stat(path).catch(() => null))?.ino === current.inode;
      if (isThere) return current;
      this.#file = null;
      await current.handle.close().catch(() => {});
    }
    await mkdir(this.settings.folder, { recursive: true, mode: FOLDER_MODE });
    const handle = await open(path, FLAGS, OWNER_ONLY);
    const found = await handle.stat();
    if (!found.isFile()) {
      await handle.close();
      throw new Error(`${path} is no file`);
    }
    this.#file = { name, handle, inode: found.ino };
    await this.#deleteOld(name);
    return this.#file;
  }

  /** Files that another thread deletes at the same time are gone as well. */
  async #deleteOld(current: string): Promise<void> {
    const { filesMax, folder } = this.settings;
    const names = await readdir(folder).catch(() => []);
    for (const name of filesToDelete(names, current, filesMax)) {
      const path = join(folder, name);
      const found = await lstat(path).catch(() => null);
      if (found?.isFile() === true) await unlink(path).catch(() => {});
    }
  }

  #fail(isFailing: boolean): void {
    if (isFailing !== this.#isFailing) Atomics.add(this.#words, FAILING, isFailing ? 1 : -1);
    this.#isFailing = isFailing;
  }

  #lose(records: number): void {
    this.#lostUntold += records;
    Atomics.add(this.#counts, 1, BigInt(records));
  }
}
