/**
 * Reads an archive from its first byte to its last, once, and trusts nothing in it: each member must be the one that the manifest has in this place,
 * with its size. So nothing of a name or a size that the archive gives reaches the disk (Archive-T1 to Archive-T4).
 */

import fs from 'node:fs';
import { setImmediate } from 'node:timers/promises';
import { crypto } from '../../protocols/late-modules.js';
import type { ShardId } from '../../protocols/model/cluster.js';
import { type ChecksumStream, checksumStream } from '../disk/checksum.js';
import { openPlainFile } from '../disk/file.js';
import { diskError } from './archive-disk.js';
import { ArchiveError } from './archive-error.js';
import {
  type ArchiveFile,
  type ArchiveManifest,
  checkedValue,
  decodeManifestFile,
  MANIFEST_LIMITS,
  type ManifestLimits,
  packedFilesOf,
} from './manifest.js';
import {
  BLOCK_BYTES,
  CHECKSUMS_MEMBER,
  compressionOf,
  isEndBlock,
  MANIFEST_MEMBER,
  type MemberHeader,
  memberName,
  paddingAfter,
  readHeader,
} from './members.js';
import { ARCHIVE_CHUNK_BYTES, checksumsBytes, checksumText, throwIfCancelled } from './pack.js';
import type { ArchiveWorkOptions, PackedArchive, UnpackedArchive } from './port.js';

/** What is done with the parts of an archive, in their order. What these throw ends the reading. */
export interface ArchiveVisitor {
  /** Before anything else: the manifest is in order. */
  begin(manifest: ArchiveManifest): void;
  /** Of a file that is a member: those of the base are not visited. */
  beginFile(collection: number, shard: ShardId, file: ArchiveFile): void;
  /** The next bytes of the file, which hold until this returns. */
  bytes(part: Uint8Array): void;
  /** checksum: of what has come; whether it is what was packed shows behind all files. */
  endFile(checksum: string): void;
  /** After the last file of a shard, also of one without files. */
  endShard(collection: number, shard: ShardId): void | Promise<void>;
  /** Bytes of this file are not those that were packed. Found out behind all files. */
  damaged(error: ArchiveError): void;
}

/** Where the bytes come from: chunks of any size, each of which holds until the next one is asked for; null at the end. */
export interface ArchiveSource {
  /** Of the archive; null where that is not known. */
  readonly bytes: number | null;
  next(): Promise<Uint8Array | null>;
  close(): Promise<void>;
}

/** Errors: `storage` if the file cannot be read. */
export function fileSource(file: string): ArchiveSource {
  const fd = openPlainFile(file);
  const chunk = Buffer.allocUnsafeSlow(ARCHIVE_CHUNK_BYTES);
  return {
    bytes: fs.fstatSync(fd).size,
    async next() {
      // Messages of the thread have their turn.
      await setImmediate();
      const got = fs.readSync(fd, chunk, 0, chunk.length, null);
      return got === 0 ? null : chunk.subarray(0, got);
    },
    async close() {
      fs.closeSync(fd);
    },
  };
}

export function streamSource(stream: AsyncIterable<Uint8Array>): ArchiveSource {
  const chunks = stream[Symbol.asyncIterator]();
  return {
    bytes: null,
    async next() {
      const next = await chunks.next();
      return next.done === true ? null : next.value;
    },
    async close() {
      await chunks.return?.();
    },
  };
}

/** Goes through a whole archive. The source is closed by the caller. Errors: `ArchiveError`, and what the visitor throws. */
export async function readArchive(
  source: ArchiveSource,
  limits: ManifestLimits,
  visitor: ArchiveVisitor,
  options: ArchiveWorkOptions = {},
): Promise<UnpackedArchive> {
  const reader = new MemberReader(source, options);
  const manifest = await readManifest(reader, limits);
  reader.expects(manifest);
  visitor.begin(manifest);
  const checksums = await readFiles(reader, manifest, visitor);
  await readChecksums(reader, manifest, checksums, visitor);
  await reader.end();
  return { manifest, ...reader.packed() };
}

/** The manifest of an archive's file; what is behind it is not looked at. Errors: `ArchiveError`; `storage` if the file cannot be read. */
export function manifestOfFile(file: string, options: ArchiveWorkOptions = {}): Promise<ArchiveManifest> {
  return withSource(file, (source) => readManifest(new MemberReader(source, options), MANIFEST_LIMITS));
}

/** Size and SHA-256 of any file. Errors: `storage` if it cannot be read. */
export function hashFile(file: string, { onProgress, signal }: ArchiveWorkOptions = {}): Promise<PackedArchive> {
  return withSource(file, async (source) => {
    const hash = crypto().createHash('sha256');
    let bytes = 0;
    for (let chunk = await source.next(); chunk !== null; chunk = await source.next()) {
      throwIfCancelled(signal);
      hash.update(chunk);
      bytes += chunk.length;
      onProgress?.(bytes, Math.max(bytes, source.bytes ?? 0));
    }
    return { bytes, sha256: hash.digest('hex') };
  });
}

