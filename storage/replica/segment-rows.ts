/**
 * The home worker's view of a segment: its arrays in shared memory, the number of rows, and which of them are deleted. Rows never change; a
 * changed point is a new row, and its old row is marked deleted.
 */

import type { CollectionConfig } from '../../protocols/model/collection.js';
import { idKind, type PointId, readIdWords, writeIdWords } from '../../protocols/model/point-id.js';
import type { BatchColumn as VectorValues } from '../../protocols/model/update.js';
import { clearBit, countBitsWithout, emptyBits, hasBit, setBit } from '../../query/filter/bits.js';
import { spend } from '../disk/meter.js';
import type { SegmentHandle } from '../segment/handle.js';
import {
  fittingLayout,
  HELD,
  itemBytes,
  LIVE,
  type SegmentLayout,
  segmentLayout,
  segmentMemory,
  strideOf,
  type VectorPlan,
} from '../segment/layout.js';
import { isCurrent, vectorPlans } from '../segment/plans.js';
import { type CommonMemory, giveBackPlace, SMALL_BYTES_MAX, smallPlace } from '../segment/shared-memory.js';
import { check, DELETED_BLOCK_ROWS, uncheck } from '../wal/records.js';
import { align8, ChunkReader, ChunkWriter } from './chunk.js';
import { RECORD_ROWS_MAX } from './payload-records.js';
import { VectorColumn } from './vector-column.js';

/** Most bytes for the vectors of a replica's first segment, and its most rows: nobody knows yet how large the replica becomes. */
const FIRST_BYTES = 2 ** 20;
const FIRST_ROWS_MAX = 4096;
/** Most bytes for the vectors of an appendable segment. */
const APPENDABLE_BYTES = 64 * 2 ** 20;
/** Most bytes for all items together. */
const APPENDABLE_ITEM_BYTES = 2 ** 30;
const APPENDABLE_ROWS_MIN = 256;
const APPENDABLE_ROWS_MAX = 131_072;
const BLOCK_BYTES = DELETED_BLOCK_ROWS / 8;
const BLOCK_WORDS = DELETED_BLOCK_ROWS / 32;

/** For each vector with a variable number of items, by name, the number that a row brings. */
export type RowItems = ReadonlyMap<string, number>;

/** Payloads of some rows. */
export interface RowPayloads {
  readonly records: number;
  readonly bytes: number;
}

/** The live rows with a value in a payload index. */
export interface IndexedRows {
  readonly bits: Uint32Array;
  count: number;
}

export class SegmentRows {
  handle: SegmentHandle;
  rows: number;
  deleted = 0;
  /** The segment takes no more rows. */
  frozen: boolean;
  /** The segment is a source of a running build. */
  building = false;
  /** Readers do not get the segment yet (`deferral.ts`). */
  deferred = false;
  /**
   * While it is deferred: no operation that its rows, or rows that these replaced, come from is lower. Not stored: an opened one may have rows
   * of any operation.
   */
  deferredFrom = 0;
  /** Bytes of the payload texts of its rows, of an appendable segment. */
  payloadTextBytes = 0;
  /** By id, the rows that readers see although their points have newer, deferred rows. */
  readonly held = new Map<PointId, number>();
  /** By id, rows of this deferred source that deferred rows have replaced since the build began, of points that were not deleted since. */
  readonly outrun = new Map<PointId, number>();
  /** Rows that it had room for when it was made. */
  statedCapacity: number;
  /** Damaged files that the segment was loaded without. */
  damagedFiles: readonly string[] = [];
  /** Indexed rows by field name; fields without an index yet are missing. */
  readonly indexed = new Map<string, IndexedRows>();
  /** Ids (see `writeIdWords`) and versions of the rows. */
  readonly kinds: Uint8Array;
  readonly words: Uint32Array;
  readonly versions: Float64Array;
  private readonly deletedAt: Uint32Array;
  /** Of one word: see `SegmentLayout`. */
  private readonly deletions: Uint32Array;
  /** See `SegmentLayout`; empty for a sealed segment. */
  private readonly payloadRecords: Uint8Array;
  /** One bit per row that does not count, in whole blocks: the stored part of `deletedAt`. */
  private readonly deletedBits: Uint8Array;
  /** The same as words. */
  private readonly deletedWords: Uint32Array;
  /** The columns of all vectors that the segment was made with. */
  private readonly columns: readonly VectorColumn[];
  /** Names of vectors that the collection has dropped, also if another vector has the name now. */
  private dropped: ReadonlySet<string> = new Set();
  /** Names of vectors that were dropped since the build began whose source this is. */
  private droppedInBuild: ReadonlySet<string> = new Set();
  /** The segment's vectors differ from the collection's, so it takes no more rows. */
  private outdated = false;

