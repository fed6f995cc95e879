/** Vectors of a new segment: copied from the sources, coded, and linked into graphs. */

import type { Distance } from '../../protocols/model/collection.js';
import { graphPlan, writeGraph } from '../../vectors/built-graph.js';
import { decodeHalf, encodeHalf } from '../../vectors/half.js';
import { chooseCodes, decodeCodes, encodeCodes } from '../../vectors/quantize.js';
import type { SegmentHandle } from '../segment/handle.js';
import { residentOffset, type SegmentLayout, type VectorLayout } from '../segment/layout.js';
import { originalsOffset, readOriginals } from '../segment/originals.js';
import type { BuildReport } from '../threads/messages.js';
import type { BuildControl } from './control.js';
import {
  type BuildMetric,
  buildLadder,
  encodeSigned,
  type GraphElement,
  haveEqualNorms,
  isWorthNext,
  RECALL_MIN,
  sampleFidelity,
  signedScale,
  type TypeFidelity,
  typeFidelity,
} from './element.js';
import { canJoin, joinGraphs } from './join-graphs.js';
import type { KnownGraph } from './known-graph.js';
import { type BuildSettings, type BuildTask, canLinkByPairs, type GraphTask, letGoGraph, linkRows } from './link-rows.js';
import { broughtFloatRange, broughtFloats, spreadRows } from './matrix.js';
import { type Neighbourhood, neighbourhoods } from './neighbourhoods.js';
import type { OriginalsOnCall } from './originals-on-call.js';
import { measureRecall, type RecallSubject } from './recall.js';
import type { Selection } from './select-rows.js';

export type GraphReport = BuildReport['graphs'][number];

/** A new segment in the making. All its originals are in memory, wherever they will be when it is finished, but for those on call. */
export interface SegmentDraft {
  readonly memory: WebAssembly.Memory;
  readonly layout: SegmentLayout;
  readonly rows: number;
  /** Of the vector that is being built; null or left out: its originals are in memory. */
  readonly onCall?: OriginalsOnCall | null;
}

/** Rows of a sample for codes. */
const SAMPLE_ROWS = 1024;
/** Codes that lose more of the neighbours than this are of no use to a search. */
const CODE_FIDELITY_MIN = 0.6;
/** A walk on the originals must find this much more before the codes are given up. */
const CODE_LOSS_MAX = 0.02;
/** CPU of joining a row, next to that of making its links in a graph of pairs. Measured: some 50 and 44 µs with 128 dimensions. */
const JOINING_COST = 1.1;
const COPY_BYTES = 1 << 22;
const ENCODE_ROWS = 4096;

/**
 * Copies one vector's rows and their presence from the sources. letGo: called when some of them were read. Errors: `storage` where a
 * source's originals are in a file.
 */
export async function copyVector(
  draft: SegmentDraft,
  vector: VectorLayout,
  sources: readonly SegmentHandle[],
  selection: Selection,
  control: BuildControl,
  letGo: () => void,
): Promise<void> {
  const bytes = new Uint8Array(draft.memory.buffer);
  const presence = new Uint32Array(draft.memory.buffer, vector.presence, Math.ceil(draft.rows / 32));
  const from = sources.map((source) => source.layout.vectors.find((candidate) => candidate.name === vector.name));
  let copied = 0;
  for (const run of runsOf(selection, Math.max(1, Math.floor(COPY_BYTES / vector.stride)))) {
    const origin = from[run.source];
    if (origin === undefined) continue;
    const source = sources[run.source] as SegmentHandle;
    const { buffer } = source.memory;
    const start = residentOffset(vector) + run.row * vector.stride;
    const target = bytes.subarray(start, start + run.count * vector.stride);
    const originals = originalsOffset(source.memory, origin);
    if (originals === null) readOriginals(source, origin, run.sourceRow, target);
    else target.set(new Uint8Array(buffer, originals + run.sourceRow * origin.stride, run.count * origin.stride));
    copyBits(new Uint32Array(buffer, origin.presence), run.sourceRow, presence, run.row, run.count);
    copied += run.count * vector.stride;
    if (copied >= COPY_BYTES) {
      copied = 0;
      letGo();
      await control.checkpoint();
    }
  }
  letGo();
}

