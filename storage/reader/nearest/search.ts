/**
 * Nearest points to a vector over all segments of a collection: plan each segment, run its kernels, rescore what codes
 * found with the originals, merge.
 */

import type { Distance, VectorParams } from '../../../protocols/model/collection.js';
import type { Filter } from '../../../protocols/model/filter.js';
import type { SearchParams } from '../../../protocols/model/query.js';
import type { VectorValue } from '../../../protocols/model/vector.js';
import type { Work } from '../../../query/effort.js';
import { hasBit } from '../../../query/filter/bits.js';
import { countsOfBest, mergeRanked, type Page } from '../../../query/merge.js';
import { planNs, planSegment, type SegmentFacts, type SegmentPlan } from '../../../query/plan.js';
import { betterOf, possibleScore, shownScore } from '../../../query/shown-score.js';
import { fitsCodes } from '../../../vectors/code-query.js';
import type { Admission, Kernels, Matrix, Ranked, WalkEnd } from '../../../vectors/kernel-api.js';
import { endsByDistance, walkEnd } from '../../../vectors/walk-end.js';
import { spend } from '../../disk/meter.js';
import { explaining } from '../../explain/explainer.js';
import { seePlan } from '../../explain/seen-plans.js';
import { graphSettings, indexingThresholdBytes } from '../../segment/graph-settings.js';
import { itemBytes, residentOffset } from '../../segment/layout.js';
import { elementOf } from '../../segment/plans.js';
import type { FoundRow } from '../query/points.js';
import { admittedBits, countedAdmission } from '../snapshot/admitted.js';
import { rankListed } from '../snapshot/filed-lists.js';
import { rankFiled, stagingMatrix } from '../snapshot/filed-originals.js';
import { codeFacts } from '../snapshot/quantized.js';
import { hasVector, type ReplicaSnapshot, type SegmentView, type VectorReader } from '../snapshot/snapshot-view.js';
import { type ValueWalk, valueWalkFor } from '../snapshot/value-graphs.js';
import { comparedTerms, comparedValues, type DenseSpace, type VectorSpace, vectorSpace } from '../snapshot/vector-space.js';
import { HALF_SCORE_DIM_MAX, halfScore } from './half-score.js';
import { type Hit, hitOf } from './hit.js';
import { nearestMulti, scoreMultiRows } from './multi-search.js';
import { profileOf } from './profile-of.js';
import { nearestSparse, ROW_COST, scoreSparseRows } from './sparse-search.js';
import { withinTime } from './within-time.js';

/** What nearest points are wanted. */
export interface NearestSearch {
  readonly using: string;
  /** What stored vectors are compared with; may be changed in place. */
  readonly value: VectorValue;
  readonly filter: Filter | null;
  readonly params: SearchParams;
  /** The query's own point, which is left out of the answer. */
  readonly own: FoundRow | null;
  /** That point is in a shard that is searched elsewhere: what is wanted here is the same as if it were here. */
  readonly ownElsewhere?: boolean;
}

/**
 * The page of nearest points, best first.
 * Errors: `wrongInput` for an unknown vector name, a wrong dimension or another kind of vector; `timeout`.
 */
export function nearestHits(snapshots: readonly ReplicaSnapshot[], search: NearestSearch, page: Omit<Page, 'better'>): Hit[] {
  const space = vectorSpace(snapshots, search.using);
  // One more, as the query's own point is found too.
  const k = page.limit + page.offset + (search.own !== null || search.ownElsewhere === true ? 1 : 0);
  // The largest first: by it the work of all is told.
  const places: { readonly snapshot: ReplicaSnapshot; readonly view: SegmentView }[] = [];
  for (const snapshot of snapshots) for (const view of snapshot.segments) places.push({ snapshot, view });
  places.sort((one, other) => other.view.rows - one.view.rows);
  const waiting = places.length > 1 ? new WaitingRows() : null;
  const expected = new ExpectedWork(places.map(({ view }) => view));
  const searchView = viewSearch(space, search, k, { expected, waiting });
  const lists = places.map(({ snapshot, view }) => searchView(view, snapshot));
  if (waiting !== null) for (const worthy of waiting.best()) lists.push(scoredAnew(worthy));
  return mergeRanked(lists, { ...page, better: betterOf(space.distance) });
}

