/** New sealed segments from the rows of others: rows, vectors, codes, graphs, payloads, field indexes, files. */

import fs from 'node:fs';
import path from 'node:path';
import { TroupeError } from '../../protocols/errors.js';
import { type CollectionConfig, type Distance, type VectorParams, vectorsByName } from '../../protocols/model/collection.js';
import { graphSettings, LAYERS_MAX } from '../segment/graph-settings.js';
import type { SegmentHandle } from '../segment/handle.js';
import { wantLargePages } from '../segment/large-pages.js';
import {
  type CodesLayout,
  type ElementType,
  fittingLayout,
  type GraphLayout,
  LARGE_ORIGINALS_BYTES,
  LIVE,
  MEMORY_BYTES_MAX,
  residentOffset,
  type SegmentLayout,
  segmentMemory,
  type VectorLayout,
  type VectorPlan,
} from '../segment/layout.js';
import { mayLeaveMemory, placeOriginals } from '../segment/mapped-originals.js';
import { canDecode, trustFiles } from '../segment/originals.js';
import { closeSegmentFiles, readPayloadBytes, writePayloadFile } from '../segment/payload-file.js';
import { staysOnDisk } from '../segment/residence.js';
import {
  beginSegmentFolder,
  loadSealed,
  originalsPlace,
  publishSegmentFolder,
  segmentFolder,
  unfinishedFolder,
  writeSealed,
} from '../segment/sealed.js';
import type { BuildJob, BuildReport, BuildResult, BuiltSegment } from '../threads/messages.js';
import { buildFieldIndexes } from './build-fields.js';
import { buildSparseIndexes } from './build-sparse.js';
import { copyPresence, copyVector, encodeVector, type GraphReport, linkVector, type SegmentDraft } from './build-vectors.js';
import { type BuildControl, letGoOf } from './control.js';
import { copyRagged, countItems } from './copy-ragged.js';
import { encodeTokens } from './encode-tokens.js';
import { type Grouping, groupRows, isWalked, withSubgraphs } from './group-rows.js';
import { knownGraphs } from './known-graph.js';
import { linkSubgraphs } from './link-subgraphs.js';
import { listTokens } from './list-tokens.js';
import { makeLists } from './make-lists.js';
import { presentRows } from './matrix.js';
import { OrderedTexts } from './ordered-texts.js';
import { OriginalsOnCall, type OriginalsOrigin } from './originals-on-call.js';
import type { PayloadSource } from './payload-source.js';
import { quantizeVector } from './quantize-vector.js';
import { groupedOrder, neighbourOrder, reorderRows } from './reorder.js';
import { reservedPlans } from './reserved-plans.js';
import { type Selection, selectRows, splitSelection } from './select-rows.js';
import { SourcePages } from './source-pages.js';
import type { PlacedValue } from './value-rows.js';
import { withProfile } from './with-profile.js';

const NO_ROWS = new Uint32Array(0);

interface PlannedDraft extends SegmentDraft {
  /** Values that get graphs, by vector. */
  readonly placed: ReadonlyMap<string, readonly PlacedValue[]>;
}

/**
 * Builds and publishes the segments of a `segment` job, one after the other, each with as many rows as the others. Only their new memories
 * are held besides the sources, whose large originals go to a file (`source-pages.ts`): vectors are copied straight to where they stay, or,
 * where their originals go on disk, to where they are built from.
 * openPayloads: opens the payloads of the sources, for as long as a payload file is written.
 * Errors: `storage` (a source is damaged, the disk refuses; reason `segmentTooLarge`: so many rows fit in no memory); `BuildCancelled`.
 * Either leaves no folder behind.
 */
export async function buildSegments(
  job: BuildJob,
  openPayloads: (job: BuildJob) => PayloadSource,
  outer: BuildControl,
): Promise<BuildResult> {
  const started = outer.now();
  const finished: FinishedSegment[] = [];
  const sourcePages = new SourcePages(job, outer);
  const control = watchedControl(outer, () => sourcePages.maybeLetGo());
  try {
    const { length: count } = job.segmentIds;
    const selections = splitSelection(selectRows(job.sources, job.rows, job.seq), count, job.rows);
    for (const [n, selection] of selections.entries()) {
      const named = count === 1 ? control : namedControl(control, `segment ${n + 1} of ${count}`);
      finished.push(await buildSegment(job, job.segmentIds[n] as number, selection, openPayloads, { control: named, sourcePages }));
    }
  } catch (error) {
    for (const { built } of finished) fs.rmSync(built.handle.folder as string, { recursive: true, force: true });
    throw error;
  } finally {
    for (const source of job.sources) closeSegmentFiles(source);
  }
  const report: BuildReport = {
    rows: finished.reduce((sum, { report: { rows } }) => sum + rows, 0),
    milliseconds: Math.round(control.now() - started),
    graphs: finished.flatMap(({ report: { graphs } }) => graphs),
  };
  const sources = job.sources.map((source) => source.id);
  return { plan: 'segment', sources, built: finished.map(({ built }) => built), seq: job.seq, report };
}

