/**
 * A reader's view of a replica. `ReplicaReader` keeps what lasts over many requests: sets of segments by generation,
 * views and kernels on their memories. `snapshot()` fixes one moment: which set, which rows, which deletions.
 *
 * Its rules are View-V1 to View-V6 in storage/README.md.
 */

import type { KeyedShard, ShardId, ShardKey } from '../../../protocols/model/cluster.js';
import type { CollectionConfig, FieldSchema, SparseVectorParams, VectorParams } from '../../../protocols/model/collection.js';
import { sparseByName, vectorsByName } from '../../../protocols/model/collection.js';
import type { Condition } from '../../../protocols/model/filter.js';
import type { PointId } from '../../../protocols/model/point-id.js';
import { readIdWords } from '../../../protocols/model/point-id.js';
import type { VectorValue } from '../../../protocols/model/vector.js';
import { clearBehind, emptyBits, hasBit, intersect, setBit, wordCount } from '../../../query/filter/bits.js';
import type { ConditionCache, FilterCache } from '../../../query/filter/cache.js';
import type { FieldIndex } from '../../../query/filter/source.js';
import { decodeHalf } from '../../../vectors/half.js';
import { type Admission, type Graph, type Kernels, type Matrix, NO_DELETIONS, type TokenLists } from '../../../vectors/kernel-api.js';
import { instantiateKernels } from '../../../vectors/kernels.js';
import { openSparseIndex, type SparseIndex } from '../../../vectors/sparse/index.js';
import { spend } from '../../disk/meter.js';
import { openReplicaView, type ReplicaView } from '../../replica/reader-view.js';
import { codeMatrix, decodedMatrix } from '../../segment/code-matrix.js';
import type { SegmentHandle, SegmentSet } from '../../segment/handle.js';
import { findRow, idColumns, lowerBound, rowAtPosition } from '../../segment/ids.js';
import { openIndexOf } from '../../segment/index/open.js';
import { residentOffset, scratchOf, type VectorLayout } from '../../segment/layout.js';
import { originalsOffset, readOriginals } from '../../segment/originals.js';
import { closeSegmentFiles, readPayloadText } from '../../segment/payload-file.js';
import { itemOffsets } from '../../segment/ragged.js';
import { openTokenLists } from '../../segment/token-lists.js';
import { closeVectorFiles } from '../../segment/vector-file.js';
import { unkeyedShards } from '../../sharding/keys.js';
import { RingOwner, ringOf } from '../../sharding/ring.js';
import type { Deadline } from '../../threads/deadline.js';
import type { Attach, ReplicaKey, ReplicaSpec } from '../../threads/messages.js';
import type { ReplicaUses } from '../../threads/replica-uses.js';
import type { ScratchTurns } from '../../threads/scratch-turns.js';
import type { SeenScans } from '../seen-scans.js';
import { type ListsReader, openLists } from './lists-reader.js';
import { openValueWalks, type ValueWalks } from './value-graphs.js';

/** `{}`, which is not stored. */
const EMPTY_OBJECT_BYTES = 2;

/** What all replicas of a reader share. */
export interface ReaderContext {
  /** Which scratch of every segment is this reader's. */
  readonly index: number;
  /** At scratch that readers share: given back when a read is over. */
  readonly turns: ScratchTurns;
  readonly deadline: Deadline;
  readonly filters: FilterCache;
  readonly uses: ReplicaUses;
  /** Absent: nobody is told. */
  readonly scans?: SeenScans;
}

/** One vector of a segment, as kernels and answers read it. */
export interface VectorReader {
  readonly layout: VectorLayout;
  /** Null: the originals are in their file (see `filed-originals.ts`), for good or until they arrive, or the vector is sparse. */
  readonly original: Matrix | null;
  readonly codes: Matrix | null;
  /** u32 [2], as `RowCodes.counts`; null: rows have no codes of their own. */
  readonly rowCounts: Uint32Array | null;
  readonly graph: Graph | null;
  /** Graphs over the rows of single payload values; null where none were asked for. */
  readonly valueWalks: ValueWalks | null;
  /** In place of a graph and of codes in memory. */
  readonly lists: ListsReader | null;
  /** Of a multivector. */
  readonly tokenLists: TokenLists | null;
  /** u32 words, one bit per row: the row has this vector. */
  readonly presence: Uint32Array;
  /** Null for dense vectors. Of multivectors `original` holds the token vectors of all rows, item after item. */
  readonly items: RaggedItems | null;
}

