/** Arrays of an index, in memory or in its file. */

export interface Column<View extends Uint8Array | Uint32Array | Float64Array> {
  at(position: number): number;
  /** Elements from <= position < to; to be read only. In memory a view, otherwise read at once. */
  slice(from: number, to: number): View;
}

/** Fills `target` with the bytes of an index from `position` on. */
export type ReadIndex = (position: number, target: Uint8Array) => void;

/** Bytes that single elements are read with: the last steps of a search meet in them. */
const PAGE_BYTES = 4096;

export class MemoryColumn<View extends Uint8Array | Uint32Array | Float64Array> implements Column<View> {
  constructor(private readonly array: View) {}

  at(position: number): number {
    return this.array[position] as number;
  }

  slice(from: number, to: number): View {
    return this.array.subarray(from, to) as View;
  }
}

export class FileColumn<View extends Uint8Array | Uint32Array | Float64Array> implements Column<View> {
  private page: View | null = null;
  private pageStart = 0;

  /** start, length: of the column in bytes and elements. make: a view of bytes. */
  constructor(
    private readonly read: ReadIndex,
    private readonly start: number,
    private readonly length: number,
    private readonly width: number,
    private readonly make: (bytes: ArrayBuffer) => View,
  ) {}

  at(position: number): number {
    if (this.page === null || position < this.pageStart || position >= this.pageStart + this.page.length) {
      const perPage = PAGE_BYTES / this.width;
      this.pageStart = Math.floor(position / perPage) * perPage;
      this.page = this.slice(this.pageStart, Math.min(this.length, this.pageStart + perPage));
    }
    return this.page[position - this.pageStart] as number;
  }

  slice(from: number, to: number): View {
    const bytes = new ArrayBuffer((to - from) * this.width);
    if (to > from) this.read(this.start + from * this.width, new Uint8Array(bytes));
    return this.make(bytes);
  }
}