/** Copies which rows have the vector. */
export function copyPresence(draft: SegmentDraft, vector: VectorLayout, sources: readonly SegmentHandle[], selection: Selection): void {
  const presence = new Uint32Array(draft.memory.buffer, vector.presence, Math.ceil(draft.rows / 32));
  const from = sources.map(({ layout, memory }) => {
    const origin = layout.vectors.find((candidate) => candidate.name === vector.name);
    return origin && new Uint32Array(memory.buffer, origin.presence);
  });
  for (const { count, row, source, sourceRow } of runsOf(selection, draft.rows)) {
    const bits = from[source];
    if (bits !== undefined) copyBits(bits, sourceRow, presence, row, count);
  }
}

/** Chooses and writes codes; the layout with their scale and origin, or without codes where they are of no use. */
export async function encodeVector(
  draft: SegmentDraft,
  vector: VectorLayout,
  present: Uint32Array,
  control: BuildControl,
): Promise<VectorLayout> {
  if (vector.codes === null || present.length === 0) return vector;
  const sample = broughtFloats(draft, vector, spreadRows(present, SAMPLE_ROWS));
  const codes = { ...vector.codes, ...chooseCodes(sample) };
  // Lists read codes in any case: the best rows are scored anew.
  if (vector.lists === null && codeFidelity(sample, vector, codes) < CODE_FIDELITY_MIN) return { ...vector, codes: null };
  const out = new Uint8Array(draft.memory.buffer);
  let exact = true;
  for (let row = 0; row < draft.rows; row += ENCODE_ROWS) {
    const count = Math.min(ENCODE_ROWS, draft.rows - row);
    const values = broughtFloatRange(draft, vector, row, count);
    exact = encodeCodes(values, vector.dim, codes.stride, codes, out, codes.offset + row * codes.stride) && exact;
    if (row % (ENCODE_ROWS * 8) === 0) await control.checkpoint();
  }
  return { ...vector, codes: { ...codes, exact } };
}

/**
 * Builds the graph of one vector and checks its recall, down the ladder of types. `vector.graph` holds the room that is
 * reserved for it; the layout that comes back holds the graph, and no codes where walks are better off with the originals.
 * known: graphs of some of the rows, which are joined, if codes allow it. Where the recall of what comes out is too low, all rows are linked anew.
 */
export async function linkVector(
  draft: SegmentDraft,
  vector: VectorLayout,
  present: Uint32Array,
  task: GraphTask,
  control: BuildControl,
  known: readonly KnownGraph[] = [],
): Promise<{ vector: VectorLayout; report: GraphReport }> {
  const settings = buildSettings(draft, vector, task.distance, present);
  // What 8 bits were good enough for is joined by them, and its recall tells whether they still are.
  const isCoded = known[0]?.layout.byCodes === true;
  let ladder = isCoded ? null : typeLadder(draft, vector, present, settings);
  const started = control.now();
  let linked = vector;
  let recall = 0;
  let used: GraphElement = 'f32';
  const report = (element: GraphElement) => ({ name: vector.name, element, recall, milliseconds: Math.round(control.now() - started) });
  const joined =
    isCoded || ladder?.[0]?.element === 'i8'
      ? await joinKnown(draft, vector, present, { ...task, ...settings, element: 'i8' }, control, known)
      : null;
  if (joined !== null) {
    control.progress('checking joined graph', present.length, present.length);
    ({ vector: linked, recall } = withRecall({ ...draft, vector: joined, present }, task.efConstruct));
    if (recall >= RECALL_MIN) return { vector: markedAs('i8', linked), report: report('i8') };
    await control.checkpoint();
  }
  ladder ??= typeLadder(draft, vector, present, settings);
  for (const [n, type] of ladder.entries()) {
    const { element } = type;
    const link = async (byInsertion: boolean): Promise<RecallSubject> => {
      linked = await buildGraph(draft, vector, present, { ...task, ...settings, element, byInsertion }, control);
      control.progress(`checking ${element} graph`, present.length, present.length);
      return { ...draft, vector: linked, present };
    };
    used = element;
    let subject = await link(false);
    recall = recallOf(subject, task.efConstruct);
    if (recall < RECALL_MIN && canLinkByPairs(vector, present.length, { ...task, ...settings, element })) {
      await control.checkpoint();
      subject = await link(true);
      recall = recallOf(subject, task.efConstruct);
    }
    ({ vector: linked, recall } = withRecall(subject, task.efConstruct, recall));
    if (!isWorthNext(recall, settings.metric, type, ladder[n + 1])) break;
    await control.checkpoint();
  }
  return { vector: markedAs(used, linked), report: report(used) };
}

