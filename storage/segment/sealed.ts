/**
 * Files of a sealed segment: written once, by a build, and loaded into shared memory.
 *
 * | file               | sections                        | when damaged |
 * |--------------------|---------------------------------|--------------|
 * | `segment`          | none: its facts describe the segment | the segment cannot be read |
 * | `rows`             | kinds, ids, versions, order     | the segment cannot be read |
 * | `vectors.<n>`      | presence, vectors               | the segment cannot be read |
 * |   decoded          | presence                        |              |
 * |   multivector      | presence, offsets, vectors      |              |
 * |   sparse           | presence, offsets, indices, values |           |
 * | `payload`          | data, offsets                   | the segment cannot be read |
 * | `codes.<n>`        | codes; table, where quantized   | loads without, built again from the vectors |
 * |   decoded          | codes                           | the segment cannot be read |
 * | `graph.<n>`        | level0, upperIndex, upper; those of sub-graphs as level0.<layer>, ... | loads without, built again from the vectors |
 * | `lists.<n>`        | starts, centroids               | loads without, built again from the vectors |
 * | `tokens.<n>`       | starts, centroids, items, rows: lists of a multivector | loads without, built again from the vectors |
 * | `sums.<n>`         | sums: of `vectors.<n>`, where it is large | all of that file is read when the segment is loaded; built again |
 * | `sums.codes.<n>`   | sums: of `codes.<n>`, where it is large and lists are read in it | as above |
 * | `sparse.<n>`       | index                           | loads without, built again from the vectors |
 * | `index.<field>`    | index                           | loads without, built again from the payloads |
 *
 * `<n>` counts the vectors as `segment` lists them. Files hold sections and no memory images, as the number of scratch
 * slots, and with it the layout, differs from process to process. Each file names the segment it belongs to.
 *
 * Of a vector that is `decoded` (`layout.ts`) the codes are all there is. Its `vectors.<n>`, and the `segment` that tells of it, are of format version 2,
 * which earlier releases refuse; all other files are of version 1.
 */

import fs from 'node:fs';
import path from 'node:path';
import { TroupeError } from '../../protocols/errors.js';
import type { FieldSchema } from '../../protocols/model/collection.js';
import { align16, align64 } from '../../vectors/scratch.js';
import { checksum64, initChecksum } from '../disk/checksum.js';
import {
  DamagedFile,
  type FormatVersion,
  firstSectionOffset,
  type PauseReading,
  publishByRename,
  readSegmentFile,
  readSegmentFileInParts,
  type SegmentFileReader,
  syncFolderNow,
  writeSegmentFile,
} from '../disk/file.js';
import { checkOwned } from '../disk/owned-folder.js';
import type { BuildReport } from '../threads/messages.js';
import type { FieldIndexHandle, SegmentHandle, SparseIndexHandle } from './handle.js';
import { residentBytes } from './index-layout.js';
import { wantLargePages } from './large-pages.js';
import {
  type Adjacency,
  type CodesLayout,
  fittingLayout,
  LARGE_ORIGINALS_BYTES,
  LIVE,
  type OriginalsFile,
  PLACE_BYTES,
  type SegmentLayout,
  segmentMemory,
  strideOf,
  type VectorLayout,
  type VectorPlan,
} from './layout.js';
import { itemArrays } from './ragged.js';
import { readSparseIndex } from './sparse-file.js';
import { codeSumsFile, hasCodeSums, hasVectorSums, readSums, vectorSumsFile, withSums } from './sums-file.js';
import { vectorFile } from './vector-file.js';

/** What `segment` says. */
export interface SegmentDescription {
  readonly segment: number;
  readonly rows: number;
  readonly vectors: readonly VectorPlan[];
  readonly report: BuildReport;
}

