/**
 * Folders of numbered files that only grow: the place of values that are too large for LMDB, whose records point at
 * them. LMDB's file never shrinks and its pages stay mapped; a file here is deleted as a whole.
 *
 * - **File-A1** bytes are on disk (`sync`) before the commit that points at them.
 * - **File-A2** bytes behind what committed records point at mean nothing: a commit that fails takes the end back (`forget`), the
 *   next bytes overwrite them, and opening cuts them off (`settle`).
 * - **File-A3** no byte is read as data before its checksum was verified. Damage is an error that starts with the file's path.
 * - **File-A4** links are not followed, neither as a file nor as the folder.
 */

import fs from 'node:fs';
import path from 'node:path';
import { TroupeError } from '../../protocols/errors.js';
import { checksum64 } from './checksum.js';
import { DamagedFile, openPlainFile, readFully, syncFolderNow } from './file.js';

/** Where a value lies, and its xxHash64. */
export interface Place {
  readonly file: number;
  readonly offset: number;
  readonly length: number;
  readonly checksum: bigint;
}

/** The disk refused. Nothing that was asked for counts. */
export class AppendError extends TroupeError {
  constructor(file: string, doing: string, cause: unknown) {
    super('storage', `${file}: cannot ${doing} (${cause instanceof Error ? cause.message : String(cause)})`, { cause });
  }
}

interface OpenFile {
  readonly fd: number;
  readonly path: string;
  /** End of what committed records point at. */
  end: number;
  /** End of what is written. */
  written: number;
}

/** Appended bytes count once `keep` is called after the commit that points at them; `forget` after one that failed. */
export class AppendFolder {
  private readonly open = new Map<number, OpenFile>();
  /** Ends of files by number, as the records say that were read at opening. */
  private readonly claims = new Map<number, number>();
  private readonly touched = new Set<OpenFile>();
  /** New files may not be in the folder yet after a crash. */
  private namesChanged = false;
  /** What `syncing` met. */
  private failed: AppendError | null = null;

  /** Errors: `storage`. */
  constructor(
    readonly folder: string,
    private readonly isForReading = false,
  ) {
    if (isForReading) return;
    let found: fs.Stats | undefined;
    try {
      found = fs.lstatSync(folder, { throwIfNoEntry: false });
      if (found === undefined && fs.mkdirSync(folder, { recursive: true }) !== undefined) syncFolderNow(path.dirname(folder));
    } catch (error) {
      throw new AppendError(folder, 'make the folder', error);
    }
    if (found?.isDirectory() === false) throw new DamagedFile(folder, 'is a link or no folder');
  }

  /** The folder, which may be missing, for who changes nothing in it. */
  static forReading(folder: string): AppendFolder {
    return new AppendFolder(folder, true);
  }

  pathOf(file: number): string {
    return path.join(this.folder, String(file));
  }

  // ---------------------------------------------------------------- opening

  /** Says that a record points at this place. */
  claim({ file, offset, length }: Place): void {
    this.claims.set(file, Math.max(this.claims.get(file) ?? 0, offset + length));
  }

  /**
   * After all claims: deletes files that nothing points at and cuts off what lies behind the claims. Returns what is
   * wrong with the other files, by number: they cannot hold all that records point at.
   */
  settle(): Map<number, string> {
    const names = this.isForReading ? [] : fs.readdirSync(this.folder);
    for (const name of names) if (!this.claims.has(Number(name))) fs.rmSync(path.join(this.folder, name), { recursive: true, force: true });
    const damaged = new Map<number, string>();
    for (const [file, end] of this.claims) {
      const complaint = cutBehind(this.pathOf(file), end, this.isForReading);
      if (complaint !== null) damaged.set(file, complaint);
    }
    return damaged;
  }

  /** The verified bytes of a place. holds: what they are, for errors. room: a buffer to read them to. Errors: `storage`. */
  read(
    { file, offset, length, checksum }: Place,
    holds: string,
    room: (bytes: number) => Uint8Array = (bytes) => new Uint8Array(bytes),
  ): Uint8Array {
    const name = this.pathOf(file);
    const fd = openPlainFile(name);
    try {
      if (offset + length > fs.fstatSync(fd).size) throw new DamagedFile(name, `torn: does not hold ${holds} any more`);
      const bytes = room(length);
      readFully(fd, bytes, offset, name);
      if (checksum64(bytes) !== checksum) throw new DamagedFile(name, `${holds} (${length} bytes from ${offset} on): wrong checksum`);
      return bytes;
    } finally {
      fs.closeSync(fd);
    }
  }

