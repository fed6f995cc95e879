/**
 * The home worker's view of a segment: its arrays in shared memory, how many rows there are, and which of them are
 * deleted. Rows never change once they are there; a changed point is a new row, and its old one is marked deleted.
 */

import type { CollectionConfig, Datatype } from '../../protocols/model/collection.js';
import { vectorsByName } from '../../protocols/model/collection.js';
import { idKind, type PointId, readIdWords, writeIdWords } from '../../protocols/model/point-id.js';
import { clearBit, emptyBits, hasBit, setBit } from '../../query/filter/bits.js';
import { encodeHalf } from '../../vectors/half.js';
import type { SegmentHandle } from '../segment/handle.js';
import {
  ELEMENT_BYTES,
  type ElementType,
  LIVE,
  type SegmentLayout,
  segmentLayout,
  segmentMemory,
  type VectorLayout,
  type VectorPlan,
} from '../segment/layout.js';
import { readRows } from '../segment/vector-file.js';
import { check, DELETED_BLOCK_ROWS, uncheck } from './records.js';

/** Vectors of an appendable segment take this much memory at most. */
const APPENDABLE_BYTES = 64 * 2 ** 20;
const APPENDABLE_ROWS_MIN = 256;
const APPENDABLE_ROWS_MAX = 131_072;
const BLOCK_BYTES = DELETED_BLOCK_ROWS / 8;

/** Which live rows have a value in a payload index. */
export interface IndexedRows {
  readonly bits: Uint32Array;
  count: number;
}

interface VectorColumn {
  readonly layout: VectorLayout;
  readonly presence: Uint32Array;
  /** [capacity × stride] in three types; of no length where the originals are not in memory. */
  readonly bytes: Uint8Array;
  readonly f32: Float32Array;
  readonly u16: Uint16Array;
}

export class SegmentRows {
  handle: SegmentHandle;
  rows: number;
  deleted = 0;
  /** Takes no more rows. */
  frozen: boolean;
  /** Source of a build that runs. */
  building = false;
  /** Files it was loaded without. */
  damagedFiles: readonly string[] = [];
  /** By field name; fields whose index is not there yet are missing. */
  readonly indexed = new Map<string, IndexedRows>();
  private readonly kinds: Uint8Array;
  private readonly words: Uint32Array;
  private readonly versions: Float64Array;
  private readonly deletedAt: Uint32Array;
  /** One bit per row, in whole blocks: what is stored of `deletedAt`. */
  private readonly deletedBits: Uint8Array;
  private readonly columns: readonly VectorColumn[];

  constructor(handle: SegmentHandle, rows: number) {
    const { memory, layout } = handle;
    this.handle = handle;
    this.rows = rows;
    this.frozen = handle.kind === 'sealed';
    this.kinds = new Uint8Array(memory.buffer, layout.kinds, layout.capacity);
    this.words = new Uint32Array(memory.buffer, layout.ids, layout.capacity * 4);
    this.versions = new Float64Array(memory.buffer, layout.versions, layout.capacity);
    this.deletedAt = new Uint32Array(memory.buffer, layout.deletedAt, layout.capacity);
    this.deletedBits = new Uint8Array(Math.ceil(layout.capacity / DELETED_BLOCK_ROWS) * BLOCK_BYTES);
    this.columns = layout.vectors.map((vector) => vectorColumn(memory, layout.capacity, vector));
  }

  get id(): number {
    return this.handle.id;
  }

  get isAppendable(): boolean {
    return this.handle.kind === 'appendable';
  }

  get layout(): SegmentLayout {
    return this.handle.layout;
  }

  /** Room for further rows. */
  get room(): number {
    return this.frozen ? 0 : this.layout.capacity - this.rows;
  }

  get live(): number {
    return this.rows - this.deleted;
  }

  idAt(row: number): PointId {
    return readIdWords(this.kinds[row] as number, this.words, row * 4);
  }

  isLive(row: number): boolean {
    return this.deletedAt[row] === LIVE;
  }

