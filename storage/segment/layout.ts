/**
 * Where a segment's arrays lie in its shared memory. One `WebAssembly.Memory` holds what the kernels and every engine
 * worker read of a segment, or of many small ones (`shared-memory.ts`); it is made in full size (untouched pages cost no memory) and
 * never grows, so that views on it stay valid. The layout is a plain value that travels with the memory.
 */

import { TroupeError } from '../../protocols/errors.js';
import type { Distance, QuantizationConfig } from '../../protocols/model/collection.js';
import type { Metric, RowCodes } from '../../vectors/kernel-api.js';
import { type CodeSpec, codeShape, maxSimTableBytes } from '../../vectors/quantizer-spec.js';
import { ROW_CODES_DIM_MIN, ROW_CODES_ROWS_MIN, ROW_FACTS_BYTES } from '../../vectors/row-codes.js';
import { align16, align64, type ScratchLayout, scratchLayout } from '../../vectors/scratch.js';
import type { DistanceProfile } from '../../vectors/walk-end.js';
import type { BlockSums } from './block-sums.js';
import { sharedMemory } from './shared-memory.js';

export type ElementType = 'f32' | 'f16' | 'u8';

/**
 * Codes of a vector's rows: what walks score. Without `spec` 8-bit ones, component = scale * code + origin: one scale for all
 * components, so that the integer kernels serve every metric.
 */
export interface CodesLayout {
  readonly offset: number;
  /** Bytes per row; of 8-bit codes: dim padded to 16. */
  readonly stride: number;
  /** Null: 8-bit codes. */
  readonly spec: CodeSpec | null;
  /** f32 numbers that all rows share, and how many bytes they take; none with 8-bit codes. */
  readonly table: number;
  readonly tableBytes: number;
  readonly scale: number;
  readonly origin: number;
  /** Every component is just what its code stands for (whole numbers within 255 of each other, say). */
  readonly exact: boolean;
  /** The greatest length of the difference between a vector and what its codes stand for; null where nothing depends on it. */
  readonly lost: number | null;
}

/** Adjacency of HNSW graphs over rows. Unused neighbour slots lie behind the count. */
export interface Adjacency {
  /** u32 [rows, 1 + m0]: count, then neighbours, level 0. */
  readonly level0: number;
  readonly m0: number;
  /** u32 [rows]: index (in u32 units from `upper`) of the row's upper levels, 0xffffffff for none. */
  readonly upperIndex: number;
  /** u32: for level 1 and up, 1 + m words a level. */
  readonly upper: number;
  /** Words in `upper`. */
  readonly upperWords: number;
  readonly m: number;
}

/** One graph over all rows. */
export interface GraphLayout extends Adjacency {
  /** What it was built with: a collection with another setting now has it built again. */
  readonly efConstruct: number;
  readonly entryRow: number;
  readonly maxLevel: number;
  /** How distances grow with rank (`walk-profile.ts`). Null: walks end without it. Left out: no build has learnt it. */
  readonly profile?: DistanceProfile | null;
  /** Share of its rows that were lost since all were linked, 0..1, and whose neighbours were healed. Left out: none. */
  readonly lost?: number;
  /** Its rows were linked by 8-bit codes, which were good enough. Left out: they were not, or an earlier release did not say. */
  readonly byCodes?: true;
}

/** What the sub-graphs of a vector are built with. */
export interface SubgraphSetting {
  readonly m: number;
  readonly efConstruct: number;
  /** Rows that a value has at least to get a graph. */
  readonly rowsMin: number;
  /** Indexed fields whose values get graphs, tenants first: type, whether it is the tenant, and key, as text. */
  readonly fields: readonly string[];
}

/** The graph over the rows of one payload value. */
export interface ValueGraph {
  readonly field: string;
  /** The value as text. */
  readonly value: string;
  readonly rows: number;
  /** Which layer has its links. */
  readonly layer: number;
  readonly entryRow: number;
  readonly maxLevel: number;
}