async function withSource<T>(file: string, use: (source: ArchiveSource) => Promise<T>): Promise<T> {
  const source = fileSource(file);
  try {
    return await use(source);
  } catch (error) {
    throw diskError(error, `cannot read ${file}`);
  } finally {
    await source.close();
  }
}

async function readManifest(reader: MemberReader, limits: ManifestLimits): Promise<ArchiveManifest> {
  const { bytes } = await reader.firstHeader();
  if (bytes > limits.manifestBytesMax)
    throw new ArchiveError(
      'tooLarge',
      `the manifest of the archive has ${bytes} bytes, and ${limits.manifestBytesMax} are the most that is taken`,
    );
  return decodeManifestFile(await reader.whole(bytes, MANIFEST_MEMBER), limits);
}

/** Result: the checksums of all files in their order. */
async function readFiles(reader: MemberReader, manifest: ArchiveManifest, visitor: ArchiveVisitor): Promise<string[]> {
  const checksums: string[] = [];
  for (const [collection, { shards }] of manifest.collections.entries()) {
    for (const { files, id } of shards) {
      for (const [position, file] of files.entries()) {
        if (file.inBase !== undefined) continue;
        const name = memberName(collection, id, position, file);
        await reader.header(name, file.bytes);
        visitor.beginFile(collection, id, file);
        const checksum = await readFile(reader, name, file.bytes, visitor);
        checksums.push(checksum);
        visitor.endFile(checksum);
      }
      await visitor.endShard(collection, id);
    }
  }
  return checksums;
}

async function readFile(reader: MemberReader, name: string, bytes: number, visitor: ArchiveVisitor): Promise<string> {
  const checksum: ChecksumStream = checksumStream();
  for (let left = bytes; left > 0; ) {
    const part = await reader.some(left, name);
    checksum.update(part);
    visitor.bytes(part);
    left -= part.length;
  }
  await reader.padding(bytes, name);
  return checksumText(checksum.digest());
}

async function readChecksums(
  reader: MemberReader,
  manifest: ArchiveManifest,
  checksums: readonly string[],
  visitor: ArchiveVisitor,
): Promise<void> {
  const bytes = checksumsBytes(checksums.length);
  await reader.header(CHECKSUMS_MEMBER, bytes);
  const packed = checkedValue(await reader.whole(bytes, CHECKSUMS_MEMBER), 'checksums', CHECKSUMS_MEMBER);
  if (!Array.isArray(packed) || packed.length !== checksums.length)
    throw new ArchiveError('damaged', `the archive is damaged: \`${CHECKSUMS_MEMBER}\` has not one checksum for each file`);
  let at = 0;
  for (const { collection, file, shard } of packedFilesOf(manifest)) {
    if (packed[at] !== checksums[at]) visitor.damaged(wrongChecksum(manifest, collection, shard, file));
    at++;
  }
}

function wrongChecksum(manifest: ArchiveManifest, collection: number, shard: ShardId, { path }: ArchiveFile): ArchiveError {
  const name = manifest.collections[collection]?.name;
  return new ArchiveError(
    'damaged',
    `the archive is damaged: the checksum of \`${path}\` of shard ${shard} of collection \`${name}\` does not match; take another copy of it`,
  );
}

/** The members of an archive, read in the order in which they must come. */
class MemberReader {
  private readonly hash = crypto().createHash('sha256');
  private chunk: Buffer = Buffer.alloc(0);
  /** Bytes of the chunk that are taken. */
  private taken = 0;
  /** Bytes of all chunks. */
  private bytes = 0;
  private total = 0;

  constructor(
    private readonly source: ArchiveSource,
    private readonly options: ArchiveWorkOptions,
  ) {
    this.total = source.bytes ?? 0;
  }

  /** Where the source does not say how long it is, the manifest does, nearly. */
  expects(manifest: ArchiveManifest): void {
    if (this.source.bytes !== null) return;
    for (const { file } of packedFilesOf(manifest)) this.total += file.bytes;
  }

  packed(): PackedArchive {
    return { bytes: this.bytes, sha256: this.hash.digest('hex') };
  }

  /** Up to so many of the next bytes, at least one. They hold until the next call. Errors: `truncated`. */
  async some(bytesMax: number, member: string): Promise<Buffer> {
    if (this.taken === this.chunk.length && !(await this.fill()))
      throw new ArchiveError('truncated', `the archive is truncated: it ends after ${this.bytes} bytes, within or before \`${member}\``);
    const part = this.chunk.subarray(this.taken, Math.min(this.taken + bytesMax, this.chunk.length));
    this.taken += part.length;
    return part;
  }