export interface LoadOptions {
  /** Readers of the process: those that do not find room for scratch of their own share it. */
  readonly readers: number;
  /** Whether payloads stay in their file. */
  readonly onDiskPayload: boolean;
  /** Whether the originals of a vector stay in their file; left out: none do. */
  readonly onDisk?: (plan: VectorPlan, rows: number) => boolean;
  /** Whether those of one that do not stay there come to memory later (`originals.ts`); left out: all are in memory at once. */
  readonly later?: (plan: VectorPlan, rows: number) => boolean;
  /** Indexed fields of the collection; files of other fields are left alone. */
  readonly fields: ReadonlyMap<string, FieldSchema>;
  /** Awaited between files and between parts of them, of some megabytes: others of the thread can have their turn. */
  readonly pause?: PauseReading;
}

export interface LoadedSegment {
  /** All rows live: whoever loads marks the deleted ones. */
  readonly handle: SegmentHandle;
  /** Names of damaged files the segment was loaded without; all can be built again. */
  readonly damagedFiles: readonly string[];
  /** What is wrong with each of them, starting with its path. */
  readonly damages: readonly string[];
  readonly description: SegmentDescription;
}

/** An unfinished segment is built in `<folder>.tmp`. */
export function unfinishedFolder(folder: string): string {
  return `${folder}.tmp`;
}

/** A segment's folder within its replica's. */
export function segmentFolder(replicaFolder: string, segment: number): string {
  return path.join(replicaFolder, 'segments', String(segment));
}

/** Makes the empty folder a segment is built in; what an interrupted build left there goes. */
export function beginSegmentFolder(folder: string): string {
  const unfinished = unfinishedFolder(folder);
  fs.rmSync(unfinished, { recursive: true, force: true });
  const firstMade = fs.mkdirSync(unfinished, { recursive: true });
  // Else a power cut after the first build could take the folder of all segments with it (Room-R5).
  if (firstMade !== undefined && firstMade !== unfinished) syncFolderNow(path.dirname(firstMade));
  return unfinished;
}

/**
 * Publishes a built folder under its final name. A folder of that name was never published, as ids are not used again; another process that
 * has taken over the storage folder may have published one (Owner-F1).
 */
export function publishSegmentFolder(folder: string): void {
  syncFolderNow(unfinishedFolder(folder));
  checkOwned(folder);
  fs.rmSync(folder, { recursive: true, force: true });
  publishByRename(unfinishedFolder(folder), folder);
}

/** Removes every folder of `segments/` but those of the segments to keep: remains of interrupted builds and of retired segments. */
export function cleanSegmentFolders(replicaFolder: string, keep: ReadonlySet<number>): void {
  const segments = path.join(replicaFolder, 'segments');
  if (!fs.existsSync(segments)) return;
  for (const name of fs.readdirSync(segments)) {
    if (!/^\d+$/.test(name) || !keep.has(Number(name))) fs.rmSync(path.join(segments, name), { recursive: true, force: true });
  }
}

/**
 * Writes `rows`, `vectors.<n>`, `codes.<n>`, the sums of both, `graph.<n>`, `lists.<n>`, `tokens.<n>` and `segment` (last) from a memory, which holds all
 * originals, to `folder`, each on disk when this returns. The payload file and field indexes have writers of their own.
 */
export function writeSealed(
  folder: string,
  description: SegmentDescription,
  memory: WebAssembly.Memory,
  layout: SegmentLayout,
  { checkpoint = () => {}, piecesOf = () => null, sumsFromBytes = LARGE_ORIGINALS_BYTES }: WriteOptions = {},
): void {
  const { segment, rows } = description;
  const sections = memorySections(memory, layout, rows);
  writeSegmentFile(path.join(folder, 'rows'), 'rows', { segment, rows }, sections.rows);
  sections.vectors.forEach((vector, n) => {
    checkpoint();
    const version = versionOf(description.vectors[n]?.decoded === true);
    const plan = description.vectors[n] as VectorPlan;
    const { vectors: values } = vector.vectors;
    const pieces = values === undefined ? [] : (piecesOf(plan.name) ?? [values]);
    const sums = values !== undefined && hasVectorSums(plan, rows, sumsFromBytes) ? withSums(pieces, values.length) : null;
    const written = values === undefined ? vector.vectors : { ...vector.vectors, vectors: sums?.passing ?? pieces };
    writeSegmentFile(path.join(folder, vectorFile(n)), 'vectors', { segment, rows }, written, version);
    sums?.write(path.join(folder, vectorSumsFile(n)), description);
    if (vector.codes) writeCodes(folder, description, n, vector.codes, sumsFromBytes);
    if (vector.graph) writeSegmentFile(path.join(folder, `graph.${n}`), 'graph', { segment, rows }, vector.graph);
    if (vector.lists) writeSegmentFile(path.join(folder, `lists.${n}`), 'lists', { segment, rows }, vector.lists);
    if (vector.tokenLists) writeSegmentFile(path.join(folder, `tokens.${n}`), 'tokens', { segment, rows }, vector.tokenLists);
  });
  checkpoint();
  const isDecoded = description.vectors.some(({ decoded }) => decoded === true);
  writeSegmentFile(path.join(folder, 'segment'), 'segment', { ...description }, {}, versionOf(isDecoded));
}

