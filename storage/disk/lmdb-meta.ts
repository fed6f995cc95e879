/**
 * The two meta pages of an LMDB file. Commits take turns at them, and the one with the larger number counts; they carry no
 * checksum. Where that number is damaged, LMDB would go back to the commit before without a word, and what was acknowledged
 * last would be gone. But the numbers of two meta pages in order are neighbours, and the page that each one's commit wrote as
 * its root has the same number.
 *
 * Where LMDB cannot write a meta page, it writes once more: the number of two commits before, with the roots of the commit that failed. The other
 * page counts then, as it should, and the next commit takes the place. But a number damaged by two looks the same. So whoever sees a commit
 * fail notes it in that page, behind what LMDB writes there.
 */

import { closeSync, fstatSync, fsyncSync, openSync, readSync, writeSync } from 'node:fs';
import { damagedFreeList } from './lmdb-free-pages.js';

const MAGIC = 0xbeef_c0de;
/** `MDB_DATA_VERSION`. */
const VERSION = 2;
/** `MDB_ENCRYPT`. */
const ENCRYPTED_FLAG = 0x2000;
/** Bytes of a page's header, and of fields from the page's start. Source: `MDB_meta` of the LMDB that lmdb 3.5 builds, and a look at its files. */
const PAGE_FLAGS_AT = 18;
const META_FLAG = 0x08;
const MAGIC_AT = 24;
const VERSION_AT = 28;
const PAGE_BYTES_AT = 48;
const FLAGS_AT = 52;
/** Root of the list of free pages. */
const FREE_ROOT_AT = 88;
const ROOT_AT = 136;
const LAST_PAGE_AT = 144;
const TRANSACTION_AT = 152;
const META_BYTES = 160;
/** Where a failed commit is noted: a mark, and the commit's number. LMDB leaves these bytes as they are. */
const NOTE_AT = 256;
const NOTE_MARK = Buffer.from('failed: ', 'latin1');
const NOTE_BYTES = NOTE_MARK.length + 8;
/** Powers of two from 512 to 64 KB. */
const PAGE_SIZES: ReadonlySet<number> = new Set(Array.from({ length: 8 }, (_, power) => 512 << power));
const PAGE_TRANSACTION_AT = 8;
/** Root of an environment to which nothing was committed yet. */
const NO_ROOT = 0xffff_ffff_ffff_ffffn;

interface MetaPages {
  readonly first: Buffer;
  readonly second: Buffer;
  readonly pageBytes: number;
}

/**
 * Why LMDB cannot even open the file: a meta page is cut off, is none, or names more than `bytesMax` bytes of pages; null for nothing.
 * Opening such a file ends the process.
 */
export function unreadableMeta(file: string, bytesMax: number): string | null {
  return readMeta(file, (pages) => {
    if (typeof pages === 'string') return pages;
    const { first, pageBytes, second } = pages;
    const isTooLong = [first, second].some((meta) => Number(meta.readBigUInt64LE(LAST_PAGE_AT)) * pageBytes > bytesMax);
    return isTooLong ? 'a meta page names pages that the file does not have' : null;
  });
}

/** What is wrong with the meta pages of an LMDB file to which something was committed; null for nothing. */
export function damagedMeta(file: string): string | null {
  return readMeta(file, damageOf);
}

/** Notes that a commit failed (Room-R7), so that its meta page is not taken for damaged. As far as the disk allows it: nothing else can be done. */
export function noteFailedCommit(file: string, transaction: bigint): void {
  try {
    const fd = openSync(file, 'r+');
    try {
      const pages = readMetaPages(fd);
      if (typeof pages === 'string') return;
      writeSync(fd, noteOf(transaction), 0, NOTE_BYTES, Number(transaction % 2n) * pages.pageBytes + NOTE_AT);
      fsyncSync(fd);
    } finally {
      closeSync(fd);
    }
  } catch {}
}

/** What is wrong with the meta pages, or with the list of free pages, of an LMDB file to which nobody writes; null for nothing. */
export function damagedPages(file: string): string | null {
  return readMeta(file, (pages, fd) => {
    const damage = damageOf(pages, fd);
    if (damage !== null || typeof pages === 'string') return damage;
    const { pageBytes } = pages;
    const meta = newestOf(pages);
    return damagedFreeList(fd, { root: meta.readBigUInt64LE(FREE_ROOT_AT), lastPage: meta.readBigUInt64LE(LAST_PAGE_AT), pageBytes });
  });
}

