/**
 * The list of free pages in an LMDB file. It carries no checksum: where it is damaged, the next write transaction may be written to a page that
 * the file does not have, or over one that is in use, and what was there is gone. So a file whose list cannot be right is not written to.
 *
 * The list is a tree of pages: a key for each transaction, and of it the pages that it freed. Source: `MDB_page`, `MDB_node` and `MDB_IDL` of the
 * LMDB that lmdb 3.5 builds, and a look at its files.
 */

import { readSync } from 'node:fs';

/** Fields of a page, and where its nodes' places begin, from which they are counted. */
const PAGE_FLAGS_AT = 18;
const LOWER_AT = 20;
const OVERFLOW_PAGES_AT = 20;
const BASE = 24;
const BRANCH = 0x01;
const LEAF = 0x02;
const OVERFLOW = 0x04;
const KIND = BRANCH | LEAF | OVERFLOW;
/** A node: two halves of its size (in a branch of its page, with the flags as the highest part), flags, bytes of the key. */
const NODE_HEAD_BYTES = 8;
const BIG_DATA = 0x01;
const NUMBER_BYTES = 8;
const NO_PAGE = 0xffff_ffff_ffff_ffffn;
const FIRST_PAGE = 2n;
const DEPTH_MAX = 32;

export interface FreeList {
  readonly root: bigint;
  readonly lastPage: bigint;
  readonly pageBytes: number;
}

/** What cannot be right in the list of free pages; null: nothing is. fd: of the file. */
export function damagedFreeList(fd: number, list: FreeList): string | null {
  if (list.root === NO_PAGE) return null;
  try {
    new Walk(fd, list).visit(list.root, 0);
    return null;
  } catch (error) {
    if (error instanceof Damage || error instanceof RangeError) return `the list of free pages is damaged: ${error.message}`;
    throw error;
  }
}

class Damage extends Error {}

class Walk {
  constructor(
    private readonly fd: number,
    private readonly list: FreeList,
  ) {}

  visit(number: bigint, depth: number): void {
    if (depth === DEPTH_MAX) throw new Damage('it goes in circles');
    const page = this.page(number, BRANCH | LEAF);
    const isBranch = (page.readUInt16LE(PAGE_FLAGS_AT) & BRANCH) !== 0;
    const nodes = page.readUInt16LE(LOWER_AT) / 2;
    for (let node = 0; node < nodes; node++) {
      const at = BASE + page.readUInt16LE(BASE + 2 * node);
      const size = page.readUInt16LE(at) + page.readUInt16LE(at + 2) * 2 ** 16;
      const flags = page.readUInt16LE(at + 4);
      if (isBranch) this.visit(BigInt(size) + (BigInt(flags) << 32n), depth + 1);
      else this.check(this.data(page, at + NODE_HEAD_BYTES + page.readUInt16LE(at + 6), size, flags));
    }
  }

  /** Numbers of a leaf's node, which begin at `at`, or stand in pages of their own. */
  private data(page: Buffer, at: number, size: number, flags: number): Buffer {
    if ((flags & BIG_DATA) === 0) return page.subarray(at, at + size);
    const number = page.readBigUInt64LE(at);
    const first = this.page(number, OVERFLOW);
    const pages = first.readUInt32LE(OVERFLOW_PAGES_AT);
    if (pages * this.list.pageBytes < BASE + size) throw new Damage('a part is cut off');
    if (number + BigInt(pages) - 1n > this.list.lastPage) throw new Damage(`it lies on page ${number}`);
    return this.readOn(first, number, BASE + size).subarray(BASE, BASE + size);
  }

  /** bytes: of the pages from this one on, which has been read. */
  private readOn(first: Buffer, number: bigint, bytes: number): Buffer {
    if (bytes <= first.length) return first;
    const whole = Buffer.alloc(bytes);
    first.copy(whole);
    const missing = bytes - first.length;
    const read = readSync(this.fd, whole, first.length, missing, Number(number) * this.list.pageBytes + first.length);
    if (read < missing) throw new Damage(`page ${number} is cut off`);
    return whole;
  }

  /** data: how many numbers follow, then the first page of each run; before one of more than one page, how many, negative. Zeros say nothing. */
  private check(data: Buffer): void {
    let pages = 1n;
    for (let at = NUMBER_BYTES; at < data.length; at += NUMBER_BYTES) {
      const number = data.readBigInt64LE(at);
      if (number < 0n) pages = -number;
      else {
        if (number !== 0n && (number < FIRST_PAGE || number + pages - 1n > this.list.lastPage)) throw new Damage(`it names page ${number}`);
        pages = 1n;
      }
    }
  }

  private page(number: bigint, kinds: number): Buffer {
    const { lastPage, pageBytes } = this.list;
    if (number < FIRST_PAGE || number > lastPage) throw new Damage(`it lies on page ${number}`);
    const page = Buffer.alloc(pageBytes);
    const read = readSync(this.fd, page, 0, page.length, Number(number) * pageBytes);
    if (read < page.length || page.readBigUInt64LE(0) !== number) throw new Damage(`page ${number} is another one`);
    if ((page.readUInt16LE(PAGE_FLAGS_AT) & KIND & kinds) === 0) throw new Damage(`page ${number} is of another kind`);
    return page;
  }
}
