/** Bitsets of rows: Uint32Array words, bit `row & 31` of word `row >>> 5`. Bits behind the last row are zero. */

export function wordCount(rows: number): number {
  return (rows + 31) >>> 5;
}

export function emptyBits(rows: number): Uint32Array {
  return new Uint32Array(wordCount(rows));
}

/** A bitset with the rows `from` <= row < `rows` set. */
export function fullBits(rows: number, from = 0): Uint32Array {
  const bits = emptyBits(rows);
  if (from >= rows) return bits;
  bits.fill(0xffff_ffff, from >>> 5);
  bits[from >>> 5] = (0xffff_ffff << (from & 31)) >>> 0;
  clearBehind(bits, rows);
  return bits;
}

/** Clears the bits of the last word that belong to no row. */
export function clearBehind(bits: Uint32Array, rows: number): void {
  if ((rows & 31) === 0 || bits.length === 0) return;
  const last = rows >>> 5;
  bits[last] = ((bits[last] as number) & ((1 << (rows & 31)) - 1)) >>> 0;
}

export function hasBit(bits: Uint32Array, row: number): boolean {
  return (((bits[row >>> 5] as number) >>> (row & 31)) & 1) === 1;
}

export function setBit(bits: Uint32Array, row: number): void {
  (bits[row >>> 5] as number) |= 1 << (row & 31);
}

export function clearBit(bits: Uint32Array, row: number): void {
  (bits[row >>> 5] as number) &= ~(1 << (row & 31));
}

/** target &= other. */
export function intersect(target: Uint32Array, other: Uint32Array): void {
  for (let i = 0; i < target.length; i++) (target[i] as number) &= other[i] as number;
}

/** target |= other. `other` may be shorter. */
export function unite(target: Uint32Array, other: Uint32Array): void {
  const words = Math.min(target.length, other.length);
  for (let i = 0; i < words; i++) (target[i] as number) |= other[i] as number;
}

/** target &= ~other. */
export function subtract(target: Uint32Array, other: Uint32Array): void {
  for (let i = 0; i < target.length; i++) (target[i] as number) &= ~(other[i] as number);
}

/** The complement within `rows`, in place. */
export function invert(bits: Uint32Array, rows: number): void {
  for (let i = 0; i < bits.length; i++) bits[i] = ~(bits[i] as number);
  clearBehind(bits, rows);
}

export function isEmptyBits(bits: Uint32Array): boolean {
  for (let i = 0; i < bits.length; i++) if (bits[i] !== 0) return false;
  return true;
}

/** Number of set bits. */
export function countBits(bits: Uint32Array): number {
  let count = 0;
  for (let i = 0; i < bits.length; i++) {
    const word = bits[i] as number;
    // Most words of a narrow filter.
    if (word !== 0) count += popcount(word);
  }
  return count;
}

/** Number of set bits that `others` does not have set. `others` is not shorter. */
export function countBitsWithout(bits: Uint32Array, others: Uint32Array): number {
  let count = 0;
  for (let i = 0; i < bits.length; i++) count += popcount((bits[i] as number) & ~(others[i] as number));
  return count;
}

/** Set bits of one word. */
export function popcount(word: number): number {
  const pairs = word - ((word >>> 1) & 0x5555_5555);
  const nibbles = (pairs & 0x3333_3333) + ((pairs >>> 2) & 0x3333_3333);
  return Math.imul((nibbles + (nibbles >>> 4)) & 0x0f0f_0f0f, 0x0101_0101) >>> 24;
}

/** Calls `visit` with each set row, ascending. */
export function forEachBit(bits: Uint32Array, visit: (row: number) => void): void {
  for (let i = 0; i < bits.length; i++) {
    for (let word = bits[i] as number; word !== 0; word &= word - 1) {
      visit(i * 32 + 31 - Math.clz32(word & -word));
    }
  }
}
