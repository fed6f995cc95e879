/**
 * The records of a log, as columns of numbers: 20 bytes each, where an object took 50 and more. Both ends move by counting, so a commit costs
 * what it adds and removes, however long the log is.
 */

/** A record of the log. */
export interface LogEntry {
  readonly operation: number;
  readonly bytes: number;
  /** The file of the operation; null if it lies in LMDB. */
  readonly file: number | null;
}

const SIZE_MIN = 16;
const NO_FILE = -1;

export class LogEntries {
  private operations = new Float64Array(SIZE_MIN);
  private bytes = new Uint32Array(SIZE_MIN);
  private files = new Float64Array(SIZE_MIN);
  private first = 0;
  private end = 0;

  get length(): number {
    return this.end - this.first;
  }

  /** at: in 0..length - 1, for this and what follows. */
  operationAt(at: number): number {
    return this.operations[this.first + at] as number;
  }

  bytesAt(at: number): number {
    return this.bytes[this.first + at] as number;
  }

  fileAt(at: number): number | null {
    const file = this.files[this.first + at] as number;
    return file === NO_FILE ? null : file;
  }

  /** Position of the first entry with this number or a higher one. */
  positionOf(operation: number): number {
    let low = 0;
    let high = this.length;
    while (low < high) {
      const middle = (low + high) >>> 1;
      if (this.operationAt(middle) < operation) low = middle + 1;
      else high = middle;
    }
    return low;
  }

  push({ bytes, file, operation }: LogEntry): void {
    if (this.end === this.operations.length) this.lay();
    this.operations[this.end] = operation;
    this.bytes[this.end] = bytes;
    this.files[this.end] = file ?? NO_FILE;
    this.end++;
  }

  dropFirst(count: number): void {
    this.first += count;
    if (this.length * 8 < this.operations.length && this.operations.length > SIZE_MIN) this.lay();
  }

  dropLast(count: number): void {
    this.end -= count;
  }

  /** Memory of the columns. */
  get heldBytes(): number {
    return this.operations.byteLength + this.bytes.byteLength + this.files.byteLength;
  }

  /** Moves the entries to the begin of columns twice as long as they are: each entry is moved once for each that is added or removed, at most. */
  private lay(): void {
    const { end, first, length } = this;
    const size = Math.max(SIZE_MIN, length * 2);
    this.operations = laid(new Float64Array(size), this.operations.subarray(first, end));
    this.bytes = laid(new Uint32Array(size), this.bytes.subarray(first, end));
    this.files = laid(new Float64Array(size), this.files.subarray(first, end));
    this.first = 0;
    this.end = length;
  }
}

function laid<Column extends Float64Array | Uint32Array>(column: Column, entries: Column): Column {
  column.set(entries);
  return column;
}
