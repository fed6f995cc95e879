/**
 * The container of every file of a sealed segment. Each byte is covered by a checksum, so a torn or damaged file is
 * reported by name and never read as data.
 *
 * | bytes                | what |
 * |----------------------|------|
 * | 0..8                 | magic `TROUPESG` |
 * | 8..12                | format version, u32 LE |
 * | 12..16               | bytes of the header, u32 LE, a multiple of 64 |
 * | 16..24               | bytes of the whole file, u64 LE |
 * | 24..56               | zero |
 * | 56..64               | xxHash64 of bytes 0..56 and of the header, u64 LE |
 * | 64..64+header        | header: JSON (`Header`), padded with spaces |
 * | then                 | sections, each padded with zeros to 64 bytes; the header holds their checksums, padding included |
 *
 * The sections lie in the file as they lie in a segment's memory, so loading is reading.
 */

import fs from 'node:fs';
import path from 'node:path';
import { TroupeError } from '../../protocols/errors.js';
import { align64 } from '../../vectors/scratch.js';
import { type ChecksumStream, checksumStream } from './checksum.js';
import { checkOwned } from './owned-folder.js';

/** The newer one lacks what an earlier release cannot do without: see `segment/sealed.ts`. */
export type FormatVersion = 1 | 2;
const FORMAT_VERSIONS: readonly number[] = [1, 2] satisfies FormatVersion[];

export type FileKind = 'segment' | 'rows' | 'vectors' | 'codes' | 'graph' | 'payload' | 'index' | 'sparse' | 'lists' | 'tokens' | 'sums';

/** What a file says of itself besides its sections: a JSON object. */
export type FileFacts = Readonly<Record<string, unknown>>;

export interface Section {
  readonly name: string;
  /** Bytes from the start of the file. */
  readonly offset: number;
  /** Bytes without the padding. */
  readonly bytes: number;
  /** xxHash64 of the bytes and their padding, 16 hexadecimal digits. */
  readonly checksum: string;
}

/** A file of a sealed segment is damaged, torn, missing or of another version. The detail starts with its path. */
export class DamagedFile extends TroupeError {
  readonly path: string;

  constructor(file: string, what: string, cause?: unknown) {
    super('storage', `${file}: ${what}`, cause === undefined ? { reason: 'damaged' } : { cause, reason: 'damaged' });
    this.name = 'DamagedFile';
    this.path = file;
  }
}

interface Header {
  readonly kind: FileKind;
  readonly facts: FileFacts;
  readonly sections: readonly Section[];
}

const MAGIC = Buffer.from('TROUPESG', 'latin1');
const PREFIX_BYTES = 64;
const CHUNK_BYTES = 1 << 20;
/** Read and checked between two pauses: 2 ms of CPU, as measured. */
const PART_BYTES = 4 * CHUNK_BYTES;
/** Memory that is filled for the first time takes two thirds of the time of a part, which is what several threads share. */
const PARTS_AHEAD = 2;
const HEADER_BYTES_MAX = 1 << 26;

/** Where the first section of a file begins that a `SegmentFileWriter` makes of these. */
export function firstSectionOffset(kind: FileKind, facts: FileFacts, sectionNames: readonly string[]): number {
  const widest = sectionNames.map(
    (name): Section => ({ name, offset: Number.MAX_SAFE_INTEGER, bytes: Number.MAX_SAFE_INTEGER, checksum: '0'.repeat(16) }),
  );
  return PREFIX_BYTES + align64(Buffer.byteLength(JSON.stringify({ kind, facts, sections: widest } satisfies Header)));
}

/** Writes one file: `section` for each section in order, then `finish`. The file is on disk when `finish` returns. */
export class SegmentFileWriter {
  private readonly fd: number;
  private readonly headerBytes: number;
  private readonly sections: Section[] = [];
  private at: number;

  /** `sectionNames`: all sections that will be written, in order; with the facts they decide how long the header is. */
  constructor(
    private readonly file: string,
    private readonly kind: FileKind,
    private readonly facts: FileFacts,
    private readonly sectionNames: readonly string[],
    private readonly version: FormatVersion = 1,
  ) {
    this.at = firstSectionOffset(kind, facts, sectionNames);
    this.headerBytes = this.at - PREFIX_BYTES;
    this.fd = fs.openSync(file, fs.constants.O_WRONLY | fs.constants.O_CREAT | fs.constants.O_TRUNC | fs.constants.O_NOFOLLOW, 0o644);
  }

  /** Where the next section will begin. */
  get offset(): number {
    return this.at;
  }