/** How each segment is searched: prepared once, as the query may be changed in place. */
function viewSearch(
  space: VectorSpace,
  search: NearestSearch,
  k: number,
  shared: Pick<Task, 'expected' | 'waiting'>,
): (view: SegmentView, snapshot: ReplicaSnapshot) => Hit[] {
  switch (space.kind) {
    case 'dense': {
      const task: Task = { search, params: space.params, values: comparedValues(space, search.value), k, ...shared };
      return (view, snapshot) => searchSegment(view, snapshot, task);
    }
    case 'multi': {
      const values = comparedValues(space, search.value);
      return (view, snapshot) => {
        const vector = view.reader.vector(space.name);
        return vector === undefined
          ? []
          : nearestMulti(view, vector, space, search, values, multiFacts(view, vector, snapshot, space, search, k));
      };
    }
    case 'sparse': {
      const query = comparedTerms(space, search.value);
      return (view) => nearestSparse(view, search, query, k);
    }
  }
}

interface Task {
  readonly search: NearestSearch;
  readonly params: VectorParams;
  /** The query as it is compared: normalized, and rounded to the type of the stored vectors. */
  readonly values: Float32Array;
  readonly k: number;
  /** Where rows wait until those of all segments are found; null: there is one segment. */
  readonly waiting: WaitingRows | null;
  readonly expected: ExpectedWork;
}

/**
 * What the search of all segments will take, told with the first one, the largest, to which the others are taken to be alike: what segments have given is lost where
 * another thread is to search all.
 */
class ExpectedWork {
  private rowsLeft: number;
  private viewsLeft: number;
  private plannedNs = 0;
  private claimedNs = 0;

  constructor(views: readonly SegmentView[]) {
    this.viewsLeft = views.length;
    this.rowsLeft = views.reduce((sum, { rows }) => sum + rows, 0);
  }

  /** It is the turn of a segment. */
  begin({ rows }: SegmentView): void {
    this.viewsLeft--;
    this.rowsLeft -= rows;
  }

  /** That segment takes so long. isByRows: in proportion to its rows. */
  claim({ reader, rows }: SegmentView, ns: number, isByRows: boolean): void {
    this.plannedNs += ns;
    const isFirst = this.claimedNs === 0;
    const ahead = isFirst ? ns * (isByRows ? this.rowsLeft / rows : this.viewsLeft) : 0;
    const more = Math.max(0, this.plannedNs + ahead - this.claimedNs);
    this.claimedNs += more;
    reader.deadline.claim({ kind: 'planned', ns: more });
  }
}

/** A search of a segment by its codes. */
interface CodePass {
  readonly run: Run;
  readonly task: Task;
  readonly vector: VectorReader;
  /** Rows that are worth their originals, if no other segment has any. */
  readonly keep: number;
  /** Results wanted of this segment. */
  readonly k: number;
}

/** Rows that a pass has found, best first. */
interface WorthyRows {
  readonly pass: CodePass;
  readonly rows: readonly number[];
}

/**
 * Rows that 8-bit codes have found in several segments. Codes misplace few rows, so as many are scored anew by their originals as of one segment that has the rows of all: those
 * that are best among the rows of all.
 */
class WaitingRows {
  private readonly found: WorthyRows[] = [];
  private readonly scores: number[][] = [];

  add(pass: CodePass, ranked: Ranked): void {
    // Copies: the next search may be of a segment with the same scratch. Plain arrays, as the memory of short typed ones costs more than what is in it.
    const rows: number[] = [];
    const scores: number[] = [];
    for (let at = 0; at < ranked.count; at++) {
      rows.push(ranked.rows[at] as number);
      scores.push(ranked.scores[at] as number);
    }
    this.found.push({ pass, rows });
    this.scores.push(scores);
  }

