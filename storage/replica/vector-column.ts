/** One vector of a segment's rows, as the home worker writes and copies it. */

import { clearBit, hasBit, setBit } from '../../query/filter/bits.js';
import { encodeHalf } from '../../vectors/half.js';
import type { SegmentHandle } from '../segment/handle.js';
import type { VectorLayout } from '../segment/layout.js';
import { originalsOffset, readOriginals } from '../segment/originals.js';
import { type ItemArray, itemArrays, itemOffsets } from '../segment/ragged.js';
import type { ChunkReader, ChunkWriter } from './chunk.js';

/** Values of each row or item, as bytes of a fixed size each. */
interface Stored {
  readonly bytes: Uint8Array;
  readonly stride: number;
}

export class VectorColumn {
  private readonly presence: Uint32Array;
  /** Empty if the original vectors are not in memory. */
  private readonly stored: readonly Stored[];
  /** The first of `stored` as other element types. */
  private readonly f32: Float32Array;
  private readonly u16: Uint16Array;
  /** Null for dense vectors. */
  private readonly offsets: Uint32Array | null;

  constructor(
    private readonly memory: WebAssembly.Memory,
    private readonly capacity: number,
    readonly layout: VectorLayout,
  ) {
    const { buffer } = memory;
    const { ragged, offset, stride } = layout;
    this.presence = new Uint32Array(buffer, layout.presence, Math.ceil(capacity / 32));
    this.offsets = ragged === null ? null : itemOffsets(memory, layout, capacity);
    this.stored =
      ragged === null
        ? [{ bytes: new Uint8Array(buffer, offset ?? 0, offset === null ? 0 : capacity * stride), stride }]
        : itemArrays(layout).map((array) => ({
            bytes: new Uint8Array(buffer, array.offset, ragged.itemCapacity * array.stride),
            stride: array.stride,
          }));
    const { bytes } = this.stored[0] as Stored;
    this.f32 = new Float32Array(buffer, bytes.byteOffset, bytes.length / 4);
    this.u16 = new Uint16Array(buffer, bytes.byteOffset, bytes.length / 2);
  }

  has(row: number): boolean {
    return hasBit(this.presence, row);
  }

  /** Number of items of a row; 0 for dense vectors, which need no room for items. */
  items(row: number): number {
    return this.offsets === null ? 0 : (this.offsets[row + 1] as number) - (this.offsets[row] as number);
  }

  /** Number of items of the first `rows` rows; for dense vectors the number of rows. */
  itemsBefore(rows: number): number {
    return this.offsets === null ? rows : (this.offsets[rows] as number);
  }

  /** Number of further items that fit after the first `rows` rows. */
  room(rows: number): number {
    const { ragged } = this.layout;
    return ragged === null ? Number.POSITIVE_INFINITY : ragged.itemCapacity - this.itemsBefore(rows);
  }

  // ---------------------------------------------------------------- the last row

  /** Begins a row, without the vector. */
  begin(row: number): void {
    if (this.offsets !== null) this.offsets[row + 1] = this.offsets[row] as number;
  }

  /** Removes the vector from the row. */
  clear(row: number): void {
    const [from, to] = this.range(row, row + 1);
    for (const { bytes, stride } of this.stored) bytes.fill(0, from * stride, to * stride);
    this.begin(row);
    clearBit(this.presence, row);
  }

  /**
   * Sets the vector of the last row. values: Float32Array [dim] of a dense vector, [items, dim] of a multivector; stored as the column's
   * element type.
   */
  setRow(row: number, values: Float32Array): void {
    const { dim } = this.layout;
    const items = values.length / dim;
    const first = this.claim(row, items);
    for (let item = 0; item < items; item++) this.writeVector(first + item, values.subarray(item * dim, (item + 1) * dim));
  }

  /** Sets the sparse vector of the last row. indices, values: of equal length. */
  setSparse(row: number, indices: Uint32Array, values: Float32Array): void {
    const first = this.claim(row, indices.length);
    const { buffer } = this.memory;
    const [stored, components] = itemArrays(this.layout) as [ItemArray, ItemArray];
    new Uint32Array(buffer, stored.offset + first * 4, indices.length).set(indices);
    new Float32Array(buffer, components.offset + first * 4, values.length).set(values);
  }