function writeCodes(folder: string, description: SegmentDescription, n: number, sections: Sections, sumsFromBytes: number): void {
  const { rows, segment } = description;
  const codes = sections.codes as Uint8Array;
  const isSummed = hasCodeSums(description.vectors[n] as VectorPlan, codes.length, sumsFromBytes);
  const sums = isSummed ? withSums([codes], codes.length) : null;
  writeSegmentFile(path.join(folder, codesFile(n)), 'codes', { segment, rows }, { ...sections, codes: sums?.passing ?? codes });
  sums?.write(path.join(folder, codeSumsFile(n)), description);
}

function codesFile(n: number): string {
  return `codes.${n}`;
}

export interface WriteOptions {
  /** Called between files; may throw. */
  readonly checkpoint?: () => void;
  /** The originals of a dense vector that are not in memory, in pieces that are multiples of 64 kB but for the last; null: they are. */
  readonly piecesOf?: (name: string) => Iterable<Uint8Array> | null;
  /** Originals and codes of so many bytes have sums of their blocks. */
  readonly sumsFromBytes?: number;
}

/** Where in 64 KB of its file the originals of a dense vector begin: see `LayoutOptions`. */
export function originalsPlace(segment: number, rows: number): number {
  const first = firstSectionOffset('vectors', { segment, rows }, ['presence', 'vectors']);
  return (first + align64(Math.ceil(rows / 32) * 4)) % PLACE_BYTES;
}

function versionOf(isDecoded: boolean): FormatVersion {
  return isDecoded ? 2 : 1;
}

/** Writes (or replaces) the index file of one field and publishes it by rename within `folder`. */
export function writeFieldIndex(folder: string, segment: number, index: FieldIndexHandle): void {
  const name = fieldIndexFile(index.field);
  const facts = { segment, field: index.field, ...indexSchema(index) };
  writeSegmentFile(path.join(folder, `${name}.tmp`), 'index', facts, { index: new Uint8Array(index.buffer) });
  publishByRename(path.join(folder, `${name}.tmp`), path.join(folder, name));
}

/** File name of a field's index: small letters, digits, `_` and `-` stand for themselves, other bytes are `%XX`; long names end in a checksum. */
export function fieldIndexFile(field: string): string {
  const bytes = new TextEncoder().encode(field);
  let name = '';
  for (const byte of bytes) {
    const letter = String.fromCharCode(byte);
    name += /[a-z0-9_-]/.test(letter) ? letter : `%${byte.toString(16).padStart(2, '0')}`;
  }
  if (name.length > 160) name = `${name.slice(0, 120)}~${checksum64(bytes).toString(16).padStart(16, '0')}`;
  return `index.${name}`;
}

/**
 * Loads a segment from its folder.
 * Errors: `storage`, with the file's path, when `segment`, `rows`, `vectors.<n>` or `payload` is damaged, or codes that stand for vectors are.
 */