interface FinishedSegment {
  readonly built: BuiltSegment;
  readonly report: BuildReport;
}

function namedControl(control: BuildControl, name: string): BuildControl {
  return { ...control, progress: (stage, done, total) => control.progress(`${name}: ${stage}`, done, total) };
}

/** `watch` is called at each checkpoint. */
function watchedControl(control: BuildControl, watch: () => void): BuildControl {
  return {
    ...control,
    async checkpoint() {
      await control.checkpoint();
      watch();
    },
  };
}

/** Builds and publishes one segment, of the selected rows. */
async function buildSegment(
  job: BuildJob,
  id: number,
  selected: Selection,
  openPayloads: (job: BuildJob) => PayloadSource,
  { control, sourcePages }: { readonly control: BuildControl; readonly sourcePages: SourcePages },
): Promise<FinishedSegment> {
  const started = control.now();
  const folder = segmentFolder(job.spec.folder, id);
  const unfinished = beginSegmentFolder(folder);
  try {
    const grouping = await groupRows(job, selected, openPayloads, control);
    const draft = makeDraft(job, id, selected, grouping);
    copyRows(draft, job.sources, selected);
    await control.checkpoint();
    await sourcePages.put(unfinished);
    const built = await buildVectors(job, draft, selected, { folder: unfinished, sourcePages }, control);
    const { graphs, onCall } = built;
    const { vectors: placed, selection } = ordered(draft, built, grouping.tenants, selected);
    const vectors: VectorLayout[] = [];
    for (const vector of placed) {
      if (vector.kind !== 'dense') await copyRagged(draft, vector, job.sources, selection, control);
      vectors.push(
        vector.kind === 'multi'
          ? await codedTokens(draft, vector, control)
          : withProfile(draft, vector, distanceOf(vector, job.spec.config)),
      );
    }
    const sparseIndexes = await buildSparseIndexes(draft, vectors, { folder: unfinished, segment: id }, control);
    await control.checkpoint();
    const payloadOffsets = await writePayloads({ folder: unfinished, segment: id }, job, selection, openPayloads, control);
    const bare: SegmentHandle = {
      id,
      kind: 'sealed',
      layout: { ...draft.layout, vectors },
      memory: draft.memory,
      rows: draft.rows,
      folder: unfinished,
      payloadOffsets,
      payloadBytes: null,
      fieldIndexes: [],
      sparseIndexes,
    };
    const fieldIndexes = await buildFieldIndexes(bare, job.fields, control);
    closeSegmentFiles(bare);
    control.progress('writing files', draft.rows, draft.rows);
    const report: BuildReport = { rows: draft.rows, milliseconds: Math.round(control.now() - started), graphs };
    const plans = vectors.map((vector) => planOf(vector, job.spec.config));
    const origin = originOf(job, selection, control, sourcePages);
    const called = new Map(
      [...onCall].map((name) => [name, new OriginalsOnCall(draft, vectors.find((vector) => vector.name === name) as VectorLayout, origin)]),
    );
    const piecesOf = (name: string) => called.get(name)?.pieces() ?? null;
    writeSealed(unfinished, { segment: id, rows: draft.rows, vectors: plans, report }, draft.memory, bare.layout, {
      piecesOf,
      sumsFromBytes: control.sumsFromBytes,
    });
    await control.checkpoint();
    publishSegmentFolder(folder);
    const handle = await finishedHandle(job, plans, { ...bare, folder, fieldIndexes }, onCall, control);
    return { built: { handle, rowMaps: selection.rowMaps }, report };
  } catch (error) {
    fs.rmSync(unfinishedFolder(folder), { recursive: true, force: true });
    throw error;
  }
}

/**
 * The new segment's memory, laid out with room for codes and graphs whose numbers are not known yet. Where it is too small, the
 * sub-graphs of the least important values are left out.
 */
