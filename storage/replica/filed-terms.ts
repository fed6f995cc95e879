/**
 * Rows of an appendable segment under terms of a payload index, as bytes: for each term its bytes u16 LE, its number of rows u32 LE, the term,
 * and each row u32 LE, ascending. A filed term is one term with its rows; it is told by where it begins. An upload comes through here with some of
 * them for each point, so these functions make no objects.
 */

/** Rows under a term. `rows` are u32 LE, at any offset of their buffer. */
export interface FiledTerm {
  readonly term: Uint8Array;
  readonly rows: Uint8Array;
}

const HEAD_BYTES = 6;
const ROW_BYTES = 4;

/** Bytes of a filed term. */
export function filedBytes(termBytes: number, rows: number): number {
  return HEAD_BYTES + termBytes + rows * ROW_BYTES;
}

/** Writes a filed term. Returns its end. */
export function writeFiled(target: Buffer, at: number, term: Uint8Array, rows: readonly number[]): number {
  let end = writeHead(target, at, term.length, rows.length);
  for (let i = 0; i < term.length; i++) target[end++] = term[i] as number;
  for (const row of rows) end = target.writeUInt32LE(row, end);
  return end;
}

/** The end of the filed term at `at`. */
export function filedEnd(bytes: Uint8Array, at: number): number {
  return at + filedBytes(termBytesAt(bytes, at), rowsAt(bytes, at));
}

/** Bytes of the rows of the filed term at `at`. */
export function rowBytesAt(bytes: Uint8Array, at: number): number {
  return rowsAt(bytes, at) * ROW_BYTES;
}

/** Begins a filed term with the term of the one at `at` in `source`, and room for rows of so many bytes. Returns where the rows begin. */
export function beginFiled(target: Buffer, targetAt: number, source: Uint8Array, at: number, rowBytes: number): number {
  const termBytes = termBytesAt(source, at);
  const start = writeHead(target, targetAt, termBytes, rowBytes / ROW_BYTES);
  copyBytes(source, at + HEAD_BYTES, target, start, termBytes);
  return start + termBytes;
}

/** Copies the rows of the filed term at `at` in `source`. Returns their end in `target`. */
export function copyRows(source: Uint8Array, at: number, target: Buffer, targetAt: number): number {
  const bytes = rowBytesAt(source, at);
  copyBytes(source, at + HEAD_BYTES + termBytesAt(source, at), target, targetAt, bytes);
  return targetAt + bytes;
}

/** The term of the filed term at `at`, a view. */
export function filedTermAt(bytes: Uint8Array, at: number): Uint8Array {
  return bytes.subarray(at + HEAD_BYTES, at + HEAD_BYTES + termBytesAt(bytes, at));
}

/** Less than 0 if the term at `at` comes before that of another one, 0 if they are the same. */
export function compareFiled(bytes: Uint8Array, at: number, others: Uint8Array, otherAt: number): number {
  return compareBytes(bytes, at + HEAD_BYTES, termBytesAt(bytes, at), others, otherAt + HEAD_BYTES, termBytesAt(others, otherAt));
}

/** As `compareFiled`, with the bytes of a term. */
export function compareTerm(bytes: Uint8Array, at: number, term: Uint8Array): number {
  return compareBytes(bytes, at + HEAD_BYTES, termBytesAt(bytes, at), term, 0, term.length);
}

/** Terms from <= term < to. */
export interface FiledRange {
  readonly from: Uint8Array;
  readonly to: Uint8Array;
}

/**
 * Calls `visit` with those of filed terms that are in one of the ranges, and with that range, until it returns false. ranges: at least one, ascending, and
 * apart or the same. Returns where the last term that it has looked at begins; -1: it was told to end.
 */
export function visitRanges<Range extends FiledRange>(
  bytes: Uint8Array,
  ranges: readonly Range[],
  visit: (filed: FiledTerm, range: Range) => boolean,
): number {
  let at = 0;
  for (let next = 0; next < bytes.length; ) {
    at = next;
    next = filedEnd(bytes, at);
    const range = rangeOf(bytes, at, ranges);
    if (range === undefined) continue;
    const term = filedTermAt(bytes, at);
    if (!visit({ term, rows: bytes.subarray(at + HEAD_BYTES + term.length, next) }, range)) return -1;
  }
  return at;
}

function rangeOf<Range extends FiledRange>(bytes: Uint8Array, at: number, ranges: readonly Range[]): Range | undefined {
  let low = 0;
  for (let high = ranges.length; low < high; ) {
    const middle = (low + high) >>> 1;
    if (compareTerm(bytes, at, (ranges[middle] as Range).from) < 0) high = middle;
    else low = middle + 1;
  }
  const range = ranges[low - 1];
  return range !== undefined && compareTerm(bytes, at, range.to) < 0 ? range : undefined;
}

/** Of rows that lie as bytes. */
export function rowCount(rows: Uint8Array): number {
  return rows.length / ROW_BYTES;
}

/** Calls `visit` with the number of each row. */
export function visitRows(rows: Uint8Array, visit: (row: number) => void): void {
  for (let at = 0; at < rows.length; at += ROW_BYTES) {
    const low = (rows[at] as number) | ((rows[at + 1] as number) << 8) | ((rows[at + 2] as number) << 16);
    visit(low + (rows[at + 3] as number) * 2 ** 24);
  }
}

/** The numbers of rows that lie as bytes. A copy, as they may lie at any offset. */
export function rowNumbers(rows: Uint8Array): Uint32Array {
  const copy = new Uint8Array(rows.length);
  copy.set(rows);
  return new Uint32Array(copy.buffer);
}

function termBytesAt(bytes: Uint8Array, at: number): number {
  return (bytes[at] as number) | ((bytes[at + 1] as number) << 8);
}

function rowsAt(bytes: Uint8Array, at: number): number {
  const low = (bytes[at + 2] as number) | ((bytes[at + 3] as number) << 8) | ((bytes[at + 4] as number) << 16);
  return low + (bytes[at + 5] as number) * 2 ** 24;
}

function writeHead(target: Buffer, at: number, termBytes: number, rows: number): number {
  target.writeUInt16LE(termBytes, at);
  return target.writeUInt32LE(rows, at + 2);
}

/** From here on the library's copy is quicker than a loop. */
const LONG_BYTES = 32;

function copyBytes(source: Uint8Array, from: number, target: Buffer, to: number, bytes: number): void {
  if (bytes >= LONG_BYTES) target.set(source.subarray(from, from + bytes), to);
  else for (let i = 0; i < bytes; i++) target[to + i] = source[from + i] as number;
}

function compareBytes(one: Uint8Array, at: number, bytes: number, other: Uint8Array, otherAt: number, otherBytes: number): number {
  const length = Math.min(bytes, otherBytes);
  for (let i = 0; i < length; i++) {
    const difference = (one[at + i] as number) - (other[otherAt + i] as number);
    if (difference !== 0) return difference;
  }
  return bytes - otherBytes;
}