  /** plans: the vectors that an appendable segment was made with; none for a sealed one. */
  constructor(
    handle: SegmentHandle,
    rows: number,
    readonly plans: readonly VectorPlan[] = [],
  ) {
    const { memory, layout } = handle;
    this.handle = handle;
    this.rows = rows;
    this.statedCapacity = layout.capacity;
    this.frozen = handle.kind === 'sealed';
    this.kinds = new Uint8Array(memory.buffer, layout.kinds, layout.capacity);
    this.words = new Uint32Array(memory.buffer, layout.ids, layout.capacity * 4);
    this.versions = new Float64Array(memory.buffer, layout.versions, layout.capacity);
    this.deletedAt = new Uint32Array(memory.buffer, layout.deletedAt, layout.capacity);
    this.deletions = new Uint32Array(memory.buffer, layout.deletions, 1);
    this.payloadRecords = new Uint8Array(memory.buffer, layout.payloadRecords, handle.kind === 'sealed' ? 0 : layout.capacity);
    this.deletedBits = new Uint8Array(Math.ceil(layout.capacity / DELETED_BLOCK_ROWS) * BLOCK_BYTES);
    this.deletedWords = new Uint32Array(this.deletedBits.buffer);
    this.columns = layout.vectors.map((vector) => new VectorColumn(memory, layout.capacity, vector));
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

  /** Number of further rows that fit. */
  get room(): number {
    return this.frozen || this.outdated ? 0 : this.layout.capacity - this.rows;
  }

  /** Whether there is room for a row with these items. */
  fits(items: RowItems): boolean {
    return this.room > 0 && this.columns.every((column) => (items.get(column.layout.name) ?? 0) <= column.room(this.rows));
  }

  /** Number of rows that are not marked deleted, including held ones. */
  get live(): number {
    return this.rows - this.deleted;
  }

  idAt(row: number): PointId {
    return readIdWords(this.kinds[row] as number, this.words, row * 4);
  }

  /** Whether the row is the newest of its point. */
  isLive(row: number): boolean {
    return this.deletedAt[row] === LIVE;
  }

  /** Whether the row counts for readers of the segment: it is live or held. */
  counts(row: number): boolean {
    return (this.deletedAt[row] as number) >= HELD;
  }

  /** How many of these rows count. Of a segment that may be large, in one turn of the thread: by words. */
  countAmong(rows: Uint32Array): number {
    return countBitsWithout(rows, this.deletedWords);
  }

  /** Sequence of the commit that deleted the row; `LIVE` if none did. */
  deletedSeq(row: number): number {
    return this.deletedAt[row] as number;
  }

  hasVector(vector: number, row: number): boolean {
    return (this.columns[vector] as VectorColumn).has(row);
  }

  /** Index of a vector name among the segment's vectors; -1 if it has none. */
  vectorIndex(name: string): number {
    return this.dropped.has(name) ? -1 : this.columns.findIndex((column) => column.layout.name === name);
  }

  // ---------------------------------------------------------------- rows

  /** Adds a row without vectors, and returns its number. The segment must have room. */
  append(id: PointId, version: number): number {
    const row = this.rows++;
    this.kinds[row] = idKind(id);
    writeIdWords(id, this.words, row * 4);
    this.versions[row] = version;
    for (const column of this.columns) column.begin(row);
    return row;
  }

  /**
   * Sets a vector of the last row to point `from` of the column, whose values begin at item `start`. Does nothing if the vector has been
   * dropped from the collection or replaced by another one of this name.
   */
  setVector(row: number, values: VectorValues, from: number, start: number): void {
    const column = this.columns[this.vectorIndex(values.name)];
    if (column === undefined || column.layout.kind !== values.kind) return;
    if (values.kind === 'sparse') {
      const end = start + (values.counts[from] as number);
      column.setSparse(row, values.indices.subarray(start, end), values.values.subarray(start, end));
      spend('vector_io_write', (end - start) * itemBytes(column.layout));
      return;
    }
    const { dim } = values;
    if (column.layout.dim !== dim) return;
    const items = values.kind === 'dense' ? 1 : (values.counts[from] as number);
    column.setRow(row, values.values.subarray(start * dim, (start + items) * dim));
    spend('vector_io_write', items * itemBytes(column.layout));
  }

  /** Copies the vectors of a row of another segment of the same collection. Errors: `storage` if they have to be read from a file. */
  copyVectors(row: number, source: SegmentRows, sourceRow: number): void {
    for (const column of this.columns) {
      const from = source.columns[source.vectorIndex(column.layout.name)];
      if (from !== undefined && !this.dropped.has(column.layout.name)) column.copy(row, from, source.handle, sourceRow);
    }
  }

  /** Number of items of a row's vectors, by name. */
  itemsOf(row: number): RowItems {
    return new Map(this.columns.flatMap((column) => (column.items(row) > 0 ? [[column.layout.name, column.items(row)]] : [])));
  }

  /** Removes a vector from the last row. */
  clearVector(name: string, row: number): void {
    this.columns[this.vectorIndex(name)]?.clear(row);
  }

  /** The record of payloads that begins with the row `from` has the one of this row. */
  setPayloadRecord(row: number, from: number): void {
    this.payloadRecords[row] = row - from;
  }

  /** As `setPayloadRecord` for all rows. firsts: first rows of all records, ascending. */
  loadPayloadRecords(firsts: readonly number[]): void {
    for (const [at, from] of firsts.entries()) {
      const end = Math.min(this.rows, firsts[at + 1] ?? this.rows, from + RECORD_ROWS_MAX);
      for (let row = from; row < end; row++) this.setPayloadRecord(row, from);
    }
  }

  /** Bytes of the payloads of all rows. */
  get payloadBytes(): number {
    const { payloadOffsets } = this.handle;
    if (payloadOffsets === null) return this.payloadTextBytes;
    const offsets = new Float64Array(payloadOffsets);
    return (offsets.at(-1) as number) - (offsets[0] as number);
  }

  /** Bytes of the values of all rows. */
  get vectorBytes(): number {
    const shown = this.columns.filter(({ layout }) => !this.dropped.has(layout.name));
    return shown.reduce((sum, column) => sum + column.itemsBefore(this.rows) * itemBytes(column.layout), 0);
  }

  /** Removes all rows after the first `rows`. */
  dropRows(rows: number): void {
    for (let row = rows; row < this.rows; row++) {
      for (const column of this.columns) column.clear(row);
      for (const field of this.indexed.keys()) this.setIndexed(field, row, false);
    }
    this.rows = rows;
  }

  // ---------------------------------------------------------------- deletions

  /** Holds a live row for readers while its point's newest row is deferred. Not stored: opening finds it out again. */
  hold(row: number): void {
    this.deletedAt[row] = HELD;
    this.held.set(this.idAt(row), row);
  }

  /** Undoes `hold`. */
  unhold(row: number): void {
    this.deletedAt[row] = LIVE;
    this.held.delete(this.idAt(row));
  }

  /** Marks a live or held row deleted as of `seq`. Returns its block of deleted bits. */
  markDeleted(row: number, seq: number): number {
    if (this.deletedAt[row] === HELD) this.held.delete(this.idAt(row));
    Atomics.store(this.deletions, 0, 1);
    this.deletedAt[row] = seq;
    (this.deletedBits[row >>> 3] as number) |= 1 << (row & 7);
    this.deleted++;
    for (const rows of this.indexed.values()) if (hasBit(rows.bits, row)) rows.count--;
    return Math.floor(row / DELETED_BLOCK_ROWS);
  }

  /** Undoes `markDeleted` of a live row. */
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

  /** The blocks with a deleted row. */
  deletedBlocks(): number[] {
    const blocks: number[] = [];
    for (let block = 0; block * BLOCK_WORDS < this.deletedWords.length; block++) {
      if (this.deletedWords.subarray(block * BLOCK_WORDS, (block + 1) * BLOCK_WORDS).some((word) => word !== 0)) blocks.push(block);
    }
    return blocks;
  }

  /** Loads a stored block, whose rows were deleted before this process started. Errors: `storage`. */
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

  /** Starts to count the rows with a value in a field's index. given: those that have one already. */
  trackField(field: string, given: Uint32Array | null = null): void {
    const bits = emptyBits(this.layout.capacity);
    if (given !== null) bits.set(given);
    this.indexed.set(field, { bits, count: this.countAmong(bits) });
  }

  setIndexed(field: string, row: number, indexed: boolean): void {
    const rows = this.indexed.get(field);
    if (rows === undefined || hasBit(rows.bits, row) === indexed) return;
    if (indexed) setBit(rows.bits, row);
    else clearBit(rows.bits, row);
    if (this.counts(row)) rows.count += indexed ? 1 : -1;
  }

  // ---------------------------------------------------------------- names of vectors

  /**
   * Compares the segment's vectors with those of the collection: surplus ones are dropped, and an appendable segment whose vectors differ
   * takes no more rows. Returns a function that undoes this; null if nothing has changed.
   */
  keepVectors(plans: readonly VectorPlan[]): (() => void) | null {
    const wanted = new Map(plans.map((plan) => [plan.name, plan]));
    const gone = this.layout.vectors.flatMap((vector) => (isCurrent(vector, wanted.get(vector.name)) ? [] : [vector.name]));
    const kept = this.layout.vectors.length - gone.length;
    const outdated = this.isAppendable && (kept < this.columns.length || kept < plans.length);
    if (gone.length === 0 && outdated === this.outdated) return null;
    const { handle, dropped, droppedInBuild } = this;
    const wasOutdated = this.outdated;
    this.outdated = outdated;
    this.dropVectors(gone);
    return () => Object.assign(this, { handle, dropped, droppedInBuild, outdated: wasOutdated });
  }

  /** Drops vectors from now on; the rows keep their values. */
  dropVectors(names: Iterable<string>): void {
    const gone = new Set(names);
    this.dropped = new Set([...this.dropped, ...gone]);
    this.droppedInBuild = new Set([...this.droppedInBuild, ...gone]);
    const vectors = this.layout.vectors.filter((vector) => !gone.has(vector.name));
    if (vectors.length === this.layout.vectors.length) return;
    const sparseIndexes = this.handle.sparseIndexes.filter(({ name }) => !gone.has(name));
    this.handle = { ...this.handle, layout: { ...this.layout, vectors }, sparseIndexes };
  }

  get droppedVectors(): readonly string[] {
    return [...this.dropped];
  }

  /** Makes the segment a source of a build. */
  beginBuild(): void {
    this.frozen = true;
    this.building = true;
    this.outrun.clear();
    this.droppedInBuild = new Set();
  }

  /** Names of vectors that a running build takes although they were dropped after it began. */
  get droppedSinceBuild(): Iterable<string> {
    return this.droppedInBuild;
  }

  // ---------------------------------------------------------------- chunks

  /** The stored form of the rows from..to, after `reserve` free bytes. */
  encodeChunk(from: number, to: number, payloads: RowPayloads, reserve: number, room: (bytes: number) => Uint8Array): Uint8Array {
    const rows = to - from;
    const vectors = this.columns.reduce((sum, column) => sum + column.chunkBytes(from, to, align8), 0);
    const bytes = room(reserve + CHUNK_HEAD_BYTES + align8(rows) + rows * 24 + vectors);
    new Uint32Array(bytes.buffer, reserve, 4).set([rows, payloads.records, this.columns.length, Math.min(payloads.bytes, 0xffff_ffff)]);
    const chunk = new ChunkWriter(bytes, reserve + CHUNK_HEAD_BYTES);
    for (const part of this.rowParts(from, rows)) chunk.put(part);
    for (const column of this.columns) column.write(chunk, from, to);
    return bytes;
  }

  /** Appends the rows of a stored chunk. Returns the number of records of their payloads; null if the chunk does not fit this segment. */
  loadChunk(bytes: Uint8Array): number | null {
    if (bytes.length < CHUNK_HEAD_BYTES) return null;
    const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
    const rows = view.getUint32(0, true);
    if (view.getUint32(8, true) !== this.columns.length || this.rows + rows > this.layout.capacity) return null;
    const chunk = new ChunkReader(bytes, CHUNK_HEAD_BYTES);
    for (const target of this.rowParts(this.rows, rows)) {
      const part = chunk.take(target.length);
      if (part === null) return null;
      target.set(part);
    }
    if (!this.columns.every((column) => column.read(chunk, this.rows, rows)) || !chunk.ended) return null;
    this.rows += rows;
    // Chunks of earlier releases say 0.
    this.payloadTextBytes += view.getUint32(12, true);
    return view.getUint32(4, true);
  }

  /** Kinds, ids and versions of rows, as they lie in memory. */
  private rowParts(from: number, rows: number): Uint8Array[] {
    const bytesOf = (array: Uint32Array | Float64Array): Uint8Array => new Uint8Array(array.buffer, array.byteOffset, array.byteLength);
    return [
      this.kinds.subarray(from, from + rows),
      bytesOf(this.words.subarray(from * 4, (from + rows) * 4)),
      bytesOf(this.versions.subarray(from, from + rows)),
    ];
  }
}

const CHUNK_HEAD_BYTES = 16;

const NO_ITEMS: RowItems = new Map();

/** What a new appendable segment is made for. */
export interface AppendableNeed {
  /** Item counts of its first row. Default: none. */
  readonly items?: RowItems | undefined;
  /** That the replica has. Default: many. */
  readonly rows?: number;
  /** Of dense vectors, or of items of each other one. Default: the usual. */
  readonly vectorBytesMax?: number;
  /** The one made before it, if a build works on that. */
  readonly before?: SegmentRows | undefined;
}

/** A new empty appendable segment for a configuration's vectors. */
export function makeAppendable(
  id: number,
  config: CollectionConfig,
  readers: number,
  { items = NO_ITEMS, rows = Number.POSITIVE_INFINITY, vectorBytesMax = Number.POSITIVE_INFINITY, before }: AppendableNeed = {},
): SegmentRows {
  const plans = vectorPlans(config.params);
  // One that was loaded with little room may be full before the replica is any larger.
  const isFirst = 2 * rows <= appendableCapacity(plans, true);
  const share = Math.min(isFirst ? FIRST_BYTES : itemShare(plans), vectorBytesMax);
  const roomy = plans.map((plan): VectorPlan => {
    if (plan.kind === 'dense') return plan;
    return { ...plan, itemCapacity: Math.max(Math.floor(share / itemStride(plan)), items.get(plan.name) ?? 0) };
  });
  const rowsMax = Math.max(1, Math.floor(vectorBytesMax / Math.max(1, denseBytes(plans, itemBytes))));
  const capacity = Math.min(appendableCapacity(plans, isFirst), rowsMax, roomBehind(before));
  return appendableOf(id, roomy, capacity, readers);
}

/** An empty appendable segment with these vectors and room for this many rows. */
export function appendableOf(id: number, plans: readonly VectorPlan[], capacity: number, readers: number): SegmentRows {
  const options = { ordered: false, readers, rowCodes: true };
  const layout = fittingLayout(capacity, plans, options);
  if (layout.bytes > SMALL_BYTES_MAX) return appendableIn(segmentMemory(layout), id, plans, layout);
  const { base, common, memory } = smallPlace(layout.bytes);
  return appendableIn(memory, id, plans, segmentLayout(capacity, plans, { ...options, base }), common);
}

/** Gives back the memory of a segment that no thread has open any more. Nobody may look at it again. */
export function giveBackMemory({ common, layout }: SegmentHandle): void {
  if (common !== undefined) giveBackPlace({ base: layout.base, common }, layout.bytes);
}

/** Room of an appendable segment as it is loaded: one of few rows is not made as large as it was. The next rows go to another segment. */
export function loadedCapacity(capacity: number, rows: number): number {
  return Math.min(capacity, Math.max(APPENDABLE_ROWS_MIN, 2 ** Math.ceil(Math.log2(2 * Math.max(1, rows)))));
}

/** Memory for rows on their way from one replica to another: only this thread sees them, and the memory is freed with them. */
export function passingRows(plans: readonly VectorPlan[], capacity: number): SegmentRows {
  const layout = segmentLayout(capacity, plans, { ordered: false, readers: 0 });
  // Only kernels need WebAssembly memory, and each such memory takes gigabytes of addresses until it is collected.
  const memory = { buffer: new ArrayBuffer(layout.bytes) } as WebAssembly.Memory;
  return appendableIn(memory, 0, plans, layout);
}

function appendableIn(
  memory: WebAssembly.Memory,
  id: number,
  plans: readonly VectorPlan[],
  layout: SegmentLayout,
  common?: CommonMemory,
): SegmentRows {
  new Uint32Array(memory.buffer, layout.deletedAt, layout.capacity).fill(LIVE);
  return new SegmentRows(
    {
      id,
      kind: 'appendable',
      layout,
      memory,
      ...(common === undefined ? {} : { common }),
      rows: 0,
      folder: null,
      payloadOffsets: null,
      payloadBytes: null,
      fieldIndexes: [],
      sparseIndexes: [],
    },
    0,
    plans,
  );
}

/**
 * Rows to have room for behind a segment that a build took before it was full: twice as many as that one got. A stream whose rows are built as they come would
 * make memory for a full one with each build, and V8 collects garbage in each thread that hears of 64 MB.
 */
function roomBehind(before: SegmentRows | undefined): number {
  if (before === undefined || before.rows === before.layout.capacity) return Number.POSITIVE_INFINITY;
  return Math.max(FIRST_ROWS_MAX, 2 * before.rows);
}

/** Number of rows that an appendable segment with these vectors has room for. */
function appendableCapacity(plans: readonly VectorPlan[], isFirst: boolean): number {
  const [bytesMax, rowsMax] = isFirst ? [FIRST_BYTES, FIRST_ROWS_MAX] : [APPENDABLE_BYTES, APPENDABLE_ROWS_MAX];
  return Math.min(rowsMax, Math.max(APPENDABLE_ROWS_MIN, Math.floor(bytesMax / Math.max(1, denseBytes(plans, strideOf)))));
}

/** Bytes of the dense vectors of a row. */
function denseBytes(plans: readonly VectorPlan[], bytesOf: (plan: VectorPlan) => number): number {
  return plans.reduce((sum, plan) => sum + (plan.kind === 'dense' ? bytesOf(plan) : 0), 0);
}

/** Bytes for the items of each vector with a variable number of items. Unused pages cost no memory, but addresses are limited. */
function itemShare(plans: readonly VectorPlan[]): number {
  const ragged = plans.filter((plan) => plan.kind !== 'dense').length;
  return Math.min(APPENDABLE_BYTES, Math.floor(APPENDABLE_ITEM_BYTES / Math.max(1, ragged)));
}

/** Bytes that an item takes in memory. */
function itemStride(plan: VectorPlan): number {
  return plan.kind === 'sparse' ? 8 : strideOf(plan);
}