  /** Writes the next section from pieces of any size. Pieces may lie in shared memory; each is written before the next is asked for. */
  section(name: string, pieces: Iterable<Uint8Array>): Section {
    if (this.sectionNames[this.sections.length] !== name) throw new Error(`section ${name} is not the next one of ${this.file}`);
    const stream = checksumStream();
    const offset = this.at;
    for (const piece of pieces) this.write(piece, stream);
    const bytes = this.at - offset;
    this.write(new Uint8Array(align64(bytes) - bytes), stream);
    const section = { name, offset, bytes, checksum: hex64(stream.digest()) };
    this.sections.push(section);
    return section;
  }

  /** Writes the header and waits until the file is on disk. */
  finish(): void {
    if (this.sections.length !== this.sectionNames.length) throw new Error(`${this.file} lacks sections`);
    const header = Buffer.alloc(this.headerBytes, 0x20);
    header.write(JSON.stringify({ kind: this.kind, facts: this.facts, sections: this.sections } satisfies Header));
    const prefix = Buffer.alloc(PREFIX_BYTES);
    MAGIC.copy(prefix);
    prefix.writeUInt32LE(this.version, 8);
    prefix.writeUInt32LE(this.headerBytes, 12);
    prefix.writeBigUInt64LE(BigInt(this.at), 16);
    prefix.writeBigUInt64LE(headerChecksum(prefix, header), 56);
    writeFully(this.fd, prefix, 0);
    writeFully(this.fd, header, PREFIX_BYTES);
    fs.fsyncSync(this.fd);
    fs.closeSync(this.fd);
  }

  /** Gives up; the file stays unfinished and is removed by whoever removes its folder. */
  abandon(): void {
    fs.closeSync(this.fd);
  }

  private write(bytes: Uint8Array, stream: ChecksumStream): void {
    for (let from = 0; from < bytes.length; from += CHUNK_BYTES) {
      const chunk = bytes.subarray(from, from + CHUNK_BYTES);
      stream.update(chunk);
      writeFully(this.fd, chunk, this.at);
      this.at += chunk.length;
    }
  }
}

/** Writes a file whose sections all lie in memory, or come there in pieces. */
export function writeSegmentFile(
  file: string,
  kind: FileKind,
  facts: FileFacts,
  sections: Readonly<Record<string, Uint8Array | Iterable<Uint8Array>>>,
  version: FormatVersion = 1,
): void {
  const writer = new SegmentFileWriter(file, kind, facts, Object.keys(sections), version);
  try {
    for (const [name, bytes] of Object.entries(sections)) writer.section(name, bytes instanceof Uint8Array ? [bytes] : bytes);
  } catch (error) {
    writer.abandon();
    throw error;
  }
  writer.finish();
}

/** A file open for reading, its header verified. Sections are verified as they are read. */
export class SegmentFileReader {
  readonly facts: FileFacts;
  private readonly fd: number;
  private readonly sections: ReadonlyMap<string, Section>;

  /** Errors: `DamagedFile`. Links are not followed. */
  constructor(
    readonly file: string,
    kind: FileKind,
  ) {
    this.fd = openPlainFile(file);
    try {
      const header = readHeader(this.fd, file);
      if (header.kind !== kind) throw new DamagedFile(file, `holds ${header.kind}, not ${kind}`);
      this.facts = header.facts;
      this.sections = new Map(header.sections.map((section) => [section.name, section]));
    } catch (error) {
      fs.closeSync(this.fd);
      throw error;
    }
  }

  section(name: string): Section {
    const section = this.sections.get(name);
    if (section === undefined) throw new DamagedFile(this.file, `has no section '${name}'`);
    return section;
  }

  /** Fills `target` (which may lie in shared memory) with the section, which must be exactly that long, and verifies it. */
  readInto(name: string, target: Uint8Array): void {
    for (const _part of this.reading(name, target.length, target));
  }

  /** As `readInto`; more than some megabytes in parts, with a pause after each. A part is verified while a thread of Node.js's reads the next one. */
  async readIntoInParts(name: string, target: Uint8Array, pause: PauseReading): Promise<void> {
    if (target.length <= PART_BYTES) return this.readInto(name, target);
    const section = this.sectionOf(name, target.length);
    const stream = checksumStream();
    for await (const part of this.readingAhead(section, target)) {
      for (let from = 0; from < part.length; from += CHUNK_BYTES) stream.update(part.subarray(from, from + CHUNK_BYTES));
      await pause();
    }
    this.finishSection(section, stream);
  }