  /** What is left of what each segment has found: rows to score anew. */
  best(): WorthyRows[] {
    const { found, scores } = this;
    let keep = 0;
    for (const { pass } of found) keep = Math.max(keep, pass.keep);
    const counts = countsOfBest(scores, keep);
    const best: WorthyRows[] = [];
    for (let at = 0; at < found.length; at++) {
      const { pass, rows } = found[at] as WorthyRows;
      const count = counts[at] as number;
      if (count > 0) best.push({ pass, rows: rows.slice(0, count) });
    }
    return best;
  }
}

function searchSegment(view: SegmentView, snapshot: ReplicaSnapshot, task: Task): Hit[] {
  task.expected.begin(view);
  const vector = view.reader.vector(task.search.using);
  if (vector === undefined || view.rows === 0) return [];
  view.reader.deadline.check();
  const bits = admittedBits(view, vector, task.search.filter);
  const { admission, admitted } = countedAdmission(view, bits);
  const k = Math.min(task.k, admitted ?? view.rows);
  const values = valueWalkFor(view, vector, task.search.filter);
  const facts = factsOf(view, vector, snapshot, task, k, admitted, valueFacts(values));
  const plan = planSegment(facts);
  seePlan(plan);
  const note = explaining()?.of(view);
  note?.planned(task.search.using, facts, plan);
  note?.mark('plan');
  // Only multivectors have lists of token vectors.
  if (plan.kind === 'none' || plan.kind === 'tokenLists') return [];
  task.expected.claim(view, planNs(facts, plan), plan.kind === 'scan' || plan.kind === 'gather');
  const ofValue = plan.kind === 'walk' && plan.graph === 'value' && values !== null;
  const walked = ofValue ? { ...vector, graph: values.graph } : vector;
  return withinTime(() => {
    const found =
      task.params.datatype === 'uint8' && task.params.distance === 'Cosine'
        ? scanUint8Cosine(view, vector, task, bits, k)
        : runPlan(view, walked, task, plan, admission, k);
    note?.answered('hits', found.length);
    return found;
  });
}

/** The hits of a segment by its originals, after those of others were searched. */
function scoredAnew({ pass, rows }: WorthyRows): Hit[] {
  const { run, task, vector } = pass;
  const { reader } = run.view;
  return withinTime(() => {
    reader.deadline.check();
    // Segments may have been searched meanwhile whose memory is the same.
    run.kernels.setQuery(run.slot, vector.original ?? stagingMatrix(reader, vector.layout), task.values);
    const found = hitsByOriginals(pass, rows);
    explaining()?.of(run.view).answered('hits', found.length);
    return found;
  });
}

/** Whether the query leaves out the segment, as `indexed_only` asks of rows without a graph. Sparse and multivectors have none. */
export function leavesOut(view: SegmentView, snapshot: ReplicaSnapshot, space: VectorSpace, params: SearchParams): boolean {
  const vector = view.reader.vector(space.name);
  if (!params.indexedOnly || space.kind !== 'dense' || vector === undefined || view.rows === 0) return false;
  return planSegment(factsOf(view, vector, snapshot, { params: space.params, search: { params } }, 1, null)).kind === 'none';
}

/** For the plan of a segment. k: at most as many as pass. admitted: rows that pass, deleted ones included; null without a filter. */
export function factsOf(
  view: SegmentView,
  vector: VectorReader,
  snapshot: ReplicaSnapshot,
  task: { readonly params: VectorParams; readonly search: Pick<NearestSearch, 'params'> },
  k: number,
  admitted: number | null,
  valueGraph: SegmentFacts['valueGraph'] = null,
): SegmentFacts {
  const { hnsw_config: hnsw } = snapshot.config;
  const own = task.params.hnsw_config;
  const { params } = task.search;
  return {
    rows: view.rows,
    // Deleted rows are few (vacuum sees to it), and counting them for each query would cost more than it tells.
    live: view.rows,
    admitted,
    hasGraph: vector.graph !== null,
    codes: codeFacts(vector, params.quantization),
    exact: params.exact,
    // Without a graph over all rows, those of its values are what was asked for.
    indexedOnly: params.indexedOnly && vector.valueWalks === null && awaitsGraph(snapshot, vector.layout.name),
    hnswEf: params.hnswEf === 0 ? null : params.hnswEf,
    efDefault: own?.ef_construct ?? hnsw.ef_construct,
    shards: snapshot.ringShards,
    k,
    fullScanThresholdKb: own?.full_scan_threshold ?? hnsw.full_scan_threshold,
    dim: vector.layout.dim,
    element: vector.layout.element,
    m0: vector.graph?.m0 ?? 0,
    valueGraph,
    codedRows: vector.rowCounts === null ? 0 : Atomics.load(vector.rowCounts, 0),
    lists: vector.lists?.layout,
  };
}