  /** Commit sequence that deleted the row; `LIVE` for none. */
  deletedSeq(row: number): number {
    return this.deletedAt[row] as number;
  }

  hasVector(vector: number, row: number): boolean {
    return hasBit((this.columns[vector] as VectorColumn).presence, row);
  }

  /** Index of a vector name among the segment's vectors, -1 for none. */
  vectorIndex(name: string): number {
    return this.columns.findIndex((column) => column.layout.name === name);
  }

  // ---------------------------------------------------------------- rows

  /** Adds a row without vectors. The segment must have room. */
  append(id: PointId, version: number): number {
    const row = this.rows++;
    this.kinds[row] = idKind(id);
    writeIdWords(id, this.words, row * 4);
    this.versions[row] = version;
    return row;
  }

  /** values: Float32Array that holds the components from `start`. Stored as the column's element type. */
  setVector(vector: number, row: number, values: Float32Array, start: number): void {
    const { layout, presence, bytes, f32, u16 } = this.columns[vector] as VectorColumn;
    const { dim, stride, element } = layout;
    const components = values.subarray(start, start + dim);
    if (element === 'f32') f32.set(components, (row * stride) / 4);
    else if (element === 'f16') encodeHalf(components, u16, (row * stride) / 2);
    else encodeBytes(components, bytes, row * stride);
    setBit(presence, row);
  }

  /** Copies the vectors of a row of another segment of the same collection. Errors: `storage` where they have to be read from a file. */
  copyVectors(row: number, source: SegmentRows, sourceRow: number): void {
    this.columns.forEach((target, vector) => {
      const from = source.columns[vector] as VectorColumn;
      if (!hasBit(from.presence, sourceRow)) return;
      const { stride } = target.layout;
      const to = target.bytes.subarray(row * stride, (row + 1) * stride);
      if (from.layout.file === null) to.set(from.bytes.subarray(sourceRow * stride, (sourceRow + 1) * stride));
      else readRows(source.handle, from.layout, sourceRow, to);
      setBit(target.presence, row);
    });
  }

  clearVector(vector: number, row: number): void {
    const { layout, presence, bytes } = this.columns[vector] as VectorColumn;
    bytes.fill(0, row * layout.stride, (row + 1) * layout.stride);
    clearBit(presence, row);
  }

  /** Takes back the rows behind the first `rows`. */
  dropRows(rows: number): void {
    for (let row = rows; row < this.rows; row++) {
      for (let vector = 0; vector < this.columns.length; vector++) this.clearVector(vector, row);
      for (const field of this.indexed.keys()) this.setIndexed(field, row, false);
    }
    this.rows = rows;
  }

  // ---------------------------------------------------------------- deletions

  /** Marks a live row deleted as of `seq`. Returns its block of deleted bits. */
  markDeleted(row: number, seq: number): number {
    this.deletedAt[row] = seq;
    (this.deletedBits[row >>> 3] as number) |= 1 << (row & 7);
    this.deleted++;
    for (const rows of this.indexed.values()) if (hasBit(rows.bits, row)) rows.count--;
    return Math.floor(row / DELETED_BLOCK_ROWS);
  }

  /** Takes `markDeleted` back. */
  unmarkDeleted(row: number): void {
    this.deletedAt[row] = LIVE;
    (this.deletedBits[row >>> 3] as number) &= ~(1 << (row & 7));
    this.deleted--;
    for (const rows of this.indexed.values()) if (hasBit(rows.bits, row)) rows.count++;
  }

  /** The stored record of a block of deleted bits. */
  deletedBlock(block: number): Uint8Array {
    return check(this.deletedBits.subarray(block * BLOCK_BYTES, (block + 1) * BLOCK_BYTES));
  }

  /** Blocks with a deleted row. */
  deletedBlocks(): number[] {
    const blocks: number[] = [];
    for (let block = 0; block * BLOCK_BYTES < this.deletedBits.length; block++) {
      if (this.deletedBits.subarray(block * BLOCK_BYTES, (block + 1) * BLOCK_BYTES).some((byte) => byte !== 0)) blocks.push(block);
    }
    return blocks;
  }