  /** The next bytes in one piece, which the caller may keep, with the padding behind them. Memory grows with what has come. */
  async whole(bytes: number, member: string): Promise<Uint8Array> {
    const parts: Buffer[] = [];
    for (let left = bytes; left > 0; ) {
      const part = Buffer.from(await this.some(left, member));
      parts.push(part);
      left -= part.length;
    }
    await this.padding(bytes, member);
    return parts.length === 1 ? (parts[0] as Buffer) : Buffer.concat(parts);
  }

  async padding(bytes: number, member: string): Promise<void> {
    for (let left = paddingAfter(bytes); left > 0; ) {
      const part = await this.some(left, member);
      if (part.some((byte) => byte !== 0))
        throw new ArchiveError('damaged', `the archive is damaged: behind \`${member}\` are bytes that are not zero`);
      left -= part.length;
    }
  }

  /** The header of the manifest. Errors: `foreign` if this is none of Troupe's archives. */
  async firstHeader(): Promise<MemberHeader> {
    const start = await this.start();
    const compression = compressionOf(start);
    if (compression !== null)
      throw new ArchiveError(
        'foreign',
        `the file is compressed with ${compression}, and archives are plain tar files: decompress it first`,
      );
    const header = start.length < BLOCK_BYTES || isEndBlock(start) ? null : readHeader(start);
    if (header === null) {
      const what = start.length === 0 ? 'it is empty' : 'it does not begin as a tar file';
      throw new ArchiveError('foreign', `the file is no archive of Troupe: ${what}`);
    }
    if (header.problem !== null) throw wrongMember(header, MANIFEST_MEMBER);
    if (header.name !== MANIFEST_MEMBER)
      throw new ArchiveError(
        'foreign',
        `the file is no archive of Troupe: its first member is \`${header.name}\`, and Troupe's archives begin with \`${MANIFEST_MEMBER}\``,
      );
    return header;
  }

  /** Takes the header of the member that must come next. Errors: `ArchiveError`. */
  async header(name: string, bytes: number): Promise<void> {
    const block = await this.block(name);
    if (isEndBlock(block)) throw new ArchiveError('truncated', `the archive is truncated: it has no \`${name}\``);
    const header = readHeader(block);
    if (header === null) throw new ArchiveError('damaged', `the archive is damaged: the header of \`${name}\` does not match its checksum`);
    if (header.problem !== null || header.name !== name) throw wrongMember(header, name);
    if (header.bytes !== bytes)
      throw new ArchiveError('member', `the archive has \`${name}\` with ${header.bytes} bytes, and ${bytes} belong there`);
  }

  /** Errors: `ArchiveError` unless the archive ends here. */
  async end(): Promise<void> {
    for (let n = 0; n < 2; n++) {
      const block = await this.block('its end');
      if (isEndBlock(block)) continue;
      const header = n === 0 ? readHeader(block) : null;
      if (header !== null) throw new ArchiveError('member', `the archive has the member \`${header.name}\` behind its last one`);
      throw new ArchiveError('damaged', 'the archive is damaged: it does not end with two blocks of zeros');
    }
    if (this.taken < this.chunk.length || (await this.fill()))
      throw new ArchiveError(
        'damaged',
        `the archive is damaged: it has more bytes behind its end, which is after ${this.bytes - this.chunk.length + this.taken} bytes`,
      );
  }

  private async block(member: string): Promise<Buffer> {
    const first = await this.some(BLOCK_BYTES, member);
    if (first.length === BLOCK_BYTES) return first;
    const parts = [Buffer.from(first)];
    for (let left = BLOCK_BYTES - first.length; left > 0; ) {
      const part = Buffer.from(await this.some(left, member));
      parts.push(part);
      left -= part.length;
    }
    return Buffer.concat(parts);
  }

  /** The first block, or less where there is no more. */
  private async start(): Promise<Buffer> {
    const parts: Buffer[] = [];
    for (let left = BLOCK_BYTES; left > 0; ) {
      if (this.taken === this.chunk.length && !(await this.fill())) break;
      const part = Buffer.from(await this.some(left, MANIFEST_MEMBER));
      parts.push(part);
      left -= part.length;
    }
    return Buffer.concat(parts);
  }

  /** False at the end of the source. */
  private async fill(): Promise<boolean> {
    for (;;) {
      throwIfCancelled(this.options.signal);
      const chunk = await this.source.next();
      if (chunk === null) {
        this.chunk = Buffer.alloc(0);
        this.taken = 0;
        return false;
      }
      if (chunk.length === 0) continue;
      this.hash.update(chunk);
      this.chunk = Buffer.from(chunk.buffer, chunk.byteOffset, chunk.byteLength);
      this.taken = 0;
      this.bytes += chunk.length;
      this.options.onProgress?.(this.bytes, Math.max(this.total, this.bytes));
      return true;
    }
  }
}

function wrongMember({ name, problem }: MemberHeader, expected: string): ArchiveError {
  const what = problem === null ? `where \`${expected}\` belongs` : `which ${problem}`;
  return new ArchiveError('member', `the archive has the member \`${name}\`, ${what}`);
}
