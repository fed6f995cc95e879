/**
 * The two meta pages of an LMDB file. Commits take turns at them, and the one with the larger number counts; they carry no
 * checksum. Where that number is damaged, LMDB would go back to the commit before without a word, and what was acknowledged
 * last would be gone. But the numbers of two meta pages in order are neighbours, and the page that each one's commit wrote as
 * its root has the same number.
 */

import { closeSync, openSync, readSync } from 'node:fs';

const MAGIC = 0xbeef_c0de;
/** Bytes of a page's header, and of fields from the page's start. Source: `MDB_meta` of the LMDB that lmdb 3.5 builds, and a look at its files. */
const MAGIC_AT = 24;
const PAGE_BYTES_AT = 48;
const ROOT_AT = 136;
const TRANSACTION_AT = 152;
const META_BYTES = 160;
const PAGE_BYTES_MAX = 65_536;
const PAGE_TRANSACTION_AT = 8;
/** Root of an environment to which nothing was committed yet. */
const NO_ROOT = 0xffff_ffff_ffff_ffffn;

/** What is wrong with the meta pages of an LMDB file to which something was committed; null for nothing. */
export function damagedMeta(file: string): string | null {
  const fd = openSync(file, 'r');
  try {
    const first = Buffer.alloc(META_BYTES);
    readSync(fd, first, 0, META_BYTES, 0);
    const pageBytes = first.readUInt32LE(PAGE_BYTES_AT);
    if (first.readUInt32LE(MAGIC_AT) !== MAGIC || pageBytes < META_BYTES || pageBytes > PAGE_BYTES_MAX)
      return 'the first meta page is damaged';
    const second = Buffer.alloc(META_BYTES);
    readSync(fd, second, 0, META_BYTES, pageBytes);
    if (second.readUInt32LE(MAGIC_AT) !== MAGIC) return 'the second meta page is damaged';
    const apart = first.readBigUInt64LE(TRANSACTION_AT) - second.readBigUInt64LE(TRANSACTION_AT);
    const wroteRoots = [first, second].every((meta) => isOwnRoot(fd, meta, pageBytes));
    return wroteRoots && (apart === 1n || apart === -1n) ? null : 'the meta pages do not follow each other';
  } finally {
    closeSync(fd);
  }
}

function isOwnRoot(fd: number, meta: Buffer, pageBytes: number): boolean {
  const root = meta.readBigUInt64LE(ROOT_AT);
  if (root === NO_ROOT) return true;
  const head = Buffer.alloc(PAGE_TRANSACTION_AT + 8);
  if (root * BigInt(pageBytes) > Number.MAX_SAFE_INTEGER || readSync(fd, head, 0, head.length, Number(root) * pageBytes) < head.length)
    return false;
  return head.readBigUInt64LE(PAGE_TRANSACTION_AT) === meta.readBigUInt64LE(TRANSACTION_AT);
}
