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

const words = new Uint32Array(4);

/** 0..2^32-1. */
export function hashPoint(id: PointId): number {
  writeIdWords(id, words, 0);
  if (typeof id !== 'string') return finish(mix(mix(0, words[3] as number), words[2] as number), 8);
  let hash = 0;
  for (let at = 0; at < 4; at++) hash = mix(hash, swapBytes(words[at] as number));
  return finish(hash, 16);
}

/** The same of three numbers of 32 bits, each as 4 bytes, little-endian. */
export function hashNumbers(first: number, second: number, third: number): number {
  return finish(mix(mix(mix(0, first), second), third), 12);
}

/** Takes one block of 4 bytes, read as a little-endian number. */
function mix(hash: number, block: number): number {
  let scrambled = Math.imul(block, 0xcc9e2d51);
  scrambled = Math.imul((scrambled << 15) | (scrambled >>> 17), 0x1b873593);
  const mixed = hash ^ scrambled;
  return (Math.imul((mixed << 13) | (mixed >>> 19), 5) + 0xe6546b64) | 0;
}

function finish(hash: number, bytes: number): number {
  let mixed = hash ^ bytes;
  mixed = Math.imul(mixed ^ (mixed >>> 16), 0x85ebca6b);
  mixed = Math.imul(mixed ^ (mixed >>> 13), 0xc2b2ae35);
  return (mixed ^ (mixed >>> 16)) >>> 0;
}

function swapBytes(word: number): number {
  return ((word >>> 24) | ((word >>> 8) & 0xff00) | ((word & 0xff00) << 8) | (word << 24)) >>> 0;
}