/** Items of the rows of a multivector or sparse vector. */
export interface RaggedItems {
  /** u32 [capacity + 1]: row r has the items from offsets[r] up to offsets[r + 1]. */
  readonly offsets: Uint32Array;
  /** Of sparse vectors, by item: u32 and f32 [itemCapacity]; of no length for multivectors. */
  readonly indices: Uint32Array;
  readonly values: Float32Array;
}

export class ReplicaReader {
  private spec: ReplicaSpec;
  private opening = -1;
  private openCommit = 0;
  private commits: Int32Array | undefined;
  private fields: ReadonlyMap<string, FieldSchema> = new Map();
  private vectors: ReadonlyMap<string, VectorParams> = new Map();
  private sparse: ReadonlyMap<string, SparseVectorParams> = new Map();
  private readonly sets = new Map<number, SegmentSet>();
  private readonly segments = new Map<number, SegmentReader>();
  private view: ReplicaView | null = null;
  private place = 0;

  constructor(
    spec: ReplicaSpec,
    private readonly context: ReaderContext,
  ) {
    this.spec = spec;
  }

  get config(): CollectionConfig {
    return this.spec.config;
  }

  attach(message: Attach): void {
    // Opened anew: segments have other memories, and commits are counted from another one.
    if (message.opening !== this.opening) {
      this.dropSegments(() => false);
      this.sets.clear();
    }
    this.opening = message.opening;
    this.openCommit = message.openCommit;
    this.commits = message.commits;
    this.place = message.place;
    this.spec = message.spec;
    this.fields = message.fields;
    this.vectors = vectorsByName(message.spec.config.params.vectors);
    this.sparse = sparseByName(message.spec.config.params);
    this.sets.set(message.set.generation, message.set);
    for (const handle of message.set.segments) {
      const known = this.segments.get(handle.id);
      if (known === undefined) this.segments.set(handle.id, new SegmentReader(handle, this.scopeOf(handle.id), this.context));
      // What filters found of a vector that is lost is not true of another one that gets its name.
      else if (known.refresh(handle)) this.context.filters.drop(this.scopeOf(handle.id));
    }
  }

  /** Drops the sets before `generation`, and what only they used. */
  retire(generation: number): void {
    for (const known of [...this.sets.keys()]) if (known < generation) this.sets.delete(known);
    const used = new Set<number>();
    for (const set of this.sets.values()) for (const handle of set.segments) used.add(handle.id);
    this.dropSegments((id) => used.has(id));
    this.view?.leaveReplaced();
  }

  async close(): Promise<void> {
    this.sets.clear();
    this.dropSegments(() => false);
    const { view } = this;
    this.view = null;
    await view?.close();
  }

  /** The newest committed moment; null when its set of segments has not come yet. `release` it when the answer is made. */
  snapshot({ shardKey, ringShards }: KeyPlace = UNKEYED, ring: readonly ShardId[] | null = null): ReplicaSnapshot | null {
    this.context.uses.note(this.place);
    this.view ??= openReplicaView(this.spec.folder);
    const { view } = this;
    const state = view.refresh(this.commits);
    const set = this.sets.get(state.generation);
    if (set === undefined) {
      view.release();
      return null;
    }
    const seq = state.commit - this.openCommit;
    const shardId = shardOf(this.spec.key);
    // Shards of other keys have rings of their own, and all of their rows are theirs.
    const owner = ring?.includes(shardId) === true ? new RingOwner(ringOf(ring), shardId) : null;
    const segments = set.segments.map((handle) => {
      const rows = handle.kind === 'sealed' ? handle.rows : (state.appendable.get(handle.id) ?? 0);
      const reader = this.segments.get(handle.id) as SegmentReader;
      return new SegmentView(reader, rows, seq, view, this.fields, shardKey, owner && reader.ownedRows(owner, rows));
    });
    return {
      shardId,
      shardKey,
      ringShards: ringShards ?? (unkeyedShards(this.spec.config) || 1),
      appliedOperation: state.appliedOperation,
      config: this.spec.config,
      vectors: this.vectors,
      sparse: this.sparse,
      segments,
      release: () => view.release(),
    };
  }

  private scopeOf(segment: number): string {
    return `${this.spec.key}/${segment}`;
  }

  private dropSegments(keep: (id: number) => boolean): void {
    for (const [id, segment] of this.segments) {
      if (keep(id)) continue;
      segment.close();
      this.context.filters.drop(this.scopeOf(id));
      this.segments.delete(id);
    }
  }
}