/** Graphs over the rows of single payload values (`payload_m`). */
export interface SubgraphsLayout {
  readonly setting: SubgraphSetting;
  /** Each is shared by graphs that have no row in common, so that a walk from an entry stays within its value. */
  readonly layers: readonly Adjacency[];
  readonly values: readonly ValueGraph[];
}

/** Where the originals lie that are not in memory. */
export interface OriginalsFile {
  /** Within the segment's folder. */
  readonly name: string;
  /** Bytes from the start of the file to row 0; rows follow each other as they would in memory. */
  readonly start: number;
  /** By which what is read is verified until the whole file is. Left out: it was when the segment was loaded. */
  readonly sums?: BlockSums;
}

/** Rows in lists on disk, each of rows that are near each other and follow each other: `lists.ts`. */
export interface ListsLayout {
  readonly count: number;
  /** u32 [count + 1]: list l has the rows from starts[l] up to starts[l + 1]. Rows without the vector are behind the last one. */
  readonly starts: number;
  /** u8 [count, dim padded to 16]: where each list's centroid is, component = scale * code + origin. */
  readonly centroids: number;
  readonly scale: number;
  readonly origin: number;
  /** As `VectorPlan.lists`. */
  readonly probes: number;
  /** Codes of the rows, that are read from their file; the offset is that of row 0 within it. Null in a build, which has them in memory. */
  readonly filed: { readonly file: OriginalsFile; readonly codes: CodesLayout } | null;
}

/** Token vectors of a multivector in lists of near ones, by which rows are found without comparing all: `token-lists.ts`. */
export interface TokenListsLayout {
  readonly count: number;
  /** u32 [count + 1]: list l has the entries from starts[l] up to starts[l + 1]. */
  readonly starts: number;
  /** u8 [count, stride of the codes]: where each list's centroid is, in the scale of the codes. */
  readonly centroids: number;
  /** u32 [itemCapacity] each: the token vector of an entry, and its row. */
  readonly items: number;
  readonly rows: number;
  /** As `VectorPlan.tokenLists`. */
  readonly probes: number;
}

export type VectorKind = 'dense' | 'multi' | 'sparse';

/**
 * Vectors of which a row has any number of items: token vectors of a multivector, components of a sparse vector. They lie
 * row after row, so that rows can be added at the end.
 */
export interface RaggedLayout {
  /** u32 [capacity + 1]: row r has the items from offsets[r] up to offsets[r + 1]; none where the row lacks the vector. */
  readonly offsets: number;
  /** Items there is room for. */
  readonly itemCapacity: number;
  /** Sparse: f32 [itemCapacity], the components. 0 for multivectors. */
  readonly values: number;
}

export interface VectorLayout {
  readonly kind: VectorKind;
  readonly name: string;
  /** Components of a row, or of each token vector; 0 for sparse vectors. */
  readonly dim: number;
  readonly metric: Metric;
  readonly element: ElementType;
  /**
   * Of the originals. dense: [capacity, stride bytes], multi: [itemCapacity, stride bytes], rows zero-padded to 16 bytes;
   * sparse: u32 [itemCapacity], the indices, ascending within a row. Null: they are not in memory but in `file`, or `decoded`.
   */
  readonly offset: number | null;
  readonly stride: number;
  /** Null for dense vectors. */
  readonly ragged: RaggedLayout | null;
  /** Null: the originals are in memory, or `decoded`. */
  readonly file: OriginalsFile | null;
  /**
   * The originals come to their place in memory while the segment is searched (`originals.ts`): a u32 that is not 0 once all are there. Until then they
   * are read from `file`. Null: they stay where they are.
   */
  readonly arrival: number | null;
  /** The 8-bit codes stand for just the f32 originals, which are kept nowhere else: `originals.ts` makes them of the codes. */
  readonly decoded: boolean;
  /** u32 words, one bit per row: the row has this vector. */
  readonly presence: number;
  readonly codes: CodesLayout | null;
  /** Of rows of an appendable segment, made while it is searched. Left out: there are none. */
  readonly rowCodes?: RowCodes;
  /** The quantization that the segment was built with; a collection with another one now has it built again. */
  readonly quantization: QuantizationConfig | null;
  readonly graph: GraphLayout | null;
  /** Null: the segment was built without any being asked for. */
  readonly subgraphs: SubgraphsLayout | null;
  /** In place of a graph; null: there are none. */
  readonly lists: ListsLayout | null;
  /** Of a multivector; null: there are none, and all rows are compared. */
  readonly tokenLists: TokenListsLayout | null;
}