  /** Takes over a stored block: its rows were deleted before this process started. Errors: `storage`. */
  loadDeletedBlock(block: number, record: Uint8Array): void {
    const bits = uncheck(record, `deleted/${this.id}/${block}`);
    const first = block * DELETED_BLOCK_ROWS;
    for (let at = 0; at < bits.length; at++) {
      for (let bit = 0; bit < 8; bit++) {
        const row = first + at * 8 + bit;
        if (((bits[at] as number) >> bit) & 1 && row < this.rows) this.markDeleted(row, 0);
      }
    }
  }

  // ---------------------------------------------------------------- payload indexes

  /** Starts to count the rows that have a value in a field's index. */
  trackField(field: string): void {
    this.indexed.set(field, { bits: emptyBits(this.layout.capacity), count: 0 });
  }

  setIndexed(field: string, row: number, indexed: boolean): void {
    const rows = this.indexed.get(field);
    if (rows === undefined || hasBit(rows.bits, row) === indexed) return;
    if (indexed) setBit(rows.bits, row);
    else clearBit(rows.bits, row);
    if (this.isLive(row)) rows.count += indexed ? 1 : -1;
  }

  // ---------------------------------------------------------------- chunks

  /** Bytes of the stored form of `rows` rows. */
  private chunkBytes(rows: number): number {
    const vectors = this.columns.reduce((sum, { layout }) => sum + align8(rows) + rows * layout.stride, 0);
    return CHUNK_HEAD_BYTES + align8(rows) + rows * 24 + vectors;
  }

  /** The stored form of the rows from..to, behind `reserve` free bytes. payloads: how many of them have one. */
  encodeChunk(from: number, to: number, payloads: number, reserve: number): Uint8Array {
    const rows = to - from;
    const chunk = new Uint8Array(reserve + this.chunkBytes(rows));
    new Uint32Array(chunk.buffer, reserve, 4).set([rows, payloads, this.columns.length, 0]);
    for (const [target, source] of this.chunkParts(chunk, reserve, from, rows)) target.set(source);
    this.columns.forEach(({ presence }, vector) => {
      const flags = this.presenceFlags(chunk, reserve, rows, vector);
      for (let row = 0; row < rows; row++) flags[row] = hasBit(presence, from + row) ? 1 : 0;
    });
    return chunk;
  }

  /** Appends the rows of a stored chunk. Returns how many have a payload; null when the chunk does not fit this segment. */
  loadChunk(chunk: Uint8Array): number | null {
    const copy = chunk.byteOffset % 8 === 0 ? chunk : new Uint8Array(chunk);
    const [rows, payloads, vectors] = new Uint32Array(copy.buffer, copy.byteOffset, 4) as unknown as [number, number, number];
    if (vectors !== this.columns.length || copy.length !== this.chunkBytes(rows) || this.rows + rows > this.layout.capacity) return null;
    const from = this.rows;
    for (const [source, target] of this.chunkParts(copy, 0, from, rows)) target.set(source);
    this.columns.forEach(({ presence }, vector) => {
      const flags = this.presenceFlags(copy, 0, rows, vector);
      for (let row = 0; row < rows; row++) if (flags[row] === 1) setBit(presence, from + row);
    });
    this.rows += rows;
    return payloads;
  }

