/**
 * The hash that says where a point lives: MurmurHash3 (x86, 32 bits, seed 0) of the id's canonical bytes. It never changes, as
 * points are where it put them.
 *
 * | id      | bytes |
 * |---------|-------|
 * | integer | 8, little-endian |
 * | UUID    | its 16, in the order in which it is written |
 *
 * Source: Austin Appleby, MurmurHash3 (public domain).
 */

import { type PointId, writeIdWords } from '../../protocols/model/point-id.js';
import { finishHash, mixBlock } from '../../vectors/murmur3.js';

const words = new Uint32Array(4);

/** 0..2^32-1. */
export function hashPoint(id: PointId): number {
  writeIdWords(id, words, 0);
  if (typeof id !== 'string') return finishHash(mixBlock(mixBlock(0, words[3] as number), words[2] as number), 8) >>> 0;
  let hash = 0;
  for (let at = 0; at < 4; at++) hash = mixBlock(hash, swapBytes(words[at] as number));
  return finishHash(hash, 16) >>> 0;
}

/** The same of three numbers of 32 bits, each as 4 bytes, little-endian. */
export function hashNumbers(first: number, second: number, third: number): number {
  return finishHash(mixBlock(mixBlock(mixBlock(0, first), second), third), 12) >>> 0;
}

function swapBytes(word: number): number {
  return ((word >>> 24) | ((word >>> 8) & 0xff00) | ((word & 0xff00) << 8) | (word << 24)) >>> 0;
}