export interface SegmentLayout {
  /** Rows there is room for; a sealed segment has exactly as many. */
  readonly capacity: number;
  /** Where scratch slots begin: see `scratchOf`. The builder has the first one, until readers get the segment. */
  readonly scratchOffset: number;
  /** 2^scratchLevel readers in a row share a slot, and take turns at it (Scratch-T1); 0: each has its own. */
  readonly scratchLevel: number;
  readonly scratch: ScratchLayout;
  /** u8 [capacity]: id kinds. u32 [capacity, 4]: id words. See `protocols/model/point-id.ts`. */
  readonly kinds: number;
  readonly ids: number;
  /** f64 [capacity]: operation number of the row's last change. */
  readonly versions: number;
  /** u32 [capacity]: commit sequence that deleted the row (visible to a reader at `seq` while deletedAt > seq); 0xffffffff: live, 0xfffffffe: held, 0: deleted before this process started. */
  readonly deletedAt: number;
  /** u32: not 0 once a row was marked in `deletedAt`. Until then nobody has to look there. */
  readonly deletions: number;
  /** u32 [capacity]: rows in id order; 0 for an appendable segment. */
  readonly order: number;
  /** u8 [capacity]: how many rows before a row with a payload the record begins that has it (`replica/payload-records.ts`); 0 for a sealed segment. */
  readonly payloadRecords: number;
  readonly vectors: readonly VectorLayout[];
  /** Where it begins in its memory, and how many bytes it takes there. */
  readonly base: number;
  readonly bytes: number;
}

export const LIVE = 0xffff_ffff;
/** A mark of rows that readers see while a newer row of their point is still deferred. The writer's own; readers only see that no commit reaches it. */
export const HELD = 0xffff_fffe;

/** What a layout is made for. */
export interface LayoutOptions {
  /** The segment is sealed and keeps its rows in id order too. */
  readonly ordered: boolean;
  /** Readers of the process, which need scratch. */
  readonly readers: number;
  /** Vectors whose originals stay out of memory, by name, and where they are. */
  readonly files?: ReadonlyMap<string, OriginalsFile>;
  /** Vectors with lists whose codes stay out of memory, by name, and where these are. */
  readonly codeFiles?: ReadonlyMap<string, OriginalsFile>;
  /** Vectors of these that have a place in memory, too, which is filled later. */
  readonly arriving?: ReadonlySet<string>;
  /** Dense vectors of single floats get room for `rowCodes`, where there are enough rows for it. */
  readonly rowCodes?: boolean;
  /** Bytes of the memory before it, a multiple of 64. */
  readonly base?: number;
  /** Where in 64 KB of memory large originals begin, a multiple of 64: as in their file, whose pages can take their place then. Left out: anywhere. */
  readonly originalsPlace?: number;
}

/** Originals of a vector that are so many bytes are worth what it takes to have them in memory later, or not at all. Fewer are there within 15 ms, as measured. */
export const LARGE_ORIGINALS_BYTES = 16 << 20;

/** A multiple of every system's pages. */
export const PLACE_BYTES = 1 << 16;

/** Of bytes of a memory those that are whole pages; null: there are none. */
export function wholePages(offset: number, bytes: number): { readonly offset: number; readonly bytes: number } | null {
  const from = Math.ceil(offset / PLACE_BYTES) * PLACE_BYTES;
  const to = Math.floor((offset + bytes) / PLACE_BYTES) * PLACE_BYTES;
  return to > from ? { offset: from, bytes: to - from } : null;
}

