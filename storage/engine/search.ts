/**
 * Nearest points to a vector over all segments of a collection: plan each segment, run its kernels, rescore what codes
 * found with the originals, merge.
 */

import { TroupeError } from '../../protocols/errors.js';
import type { VectorParams } from '../../protocols/model/collection.js';
import type { PointId } from '../../protocols/model/point-id.js';
import type { NearestQuery } from '../../protocols/model/query.js';
import { clearBehind, countBits, hasBit, intersect, wordsOf } from '../../query/filter/bits.js';
import { mergeRanked, type RankedPoint } from '../../query/merge.js';
import { planSegment, type SegmentFacts, type SegmentPlan } from '../../query/plan.js';
import { fitsCodes } from '../../vectors/code-query.js';
import { fromHalf, toHalf } from '../../vectors/half.js';
import { type Admission, KernelExpired, type Kernels, type Matrix, type Ranked } from '../../vectors/kernel-api.js';
import { normalizeRows } from '../../vectors/normalize.js';
import { residentOffset } from '../segment/layout.js';
import { timeLimit } from './clock.js';
import { type PointView, shownScore } from './encode.js';
import { rankFiled, stagingMatrix } from './filed-originals.js';
import { filterBits } from './filter-source.js';
import { HALF_SCORE_DIM_MAX, halfScore } from './half-score.js';
import { PointViews, vectorParams } from './point-view.js';
import { type FoundRow, findPoint, putBits } from './points.js';
import type { ReplicaSnapshot, SegmentView, VectorReader } from './snapshot-view.js';

/**
 * The page of nearest points, best first.
 * Errors: `wrongInput` for an unknown vector name or a wrong dimension; `notFound` when the query's point is not there
 * or has no such vector; `timeout`.
 */
export function searchNearest(snapshots: readonly ReplicaSnapshot[], query: NearestQuery): PointView[] {
  const { config, vectors } = snapshots[0] as ReplicaSnapshot;
  const params = vectorParams(vectors, query.using);
  const views = new PointViews(config, vectors, query.withPayload, query.withVector);
  const target = targetOf(snapshots, query, params);
  const task: Task = {
    query,
    params,
    values: target.values,
    // One more, as the query's own point is found too.
    k: query.limit + query.offset + (target.own === null ? 0 : 1),
    own: target.own,
  };
  const lists: Hit[][] = [];
  for (const snapshot of snapshots) for (const view of snapshot.segments) lists.push(searchSegment(view, snapshot, task));
  const page = mergeRanked(lists, {
    limit: query.limit,
    offset: query.offset,
    scoreThreshold: query.scoreThreshold === null ? null : Math.fround(query.scoreThreshold),
    better: params.distance === 'Euclid' || params.distance === 'Manhattan' ? 'smaller' : 'larger',
  });
  return page.map((hit) => views.scored(hit.view, hit.row, hit.id, hit.version, hit.score));
}

interface Task {
  readonly query: NearestQuery;
  readonly params: VectorParams;
  /** The query as it is compared: normalized, and rounded to the type of the stored vectors. */
  readonly values: Float32Array;
  readonly k: number;
  /** Where the query's own point is; it is left out of the answer. */
  readonly own: FoundRow | null;
}

interface Hit extends RankedPoint {
  readonly view: SegmentView;
  readonly row: number;
}

function targetOf(
  snapshots: readonly ReplicaSnapshot[],
  query: NearestQuery,
  params: VectorParams,
): { values: Float32Array; own: FoundRow | null } {
  const { target } = query;
  if (target.kind === 'vector') {
    if (target.values.length !== params.size) {
      throw new TroupeError('wrongInput', `Vector dimension error: expected dim: ${params.size}, got ${target.values.length}`);
    }
    return { values: asStored(target.values, params), own: null };
  }
  const own = findPoint(snapshots, target.id);
  if (own === undefined) throw new TroupeError('notFound', `No point with id ${target.id} found`);
  const values = own.view.vectorOf(query.using, own.row);
  if (values === undefined) throw new TroupeError('notFound', `Vector with name ${JSON.stringify(query.using)} for point not found`);
  return { values, own };
}