function makeDraft(job: BuildJob, id: number, selection: Selection, grouping: Grouping): PlannedDraft {
  const { rows } = selection;
  const plans = reservedPlans(job.spec.config, {
    rows,
    withGraph: job.withGraph,
    itemsOf: (plan) => countItems(plan.name, job.sources, selection),
    elementOf: (plan) => elementOf(job, plan),
  });
  for (let layersMax = LAYERS_MAX; ; layersMax--) {
    const { plans: planned, placed } = withSubgraphs(plans, grouping, rows, layersMax);
    const layout = fittingLayout(rows, planned, { ordered: true, readers: job.spec.readers, originalsPlace: originalsPlace(id, rows) });
    if (layout.bytes > MEMORY_BYTES_MAX && layersMax > 0 && placed.size > 0) continue;
    return { memory: segmentMemory(layout), layout, rows, placed };
  }
}

/** The element type rows are stored in: that of the sources, which were made from the same configuration. */
function elementOf(job: BuildJob, plan: VectorPlan): ElementType {
  for (const source of job.sources) {
    const vector = source.layout.vectors.find((candidate) => candidate.name === plan.name);
    if (vector !== undefined) return vector.element;
  }
  return plan.element;
}

function copyRows(draft: SegmentDraft, sources: readonly SegmentHandle[], selection: Selection): void {
  const target = rowColumns(draft.memory, draft.layout);
  const from = sources.map((source) => rowColumns(source.memory, source.layout));
  for (let row = 0; row < draft.rows; row++) {
    const source = from[selection.sourceOf[row] as number] as ReturnType<typeof rowColumns>;
    const sourceRow = selection.sourceRowOf[row] as number;
    target.kinds[row] = source.kinds[sourceRow] as number;
    for (let i = 0; i < 4; i++) target.ids[row * 4 + i] = source.ids[sourceRow * 4 + i] as number;
    target.versions[row] = source.versions[sourceRow] as number;
  }
  new Uint32Array(draft.memory.buffer, draft.layout.order, draft.rows).set(selection.order);
  // Rows deleted since `seq` are carried over when the segment is published.
  new Uint32Array(draft.memory.buffer, draft.layout.deletedAt, draft.layout.capacity).fill(LIVE);
}

function rowColumns(memory: WebAssembly.Memory, layout: SegmentLayout) {
  return {
    kinds: new Uint8Array(memory.buffer, layout.kinds, layout.capacity),
    ids: new Uint32Array(memory.buffer, layout.ids, layout.capacity * 4),
    versions: new Float64Array(memory.buffer, layout.versions, layout.capacity),
  };
}

interface BuiltVectors {
  readonly vectors: VectorLayout[];
  readonly graphs: GraphReport[];
  readonly listOf: Uint32Array | null;
  /** Vectors whose originals are not in memory. */
  readonly onCall: ReadonlySet<string>;
}

async function buildVectors(
  job: BuildJob,
  draft: PlannedDraft,
  selection: Selection,
  { folder, sourcePages }: { readonly folder: string; readonly sourcePages: SourcePages },
  control: BuildControl,
): Promise<BuiltVectors> {
  const calls: [string, OriginalsOnCall][] = [];
  const vectors: VectorLayout[] = [];
  let listOf: Uint32Array | null = null;
  const graphs: GraphReport[] = [];
  const paramsByName = vectorsByName(job.spec.config.params.vectors);
  for (const planned of draft.layout.vectors) {
    control.progress('copying vectors', vectors.length, draft.layout.vectors.length);
    if (planned.kind !== 'dense') {
      // Copied when all rows are in their places.
      vectors.push(planned);
      continue;
    }
    const called = mayBeOnCall(job, planned, draft.rows, control)
      ? new OriginalsOnCall(draft, planned, originOf(job, selection, control, sourcePages))
      : null;
    if (called === null) await copyVector(draft, planned, job.sources, selection, control, () => sourcePages.letGo());
    else copyPresence(draft, planned, job.sources, selection);
    const present = presentRows(draft.memory, planned, draft.rows);
    const coded = withoutOriginals(draft, await codedVector({ ...draft, onCall: called }, planned, present, control), control);
    if (!staysOnCall(coded)) called?.keep();
    const own: PlannedDraft = { ...draft, onCall: coded.decoded ? null : called };
    if (own.onCall) calls.push([planned.name, own.onCall]);
    const { distance } = paramsByName.get(planned.name) as VectorParams;
    const task = { distance, threads: job.threads, file: path.join(folder, `usearch.${vectors.length}`) };
    let linked = guideOf(coded);
    if (coded.lists !== null) {
      const made = await makeLists(own, coded, present, control);
      listOf = made.listOf;
      vectors.push(made.vector);
      continue;
    }
    if (coded.graph !== null) {
      const rows = isWalked(job.spec.config, planned.name) ? present : NO_ROWS;
      const settings = graphSettings(job.spec.config, planned.name);
      const known = rows === present ? knownGraphs(job.sources, selection, planned.name, settings) : [];
      const { vector, report } = await linkVector(own, linked, rows, { ...task, ...settings }, control, known);
      linked = vector;
      graphs.push(report);
    }
    if (coded.subgraphs !== null) {
      const values = draft.placed.get(planned.name) ?? [];
      const { vector, report } = await linkSubgraphs(own, linked, present, values, { ...task, ...coded.subgraphs.setting }, control);
      linked = vector;
      graphs.push(report);
    }
    // Codes that were asked for stay, whatever a walk on them finds.
    vectors.push(coded.quantization === null ? linked : { ...linked, codes: coded.codes });
  }
  const onCall = new Set(calls.filter(([, { kept }]) => !kept).map(([name]) => name));
  return { vectors, graphs, listOf, onCall };
}