/** What a layout is made from. */
export interface VectorPlan {
  readonly kind: VectorKind;
  readonly name: string;
  /** 0 for sparse vectors, whose distance is `Dot` and whose element is `f32`. */
  readonly dim: number;
  readonly distance: Distance;
  readonly element: ElementType;
  /** Items there is room for; 0 for dense vectors, which have one a row. */
  readonly itemCapacity: number;
  readonly codes: (Pick<CodesLayout, 'scale' | 'origin' | 'exact'> & { readonly spec?: CodeSpec; readonly lost?: number }) | null;
  /** See `VectorLayout`; left out: false. Segments of a build keep all originals until it is finished. */
  readonly decoded?: boolean;
  /** See `VectorLayout`; left out: null. */
  readonly quantization?: QuantizationConfig;
  readonly graph: Omit<GraphLayout, 'level0' | 'upper' | 'upperIndex'> | null;
  /** Left out: null. */
  readonly subgraphs?: {
    readonly setting: SubgraphSetting;
    readonly layers: readonly Pick<Adjacency, 'm' | 'm0' | 'upperWords'>[];
    readonly values: readonly ValueGraph[];
  };
  /** Left out: none. probes: lists that a search with `hnsw_ef` 100 reads, as found out with some rows (`lists.ts`). */
  readonly lists?: Pick<ListsLayout, 'count' | 'scale' | 'origin' | 'probes'>;
  /** Left out: none. probes: lists that a search with `hnsw_ef` 100 looks at for each vector of the query, as found out with some rows. */
  readonly tokenLists?: Pick<TokenListsLayout, 'count' | 'probes'>;
}

export const ELEMENT_BYTES: Readonly<Record<ElementType, number>> = { f32: 4, f16: 2, u8: 1 };
const METRICS: Record<Distance, Metric> = { Cosine: 'dot', Dot: 'dot', Euclid: 'l2', Manhattan: 'l1' };

/** How rows are compared: cosine vectors are stored normalized and compared by dot. */
export function metricOf(distance: Distance): Metric {
  return METRICS[distance];
}

/** Byte offset of a reader's scratch. */
export function scratchOf({ scratch, scratchLevel, scratchOffset }: SegmentLayout, reader: number): number {
  return scratchOffset + (reader >> scratchLevel) * scratch.bytes;
}

/** Bytes from one row (or token vector, or sparse index) of originals to the next. */
export function strideOf(plan: Pick<VectorPlan, 'kind' | 'dim' | 'element'>): number {
  return plan.kind === 'sparse' ? 4 : align16(plan.dim * ELEMENT_BYTES[plan.element]);
}

/** Bytes that the values of a row, or of each of its items, come to without padding. */
export function itemBytes(vector: Pick<VectorPlan, 'kind' | 'dim' | 'element'>): number {
  return vector.kind === 'sparse' ? 8 : vector.dim * ELEMENT_BYTES[vector.element];
}

/** Where the originals begin in memory; for code that never meets others, as builds and appendable segments do. */
export function residentOffset(vector: VectorLayout): number {
  if (vector.offset === null) throw new Error(`the originals of '${vector.name}' are not in memory`);
  return vector.offset;
}

/** Addresses in a memory are 32 bits wide. */
export const MEMORY_BYTES_MAX = 2 ** 32;

/**
 * Layout for `capacity` rows that ends within `bytesMax` of its memory, if it can: where scratch for each reader is too much, two, four, eight...
 * of them share theirs (Scratch-T1). With one slot for all it may still be too long.
 */
export function fittingLayout(
  capacity: number,
  vectors: readonly VectorPlan[],
  options: LayoutOptions,
  bytesMax = MEMORY_BYTES_MAX,
): SegmentLayout {
  for (let scratchLevel = 0; ; scratchLevel++) {
    const layout = segmentLayout(capacity, vectors, options, scratchLevel);
    if ((options.base ?? 0) + layout.bytes <= bytesMax || 2 ** scratchLevel >= options.readers) return layout;
  }
}