/** The query's vector as a stored one would be: it may be changed in place. */
function asStored(values: Float32Array, params: VectorParams): Float32Array {
  switch (params.datatype) {
    case 'uint8':
      // Stored as they are given, also for cosine: see `scanUint8Cosine`.
      return values.map((value) => Math.min(255, Math.max(0, Math.trunc(value))));
    case 'float16':
      if (params.distance === 'Cosine') normalizeRows(values, values.length);
      return values.map((value) => fromHalf(toHalf(value)));
    default:
      if (params.distance === 'Cosine') normalizeRows(values, values.length);
      return values;
  }
}

function searchSegment(view: SegmentView, snapshot: ReplicaSnapshot, task: Task): Hit[] {
  const vector = view.reader.vector(task.query.using);
  if (vector === undefined || view.rows === 0) return [];
  view.reader.clock.check();
  const bits = admittedBits(view, vector, task);
  const admitted = bits === null ? null : countBits(bits);
  const k = Math.min(task.k, admitted ?? view.rows);
  const plan = planSegment(factsOf(view, vector, snapshot, task, k, admitted));
  if (plan.kind === 'none') return [];
  try {
    if (task.params.datatype === 'uint8' && task.params.distance === 'Cosine') return scanUint8Cosine(view, vector, task, bits, k);
    return hits(view, task, runPlan(view, vector, task.values, plan, bits, k));
  } catch (error) {
    if (error instanceof KernelExpired) throw timeLimit();
    throw error;
  }
}

/** Rows that pass the filter and have the vector, deleted ones included; null: all rows. */
function admittedBits(view: SegmentView, vector: VectorReader, task: Task): Uint32Array | null {
  const bits = task.query.filter === null ? null : filterBits(view, task.query.filter);
  if (view.reader.allPresent(vector, view.rows)) return bits;
  const present = vector.presence.slice(0, wordsOf(view.rows));
  clearBehind(present, view.rows);
  if (bits !== null) intersect(present, bits);
  return present;
}

function factsOf(
  view: SegmentView,
  vector: VectorReader,
  snapshot: ReplicaSnapshot,
  task: Task,
  k: number,
  admitted: number | null,
): SegmentFacts {
  const { hnsw_config: hnsw, optimizer_config: optimizer } = snapshot.config;
  const own = task.params.hnsw_config;
  const { params } = task.query;
  return {
    rows: view.rows,
    // Deleted rows are few (vacuum sees to it), and counting them for each query would cost more than it tells.
    live: view.rows,
    admitted,
    hasGraph: vector.graph !== null,
    hasCodes: vector.codes !== null,
    exact: params.exact,
    indexedOnly: params.indexedOnly,
    hnswEf: params.hnswEf === 0 ? null : params.hnswEf,
    efDefault: own?.ef_construct ?? hnsw.ef_construct,
    k,
    fullScanThresholdKb: own?.full_scan_threshold ?? hnsw.full_scan_threshold,
    indexingThresholdKb: optimizer.indexing_threshold,
    dim: vector.layout.dim,
    element: vector.layout.element,
    m0: vector.graph?.m0 ?? 0,
  };
}

function runPlan(
  view: SegmentView,
  vector: VectorReader,
  values: Float32Array,
  plan: Exclude<SegmentPlan, { kind: 'none' }>,
  bits: Uint32Array | null,
  k: number,
): Ranked {
  const { kernels, slot } = view.reader;
  const run: Run = { view, kernels, slot, admission: view.admission(bits === null ? 0 : putBits(view, bits)) };
  const { codes, original } = vector;
  if (plan.useCodes && codes !== null) {
    kernels.setQuery(slot, codes, values);
    if (codesDecide(vector, values)) return firstPass(run, vector, codes, plan, k, k);
    const first = firstPass(run, vector, codes, plan, Math.max(k, plan.keep), k);
    // The query was set as codes and as float32; originals beside codes are never bytes.
    if (original !== null) return kernels.rescore(slot, original, first, k);
    return rankFiled(view.reader, vector.layout, first.rows.slice().sort(), k);
  }
  if (original === null) return rankAllFiled(run, vector, values, k);
  kernels.setQuery(slot, original, values);
  return firstPass(run, vector, original, plan, Math.max(k, plan.keep), k);
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
  return rankFiled(view.reader, vector.layout, rows, k);
}