/** What a shard's key says of it. */
export interface KeyPlace {
  readonly shardKey: ShardKey | null;
  /** Shards with this key; null: shards of the collection have none, or none is known. */
  readonly ringShards: number | null;
}

const UNKEYED: KeyPlace = { shardKey: null, ringShards: null };

/** Of the shards of a collection, as long as they are these: each read asks for those of its shards. */
const knownPlaces = new WeakMap<readonly KeyedShard[], ReadonlyMap<ShardId, KeyPlace>>();

export function keyPlacesOf(shards: readonly KeyedShard[]): ReadonlyMap<ShardId, KeyPlace> {
  let places = knownPlaces.get(shards);
  if (places === undefined) {
    const counts = new Map<ShardKey | null, number>();
    for (const { key } of shards) counts.set(key, (counts.get(key) ?? 0) + 1);
    places = new Map(shards.map(({ id, key }) => [id, key === null ? UNKEYED : { shardKey: key, ringShards: counts.get(key) ?? 1 }]));
    knownPlaces.set(shards, places);
  }
  return places;
}

/** A replica at one moment. */
export interface ReplicaSnapshot {
  readonly shardId: ShardId;
  readonly shardKey: ShardKey | null;
  /** Shards that points are shared out to by their ids, this one included: those with its key, or all where shards have none. */
  readonly ringShards: number;
  /** Number of the last operation that it takes in. */
  readonly appliedOperation: number;
  readonly config: CollectionConfig;
  /** Dense and multivectors by name. */
  readonly vectors: ReadonlyMap<string, VectorParams>;
  readonly sparse: ReadonlyMap<string, SparseVectorParams>;
  readonly segments: readonly SegmentView[];
  /** How rare indices of sparse vectors are, where other shards of the read count too; absent: as rare as in these snapshots. */
  readonly frequencies?: TermFrequencies;
  release(): void;
}

/** Sums over all rows that count. */
export interface TermFrequencies {
  /** Rows with a vector that is not empty. */
  readonly filled: number;
  /** Rows with the index. */
  rowsWith(index: number): number;
}

export function collectionOf(key: ReplicaKey): string {
  return key.slice(0, key.lastIndexOf('/'));
}

export function shardOf(key: ReplicaKey): ShardId {
  return Number(key.slice(key.lastIndexOf('/') + 1));
}

/** What a thread keeps of a segment as long as it is in a set. */
export class SegmentReader {
  readonly kinds: Uint8Array;
  readonly idWords: Uint32Array;
  readonly versions: Float64Array;
  readonly deletedAt: Uint32Array;
  private readonly deletions: Uint32Array;
  readonly filters: ConditionCache;
  /** Byte offset of this thread's scratch. */
  private readonly scratch: number;
  private readonly scratchLevel: number;
  private readonly vectors = new Map<string, VectorReader>();
  private readonly indexes = new Map<string, FieldIndex>();
  private readonly postings = new Map<string, SparseIndex>();
  /** Rows from 0 that all have the vector, as far as was looked. */
  private readonly present = new Map<string, number>();
  private madeKernels: Kernels | null = null;
  private owned: OwnedRows | null = null;

  constructor(
    private current: SegmentHandle,
    private readonly scope: string,
    private readonly context: ReaderContext,
  ) {
    const { memory, layout } = current;
    const ids = idColumns(memory, layout);
    this.kinds = ids.kinds;
    this.idWords = ids.words;
    this.versions = new Float64Array(memory.buffer, layout.versions, layout.capacity);
    this.deletedAt = new Uint32Array(memory.buffer, layout.deletedAt, layout.capacity);
    this.deletions = new Uint32Array(memory.buffer, layout.deletions, 1);
    this.filters = context.filters.scope(scope, collectionOf(collectionOf(scope)));
    this.scratch = scratchOf(layout, context.index);
    this.scratchLevel = layout.scratchLevel;
    for (const vector of layout.vectors) this.vectors.set(vector.name, vectorReader(memory, layout.capacity, vector));
  }

  get handle(): SegmentHandle {
    return this.current;
  }

  /** Whether a row may have been deleted. What a snapshot has deleted was marked before. */
  get hasDeletions(): boolean {
    return Atomics.load(this.deletions, 0) !== 0;
  }

  get deadline(): Deadline {
    return this.context.deadline;
  }