/**
 * Whether the originals of a vector are worth being brought in parts: what walks score is not them, and their finished file can take their
 * place.
 */
function mayBeOnCall(
  { spec }: BuildJob,
  { element, name, stride }: VectorLayout,
  rows: number,
  { pages, onCallBytesMin }: BuildControl,
): boolean {
  return (
    pages !== undefined &&
    element !== 'u8' &&
    rows * stride >= (onCallBytesMin ?? LARGE_ORIGINALS_BYTES) &&
    mayLeaveMemory(name, spec.config)
  );
}

/** Whether the build of a vector that has its codes needs few of its originals, and the finished one none in memory. */
function staysOnCall({ codes, decoded, graph, lists }: VectorLayout): boolean {
  return decoded || lists !== null || (graph !== null && codes !== null && codes.spec === null);
}

function originOf({ sources }: BuildJob, selection: Selection, { pages }: BuildControl, sourcePages: SourcePages): OriginalsOrigin {
  return { sources, selection, pages: pages ?? { letGo: () => {} }, letGoSources: () => sourcePages.letGo() };
}

/** Where codes stand for the originals, these are given up at once: they are four fifths of what the build holds. */
function withoutOriginals({ memory, rows }: SegmentDraft, vector: VectorLayout, control: BuildControl): VectorLayout {
  if (vector.lists !== null || !canDecode(vector)) return vector;
  letGoOf(control.pages, memory, residentOffset(vector), rows * vector.stride);
  return { ...vector, offset: null, decoded: true };
}

function codedVector(draft: SegmentDraft, vector: VectorLayout, present: Uint32Array, control: BuildControl): Promise<VectorLayout> {
  return vector.quantization === null ? encodeVector(draft, vector, present, control) : quantizeVector(draft, vector, present, control);
}

async function codedTokens(draft: SegmentDraft, vector: VectorLayout, control: BuildControl): Promise<VectorLayout> {
  const { quantization } = vector;
  const coded = await (quantization === null
    ? encodeTokens(draft, vector, control)
    : quantizeVector(draft, vector, itemsOf(vector), control));
  return listTokens(draft, coded, control);
}

/** Numbers of all token vectors. */
function itemsOf({ ragged }: VectorLayout): Uint32Array {
  return Uint32Array.from({ length: ragged?.itemCapacity ?? 0 }, (_, item) => item);
}

/** What a graph is built and checked with: 8-bit codes, or, where codes are others, the originals. */
function guideOf(coded: VectorLayout): VectorLayout {
  return coded.codes?.spec ? { ...coded, codes: null } : coded;
}

/**
 * Moves the rows of each list together, if there are lists. Else the rows of each tenant, and along a graph that links most of them: the tenants' own,
 * else the first over all rows. Without any of these they stay as they were taken.
 */
function ordered(
  draft: SegmentDraft,
  { listOf, onCall, vectors }: BuiltVectors,
  tenants: Uint32Array | null,
  selection: Selection,
): { vectors: VectorLayout[]; selection: Selection } {
  if (listOf !== null) {
    const taken = Uint32Array.from({ length: draft.rows }, (_, row) => row);
    return reorderRows(draft, vectors, groupedOrder(taken, listOf), selection, onCall);
  }
  const guide = guideGraph(draft, vectors, tenants !== null);
  if (guide === undefined && tenants === null) return { vectors, selection };
  const order =
    guide === undefined ? Uint32Array.from({ length: draft.rows }, (_, row) => row) : neighbourOrder(draft.memory, guide, draft.rows);
  return reorderRows(draft, vectors, tenants === null ? order : groupedOrder(order, tenants), selection, onCall);
}

