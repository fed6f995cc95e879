/**
 * The members of an archive by their names, and the headers of a tar. The only importer of `tar`, of which the header of a member is used alone: its
 * readers follow extended headers, long names and compression, and archives have none of them.
 */

import { join } from 'node:path';
import { Header } from 'tar/header';
import type { ShardId } from '../../protocols/model/cluster.js';
import type { ArchiveFile } from './manifest.js';

export const MANIFEST_MEMBER = 'manifest.json';
export const CHECKSUMS_MEMBER = 'checksums.json';
export const BLOCK_BYTES = 512;
/** Two blocks of zeros end a tar. */
export const END_BYTES = 2 * BLOCK_BYTES;

/** Longest name and folder of a member in the header of a tar without extensions. */
const NAME_BYTES_MAX = 100;
const FOLDER_BYTES_MAX = 155;
const SIZE_OCTAL_MAX = 0o77777777777;
const USTAR = Buffer.from('ustar\u000000', 'latin1');
const MODE = 0o644;

/** The folder of a shard in an unpacked archive. collection: its place in the manifest. */
export function unpackedShard(folder: string, collection: number, shard: ShardId): string {
  return join(folder, 'collections', String(collection), 'shards', String(shard));
}

/**
 * The name of the member that has a file. position: of the file in its shard. A path that is too long for the header of a tar (the index of a field
 * may have such a name) has its position instead; the manifest has the path.
 */
export function memberName(collection: number, shard: ShardId, position: number, { path }: ArchiveFile): string {
  const folder = `collections/${collection}/shards/${shard}`;
  const name = `${folder}/${path}`;
  const last = name.lastIndexOf('/');
  const fits = name.length < NAME_BYTES_MAX || (last <= FOLDER_BYTES_MAX && name.length - last - 1 < NAME_BYTES_MAX);
  return fits ? name : `${folder}/.long-names/${position}`;
}

/** Bytes of a member with its header and its padding. */
export function memberBytes(bytes: number): number {
  return BLOCK_BYTES + bytes + paddingAfter(bytes);
}

export function paddingAfter(bytes: number): number {
  return (BLOCK_BYTES - (bytes % BLOCK_BYTES)) % BLOCK_BYTES;
}

/** Writes the header of a plain file of the archive into the next 512 bytes of a buffer. */
export function writeHeader(target: Buffer, offset: number, name: string, bytes: number, modified: Date): void {
  target.fill(0, offset, offset + BLOCK_BYTES);
  const header = new Header({ path: name, mode: MODE, uid: 0, gid: 0, size: bytes, mtime: modified, type: 'File', uname: '', gname: '' });
  header.encode(target, offset);
  // Sizes from 8 GiB on are binary, as all programs for tar files know them; nothing else may need an extension.
  if (header.needPax && bytes <= SIZE_OCTAL_MAX) throw new Error(`the member ${name} does not fit in the header of a tar`);
}

/** What a header says of a member. */
export interface MemberHeader {
  readonly name: string;
  readonly bytes: number;
  /** Why it is no member that an archive can have; null for nothing. */
  readonly problem: string | null;
}

/** Whether a block is zeros: the end of a tar begins with one. */
export function isEndBlock(block: Buffer): boolean {
  return block.every((byte) => byte === 0);
}

/** Decodes a header. block: 512 bytes. Result: null if it is none of a tar, or damaged. */
export function readHeader(block: Buffer): MemberHeader | null {
  let header: Header;
  try {
    header = new Header(Buffer.from(block));
  } catch {
    // Binary numbers that are none.
    return null;
  }
  if (!header.cksumValid || header.path === undefined || !CHECKSUM.test(block.toString('latin1', CHECKSUM_AT, CHECKSUM_AT + 8)))
    return null;
  const name = header.path;
  const bytes = header.size ?? -1;
  return { name, bytes, problem: kindProblem(header, block) ?? nameProblem(name) ?? (bytes < 0 ? 'has no size' : null) };
}

const PLAIN_FILE = 0x30;
const CHECKSUM_AT = 148;
/** The checksum's own bytes are not in it: each must be what tar programs write there. */
const CHECKSUM = /^[0-7]{6}(?:\0 | \0)$/;
const TYPE_AT = 156;
const MAGIC_AT = 257;
/** Texts in a header, each ended by a NUL or by its length: name, link, folder. */
const TEXTS = [
  [0, NAME_BYTES_MAX],
  [157, NAME_BYTES_MAX],
  [345, FOLDER_BYTES_MAX],
] as const;

/** Kinds of members by node-tar's names for them. */
const KIND_NAMES: Readonly<Record<string, string>> = {
  Link: 'a link',
  SymbolicLink: 'a link',
  CharacterDevice: 'a device',
  BlockDevice: 'a device',
  FIFO: 'a pipe',
  Directory: 'a folder',
  GNUDumpDir: 'a folder',
  SparseFile: 'a sparse file',
  GlobalExtendedHeader: 'an extended header',
  ExtendedHeader: 'an extended header',
  OldExtendedHeader: 'an extended header',
  NextFileHasLongPath: 'a long name',
  NextFileHasLongLinkpath: 'a long name',
  OldGnuLongPath: 'a long name',
};

function kindProblem(header: Header, block: Buffer): string | null {
  if (block[TYPE_AT] !== PLAIN_FILE) return `is ${KIND_NAMES[header.type] ?? 'of a kind of its own'}, not a plain file`;
  if (!block.subarray(MAGIC_AT, MAGIC_AT + USTAR.length).equals(USTAR)) return 'has not the header of a plain tar (ustar)';
  if (header.linkpath) return 'is a link';
  for (const [from, length] of TEXTS) {
    const text = block.subarray(from, from + length);
    const end = text.indexOf(0);
    if (end >= 0 && text.subarray(end).some((byte) => byte !== 0)) return 'has a name with a NUL byte in it';
  }
  return null;
}

function nameProblem(name: string): string | null {
  if (/^\/|^[A-Za-z]:/.test(name)) return 'has an absolute name';
  if (name.includes('\\')) return 'has a name with a backslash in it';
  if (name.split('/').includes('..')) return 'has a name that leads out of its folder';
  return name === '' || name.endsWith('/') ? 'has no name of a file' : null;
}

const COMPRESSIONS: readonly (readonly [name: string, magic: Buffer])[] = [
  ['gzip', Buffer.of(0x1f, 0x8b)],
  ['zstd', Buffer.of(0x28, 0xb5, 0x2f, 0xfd)],
  ['bzip2', Buffer.from('BZh', 'latin1')],
  ['xz', Buffer.of(0xfd, 0x37, 0x7a, 0x58, 0x5a)],
  ['lz4', Buffer.of(0x04, 0x22, 0x4d, 0x18)],
  ['zip', Buffer.from('PK\u0003\u0004', 'latin1')],
];

/** What has compressed a file that begins with these bytes; null for nothing that is known. */
export function compressionOf(start: Buffer): string | null {
  return COMPRESSIONS.find(([, magic]) => start.subarray(0, magic.length).equals(magic))?.[0] ?? null;
}