  /** Copies the vector of a row of another segment, its originals wherever they are. Errors: `storage` if it has to be read from a file. */
  copy(row: number, source: VectorColumn, handle: SegmentHandle, sourceRow: number): void {
    if (!source.has(sourceRow)) return;
    const [from, to] = source.range(sourceRow, sourceRow + 1);
    const first = this.claim(row, to - from);
    const isRead = originalsOffset(source.memory, source.layout) === null;
    this.stored.forEach(({ bytes, stride }, at) => {
      const target = bytes.subarray(first * stride, (first + to - from) * stride);
      if (isRead) readOriginals(handle, source.layout, sourceRow, target);
      else target.set((source.stored[at] as Stored).bytes.subarray(from * stride, to * stride));
    });
  }

  /** Reserves items for the row, in place of its earlier ones. Returns the first item. */
  private claim(row: number, items: number): number {
    setBit(this.presence, row);
    if (this.offsets === null) return row;
    const first = this.offsets[row] as number;
    if (items > this.room(row)) throw new Error(`no room for ${items} items of '${this.layout.name}'`);
    this.offsets[row + 1] = first + items;
    return first;
  }

  private writeVector(at: number, components: Float32Array): void {
    const { element, stride } = this.layout;
    if (element === 'f32') this.f32.set(components, (at * stride) / 4);
    else if (element === 'f16') encodeHalf(components, this.u16, (at * stride) / 2);
    else encodeBytes(components, (this.stored[0] as Stored).bytes, at * stride);
  }

  // ---------------------------------------------------------------- chunks

  /** Number of bytes that `write` takes. */
  chunkBytes(from: number, to: number, aligned: (bytes: number) => number): number {
    const [first, last] = this.range(from, to);
    const counts = this.offsets === null ? 0 : aligned((to - from) * 4);
    return this.stored.reduce((sum, { stride }) => sum + aligned((last - first) * stride), aligned(to - from) + counts);
  }

  /**
   * Writes one byte per row that tells whether it has the vector, then the number of items of each row (u32, ragged vectors only), then the
   * values.
   */
  write(chunk: ChunkWriter, from: number, to: number): void {
    const flags = chunk.take(to - from);
    for (let row = from; row < to; row++) flags[row - from] = this.has(row) ? 1 : 0;
    if (this.offsets !== null) chunk.put(bytesOf(Uint32Array.from({ length: to - from }, (_, at) => this.items(from + at))));
    const [first, last] = this.range(from, to);
    for (const { bytes, stride } of this.stored) chunk.put(bytes.subarray(first * stride, last * stride));
  }

  /** Reads what `write` wrote into the rows from `from` on. Returns whether it fits. */
  read(chunk: ChunkReader, from: number, rows: number): boolean {
    const flags = chunk.take(rows);
    if (flags === null || from + rows > this.capacity) return false;
    for (let row = 0; row < rows; row++) if (flags[row] === 1) setBit(this.presence, from + row);
    if (this.offsets !== null) {
      const counts = chunk.take(rows * 4);
      if (counts === null) return false;
      const view = new DataView(counts.buffer, counts.byteOffset, counts.byteLength);
      for (let row = 0; row < rows; row++)
        this.offsets[from + row + 1] = (this.offsets[from + row] as number) + view.getUint32(row * 4, true);
      if (this.room(from + rows) < 0) return false;
    }
    const [first, last] = this.range(from, from + rows);
    return this.stored.every(({ bytes, stride }) => {
      const part = chunk.take((last - first) * stride);
      if (part !== null) bytes.set(part, first * stride);
      return part !== null;
    });
  }

  /** The range of values of the rows from..to. */
  private range(from: number, to: number): [number, number] {
    return [this.offsets === null ? from : this.itemsBefore(from), this.offsets === null ? to : this.itemsBefore(to)];
  }
}

/** Converts components to bytes as the reference does: truncated, not rounded, and clamped to 0..255. */
function encodeBytes(components: Float32Array, bytes: Uint8Array, start: number): void {
  for (let i = 0; i < components.length; i++) bytes[start + i] = Math.min(255, Math.max(0, Math.trunc(components[i] as number))) || 0;
}

function bytesOf(values: Uint32Array): Uint8Array {
  return new Uint8Array(values.buffer, values.byteOffset, values.byteLength);
}