export async function loadSealed(folder: string, options: LoadOptions): Promise<LoadedSegment> {
  await initChecksum();
  const folderStat = fs.lstatSync(folder, { throwIfNoEntry: false });
  if (folderStat === undefined) throw new DamagedFile(folder, 'is missing');
  if (!folderStat.isDirectory()) throw new DamagedFile(folder, 'is no folder');
  const description = readDescription(folder);
  const damaged: DamagedFile[] = [];
  const { arriving, files } = originalsFiles(folder, description, options, damaged);
  const { codeFiles, plans } = listedFiles(folder, description, damaged);
  const planned = fittingLayout(description.rows, plans, {
    ordered: true,
    readers: options.readers,
    files,
    codeFiles,
    arriving,
    originalsPlace: originalsPlace(description.segment, description.rows),
  });
  const memory = segmentMemory(planned);
  const sections = memorySections(memory, planned, description.rows);
  const pause = options.pause ?? (async () => {});
  await readSections(folder, 'rows', 'rows', description, sections.rows, pause);
  const vectors: VectorLayout[] = [];
  for (const [n, vector] of planned.vectors.entries()) {
    const parts = sections.vectors[n] as VectorSections;
    await pause();
    await readVectors(folder, description, vector, n, parts.vectors, pause);
    await pause();
    const readCodes = () => readSections(folder, codesFile(n), 'codes', description, parts.codes as Sections, pause);
    if (vector.decoded) await readCodes();
    const codes = vector.decoded || (parts.codes !== null && (await survives(damaged, readCodes)));
    const graph =
      parts.graph !== null &&
      (await survives(damaged, () => readSections(folder, `graph.${n}`, 'graph', description, parts.graph as Sections, pause)));
    await pause();
    const lists = parts.lists !== null && (await survives(damaged, () => readLists(folder, description, vector, n, parts, pause)));
    await pause();
    const readTokenLists = () => readSections(folder, `tokens.${n}`, 'tokens', description, parts.tokenLists as Sections, pause);
    const tokenLists = codes && parts.tokenLists !== null && (await survives(damaged, readTokenLists));
    // Walks score what is in memory: without its codes, a graph over originals on disk is of no use either.
    const walkable = graph && (codes || vector.file === null);
    vectors.push({
      ...vector,
      codes: codes ? vector.codes : null,
      graph: walkable ? vector.graph : null,
      subgraphs: walkable || parts.graph === null ? vector.subgraphs : null,
      lists: lists ? vector.lists : null,
      tokenLists: tokenLists ? vector.tokenLists : null,
    });
  }
  await pause();
  const layout: SegmentLayout = { ...planned, vectors };
  wantLargePages(memory, layout);
  new Uint32Array(memory.buffer, layout.deletedAt, layout.capacity).fill(LIVE);
  const payload = await readPayload(folder, description, options.onDiskPayload, pause);
  const fieldIndexes = await readFieldIndexes(folder, description, options.fields, damaged, pause);
  const handle: SegmentHandle = {
    id: description.segment,
    kind: 'sealed',
    layout,
    memory,
    rows: description.rows,
    folder,
    ...payload,
    fieldIndexes,
    sparseIndexes: await readSparseIndexes(folder, description, damaged, pause),
  };
  const damagedFiles = damaged.map((error) => path.basename(error.path));
  return { handle, damagedFiles, damages: damaged.map((error) => error.detail), description };
}

/**
 * Where the originals are that stay in their files or arrive later, by vector. Their files are verified when all of the segment is read, but for those with
 * sums: these are verified as they are read, and soon as a whole (`replica/arrivals.ts`).
 */
function originalsFiles(
  folder: string,
  { rows, vectors }: SegmentDescription,
  { later = () => false, onDisk = () => false }: LoadOptions,
  damaged: DamagedFile[],
): { readonly files: ReadonlyMap<string, OriginalsFile>; readonly arriving: ReadonlySet<string> } {
  const files = new Map<string, OriginalsFile>();
  const arriving = new Set<string>();
  vectors.forEach((plan, n) => {
    const stays = onDisk(plan, rows);
    if (!stays && !later(plan, rows)) return;
    const name = vectorFile(n);
    const start = readSegmentFile(path.join(folder, name), 'vectors', (reader) => reader.section('vectors').offset);
    files.set(plan.name, { name, start, ...readSums(folder, vectorSumsFile(n), rows * strideOf(plan), damaged) });
    if (!stays) arriving.add(plan.name);
  });
  return { files, arriving };
}