  /**
   * Byte offset of this thread's scratch. Where readers share it, this read waits for its turn and keeps it (Scratch-T2).
   * Errors: `timeout`.
   */
  get slot(): number {
    if (this.scratchLevel > 0) this.context.turns.take(this.scratchLevel, this.context.deadline);
    return this.scratch;
  }

  get kernels(): Kernels {
    this.madeKernels ??= instantiateKernels(this.handle.memory, this.context.deadline.expired, this.handle.layout.scratch);
    return this.madeKernels;
  }

  /** See `SeenScans.begin`. fields: those with an index. */
  beginScan(conditions: readonly Condition[], fields: ReadonlyMap<string, FieldSchema>, rows: number): (() => void) | undefined {
    return this.context.scans?.begin(collectionOf(collectionOf(this.scope)), conditions, (field) => fields.get(field), rows);
  }

  /** As the kernels' own. */
  takeScoredBytes(): number {
    return this.madeKernels?.takeScoredBytes() ?? 0;
  }

  /** What kernels did since the last call: rows that were scored, hops of walks. */
  takeWork(): { readonly rows: number; readonly hops: number } {
    return { rows: this.madeKernels?.takeScored() ?? 0, hops: this.madeKernels?.takeHops() ?? 0 };
  }

  vector(name: string): VectorReader | undefined {
    const known = this.vectors.get(name);
    return known?.layout.arrival != null && known.original === null ? this.lookForOriginals(known, known.layout) : known;
  }

  /** The vector as it is now, of which the originals were not in memory. */
  private lookForOriginals(known: VectorReader, layout: VectorLayout): VectorReader {
    const original = originalMatrix(this.handle.memory, layout);
    if (original === null) return known;
    const arrived = { ...known, original };
    this.vectors.set(layout.name, arrived);
    // What this thread has open is not read any more; `on_disk` indexes open theirs again.
    closeVectorFiles(this.handle);
    return arrived;
  }

  /** Bits of the first `rows` rows at least that belong to the shard; those of one ring are kept, as rows never change. */
  ownedRows(owner: RingOwner, rows: number): Uint32Array {
    if (this.owned === null || !this.owned.owner.isSame(owner))
      this.owned = { owner, rows: 0, bits: emptyBits(this.handle.layout.capacity) };
    const { owned } = this;
    for (; owned.rows < rows; owned.rows++)
      if (owner.has(this.kinds[owned.rows] as number, this.idWords, owned.rows * 4)) setBit(owned.bits, owned.rows);
    return owned.bits;
  }

  /** This thread's scratch for a filter: u32 words, one bit per row. */
  scratchBits(words: number): Uint32Array {
    return new Uint32Array(this.handle.memory.buffer, this.slot + this.handle.layout.scratch.bits, words);
  }

  /** Index of a field of a sealed segment; undefined when it has none. */
  sealedIndex(field: string): FieldIndex | undefined {
    const known = this.indexes.get(field);
    if (known !== undefined) return known;
    const handle = this.handle.fieldIndexes.find((index) => index.field === field);
    if (handle === undefined) return undefined;
    const index = openIndexOf(this.handle, handle);
    this.indexes.set(field, index);
    return index;
  }

  /** Inverted index of a sparse vector; null where the segment has none, and its rows are scored one by one. */
  sparseIndex(name: string): SparseIndex | null {
    const known = this.postings.get(name);
    if (known !== undefined) return known;
    const handle = this.vectors.has(name) && this.handle.sparseIndexes.find((index) => index.name === name);
    if (!handle) return null;
    const index = openSparseIndex(handle.buffer, name, this.handle.rows);
    this.postings.set(name, index);
    return index;
  }

  /** Whether all of the first `rows` rows have the vector. Looked up once for each row (View-V2). */
  allPresent(vector: VectorReader, rows: number): boolean {
    const { name } = vector.layout;
    let known = this.present.get(name) ?? 0;
    while (known < rows) {
      const word = vector.presence[known >>> 5] as number;
      if ((known & 31) === 0 && known + 32 <= rows && word === 0xffff_ffff) known += 32;
      else if ((word >>> (known & 31)) & 1) known++;
      else break;
    }
    this.present.set(name, known);
    return known >= rows;
  }