function markedAs(element: GraphElement, { graph, ...vector }: VectorLayout): VectorLayout {
  return { ...vector, graph: graph && (element === 'i8' ? { ...graph, byCodes: true } : graph) };
}

/** How graphs over the rows that have the vector are built. */
export function buildSettings(draft: SegmentDraft, vector: VectorLayout, distance: Distance, present: Uint32Array): BuildSettings {
  const sample = broughtFloats(draft, vector, spreadRows(present, SAMPLE_ROWS));
  const metric: BuildMetric = distance === 'Dot' && !haveEqualNorms(sample, vector.dim) ? 'ip' : 'l2sq';
  return { metric, scale: signedScale(sample) };
}

/** The types to try one after the other. It takes scans of all originals. */
export function typeLadder(
  draft: SegmentDraft,
  vector: VectorLayout,
  present: Uint32Array,
  settings: BuildSettings,
): readonly TypeFidelity[] {
  return buildLadder(fidelities(neighbourhoods(draft, vector, present), vector, settings));
}

/** The graph that known ones make; null where there are none, they cannot be joined, or a new one of all rows costs less. */
async function joinKnown(
  draft: SegmentDraft,
  vector: VectorLayout,
  present: Uint32Array,
  task: BuildTask,
  control: BuildControl,
  known: readonly KnownGraph[],
): Promise<VectorLayout | null> {
  const { graph: reserved } = vector;
  const { metric } = task;
  const [largest] = known;
  if (largest === undefined || reserved === null || !canJoin(draft, vector, metric)) return null;
  const isLinked = new Uint8Array(draft.rows);
  for (const { newRowOf, rows } of known) for (const row of rows) isLinked[newRowOf[row] as number] = 1;
  const others = present.filter((row) => isLinked[row] === 0);
  const joining = JOINING_COST * (present.length - largest.taken);
  if (canLinkByPairs(vector, present.length, task) && present.length <= others.length + joining) return null;
  const own = others.length === 0 ? null : await linkRows(draft, vector, others, task, control);
  const graph = await joinGraphs({ draft, vector, reserved, metric, control }, known, own);
  if (own !== null) letGoGraph(own, control);
  return graph && { ...vector, graph };
}

async function buildGraph(
  draft: SegmentDraft,
  vector: VectorLayout,
  present: Uint32Array,
  task: BuildTask,
  control: BuildControl,
): Promise<VectorLayout> {
  const reserved = vector.graph;
  if (reserved === null) throw new Error(`no room reserved for the graph of '${vector.name}'`);
  const graph = await linkRows(draft, vector, present, task, control);
  const plan = present.length === 0 ? { ...graphPlan(graph), m: reserved.m, m0: reserved.m0 } : graphPlan(graph);
  if (plan.m !== reserved.m || plan.m0 !== reserved.m0 || plan.upperWords > reserved.upperWords) {
    throw new Error(`graph of '${vector.name}' does not fit: ${JSON.stringify(plan)} in ${JSON.stringify(reserved)}`);
  }
  const linked = { ...reserved, ...plan };
  writeGraph(graph, undefined, draft.memory, linked, draft.rows);
  letGoGraph(graph, control);
  return { ...vector, graph: linked };
}