/**
 * Where the codes are that are read by lists, by vector, and the plans of all vectors. Those whose codes file is damaged have neither codes nor lists.
 */
function listedFiles(
  folder: string,
  { vectors }: SegmentDescription,
  damaged: DamagedFile[],
): { readonly codeFiles: ReadonlyMap<string, OriginalsFile>; readonly plans: readonly VectorPlan[] } {
  const codeFiles = new Map<string, OriginalsFile>();
  const plans = vectors.map((plan, n): VectorPlan => {
    if (plan.lists === undefined) return plan;
    const name = codesFile(n);
    try {
      const { bytes, offset } = readSegmentFile(path.join(folder, name), 'codes', (reader) => reader.section('codes'));
      codeFiles.set(plan.name, { name, start: offset, ...readSums(folder, codeSumsFile(n), bytes, damaged) });
      return plan;
    } catch (error) {
      if (!(error instanceof DamagedFile)) throw error;
      damaged.push(error);
      const { lists, ...others } = plan;
      return { ...others, codes: null };
    }
  });
  return { codeFiles, plans };
}

type Sections = Readonly<Record<string, Uint8Array>>;

interface VectorSections {
  readonly vectors: Sections;
  readonly codes: Sections | null;
  readonly graph: Sections | null;
  readonly lists: Sections | null;
  readonly tokenLists: Sections | null;
  /** What the codes of all rows share, where lists read them from their file. */
  table(codes: CodesLayout): Uint8Array;
}

/** The memory's arrays as files hold them; originals that stay on disk, arrive later, or are decoded, are left out. */
function memorySections(memory: WebAssembly.Memory, layout: SegmentLayout, rows: number): { rows: Sections; vectors: VectorSections[] } {
  const part = (offset: number, bytes: number) => new Uint8Array(memory.buffer, offset, bytes);
  return {
    rows: {
      kinds: part(layout.kinds, rows),
      ids: part(layout.ids, rows * 16),
      versions: part(layout.versions, rows * 8),
      order: part(layout.order, rows * 4),
    },
    vectors: layout.vectors.map((vector) => ({
      vectors: { presence: part(vector.presence, Math.ceil(rows / 32) * 4), ...originals(vector, rows, part) },
      codes: vector.codes && {
        codes: part(vector.codes.offset, (vector.ragged?.itemCapacity ?? rows) * vector.codes.stride),
        ...(vector.codes.spec === null ? {} : { table: part(vector.codes.table, vector.codes.tableBytes) }),
      },
      graph: graphSections(vector, rows, part),
      lists: vector.lists && {
        starts: part(vector.lists.starts, (vector.lists.count + 1) * 4),
        centroids: part(vector.lists.centroids, vector.lists.count * align16(vector.dim)),
      },
      tokenLists: tokenListsSections(vector, part),
      table: ({ table, tableBytes }) => part(table, tableBytes),
    })),
  };
}

function tokenListsSections(
  { codes, ragged, tokenLists }: VectorLayout,
  part: (offset: number, bytes: number) => Uint8Array,
): Sections | null {
  if (tokenLists === null || codes === null || ragged === null) return null;
  const { centroids, count, items, rows, starts } = tokenLists;
  return {
    starts: part(starts, (count + 1) * 4),
    centroids: part(centroids, count * codes.stride),
    items: part(items, ragged.itemCapacity * 4),
    rows: part(rows, ragged.itemCapacity * 4),
  };
}

/** Null for a vector without any graph. */
function graphSections(
  { graph, subgraphs }: VectorLayout,
  rows: number,
  part: (offset: number, bytes: number) => Uint8Array,
): Sections | null {
  const adjacencies: [string, Adjacency][] = (subgraphs?.layers ?? []).map((layer, n) => [`.${n}`, layer]);
  if (graph !== null) adjacencies.unshift(['', graph]);
  if (adjacencies.length === 0) return null;
  const sections: Record<string, Uint8Array> = {};
  for (const [suffix, { level0, m0, upperIndex, upper, upperWords }] of adjacencies) {
    sections[`level0${suffix}`] = part(level0, rows * (1 + m0) * 4);
    sections[`upperIndex${suffix}`] = part(upperIndex, rows * 4);
    sections[`upper${suffix}`] = part(upper, upperWords * 4);
  }
  return sections;
}