  /** Parts of `target` that have been read, while the next ones are. */
  private async *readingAhead({ offset }: Section, target: Uint8Array): AsyncGenerator<Uint8Array> {
    const parts = Array.from({ length: Math.ceil(target.length / PART_BYTES) }, (_, n) =>
      target.subarray(n * PART_BYTES, (n + 1) * PART_BYTES),
    );
    const reads: Promise<void>[] = [];
    try {
      for (const [n, part] of parts.entries()) {
        for (const ahead of parts.slice(reads.length, n + PARTS_AHEAD + 1)) {
          const read = readFullySoon(this.fd, ahead, offset + reads.length * PART_BYTES, this.file);
          // Whoever waits for it hears of it.
          read.catch(() => {});
          reads.push(read);
        }
        await reads[n];
        yield part;
      }
    } finally {
      // Until then nobody may close the file, or use the memory for something else.
      await Promise.allSettled(reads);
    }
  }

  /** Reads the section into nothing, to verify it, with pauses between parts. bytes: its length, where it is known. */
  async verifyInParts(name: string, pause: PauseReading, bytes = this.section(name).bytes): Promise<void> {
    for (const _part of this.reading(name, bytes, null)) await pause();
  }

  /** The section in memory of its own that threads can share. */
  readShared(name: string): SharedArrayBuffer {
    const buffer = new SharedArrayBuffer(this.section(name).bytes);
    this.readInto(name, new Uint8Array(buffer));
    return buffer;
  }

  /** As `readShared`, with pauses between parts. */
  async readSharedInParts(name: string, pause: PauseReading): Promise<SharedArrayBuffer> {
    const buffer = new SharedArrayBuffer(this.section(name).bytes);
    await this.readIntoInParts(name, new Uint8Array(buffer), pause);
    return buffer;
  }

  /** Reads and verifies a section of `bytes` bytes, and stops after each part but the last. target: null to keep nothing. */
  private *reading(name: string, bytes: number, target: Uint8Array | null): Generator<void> {
    const section = this.sectionOf(name, bytes);
    const stream = checksumStream();
    const spare = target === null ? Buffer.allocUnsafeSlow(Math.min(CHUNK_BYTES, bytes)) : null;
    for (let from = 0; from < bytes; from += CHUNK_BYTES) {
      if (from > 0 && from % PART_BYTES === 0) yield;
      const length = Math.min(CHUNK_BYTES, bytes - from);
      const chunk = spare?.subarray(0, length) ?? (target as Uint8Array).subarray(from, from + length);
      readFully(this.fd, chunk, section.offset + from, this.file);
      stream.update(chunk);
    }
    this.finishSection(section, stream);
  }

  close(): void {
    fs.closeSync(this.fd);
  }

  private sectionOf(name: string, bytes: number): Section {
    const section = this.section(name);
    if (section.bytes !== bytes) throw new DamagedFile(this.file, `section '${name}' has ${section.bytes} bytes where ${bytes} belong`);
    return section;
  }

  private finishSection(section: Section, stream: ChecksumStream): void {
    const padding = new Uint8Array(align64(section.bytes) - section.bytes);
    readFully(this.fd, padding, section.offset + section.bytes, this.file);
    stream.update(padding);
    if (hex64(stream.digest()) !== section.checksum)
      throw new DamagedFile(this.file, `checksum of section '${section.name}' does not match`);
  }
}

/** Lets others of the thread have their turn. */
export type PauseReading = () => Promise<void>;

/** As `readSegmentFile`, for reads with pauses. */
export async function readSegmentFileInParts<T>(file: string, kind: FileKind, use: (reader: SegmentFileReader) => Promise<T>): Promise<T> {
  const reader = new SegmentFileReader(file, kind);
  try {
    return await use(reader);
  } finally {
    reader.close();
  }
}

/** Opens `file`, hands the reader to `use` and closes it. */
export function readSegmentFile<T>(file: string, kind: FileKind, use: (reader: SegmentFileReader) => T): T {
  const reader = new SegmentFileReader(file, kind);
  try {
    return use(reader);
  } finally {
    reader.close();
  }
}

/** Opens a regular file for reading; a link, a folder or nothing at all is reported as damage. */
export function openPlainFile(file: string): number {
  let fd: number;
  try {
    fd = fs.openSync(file, fs.constants.O_RDONLY | fs.constants.O_NOFOLLOW);
  } catch (error) {
    const code = (error as NodeJS.ErrnoException).code;
    if (code === 'ENOENT' || code === 'ENOTDIR') throw new DamagedFile(file, 'is missing', error);
    if (code === 'ELOOP' || code === 'EMLINK') throw new DamagedFile(file, 'is a link, and links are not followed', error);
    throw new TroupeError('storage', `${file}: cannot be opened (${code ?? String(error)})`, { cause: error });
  }
  if (fs.fstatSync(fd).isFile()) return fd;
  fs.closeSync(fd);
  throw new DamagedFile(file, 'is no regular file');
}