/** Layout for `capacity` rows. scratchLevel: see `SegmentLayout`. */
export function segmentLayout(capacity: number, vectors: readonly VectorPlan[], options: LayoutOptions, scratchLevel = 0): SegmentLayout {
  const base = options.base ?? 0;
  let at = base + 1024;
  const take = (bytes: number): number => {
    const offset = at;
    at += align64(bytes);
    return offset;
  };
  const dimMax = vectors.reduce((max, vector) => Math.max(max, vector.dim), 0);
  const files: ReadonlyMap<string, OriginalsFile> = options.files ?? new Map();
  const codeFiles: ReadonlyMap<string, OriginalsFile> = options.codeFiles ?? new Map();
  const isStaged = ({ name }: VectorPlan): boolean => files.has(name) || codeFiles.has(name);
  const staged = vectors.reduce((max, vector) => (isStaged(vector) ? Math.max(max, strideOf(vector)) : max), 0);
  const queryBytes = vectors.reduce((max, plan) => Math.max(max, codedQueryBytes(plan)), 0);
  const scratch = scratchLayout(capacity, dimMax, staged, queryBytes);
  const scratchOffset = take(scratch.bytes * Math.ceil(options.readers / 2 ** scratchLevel));
  const kinds = take(capacity);
  const ids = take(capacity * 16);
  const versions = take(capacity * 8);
  const deletedAt = take(capacity * 4);
  const deletions = take(Uint32Array.BYTES_PER_ELEMENT);
  const order = options.ordered ? take(capacity * 4) : 0;
  const payloadRecords = options.ordered ? 0 : take(capacity);
  const arrives = (name: string): boolean => options.arriving?.has(name) === true;
  const takeOriginals = (bytes: number, name: string): number => {
    const { originalsPlace: place } = options;
    if (place !== undefined && (bytes >= LARGE_ORIGINALS_BYTES || arrives(name))) at += (place - at) & (PLACE_BYTES - 1);
    return take(bytes);
  };
  const laid = vectors.map((plan) => {
    const [file, codeFile] = [files.get(plan.name) ?? null, codeFiles.get(plan.name) ?? null];
    const vector = vectorLayout(plan, capacity, { file, codeFile, arrives: arrives(plan.name) }, take, takeOriginals);
    return options.rowCodes === true && gainsByRowCodes(vector, capacity)
      ? { ...vector, rowCodes: rowCodesLayout(vector, capacity, take) }
      : vector;
  });
  return {
    capacity,
    scratchOffset,
    scratchLevel,
    scratch,
    kinds,
    ids,
    versions,
    deletedAt,
    deletions,
    order,
    payloadRecords,
    vectors: laid,
    base,
    bytes: at - base,
  };
}

/** Room for a query as codes that were asked for are scored with it; 0 for all others. */
function codedQueryBytes({ kind, codes, dim }: VectorPlan): number {
  if (codes?.spec === undefined) return 0;
  const { queryBytes } = codeShape(codes.spec, dim);
  return kind === 'multi' ? queryBytes + maxSimTableBytes(codes.spec, dim) : queryBytes;
}

/** What of a vector is not in memory: where the originals are that stay in their file, or arrive later, and codes that stay there. */
interface Absent {
  readonly file: OriginalsFile | null;
  readonly codeFile: OriginalsFile | null;
  readonly arrives: boolean;
}

/** Where one vector's arrays lie. */
function vectorLayout(
  plan: VectorPlan,
  capacity: number,
  { arrives, codeFile, file }: Absent,
  take: (bytes: number) => number,
  takeOriginals: (bytes: number, name: string) => number,
): VectorLayout {
  const stride = strideOf(plan);
  const presence = take(Math.ceil(capacity / 32) * 4 + 16);
  const count = plan.kind === 'dense' ? capacity : plan.itemCapacity;
  const decoded = plan.decoded === true;
  const offset = (file === null || arrives) && !decoded ? takeOriginals(count * stride, plan.name) : null;
  const arrival = arrives ? take(Uint32Array.BYTES_PER_ELEMENT) : null;
  const ragged = plan.kind === 'dense' ? null : raggedLayout(plan, capacity, take);
  const laid = plan.codes && codesLayout(plan, plan.codes, codeFile === null ? count : 0, take);
  const codes = codeFile === null ? laid : null;
  const filed = codeFile !== null && laid !== null ? { file: codeFile, codes: { ...laid, offset: 0 } } : null;
  const lists = plan.lists ? listsLayout(plan, plan.lists, filed, take) : null;
  const tokenLists = plan.tokenLists && laid ? tokenListsLayout(plan.tokenLists, laid, count, take) : null;
  const graph = plan.graph && { ...plan.graph, ...adjacency(plan.graph, capacity, take) };
  const subgraphs = plan.subgraphs
    ? { ...plan.subgraphs, layers: plan.subgraphs.layers.map((layer) => adjacency(layer, capacity, take)) }
    : null;
  return {
    kind: plan.kind,
    name: plan.name,
    dim: plan.dim,
    metric: metricOf(plan.distance),
    element: plan.element,
    offset,
    stride,
    ragged,
    file,
    arrival,
    decoded,
    presence,
    codes,
    quantization: plan.quantization ?? null,
    graph,
    subgraphs,
    lists,
    tokenLists,
  };
}

