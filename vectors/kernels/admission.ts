/** Which rows count: alive at the reader's sequence number and, where there is a filter, let through by its bitset. */

/** u32 [rows]; 0: no row was deleted. A look there is a cache miss for each row, as they lie far apart. */
let deletedAt: usize = 0;
let sequence: u32 = 0;
let bits: usize = 0;

export function setAdmission(newDeletedAt: usize, newSequence: u32, newBits: usize): void {
  deletedAt = newDeletedAt;
  sequence = newSequence;
  bits = newBits;
}

export function isFiltered(): bool {
  return bits != 0;
}

// @ts-ignore: decorator
@inline
export function admitted(row: u32): bool {
  return (bits == 0 || hasBit(bits, row)) && alive(row);
}

// @ts-ignore: decorator
@inline
export function hasBit(set: usize, row: u32): bool {
  return ((load<u32>(set + ((<usize>(row >> 5)) << 2)) >> (row & 31)) & 1) != 0;
}

/** 32 rows from `32 * word`, as bits: those below `rows` that the bitset lets through. */
// @ts-ignore: decorator
@inline
export function wordOf(word: u32, rows: u32): u32 {
  const value = bits != 0 ? load<u32>(bits + ((<usize>word) << 2)) : 0xffff_ffff;
  const left = rows - (word << 5);
  return left < 32 ? value & ((1 << left) - 1) : value;
}

/** The first word from `word` on that may let a row through: a narrow filter's bitset is passed over in steps of four empty words. */
// @ts-ignore: decorator
@inline
function nextWord(word: u32, rows: u32): u32 {
  if (bits == 0) return word;
  while ((word & 3) == 0 && (word + 4) << 5 <= rows && !v128.any_true(v128.load(bits + ((<usize>word) << 2)))) word += 4;
  return word;
}

/** Rows below `rows` that the bitset lets through, deleted or not. */
export function countPassing(rows: u32): u32 {
  let count: u32 = 0;
  let word: u32 = 0;
  if (bits != 0) {
    for (; (word + 2) << 5 <= rows; word += 2) count += <u32>popcnt<i64>(load<i64>(bits + ((<usize>word) << 2)));
  }
  for (; word << 5 < rows; word++) count += popcnt<u32>(wordOf(word, rows));
  return count;
}

export function countAdmitted(rows: u32): u32 {
  let count: u32 = 0;
  for (let word = nextWord(0, rows); word << 5 < rows; word = nextWord(word + 1, rows)) {
    for (let value = wordOf(word, rows); value != 0; value &= value - 1) {
      if (alive((word << 5) + ctz(value))) count++;
    }
  }
  return count;
}

/** Writes the rows below `rows` that count, ascending. out: u32 [rows]. */
export function listAdmitted(rows: u32, out: usize): u32 {
  let at = out;
  for (let word = nextWord(0, rows); word << 5 < rows; word = nextWord(word + 1, rows)) {
    for (let value = wordOf(word, rows); value != 0; value &= value - 1) {
      const row = (word << 5) + ctz(value);
      if (!alive(row)) continue;
      store<u32>(at, row);
      at += 4;
    }
  }
  return <u32>((at - out) >> 2);
}

// @ts-ignore: decorator
@inline
export function alive(row: u32): bool {
  return deletedAt == 0 || load<u32>(deletedAt + ((<usize>row) << 2)) > sequence;
}