/** The number of the newest transaction in a file whose meta pages are sound; null: they are not. */
export function newestTransaction(file: string): bigint | null {
  return readMeta(file, (pages, fd) => {
    if (typeof pages === 'string' || damageOf(pages, fd) !== null) return null;
    return transactionOf(newestOf(pages));
  });
}

function newestOf({ first, second }: MetaPages): Buffer {
  return transactionOf(first) > transactionOf(second) ? first : second;
}

/** What `take` makes of both meta pages, or of what is wrong with them. fd: of the file, which is open meanwhile. */
function readMeta<T>(file: string, take: (pages: MetaPages | string, fd: number) => T): T {
  const fd = openSync(file, 'r');
  try {
    return take(readMetaPages(fd), fd);
  } finally {
    closeSync(fd);
  }
}

function damageOf(pages: MetaPages | string, fd: number): string | null {
  if (typeof pages === 'string') return pages;
  const { first, pageBytes, second } = pages;
  const newer = newestOf(pages);
  const older = newer === first ? second : first;
  const newest = transactionOf(newer);
  const isSound =
    newest - transactionOf(older) === 1n &&
    isRootOf(fd, newer, newest, pageBytes) &&
    (isRootOf(fd, older, newest - 1n, pageBytes) || isNoted(fd, newest + 1n, pageBytes));
  return isSound ? null : 'the meta pages do not follow each other';
}

/** Whether it was noted that this commit failed. */
function isNoted(fd: number, transaction: bigint, pageBytes: number): boolean {
  const note = Buffer.alloc(NOTE_BYTES);
  readSync(fd, note, 0, NOTE_BYTES, Number(transaction % 2n) * pageBytes + NOTE_AT);
  return note.equals(noteOf(transaction));
}

function noteOf(transaction: bigint): Buffer {
  const number = Buffer.alloc(8);
  number.writeBigUInt64LE(transaction);
  return Buffer.concat([NOTE_MARK, number]);
}

/** Both meta pages, or what is wrong with them. */
function readMetaPages(fd: number): MetaPages | string {
  const first = Buffer.alloc(META_BYTES);
  readSync(fd, first, 0, META_BYTES, 0);
  const pageBytes = first.readUInt32LE(PAGE_BYTES_AT);
  if (!isMeta(first) || !PAGE_SIZES.has(pageBytes)) return 'the first meta page is damaged';
  if (fstatSync(fd).size < 2 * pageBytes) return 'the second meta page is cut off';
  const second = Buffer.alloc(META_BYTES);
  readSync(fd, second, 0, META_BYTES, pageBytes);
  if (!isMeta(second) || second.readUInt32LE(PAGE_BYTES_AT) !== pageBytes) return 'the second meta page is damaged';
  return { first, second, pageBytes };
}

function transactionOf(meta: Buffer): bigint {
  return meta.readBigUInt64LE(TRANSACTION_AT);
}

function isMeta(page: Buffer): boolean {
  return (
    (page.readUInt16LE(PAGE_FLAGS_AT) & META_FLAG) !== 0 &&
    page.readUInt32LE(MAGIC_AT) === MAGIC &&
    (page.readUInt32LE(VERSION_AT) & 0xffff) === VERSION &&
    (page.readUInt16LE(FLAGS_AT) & ENCRYPTED_FLAG) === 0
  );
}

/** Whether the root of a meta page was written by this commit. */
function isRootOf(fd: number, meta: Buffer, transaction: bigint, pageBytes: number): boolean {
  const root = meta.readBigUInt64LE(ROOT_AT);
  if (root === NO_ROOT) return true;
  const head = Buffer.alloc(PAGE_TRANSACTION_AT + 8);
  if (root * BigInt(pageBytes) > Number.MAX_SAFE_INTEGER || readSync(fd, head, 0, head.length, Number(root) * pageBytes) < head.length)
    return false;
  return head.readBigUInt64LE(PAGE_TRANSACTION_AT) === transaction;
}