/** For the plan of multivectors, whose rows are all scored: how many count is known when they are listed. */
function multiFacts(
  view: SegmentView,
  vector: VectorReader,
  snapshot: ReplicaSnapshot,
  { params }: DenseSpace,
  search: NearestSearch,
  k: number,
): SegmentFacts {
  const facts = factsOf(view, vector, snapshot, { params, search }, k, null);
  return { ...facts, indexedOnly: false, codes: facts.codes && { ...facts.codes, summed: true } };
}

/**
 * Whether the replica's rows without a graph of this vector reach `indexing_threshold`: the optimizer is to index them, and where the collection
 * has `prevent_unoptimized`, further ones are deferred. Fewer are searched also with `indexed_only`.
 */
function awaitsGraph({ config, segments }: ReplicaSnapshot, name: string): boolean {
  const threshold = indexingThresholdBytes(config);
  if (threshold === 0 || graphSettings(config, name).m === 0) return false;
  let bytes = 0;
  for (const { reader, rows } of segments) {
    const vector = reader.vector(name);
    if (vector !== undefined && vector.graph === null && vector.valueWalks === null && vector.lists === null)
      bytes += rows * itemBytes(vector.layout);
  }
  return bytes >= threshold;
}

export function valueFacts(walk: ValueWalk | null): SegmentFacts['valueGraph'] {
  return walk && { rows: walk.rows, m0: walk.graph.m0, of: walk.of };
}

function runPlan(
  view: SegmentView,
  vector: VectorReader,
  task: Task,
  plan: Exclude<SegmentPlan, { kind: 'none' | 'tokenLists' }>,
  admission: Admission,
  k: number,
): Hit[] {
  const { params, values } = task;
  const { kernels, slot } = view.reader;
  const { codes, original } = vector;
  const end = endOf(view, vector, params.distance, plan, k);
  const run: Run = { view, kernels, slot, admission, end };
  const keep = Math.max(k, plan.keep);
  if (plan.kind === 'lists') return throughLists(run, vector, task, plan, k);
  if (plan.useCodes && codes !== null) {
    kernels.setQuery(slot, codes, values);
    if (!plan.rescore || codesDecide(vector, values)) return hits(view, task, firstPass(run, vector, codes, plan, k, k), !plan.rescore);
    return decided({ run, task, vector, keep, k }, firstPass(run, vector, codes, plan, keep, k));
  }
  if (original === null) return hits(view, task, rankAllFiled(run, vector, values, k), false);
  kernels.setQuery(slot, original, values);
  return hits(view, task, firstPass(run, vector, original, plan, keep, k), false);
}

/** The hits of what codes have found; none yet, where rows of other segments may be better. */
function decided(pass: CodePass, found: Ranked): Hit[] {
  const { waiting } = pass.task;
  // Codes that a quantization asks for are rescored as it says.
  if (waiting === null || pass.vector.layout.quantization !== null) return hitsByOriginals(pass, found.rows);
  waiting.add(pass, found);
  return [];
}

function hitsByOriginals({ k, run, task, vector }: CodePass, rows: ArrayLike<number>): Hit[] {
  return hits(run.view, task, rescored(run, vector, rows, k), false);
}

