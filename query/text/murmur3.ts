/** MurmurHash3, 32 bits, seed 0. Source: the algorithm's public description (`MurmurHash3_x86_32`). */

const C1 = 0xcc9e2d51;
const C2 = 0x1b873593;

/** The hash of the first `length` bytes as an int32. */
export function murmur3(bytes: Uint8Array, length: number): number {
  const whole = length & ~3;
  let hash = 0;
  for (let i = 0; i < whole; i += 4) {
    hash ^= scrambled(byteAt(bytes, i) | (byteAt(bytes, i + 1) << 8) | (byteAt(bytes, i + 2) << 16) | (byteAt(bytes, i + 3) << 24));
    hash = (Math.imul((hash << 13) | (hash >>> 19), 5) + 0xe6546b64) | 0;
  }
  let rest = 0;
  for (let i = length - 1; i >= whole; i--) rest = (rest << 8) | byteAt(bytes, i);
  if (length > whole) hash ^= scrambled(rest);
  hash ^= length;
  hash = Math.imul(hash ^ (hash >>> 16), 0x85ebca6b);
  hash = Math.imul(hash ^ (hash >>> 13), 0xc2b2ae35);
  return hash ^ (hash >>> 16);
}

function scrambled(block: number): number {
  const product = Math.imul(block, C1);
  return Math.imul((product << 15) | (product >>> 17), C2);
}

function byteAt(bytes: Uint8Array, index: number): number {
  return bytes[index] as number;
}