  // ---------------------------------------------------------------- writing

  /** Writes behind the end of a file, which is made where there is none. Errors: `storage`. */
  append(file: number, bytes: Uint8Array): Place {
    const target = this.open.get(file) ?? this.openForWriting(file);
    const offset = target.written;
    this.touched.add(target);
    try {
      for (let done = 0; done < bytes.length; ) done += fs.writeSync(target.fd, bytes, done, bytes.length - done, offset + done);
    } catch (error) {
      throw new AppendError(target.path, 'write', error);
    }
    target.written += bytes.length;
    return { file, offset, length: bytes.length, checksum: checksum64(bytes) };
  }

  /** Bytes of a file that count or will when the commit succeeds. */
  end(file: number): number {
    return this.open.get(file)?.written ?? this.claims.get(file) ?? 0;
  }

  /** Waits until everything that was appended is on disk: the last step before the commit. Errors: `storage`. */
  sync(): void {
    if (this.failed !== null) throw this.failed;
    let name = this.folder;
    try {
      for (const file of this.touched) {
        name = file.path;
        fs.fdatasyncSync(file.fd);
      }
      if (this.namesChanged) syncFolderNow(this.folder);
      this.namesChanged = false;
    } catch (error) {
      throw new AppendError(name, 'synchronise with the disk', error);
    }
  }

  /**
   * Settled when what was appended so far is on disk, or cannot be: `sync`, which has to follow after that, is quick then, and throws what went wrong.
   * The system tells of bytes that it could not write once, and takes them for written afterwards.
   */
  async syncing(): Promise<void> {
    await Promise.all(
      [...this.touched].map(
        (file) =>
          new Promise<void>((done) =>
            fs.fdatasync(file.fd, (error) => {
              if (error !== null) this.failed ??= new AppendError(file.path, 'synchronise with the disk', error);
              done();
            }),
          ),
      ),
    );
  }

  /** The commit is on disk. */
  keep(): void {
    for (const file of this.touched) file.end = file.written;
    this.touched.clear();
  }

  /** The commit failed. The bytes stay where they are until others take their place: LMDB may not know how its commit went. */
  forget(): void {
    for (const file of this.touched) file.written = file.end;
    this.touched.clear();
    this.failed = null;
  }

  /** Deletes a file that no committed record points at. What cannot be deleted now is at the next opening. */
  remove(file: number): void {
    this.release(file);
    this.claims.delete(file);
    try {
      fs.rmSync(this.pathOf(file), { force: true });
    } catch {}
  }

  /** Closes a file until it is used again. */
  release(file: number): void {
    const opened = this.open.get(file);
    if (opened === undefined) return;
    this.open.delete(file);
    this.claims.set(file, opened.end);
    fs.closeSync(opened.fd);
  }

  close(): void {
    for (const file of [...this.open.keys()]) this.release(file);
  }

  private openForWriting(file: number): OpenFile {
    const name = this.pathOf(file);
    const end = this.claims.get(file) ?? 0;
    try {
      const fd = fs.openSync(name, fs.constants.O_RDWR | fs.constants.O_CREAT | fs.constants.O_NOFOLLOW, 0o644);
      if (end === 0) this.namesChanged = true;
      const opened = { fd, path: name, end, written: end };
      this.open.set(file, opened);
      return opened;
    } catch (error) {
      throw new AppendError(name, 'open', error);
    }
  }
}

/** Shortens a file to `end` bytes, unless it is only read. What keeps it from having as many, null for nothing. */
function cutBehind(file: string, end: number, isForReading: boolean): string | null {
  try {
    const fd = openPlainFile(file);
    const { size } = fs.fstatSync(fd);
    fs.closeSync(fd);
    if (size < end) return `${file}: torn: ${size} bytes of ${end}`;
    if (size > end && !isForReading) fs.truncateSync(file, end);
    return null;
  } catch (error) {
    if (error instanceof TroupeError) return error.detail;
    throw new AppendError(file, 'cut', error);
  }
}