/** How well each type keeps the neighbours of some rows. */
function fidelities(hoods: readonly Neighbourhood[], vector: VectorLayout, settings: BuildSettings): TypeFidelity[] {
  const fidelity = (round: (values: Float32Array) => Float32Array) => {
    const kept = hoods.map(({ values, query }) => typeFidelity(values, round(values), vector.dim, settings.metric, query));
    return kept.length === 0 ? 1 : kept.reduce((sum, share) => sum + share, 0) / kept.length;
  };
  return [
    { element: 'i8', fidelity: fidelity((values) => asSigned(values, vector, settings)) },
    { element: 'f16', fidelity: fidelity(asHalf) },
    { element: 'f32', fidelity: 1 },
  ];
}

function asSigned(values: Float32Array, vector: VectorLayout, { metric, scale }: BuildSettings): Float32Array {
  if (metric === 'l2sq' && vector.element === 'u8') return values;
  if (metric === 'l2sq' && vector.codes !== null) return asCodes(values, vector, vector.codes);
  const signed = new Int8Array(values.length);
  encodeSigned(values, scale, signed);
  return Float32Array.from(signed);
}

function asCodes(sample: Float32Array, vector: VectorLayout, codes: { scale: number; origin: number }): Float32Array {
  const bytes = new Uint8Array(sample.length);
  encodeCodes(sample, vector.dim, vector.dim, codes, bytes, 0);
  return decodeCodes(bytes, codes);
}

function asHalf(sample: Float32Array): Float32Array {
  const halves = new Uint16Array(sample.length);
  encodeHalf(sample, halves);
  return decodeHalf(halves);
}

function codeFidelity(sample: Float32Array, vector: VectorLayout, codes: { scale: number; origin: number }): number {
  return sampleFidelity(sample, asCodes(sample, vector, codes), vector.dim, vector.metric === 'dot' ? 'ip' : 'l2sq');
}

/** Recall of walks with `ef`. */
function recallOf(subject: RecallSubject, ef: number): number {
  return measureRecall(subject, ef, RECALL_MIN);
}

/** Recall on codes, `recall` if that is known; where it is low and the originals do better, the layout goes on without codes. */
export function withRecall(subject: RecallSubject, ef: number, recall = recallOf(subject, ef)): { vector: VectorLayout; recall: number } {
  const { vector } = subject;
  // Codes that stand for the originals score as those do.
  if (recall >= RECALL_MIN || vector.codes === null || vector.decoded) return { vector, recall };
  subject.onCall?.keep();
  const uncoded = { ...vector, codes: null };
  const recallUncoded = recallOf({ ...subject, vector: uncoded }, ef);
  return recallUncoded > recall + CODE_LOSS_MAX ? { vector: uncoded, recall: recallUncoded } : { vector, recall };
}

interface Run {
  readonly source: number;
  readonly sourceRow: number;
  readonly row: number;
  readonly count: number;
}

/** New rows in runs that lie together in their source too, `countMax` at most. */
function* runsOf({ rows, sourceOf, sourceRowOf }: Selection, countMax: number): Generator<Run> {
  let start = 0;
  for (let row = 1; row <= rows; row++) {
    const joins =
      row < rows &&
      row - start < countMax &&
      sourceOf[row] === sourceOf[start] &&
      sourceRowOf[row] === (sourceRowOf[start] as number) + row - start;
    if (joins) continue;
    yield { source: sourceOf[start] as number, sourceRow: sourceRowOf[start] as number, row: start, count: row - start };
    start = row;
  }
}

function copyBits(source: Uint32Array, sourceBit: number, target: Uint32Array, targetBit: number, count: number): void {
  for (let i = 0; i < count; i++) {
    const from = sourceBit + i;
    if ((((source[from >>> 5] as number) >>> (from & 31)) & 1) === 0) continue;
    const to = targetBit + i;
    target[to >>> 5] = (target[to >>> 5] as number) | (1 << (to & 31));
  }
}