/** The best k of the nearest lists, or, where these have too few rows that count, of all rows that count. */
function throughLists(run: Run, vector: VectorReader, task: Task, plan: Extract<SegmentPlan, { kind: 'lists' }>, k: number): Hit[] {
  const { admission, view } = run;
  const { values } = task;
  const { lists } = vector;
  if (lists === null) throw new Error(`'${vector.layout.name}' has no lists`);
  const keep = Math.max(k, plan.keep);
  const first = rankListed(view.reader, lists, values, { admission, probes: plan.probes, keep });
  const note = explaining()?.of(view);
  // What is scored has been counted when it was read.
  note?.scored('lists', 0);
  if (first.count >= k || first.count >= run.kernels.countAdmitted(view.rows, admission))
    return plan.rescore
      ? decided({ run, task, vector, keep, k }, first)
      : hits(view, task, { ...first, count: Math.min(k, first.count) }, true);
  note?.fallBack();
  if (vector.original === null) return hits(view, task, rankAllFiled(run, vector, values, k), false);
  run.kernels.setQuery(run.slot, vector.original, values);
  return hits(view, task, plan.fallback === 'gather' ? gather(run, vector.original, k) : scan(run, vector.original, k), false);
}

/** The best k of some rows by the originals: the query was set for codes, and so as float32, too. */
function rescored({ kernels, slot, view }: Run, vector: VectorReader, rows: ArrayLike<number>, k: number): Ranked {
  const { layout, original } = vector;
  const best =
    original !== null ? kernels.rescore(slot, original, rows, k) : rankFiled(view.reader, layout, Uint32Array.from(rows).sort(), k);
  explaining()
    ?.of(view)
    .scored('rescore', (original ?? layout).stride, true);
  return best;
}

/** When a walk for the best k has found enough; the slot's query and lists are used. Graphs of single payload values have no profile. */
function endOf(view: SegmentView, vector: VectorReader, distance: Distance, plan: SegmentPlan, k: number): WalkEnd | undefined {
  if (plan.kind !== 'walk' || plan.graph !== 'whole' || !endsByDistance(k, plan.ef)) return undefined;
  const matrix = plan.useCodes ? vector.codes : vector.original;
  return matrix === null ? undefined : walkEnd(profileOf(view, vector, matrix, distance), k, plan.ef);
}

/** Whether codes and query are exact, so that the originals would give the same scores. */
function codesDecide({ layout }: VectorReader, values: Float32Array): boolean {
  const { codes, metric } = layout;
  return codes?.exact === true && fitsCodes(metric, codes, values);
}

/** The best k of all rows that count, by originals in a file. */
function rankAllFiled({ view, kernels, slot, admission }: Run, vector: VectorReader, values: Float32Array, k: number): Ranked {
  kernels.setQuery(slot, stagingMatrix(view.reader, vector.layout), values);
  const count = kernels.listAdmitted(slot, view.rows, admission);
  // A copy, as scoring uses the list's place.
  const rows = new Uint32Array(view.handle.memory.buffer, slot + view.handle.layout.scratch.rows, count).slice();
  const best = rankFiled(view.reader, vector.layout, rows, k);
  explaining()?.of(view).scored('read and score', vector.layout.stride);
  return best;
}

interface Run {
  readonly view: SegmentView;
  readonly kernels: Kernels;
  readonly slot: number;
  readonly admission: Admission;
  readonly end: WalkEnd | undefined;
}

/** keep: rows wanted of this pass. k: how many the plan has to come up with. */
function firstPass(
  run: Run,
  vector: VectorReader,
  matrix: Matrix,
  plan: Exclude<SegmentPlan, { kind: 'none' | 'lists' | 'tokenLists' }>,
  keep: number,
  k: number,
): Ranked {
  if (plan.kind === 'gather') return gather(run, matrix, keep);
  if (plan.kind === 'scan' || vector.graph === null) return scan(run, matrix, keep);
  const { view, kernels, slot, admission, end } = run;
  const { ef, narrow } = plan;
  const ranked = kernels.walk(slot, matrix, vector.graph, admission, { ef, k: keep, rows: view.rows, narrow, end });
  const note = explaining()?.of(view);
  note?.scored('walk', matrix.stride);
  if (ranked.count >= k || ranked.count >= kernels.countAdmitted(view.rows, admission)) return ranked;
  note?.fallBack();
  return plan.fallback === 'gather' ? gather(run, matrix, keep) : scan(run, matrix, keep);
}

