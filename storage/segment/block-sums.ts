/**
 * Checksums of a vector's originals, or of codes that are read by lists, block by block, in files beside theirs (`sums-file.ts`). With them a start does not read what is
 * large through before it answers: each block is verified before the first byte of it is used, and soon all of them are (`originals.ts`).
 *
 * In shared memory (little-endian): u32, not 0 once the whole file was verified; u32, unused; u64 for each block, the xxHash64 of its bytes; then a bit for each
 * block, set once it was verified.
 */

import { checksum64 } from '../disk/checksum.js';
import { DamagedFile } from '../disk/file.js';

/** What one search reads of a block takes a small part of 20 µs, and as much again to read and hash the rest of it. */
const BLOCK_BYTES = 1 << 16;
const HEAD_BYTES = 8;
const SUM_BYTES = 8;

/** Where they are, and of how many bytes. */
export interface BlockSums {
  readonly buffer: SharedArrayBuffer;
  readonly bytes: number;
}

/** Makes them of bytes that pass by. `initChecksum` must have been awaited in this thread, as for all of this file. */
export class SumsStream {
  private readonly sums: BigUint64Array;

  /** bytes: of all. */
  constructor(bytes: number) {
    this.sums = new BigUint64Array(blocksOf(bytes));
  }

  /** As they are in their file, u64 [blocks], once all pieces have passed. */
  get bytes(): Uint8Array {
    return new Uint8Array(this.sums.buffer);
  }

  /** The same pieces, each of whole blocks but the last. */
  *passing(pieces: Iterable<Uint8Array>): Generator<Uint8Array> {
    let block = 0;
    for (const piece of pieces) {
      for (let at = 0; at < piece.length; at += BLOCK_BYTES) this.sums[block++] = checksum64(piece.subarray(at, at + BLOCK_BYTES));
      yield piece;
    }
  }
}

/** Room for the sums of so many bytes: what is to be filled from their file, and what readers are given. */
export function roomForSums(bytes: number): { readonly sums: BlockSums; readonly target: Uint8Array } {
  const blocks = blocksOf(bytes);
  const buffer = new SharedArrayBuffer(HEAD_BYTES + blocks * SUM_BYTES + Math.ceil(blocks / 32) * 4);
  return { sums: { buffer, bytes }, target: new Uint8Array(buffer, HEAD_BYTES, blocks * SUM_BYTES) };
}

/** Whether the whole file was verified since it was opened. */
export function isVerified({ buffer }: BlockSums): boolean {
  return Atomics.load(new Uint32Array(buffer, 0, 1), 0) !== 0;
}

export function markVerified({ buffer }: BlockSums): void {
  Atomics.store(new Uint32Array(buffer, 0, 1), 0, 1);
}

/**
 * Verifies the blocks of `bytes` bytes from `position` on that were not verified yet. read: fills memory with bytes of the file's rows, from a position on.
 * Errors: `DamagedFile`, of `file`; those of `read`.
 */
export function verifyBlocks(
  { buffer, bytes: all }: BlockSums,
  position: number,
  bytes: number,
  file: string,
  read: (position: number, target: Uint8Array) => void,
): void {
  const blocks = blocksOf(all);
  const sums = new BigUint64Array(buffer, HEAD_BYTES, blocks);
  const verified = new Uint32Array(buffer, HEAD_BYTES + blocks * SUM_BYTES);
  for (let block = Math.floor(position / BLOCK_BYTES); block * BLOCK_BYTES < position + bytes; block++) {
    const bit = 1 << (block & 31);
    if ((Atomics.load(verified, block >>> 5) & bit) !== 0) continue;
    const from = block * BLOCK_BYTES;
    const content = spare.subarray(0, Math.min(BLOCK_BYTES, all - from));
    read(from, content);
    if (checksum64(content) !== sums[block]) throw new DamagedFile(file, `checksum does not match from byte ${from} of its rows on`);
    Atomics.or(verified, block >>> 5, bit);
  }
}

const spare = new Uint8Array(BLOCK_BYTES);

function blocksOf(bytes: number): number {
  return Math.ceil(bytes / BLOCK_BYTES);
}