  /**
   * The same segment with other index files, or without a vector that the collection has lost: only those can change.
   * Whether it has lost one.
   */
  refresh(handle: SegmentHandle): boolean {
    const names = new Set(handle.layout.vectors.map(({ name }) => name));
    const lost = [...this.vectors.keys()].filter((name) => !names.has(name));
    for (const name of lost) {
      this.vectors.delete(name);
      this.present.delete(name);
      this.postings.delete(name);
    }
    const fields = (of: SegmentHandle): string =>
      of.fieldIndexes.map((index) => `${index.field} ${index.type} ${JSON.stringify(index.params)} ${index.file?.inode}`).join('\n');
    const sameFields = fields(handle) === fields(this.current);
    const samePayloads = (handle.payloadBytes === null) === (this.current.payloadBytes === null);
    if (sameFields && samePayloads && lost.length === 0) return false;
    if (!sameFields) this.indexes.clear();
    // The old memory object is kept: the kernels stand on it, and both are one memory.
    this.current = { ...handle, memory: this.current.memory };
    return lost.length > 0;
  }

  close(): void {
    this.madeKernels = null;
    this.vectors.clear();
    this.indexes.clear();
    this.postings.clear();
    if (this.handle.kind === 'sealed') closeSegmentFiles(this.handle);
  }
}

interface OwnedRows {
  readonly owner: RingOwner;
  /** That were looked at. */
  rows: number;
  readonly bits: Uint32Array;
}

/** A segment in a snapshot. */
export class SegmentView {
  constructor(
    readonly reader: SegmentReader,
    /** Rows that were there: 0..rows-1, deleted ones included. */
    readonly rows: number,
    readonly seq: number,
    private readonly view: ReplicaView,
    readonly fields: ReadonlyMap<string, FieldSchema>,
    readonly shardKey: ShardKey | null = null,
    /** Bits of the rows that are this shard's; null: all are. Those behind the last row mean nothing. */
    readonly owned: Uint32Array | null = null,
  ) {}

  get handle(): SegmentHandle {
    return this.reader.handle;
  }

  /** Which rows count for the kernels: live ones, of `bits` unless they are null. Until the next call on this thread. */
  admission(bits: Uint32Array | null): Admission {
    const deletedAt = this.reader.hasDeletions ? this.handle.layout.deletedAt : NO_DELETIONS;
    const given = bits ?? this.owned;
    if (given === null) return { deletedAt, seq: this.seq, bits: 0 };
    const words = wordCount(this.rows);
    const scratch = this.reader.scratchBits(words);
    scratch.set(given.subarray(0, words));
    if (this.owned !== null) intersect(scratch, this.owned);
    clearBehind(scratch, this.rows);
    return { deletedAt, seq: this.seq, bits: this.reader.slot + this.handle.layout.scratch.bits };
  }

  isLive(row: number): boolean {
    return this.isThere(row) && (this.owned === null || hasBit(this.owned, row));
  }

  /** Live, whichever shard it belongs to. */
  isThere(row: number): boolean {
    return row < this.rows && (this.reader.deletedAt[row] as number) > this.seq;
  }

  id(row: number): PointId {
    return readIdWords(this.reader.kinds[row] as number, this.reader.idWords, row * 4);
  }

  version(row: number): number {
    return this.reader.versions[row] as number;
  }

  /** The row that holds the point; undefined when it is not here or deleted. */
  findLive(id: PointId): number | undefined {
    const row = this.findAny(id);
    return row !== undefined && this.isLive(row) ? row : undefined;
  }

  /** The newest row that holds the id, deleted or not. */
  findAny(id: PointId): number | undefined {
    if (this.rows === 0) return undefined;
    return this.handle.kind === 'sealed' ? findRow(this.handle, id) : this.view.findRow(this.handle.id, id);
  }

  /** Rows in id order from `from` on (null: from the first), deleted ones included. */
  rowsFrom(from: PointId | null): Iterator<number> {
    return this.handle.kind === 'sealed' ? sealedRows(this.handle, from) : this.view.scanIds(this.handle.id, from);
  }

  /** JSON text of the row's payload, UTF-8; `{}` when it is empty. */
  payloadText(row: number): Uint8Array {
    const text = this.handle.kind === 'sealed' ? readPayloadText(this.handle, row) : this.view.payloadText(this.handle, row);
    if (text.length > EMPTY_OBJECT_BYTES) spend('payload_io_read', text.length);
    return text;
  }

  fieldIndex(field: string): FieldIndex | undefined {
    return this.handle.kind === 'sealed' ? this.reader.sealedIndex(field) : this.view.fieldIndex(this.handle.id, field, this.rows);
  }