  /** Pairs of (part of a chunk, part of the memory) for all arrays that are stored as they are. */
  private chunkParts(chunk: Uint8Array, start: number, from: number, rows: number): [Uint8Array, Uint8Array][] {
    const base = start + CHUNK_HEAD_BYTES;
    const part = (at: number, bytes: number): Uint8Array => chunk.subarray(at, at + bytes);
    const bytesOf = (array: Uint32Array | Float64Array): Uint8Array => new Uint8Array(array.buffer, array.byteOffset, array.byteLength);
    const ids = base + align8(rows);
    const parts: [Uint8Array, Uint8Array][] = [
      [part(base, rows), this.kinds.subarray(from, from + rows)],
      [part(ids, rows * 16), bytesOf(this.words.subarray(from * 4, (from + rows) * 4))],
      [part(ids + rows * 16, rows * 8), bytesOf(this.versions.subarray(from, from + rows))],
    ];
    this.columns.forEach(({ layout, bytes }, vector) => {
      const at = this.vectorStart(start, rows, vector) + align8(rows);
      parts.push([part(at, rows * layout.stride), bytes.subarray(from * layout.stride, (from + rows) * layout.stride)]);
    });
    return parts;
  }

  private presenceFlags(chunk: Uint8Array, start: number, rows: number, vector: number): Uint8Array {
    const at = this.vectorStart(start, rows, vector);
    return chunk.subarray(at, at + rows);
  }

  /** Where a vector's part of a chunk starts: a byte per row that says whether it has the vector, then the rows of the matrix. */
  private vectorStart(start: number, rows: number, vector: number): number {
    let at = start + CHUNK_HEAD_BYTES + align8(rows) + rows * 24;
    for (let before = 0; before < vector; before++) at += align8(rows) + rows * (this.columns[before] as VectorColumn).layout.stride;
    return at;
  }
}

function vectorColumn(memory: WebAssembly.Memory, capacity: number, layout: VectorLayout): VectorColumn {
  const { buffer } = memory;
  const bytes = layout.offset === null ? 0 : capacity * layout.stride;
  const offset = layout.offset ?? 0;
  return {
    layout,
    presence: new Uint32Array(buffer, layout.presence, Math.ceil(capacity / 32)),
    bytes: new Uint8Array(buffer, offset, bytes),
    f32: new Float32Array(buffer, offset, bytes / 4),
    u16: new Uint16Array(buffer, offset, bytes / 2),
  };
}

const CHUNK_HEAD_BYTES = 16;

/** A new empty appendable segment. capacity: of one that is loaded again. */
export function makeAppendable(id: number, config: CollectionConfig, slots: number, capacity?: number): SegmentRows {
  const plans = [...vectorsByName(config.params.vectors)].map(
    ([name, vector]): VectorPlan => ({
      name,
      dim: vector.size,
      distance: vector.distance,
      element: elementOf(vector.datatype),
      codes: null,
      graph: null,
    }),
  );
  const layout = segmentLayout(capacity ?? appendableCapacity(plans), plans, { ordered: false, slots });
  const memory = segmentMemory(layout);
  new Uint32Array(memory.buffer, layout.deletedAt, layout.capacity).fill(LIVE);
  return new SegmentRows(
    { id, kind: 'appendable', layout, memory, rows: 0, folder: null, payloadOffsets: null, payloadBytes: null, fieldIndexes: [] },
    0,
  );
}

export function elementOf(datatype: Datatype | undefined): ElementType {
  if (datatype === 'float16') return 'f16';
  return datatype === 'uint8' ? 'u8' : 'f32';
}

/** Rows of an appendable segment with these vectors. */
function appendableCapacity(plans: readonly VectorPlan[]): number {
  const bytes = plans.reduce((sum, plan) => sum + Math.ceil((plan.dim * ELEMENT_BYTES[plan.element]) / 16) * 16, 0);
  return Math.min(APPENDABLE_ROWS_MAX, Math.max(APPENDABLE_ROWS_MIN, Math.floor(APPENDABLE_BYTES / Math.max(1, bytes))));
}

/** Components as bytes, as the reference stores them: cut off, not rounded, and held within 0..255. */
function encodeBytes(components: Float32Array, bytes: Uint8Array, start: number): void {
  for (let i = 0; i < components.length; i++) bytes[start + i] = Math.min(255, Math.max(0, Math.trunc(components[i] as number))) || 0;
}

function align8(bytes: number): number {
  return Math.ceil(bytes / 8) * 8;
}