/** Sections with the values of a vector: none where they stay on disk, arrive later, or are decoded. */
function originals(vector: VectorLayout, rows: number, part: (offset: number, bytes: number) => Uint8Array): Sections {
  const { file, ragged, offset, stride } = vector;
  if (offset === null || file !== null) return {};
  if (ragged === null) return { vectors: part(offset, rows * stride) };
  const arrays = itemArrays(vector).map((array) => [array.name, part(array.offset, ragged.itemCapacity * array.stride)] as const);
  return { offsets: part(ragged.offsets, (rows + 1) * 4), ...Object.fromEntries(arrays) };
}

function readDescription(folder: string): SegmentDescription {
  const file = path.join(folder, 'segment');
  return readSegmentFile(file, 'segment', (reader) => {
    const description = reader.facts as unknown as SegmentDescription;
    if (String(description.segment) !== path.basename(folder)) throw new DamagedFile(file, `describes segment ${description.segment}`);
    // Segments of the first release have dense vectors only, and do not say so.
    const vectors = description.vectors.map((plan) => ({ ...plan, kind: plan.kind ?? 'dense', itemCapacity: plan.itemCapacity ?? 0 }));
    return { ...description, vectors };
  });
}

function readSections(
  folder: string,
  name: string,
  kind: 'rows' | 'vectors' | 'codes' | 'graph' | 'lists' | 'tokens',
  description: SegmentDescription,
  sections: Sections,
  pause: PauseReading,
): Promise<void> {
  return readSegmentFileInParts(path.join(folder, name), kind, async (reader) => {
    checkOwner(reader, description);
    for (const [section, target] of Object.entries(sections)) await reader.readIntoInParts(section, target, pause);
  });
}

/** Reads what of `vectors.<n>` belongs in memory. Originals that stay on disk or arrive later are read through once, to verify them, if they have no sums. */
async function readVectors(
  folder: string,
  description: SegmentDescription,
  vector: VectorLayout,
  n: number,
  sections: Sections,
  pause: PauseReading,
): Promise<void> {
  await readSections(folder, vectorFile(n), 'vectors', description, sections, pause);
  if (vector.file === null || vector.file.sums !== undefined) return;
  await readSegmentFileInParts(path.join(folder, vectorFile(n)), 'vectors', (reader) =>
    reader.verifyInParts('vectors', pause, description.rows * vector.stride),
  );
}

/** Reads the lists of a vector, and its codes through, to verify them, if they have no sums: their numbers that all rows share stay in memory. */
async function readLists(
  folder: string,
  description: SegmentDescription,
  { lists }: VectorLayout,
  n: number,
  parts: VectorSections,
  pause: PauseReading,
): Promise<void> {
  if (lists === null || lists.filed === null) throw new Error('lists without codes in a file');
  const { codes, file } = lists.filed;
  await readSections(folder, `lists.${n}`, 'lists', description, parts.lists as Sections, pause);
  const table: Sections = codes.spec === null ? {} : { table: parts.table(codes) };
  await readSections(folder, file.name, 'codes', description, table, pause);
  if (file.sums !== undefined) return;
  await readSegmentFileInParts(path.join(folder, file.name), 'codes', (reader) =>
    reader.verifyInParts('codes', pause, description.rows * codes.stride),
  );
}