function gainsByRowCodes({ dim, element, kind, metric }: VectorLayout, capacity: number): boolean {
  return kind === 'dense' && element === 'f32' && metric !== 'l1' && dim >= ROW_CODES_DIM_MIN && capacity >= ROW_CODES_ROWS_MIN;
}

function rowCodesLayout({ dim }: VectorLayout, capacity: number, take: (bytes: number) => number): RowCodes {
  const stride = align16(dim);
  return { codes: take(capacity * stride), stride, facts: take(capacity * ROW_FACTS_BYTES), counts: take(8) };
}

function listsLayout(
  { dim }: VectorPlan,
  { count, scale, origin, probes }: NonNullable<VectorPlan['lists']>,
  filed: ListsLayout['filed'],
  take: (bytes: number) => number,
): ListsLayout {
  return { count, starts: take((count + 1) * 4), centroids: take(count * align16(dim)), scale, origin, probes, filed };
}

function tokenListsLayout(
  { count, probes }: NonNullable<VectorPlan['tokenLists']>,
  { stride }: CodesLayout,
  items: number,
  take: (bytes: number) => number,
): TokenListsLayout {
  return { count, starts: take((count + 1) * 4), centroids: take(count * stride), items: take(items * 4), rows: take(items * 4), probes };
}

/** Kernels read codes in steps that may end behind the last row, but never 64 bytes behind it. */
const CODE_SLACK_BYTES = 64;

/** count: rows, or token vectors of all rows. */
function codesLayout(
  { dim }: VectorPlan,
  codes: NonNullable<VectorPlan['codes']>,
  count: number,
  take: (bytes: number) => number,
): CodesLayout {
  const { scale, origin, exact, spec, lost = null } = codes;
  if (spec === undefined) {
    const stride = align16(dim);
    return { offset: take(count * stride), stride, spec: null, table: 0, tableBytes: 0, scale, origin, exact, lost };
  }
  const { stride, tableBytes } = codeShape(spec, dim);
  return { offset: take(count * stride + CODE_SLACK_BYTES), stride, spec, table: take(tableBytes), tableBytes, scale, origin, exact, lost };
}

function adjacency(
  { m, m0, upperWords }: Pick<Adjacency, 'm' | 'm0' | 'upperWords'>,
  capacity: number,
  take: (bytes: number) => number,
): Adjacency {
  return { level0: take(capacity * (1 + m0) * 4), m0, upperIndex: take(capacity * 4), upper: take(upperWords * 4), upperWords, m };
}

function raggedLayout({ kind, itemCapacity }: VectorPlan, capacity: number, take: (bytes: number) => number): RaggedLayout {
  return { offsets: take((capacity + 1) * 4), itemCapacity, values: kind === 'sparse' ? take(itemCapacity * 4) : 0 };
}

/** A shared memory of the layout's size. Errors: `storage` without addresses for it, or where it is longer than a memory can be. */
export function segmentMemory(layout: SegmentLayout): WebAssembly.Memory {
  const { bytes, capacity } = layout;
  if (bytes > MEMORY_BYTES_MAX)
    throw new TroupeError('storage', `a segment of ${capacity} rows needs ${bytes} bytes of memory, and one holds 4 GiB`, {
      reason: 'segmentTooLarge',
    });
  return sharedMemory(layout.bytes);
}