function guideGraph(
  draft: SegmentDraft,
  vectors: readonly VectorLayout[],
  withTenants: boolean,
): Parameters<typeof neighbourOrder>[1] | undefined {
  for (const { graph, subgraphs, ...vector } of vectors) {
    // Tenants come first among the fields, so the first value's layer is theirs.
    const first = subgraphs?.values[0];
    const layer = first && (withTenants || graph === null) ? subgraphs?.layers[first.layer] : undefined;
    const guide = layer && first ? { ...layer, entryRow: first.entryRow } : graph;
    if (guide && presentRows(draft.memory, { ...vector, graph, subgraphs }, draft.rows).length > draft.rows / 2) return guide;
  }
  return undefined;
}

async function writePayloads(
  { folder, segment }: { readonly folder: string; readonly segment: number },
  job: BuildJob,
  selection: Selection,
  openPayloads: (job: BuildJob) => PayloadSource,
  control: BuildControl,
): Promise<SharedArrayBuffer> {
  control.progress('writing payloads', 0, selection.rows);
  await control.checkpoint();
  const payloads = openPayloads(job);
  const texts = new OrderedTexts(payloads, job.sources, selection);
  try {
    return writePayloadFile(folder, segment, selection.rows, (row) => texts.of(row));
  } finally {
    await payloads.close();
  }
}

/**
 * The published segment as it is handed over. Where originals or codes stay on disk, or codes stand for originals, it is read back without
 * them, as the memory of the build, which has them, can give up nothing but all it holds.
 * built: the segment in the memory of the build, in its final folder. onCall: vectors whose originals are not in memory: their file takes
 * their place.
 */
async function finishedHandle(
  job: BuildJob,
  plans: readonly VectorPlan[],
  built: SegmentHandle,
  onCall: ReadonlySet<string>,
  { pages }: BuildControl,
): Promise<SegmentHandle> {
  const { config, readers } = job.spec;
  const onDiskPayload = config.params.on_disk_payload;
  const folder = built.folder as string;
  const onDisk = (plan: VectorPlan) => staysOnDisk(plan, built.rows, config);
  if (!plans.some((plan) => plan.decoded === true || plan.lists !== undefined || onDisk(plan))) {
    wantLargePages(built.memory, built.layout);
    if (pages !== undefined) for (const name of onCall) placeOriginals(built, name, pages);
    return { ...built, payloadBytes: onDiskPayload ? null : readPayloadBytes(folder) };
  }
  const { handle, damages } = await loadSealed(folder, { readers, onDiskPayload, onDisk, fields: job.fields });
  if (damages.length > 0) throw new TroupeError('storage', damages.join('; '));
  for (const vector of handle.layout.vectors) trustFiles(vector);
  return handle;
}

function codesOf({ scale, origin, exact, spec, lost }: CodesLayout): VectorPlan['codes'] {
  return { scale, origin, exact, ...(spec === null ? {} : { spec }), ...(lost === null ? {} : { lost }) };
}

/** Sparse vectors are compared by dot products. */
function distanceOf({ name }: VectorLayout, config: CollectionConfig): Distance {
  return vectorsByName(config.params.vectors).get(name)?.distance ?? 'Dot';
}

/** A finished layout as the segment's description keeps it. */
function planOf(vector: VectorLayout, config: CollectionConfig): VectorPlan {
  const { kind, name, dim, element, ragged, codes, decoded, quantization, graph, lists, subgraphs, tokenLists } = vector;
  return {
    kind,
    name,
    dim,
    distance: distanceOf(vector, config),
    element,
    itemCapacity: ragged?.itemCapacity ?? 0,
    codes: codes && codesOf(codes),
    ...(decoded ? { decoded } : {}),
    ...(quantization === null ? {} : { quantization }),
    graph: graph && withoutPlaces(graph),
    ...(tokenLists && { tokenLists: { count: tokenLists.count, probes: tokenLists.probes } }),
    ...(lists && { lists: { count: lists.count, scale: lists.scale, origin: lists.origin, probes: lists.probes } }),
    ...(subgraphs && {
      subgraphs: { ...subgraphs, layers: subgraphs.layers.map(({ m, m0, upperWords }) => ({ m, m0, upperWords })) },
    }),
  };
}

/** Where a graph lies in memory is no part of its plan. */
function withoutPlaces({ level0, upper, upperIndex, ...plan }: GraphLayout): VectorPlan['graph'] {
  return plan;
}