/** The payload file is read whole even where payloads stay on disk, so that damage shows at the start and not in the middle of a query. */
function readPayload(
  folder: string,
  description: SegmentDescription,
  onDisk: boolean,
  pause: PauseReading,
): Promise<Pick<SegmentHandle, 'payloadOffsets' | 'payloadBytes'>> {
  return readSegmentFileInParts(path.join(folder, 'payload'), 'payload', async (reader) => {
    checkOwner(reader, description);
    const payloadOffsets = await reader.readSharedInParts('offsets', pause);
    if (payloadOffsets.byteLength !== (description.rows + 1) * 8)
      throw new DamagedFile(reader.file, `has no offsets for ${description.rows} rows`);
    if (!onDisk) return { payloadOffsets, payloadBytes: await reader.readSharedInParts('data', pause) };
    await reader.verifyInParts('data', pause);
    return { payloadOffsets, payloadBytes: null };
  });
}

async function readFieldIndexes(
  folder: string,
  description: SegmentDescription,
  fields: ReadonlyMap<string, FieldSchema>,
  damaged: DamagedFile[],
  pause: PauseReading,
): Promise<FieldIndexHandle[]> {
  const found: FieldIndexHandle[] = [];
  for (const [field, schema] of fields) {
    const name = fieldIndexFile(field);
    if (!fs.existsSync(path.join(folder, name))) continue;
    await survives(damaged, async () => {
      const index = await readFieldIndex(path.join(folder, name), description, field, schema, pause);
      if (index !== null) found.push(index);
    });
    await pause();
  }
  return found;
}

async function readSparseIndexes(
  folder: string,
  { segment, vectors }: SegmentDescription,
  damaged: DamagedFile[],
  pause: PauseReading,
): Promise<SparseIndexHandle[]> {
  const found: SparseIndexHandle[] = [];
  for (const [n, { kind, name }] of vectors.entries())
    if (kind === 'sparse') await survives(damaged, async () => found.push(await readSparseIndex(folder, segment, n, name, pause)));
  return found;
}

/** Null for an index that was made for another schema of the field: it is built anew, as a missing one is. */
function readFieldIndex(
  file: string,
  description: SegmentDescription,
  field: string,
  schema: FieldSchema,
  pause: PauseReading,
): Promise<FieldIndexHandle | null> {
  return readSegmentFileInParts(file, 'index', async (reader) => {
    checkOwner(reader, description);
    const { type, params } = indexSchema(schema);
    if (reader.facts.field !== field || reader.facts.type !== type || reader.facts.params !== params) return null;
    const buffer = await reader.readSharedInParts('index', pause);
    return schema.params?.on_disk === true ? residentPart(file, { ...schema, field, buffer }) : { ...schema, field, buffer };
  });
}

/**
 * The handle of an index that is in its file under `folder`, with all bytes in memory or, where the schema says `on_disk`, just the
 * resident ones.
 */
export function fieldIndexHandle(folder: string, index: FieldIndexHandle): FieldIndexHandle {
  return index.params?.on_disk === true ? residentPart(path.join(folder, fieldIndexFile(index.field)), index) : index;
}

function residentPart(file: string, index: FieldIndexHandle): FieldIndexHandle {
  const start = readSegmentFile(file, 'index', (reader) => reader.section('index').offset);
  const resident = residentBytes(index.buffer);
  const buffer = new SharedArrayBuffer(resident);
  new Uint8Array(buffer).set(new Uint8Array(index.buffer, 0, resident));
  return { ...index, buffer, file: { name: path.basename(file), start, inode: fs.statSync(file).ino } };
}

/** A schema as index files hold it; the parameters as text, so that equal ones compare equal. */
function indexSchema(schema: FieldSchema): { type: string; params: string } {
  return { type: schema.type, params: schema.params === undefined ? '' : JSON.stringify(schema.params) };
}

function checkOwner(reader: SegmentFileReader, description: SegmentDescription): void {
  if (reader.facts.segment !== description.segment)
    throw new DamagedFile(reader.file, `belongs to segment ${String(reader.facts.segment)}`);
}

/** Runs `read`; damage is noted and survived, anything else is thrown. */
async function survives(damaged: DamagedFile[], read: () => Promise<unknown>): Promise<boolean> {
  try {
    await read();
    return true;
  } catch (error) {
    if (!(error instanceof DamagedFile))
      throw error instanceof TroupeError ? error : new TroupeError('storage', String(error), { cause: error });
    damaged.push(error);
    return false;
  }
}
