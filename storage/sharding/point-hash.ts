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

import { ID_KIND_UUID, idKind, type PointId, writeIdWords } from '../../protocols/model/point-id.js';
import { finishHash, mixBlock } from '../../vectors/murmur3.js';

const words = new Uint32Array(4);

/** 0..2^32-1. */
export function hashPoint(id: PointId): number {
  writeIdWords(id, words, 0);
  return hashIdWords(idKind(id), words, 0);
}

/** The same of the id whose kind and words (see `writeIdWords`) these are. */
export function hashIdWords(kind: number, idWords: Uint32Array, at: number): number {
  if (kind !== ID_KIND_UUID) return finishHash(mixBlock(mixBlock(0, idWords[at + 3] as number), idWords[at + 2] as number), 8) >>> 0;
  let hash = 0;
  for (let word = at; word < at + 4; word++) hash = mixBlock(hash, swapBytes(idWords[word] as number));
  return finishHash(hash, 16) >>> 0;
}

/** The same of three numbers of 32 bits, each as 4 bytes, little-endian. */
export function hashNumbers(first: number, second: number, third: number): number {
  return finishHash(mixBlock(mixBlock(mixBlock(0, first), second), third), 12) >>> 0;
}

function swapBytes(word: number): number {
  return ((word >>> 24) | ((word >>> 8) & 0xff00) | ((word & 0xff00) << 8) | (word << 24)) >>> 0;
}