interface Run {
  readonly view: SegmentView;
  readonly kernels: Kernels;
  readonly slot: number;
  readonly admission: Admission;
}

/** keep: rows wanted of this pass. k: how many the plan has to come up with. */
function firstPass(
  run: Run,
  vector: VectorReader,
  matrix: Matrix,
  plan: Exclude<SegmentPlan, { kind: 'none' }>,
  keep: number,
  k: number,
): Ranked {
  if (plan.kind === 'gather') return gather(run, matrix, keep);
  if (plan.kind === 'scan' || vector.graph === null) return scan(run, matrix, keep);
  const { view, kernels, slot, admission } = run;
  const ranked = kernels.walk(slot, matrix, vector.graph, admission, { ef: plan.ef, k: keep, rows: view.rows, narrow: plan.narrow });
  if (ranked.count >= k || ranked.count >= kernels.countAdmitted(view.rows, admission)) return ranked;
  return plan.fallback === 'gather' ? gather(run, matrix, keep) : scan(run, matrix, keep);
}

function gather({ view, kernels, slot, admission }: Run, matrix: Matrix, keep: number): Ranked {
  const count = kernels.listAdmitted(slot, view.rows, admission);
  return kernels.gather(slot, matrix, count, admission, keep);
}

function scan({ view, kernels, slot, admission }: Run, matrix: Matrix, keep: number): Ranked {
  return kernels.scan(slot, matrix, 0, view.rows, admission, keep);
}

function hits(view: SegmentView, task: Task, ranked: Ranked): Hit[] {
  const found: Hit[] = [];
  const { distance, datatype, size } = task.params;
  const rounded = datatype === 'float16' && size <= HALF_SCORE_DIM_MAX;
  for (let i = 0; i < ranked.count; i++) {
    const row = ranked.rows[i] as number;
    if (isOwn(task, view, row)) continue;
    const score = rounded
      ? halfScore(distance, task.values, view.vectorOf(task.query.using, row) as Float32Array)
      : shownScore(distance, ranked.scores[i] as number);
    found.push(hitOf(view, row, score));
  }
  return found;
}

function hitOf(view: SegmentView, row: number, score: number): Hit {
  const id: PointId = view.id(row);
  return { id, score, version: view.version(row), view, row };
}

function isOwn(task: Task, view: SegmentView, row: number): boolean {
  return task.own !== null && task.own.row === row && task.own.view === view;
}

/**
 * Cosine of bytes: rows are stored as given, so their lengths have to be divided out. Rare, so it is a plain loop over
 * all rows that count. Originals of one byte are always in memory.
 */
function scanUint8Cosine(view: SegmentView, vector: VectorReader, task: Task, bits: Uint32Array | null, k: number): Hit[] {
  const { layout } = vector;
  const { values } = task;
  const bytes = new Uint8Array(view.handle.memory.buffer);
  const start = residentOffset(layout);
  const length = Math.hypot(...values);
  const found: { row: number; score: number }[] = [];
  for (let row = 0; row < view.rows; row++) {
    if (row % 256 === 0) view.reader.clock.check();
    if (!view.isLive(row) || (bits !== null && !hasBit(bits, row)) || isOwn(task, view, row)) continue;
    const at = start + row * layout.stride;
    let dot = 0;
    let squares = 0;
    for (let i = 0; i < layout.dim; i++) {
      const component = bytes[at + i] as number;
      dot += component * (values[i] as number);
      squares += component * component;
    }
    const lengths = length * Math.sqrt(squares);
    found.push({ row, score: lengths === 0 ? 0 : Math.fround(dot / lengths) });
  }
  found.sort((a, b) => b.score - a.score || a.row - b.row);
  return found.slice(0, k).map(({ row, score }) => hitOf(view, row, score));
}
