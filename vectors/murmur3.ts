/** MurmurHash3, 32 bits, seed 0. Source: the algorithm's public description (`MurmurHash3_x86_32`). */

const C1 = 0xcc9e2d51;
const C2 = 0x1b873593;

/** The hash of the first `length` bytes as an int32. */
export function murmur3(bytes: Uint8Array, length: number): number {
  const whole = length & ~3;
  let hash = 0;
  for (let i = 0; i < whole; i += 4) {
    const block = byteAt(bytes, i) | (byteAt(bytes, i + 1) << 8) | (byteAt(bytes, i + 2) << 16) | (byteAt(bytes, i + 3) << 24);
    hash = mixBlock(hash, block);
  }
  let rest = 0;
  for (let i = length - 1; i >= whole; i--) rest = (rest << 8) | byteAt(bytes, i);
  if (length > whole) hash ^= scrambled(rest);
  return finishHash(hash, length);
}

/** The hash behind one more block of 4 bytes, read as a little-endian number; 0 before the first. */
export function mixBlock(hash: number, block: number): number {
  const mixed = hash ^ scrambled(block);
  return (Math.imul((mixed << 13) | (mixed >>> 19), 5) + 0xe6546b64) | 0;
}

/** The hash of all `length` bytes as an int32. */
export function finishHash(hash: number, length: number): number {
  let mixed = hash ^ length;
  mixed = Math.imul(mixed ^ (mixed >>> 16), 0x85ebca6b);
  mixed = Math.imul(mixed ^ (mixed >>> 13), 0xc2b2ae35);
  return mixed ^ (mixed >>> 16);
}

function scrambled(block: number): number {
  const product = Math.imul(block, C1);
  return Math.imul((product << 15) | (product >>> 17), C2);
}

function byteAt(bytes: Uint8Array, index: number): number {
  return bytes[index] as number;
}