function gather({ view, kernels, slot, admission }: Run, matrix: Matrix, keep: number): Ranked {
  const count = kernels.listAdmitted(slot, view.rows, admission);
  const ranked = kernels.gather(slot, matrix, count, admission, keep);
  explaining()?.of(view).scored('gather', matrix.stride);
  return ranked;
}

function scan({ view, kernels, slot, admission }: Run, matrix: Matrix, keep: number): Ranked {
  const ranked = kernels.scan(slot, matrix, 0, view.rows, admission, keep);
  explaining()?.of(view).scored('scan', matrix.stride);
  return ranked;
}

/** coded: scores are those of the codes. */
function hits(view: SegmentView, task: Task, ranked: Ranked, coded: boolean): Hit[] {
  const found: Hit[] = [];
  const { distance, datatype, size } = task.params;
  const rounded = !coded && elementOf(datatype) === 'f16' && size <= HALF_SCORE_DIM_MAX;
  for (let i = 0; i < ranked.count; i++) {
    const row = ranked.rows[i] as number;
    if (isOwn(task, view, row)) continue;
    const score = rounded
      ? halfScore(distance, task.values, view.denseOf(task.search.using, row) as Float32Array)
      : shownScore(distance, coded ? possibleScore(distance, ranked.scores[i] as number) : (ranked.scores[i] as number));
    found.push(hitOf(view, row, score));
  }
  return found;
}

function isOwn({ search: { own } }: Task, view: SegmentView, row: number): boolean {
  return own !== null && own.row === row && own.view === view;
}

/**
 * Cosine of bytes: rows are stored as given, so their lengths have to be divided out. Rare, so it is a plain loop over
 * all rows that count. Originals of one byte are always in memory.
 */
function scanUint8Cosine(view: SegmentView, vector: VectorReader, task: Task, bits: Uint32Array | null, k: number): Hit[] {
  const score = byteCosine(view, vector, task.values);
  spend('cpu', view.rows * itemBytes(vector.layout));
  const found: { row: number; score: number }[] = [];
  for (let row = 0; row < view.rows; row++) {
    if (row % 256 === 0) view.reader.deadline.check();
    if (!view.isLive(row) || (bits !== null && !hasBit(bits, row)) || isOwn(task, view, row)) continue;
    found.push({ row, score: score(row) });
  }
  found.sort((a, b) => b.score - a.score || a.row - b.row);
  return found.slice(0, k).map(({ row, score }) => hitOf(view, row, score));
}

function byteCosine(view: SegmentView, { layout }: VectorReader, values: Float32Array): (row: number) => number {
  const bytes = new Uint8Array(view.handle.memory.buffer);
  const start = residentOffset(layout);
  const length = Math.hypot(...values);
  return (row) => {
    const at = start + row * layout.stride;
    let dot = 0;
    let squares = 0;
    for (let i = 0; i < layout.dim; i++) {
      const component = bytes[at + i] as number;
      dot += component * (values[i] as number);
      squares += component * component;
    }
    const lengths = length * Math.sqrt(squares);
    return lengths === 0 ? 0 : Math.fround(dot / lengths);
  };
}

/**
 * The exact score, as the API shows it, of each of these rows; NaN for rows without the vector. Deleted rows have one too.
 * A sparse vector without a common index has the score 0, which is no result of `nearestHits`.
 * rows: distinct, in any order; kept as they are. value: as `nearestHits` takes it, but kept as it is.
 * Errors: as `nearestHits`, and `storage` where originals have to be read.
 */
export function scoreRows(view: SegmentView, space: VectorSpace, value: VectorValue, rows: Uint32Array): Float32Array {
  const scores = scoresOf(view, space, value, rows);
  explaining()?.of(view).comparedWith(space.name, rows.length);
  return scores;
}