/** Reads exactly `target.length` bytes at `position`. */
export function readFully(fd: number, target: Uint8Array, position: number, file: string): void {
  let done = 0;
  while (done < target.length) {
    const got = readSome(fd, target, done, position + done, file);
    if (got === 0) throw tornAt(file, position + done);
    done += got;
  }
}

/** As `readFully`, by a thread of Node.js's. */
async function readFullySoon(fd: number, target: Uint8Array, position: number, file: string): Promise<void> {
  for (let done = 0; done < target.length; ) {
    const got = await readSomeSoon(fd, target.subarray(done), position + done).catch((error: unknown) => {
      throw unreadable(file, error);
    });
    if (got === 0) throw tornAt(file, position + done);
    done += got;
  }
}

const readSomeSoon = (fd: number, target: Uint8Array, position: number): Promise<number> =>
  new Promise((resolve, reject) => {
    fs.read(fd, target, 0, target.length, position, (error, bytes) => (error === null ? resolve(bytes) : reject(error)));
  });

function tornAt(file: string, position: number): DamagedFile {
  return new DamagedFile(file, `torn: ends at byte ${position}`);
}

function unreadable(file: string, error: unknown): TroupeError {
  return new TroupeError('storage', `${file}: cannot be read (${(error as NodeJS.ErrnoException).code ?? String(error)})`, {
    cause: error,
  });
}

function readSome(fd: number, target: Uint8Array, done: number, position: number, file: string): number {
  try {
    return fs.readSync(fd, target, done, target.length - done, position);
  } catch (error) {
    throw unreadable(file, error);
  }
}

/** Waits until the entries of a folder (new files, renames) are on disk. */
export function syncFolderNow(folder: string): void {
  const fd = fs.openSync(folder, fs.constants.O_RDONLY | fs.constants.O_DIRECTORY);
  try {
    fs.fsyncSync(fd);
  } finally {
    fs.closeSync(fd);
  }
}

/**
 * Gives a finished file or folder its final name; when this returns, the rename is on disk. Errors: the system's; `unavailable` when
 * another process has taken over the storage folder (Owner-F1).
 */
export function publishByRename(source: string, target: string): void {
  checkOwned(target);
  fs.renameSync(source, target);
  syncFolderNow(path.dirname(target));
}

function readHeader(fd: number, file: string): Header {
  const size = fs.fstatSync(fd).size;
  if (size < PREFIX_BYTES) throw new DamagedFile(file, `torn: ${size} bytes`);
  const prefix = Buffer.alloc(PREFIX_BYTES);
  readFully(fd, prefix, 0, file);
  if (!prefix.subarray(0, 8).equals(MAGIC)) throw new DamagedFile(file, 'is no segment file (wrong magic)');
  const version = prefix.readUInt32LE(8);
  if (!FORMAT_VERSIONS.includes(version))
    throw new DamagedFile(file, `unknown format version ${version}; this release reads versions ${FORMAT_VERSIONS.join(' and ')}`);
  const headerBytes = prefix.readUInt32LE(12);
  const bytes = Number(prefix.readBigUInt64LE(16));
  if (headerBytes > HEADER_BYTES_MAX || PREFIX_BYTES + headerBytes > bytes)
    throw new DamagedFile(file, 'checksum of the header does not match');
  if (size !== bytes) throw new DamagedFile(file, `torn: ${size} bytes where ${bytes} belong`);
  const header = Buffer.alloc(headerBytes);
  readFully(fd, header, PREFIX_BYTES, file);
  if (headerChecksum(prefix, header) !== prefix.readBigUInt64LE(56)) throw new DamagedFile(file, 'checksum of the header does not match');
  return JSON.parse(header.toString('utf8')) as Header;
}

function headerChecksum(prefix: Uint8Array, header: Uint8Array): bigint {
  const stream = checksumStream();
  stream.update(prefix.subarray(0, 56));
  stream.update(header);
  return stream.digest();
}

function writeFully(fd: number, bytes: Uint8Array, position: number): void {
  let done = 0;
  while (done < bytes.length) done += fs.writeSync(fd, bytes, done, bytes.length - done, position + done);
}

function hex64(value: bigint): string {
  return value.toString(16).padStart(16, '0');
}