  /** A copy of the row's vector; undefined when it has none. Errors: `storage` where it has to be read from a file. */
  vectorOf(name: string, row: number): VectorValue | undefined {
    const vector = this.reader.vector(name);
    if (vector === undefined || !hasVector(vector, row)) return undefined;
    if (vector.items === null) return { kind: 'dense', values: this.denseOf(name, row) as Float32Array };
    const { offsets, indices, values } = vector.items;
    const [from, to] = [offsets[row] as number, offsets[row + 1] as number];
    if (vector.layout.kind === 'sparse') return { kind: 'sparse', indices: indices.slice(from, to), values: values.slice(from, to) };
    return { kind: 'multi', dim: vector.layout.dim, values: tokensOf(this.handle.memory.buffer, vector.layout, from, to) };
  }

  /** The components of the row's dense vector, a copy; undefined when it has none. Errors: as `vectorOf`. */
  denseOf(name: string, row: number): Float32Array | undefined {
    const vector = this.reader.vector(name);
    if (vector === undefined || vector.items !== null || !hasVector(vector, row)) return undefined;
    const { layout } = vector;
    const originals = originalsOffset(this.handle.memory, layout);
    if (originals !== null) return componentsOf(this.handle.memory.buffer, originals + row * layout.stride, layout);
    const bytes = new Uint8Array(layout.stride);
    readOriginals(this.handle, layout, row, bytes);
    return componentsOf(bytes.buffer, 0, layout);
  }
}

/** A copy of the row that begins at byte `at`. */
function componentsOf(buffer: ArrayBufferLike, at: number, { element, dim }: VectorLayout): Float32Array {
  switch (element) {
    case 'f32':
      return new Float32Array(buffer, at, dim).slice();
    case 'f16':
      return decodeHalf(new Uint16Array(buffer, at, dim));
    case 'u8':
      return Float32Array.from(new Uint8Array(buffer, at, dim));
  }
}

/** A copy of the token vectors from..to: Float32Array [to - from, dim]. */
function tokensOf(buffer: ArrayBufferLike, layout: VectorLayout, from: number, to: number): Float32Array {
  const { dim, stride } = layout;
  const values = new Float32Array((to - from) * dim);
  for (let item = from; item < to; item++)
    values.set(componentsOf(buffer, residentOffset(layout) + item * stride, layout), (item - from) * dim);
  return values;
}

function* sealedRows(handle: SegmentHandle, from: PointId | null): Generator<number> {
  for (let position = from === null ? 0 : lowerBound(handle, from); position < handle.rows; position++)
    yield rowAtPosition(handle, position);
}

export function hasVector(vector: VectorReader, row: number): boolean {
  return (((vector.presence[row >>> 5] as number) >>> (row & 31)) & 1) === 1;
}

function vectorReader(memory: WebAssembly.Memory, capacity: number, layout: VectorLayout): VectorReader {
  const { kind, codes, graph, lists, rowCodes, subgraphs } = layout;
  return {
    layout,
    original: kind === 'sparse' ? null : originalMatrix(memory, layout),
    codes: codes && codeMatrix(memory, layout, codes),
    rowCounts: rowCodes === undefined ? null : new Uint32Array(memory.buffer, rowCodes.counts, 2),
    graph,
    valueWalks: subgraphs && openValueWalks(subgraphs),
    lists: lists && openLists(memory, layout, lists),
    tokenLists: openTokenLists(memory, layout),
    presence: new Uint32Array(memory.buffer, layout.presence, Math.ceil(capacity / 32)),
    items: raggedItems(memory, capacity, layout),
  };
}

/** Null: the originals are in a file. */
function originalMatrix(memory: WebAssembly.Memory, layout: VectorLayout): Matrix | null {
  const { metric, dim, element, stride, codes, decoded, rowCodes } = layout;
  if (decoded && codes !== null) return decodedMatrix(layout, codes);
  const offset = originalsOffset(memory, layout);
  return offset === null ? null : { element, metric, offset, stride, dim, ...(rowCodes && { rowCodes }) };
}

function raggedItems(memory: WebAssembly.Memory, capacity: number, layout: VectorLayout): RaggedItems | null {
  const { ragged, kind } = layout;
  if (ragged === null) return null;
  const components = kind === 'sparse' ? ragged.itemCapacity : 0;
  return {
    offsets: itemOffsets(memory, layout, capacity),
    indices: new Uint32Array(memory.buffer, residentOffset(layout), components),
    values: new Float32Array(memory.buffer, ragged.values, components),
  };
}