function scoresOf(view: SegmentView, space: VectorSpace, value: VectorValue, rows: Uint32Array): Float32Array {
  switch (space.kind) {
    case 'dense':
      return scoreDenseRows(view, space, comparedValues(space, copyOf(value)), rows);
    case 'multi':
      return scoreMultiRows(view, space, comparedValues(space, copyOf(value)), rows);
    case 'sparse':
      return scoreSparseRows(view, space, comparedTerms(space, value), rows);
  }
}

/** What it takes to compare so many rows with `count` values that are like this one. */
export function scoringWork(view: SegmentView, { kind, name }: VectorSpace, value: VectorValue, rows: number, count: number): Work {
  const vector = view.reader.vector(name);
  if (vector === undefined) return NO_WORK;
  const { items, layout } = vector;
  if (kind === 'sparse') return { kind: 'postings', count: rows * count * ROW_COST };
  const bytes = itemBytes(layout);
  if (kind === 'dense' || items === null || value.kind === 'sparse') return { kind: 'score', rows, bytes, others: count };
  const vectors = ((items.offsets[view.rows] as number) / Math.max(1, view.rows)) * rows;
  return { kind: 'maxSim', vectors, bytes, others: count * (value.values.length / layout.dim) };
}

const NO_WORK: Work = { kind: 'planned', ns: 0 };

function copyOf(value: VectorValue): VectorValue {
  return value.kind === 'sparse' ? value : { ...value, values: value.values.slice() };
}

function scoreDenseRows(view: SegmentView, { name: using, params }: DenseSpace, values: Float32Array, rows: Uint32Array): Float32Array {
  const scores = new Float32Array(rows.length).fill(Number.NaN);
  const vector = view.reader.vector(using);
  if (vector === undefined) return scores;
  const present = rows.filter((row) => hasVector(vector, row));
  if (present.length === 0) return scores;
  const found = presentScores(view, vector, params, values, present);
  let next = 0;
  for (let at = 0; next < present.length; at++) if (rows[at] === present[next]) scores[at] = found[next++] as number;
  return scores;
}

/** The shown score of each row; all of them have the vector. Float32Array [rows.length]. */
function presentScores(
  view: SegmentView,
  vector: VectorReader,
  params: VectorParams,
  values: Float32Array,
  rows: Uint32Array,
): Float32Array {
  const { distance, datatype, size } = params;
  const { name } = vector.layout;
  const plain = (datatype === 'uint8' && distance === 'Cosine') || (elementOf(datatype) === 'f16' && size <= HALF_SCORE_DIM_MAX);
  if (plain) spend('cpu', rows.length * itemBytes(vector.layout));
  if (datatype === 'uint8' && distance === 'Cosine') return Float32Array.from(rows, byteCosine(view, vector, values));
  if (elementOf(datatype) === 'f16' && size <= HALF_SCORE_DIM_MAX)
    return Float32Array.from(rows, (row) => halfScore(distance, values, view.denseOf(name, row) as Float32Array));
  const { kernels, slot } = view.reader;
  const { original } = vector;
  return withinTime(() => {
    if (original === null) return filedScores(view, vector, distance, values, rows);
    kernels.setQuery(slot, original, values);
    return kernels.scoreEach(slot, original, rows).map((raw) => shownScore(distance, raw));
  });
}

function filedScores(
  view: SegmentView,
  { layout }: VectorReader,
  distance: Distance,
  values: Float32Array,
  rows: Uint32Array,
): Float32Array {
  view.reader.kernels.setQuery(view.reader.slot, stagingMatrix(view.reader, layout), values);
  const ranked = rankFiled(view.reader, layout, rows.slice().sort(), rows.length);
  const byRow = new Map<number, number>();
  for (let i = 0; i < ranked.count; i++) byRow.set(ranked.rows[i] as number, shownScore(distance, ranked.scores[i] as number));
  return Float32Array.from(rows, (row) => byRow.get(row) as number);
}
