/**
 * Nearest points by multivectors: MaxSim of the rows that lists of token vectors lead to, or of all rows that count, by their codes first. Where no
 * quantization was asked for, every one of them that may be among the best is scored exactly after that, so that the answer is that of scoring them by the
 * originals.
 */

import { planNs, planSegment, type SegmentFacts, type SegmentPlan } from '../../../query/plan.js';
import { possibleScore, shownScore } from '../../../query/shown-score.js';
import type { Matrix, Ranked } from '../../../vectors/kernel-api.js';
import { maxSimilarity } from '../../../vectors/max-similarity.js';
import { TopRows } from '../../../vectors/top-rows.js';
import { maxSimInterval } from '../../../vectors/unclipped.js';
import { spend } from '../../disk/meter.js';
import { explaining } from '../../explain/explainer.js';
import { seePlan } from '../../explain/seen-plans.js';
import { raggedOf } from '../../segment/ragged.js';
import { admittedBits, countedAdmission } from '../snapshot/admitted.js';
import { liveRows } from '../snapshot/live-rows.js';
import { hasVector, type SegmentView, type VectorReader } from '../snapshot/snapshot-view.js';
import type { DenseSpace } from '../snapshot/vector-space.js';
import { type Hit, hitOf } from './hit.js';
import { type NearestSearch, scoringWork } from './search.js';
import { withinTime } from './within-time.js';

/** The k best of a segment. query: Float32Array [vectors, dim], as the rows are compared with it. facts: of the segment, without a filter. */
export function nearestMulti(
  view: SegmentView,
  vector: VectorReader,
  space: DenseSpace,
  search: NearestSearch,
  query: Float32Array,
  facts: SegmentFacts,
): Hit[] {
  if (view.rows === 0) return [];
  view.reader.deadline.check();
  const bits = admittedBits(view, vector, search.filter);
  const found = likelyRows(view, vector, space, search, { query, bits, facts });
  if (found !== null) return bestHits(view, vector, space, query, { ...found, k: facts.k });
  const rows = liveRows(view, bits).filter((row) => !isOwn(view, search, row));
  const all = { ...facts, live: rows.length };
  const plan = planSegment(all);
  const note = explaining()?.of(view);
  if (note?.plan !== 'token_lists') {
    const why = note?.reason || 'The segment has no lists of its token vectors.';
    note?.planned(space.name, all, plan);
    note?.mark('plan');
    if (plan.kind !== 'none')
      note?.way('multi', `Each of the ${rows.length} rows that pass is compared with each vector of the query. ${why}`);
  }
  view.reader.deadline.claim(scoringWork(view, space, { kind: 'multi', values: query, dim: space.params.size }, rows.length, 1));
  return plan.kind === 'none' ? [] : bestHits(view, vector, space, query, { rows, plan, k: facts.k });
}

/** The rows that a search compares, and by which plan. */
interface ComparedRows {
  readonly rows: Uint32Array;
  readonly plan: Exclude<SegmentPlan, { kind: 'none' }>;
}

/**
 * Rows that lists of token vectors lead to; null: there are no lists, comparing all rows that pass takes no longer, or too few were found (Query-Q1).
 * bits: as of `admittedBits`.
 */
function likelyRows(
  view: SegmentView,
  vector: VectorReader,
  space: DenseSpace,
  search: NearestSearch,
  { bits, facts, query }: { readonly bits: Uint32Array | null; readonly facts: SegmentFacts; readonly query: Float32Array },
): ComparedRows | null {
  const { codes, layout, tokenLists } = vector;
  if (tokenLists === null || codes === null || layout.tokenLists === null) return null;
  const { deadline, kernels, slot } = view.reader;
  const { admission, admitted } = countedAdmission(view, bits);
  const { count, probes } = layout.tokenLists;
  const lists = { count, probes, vectors: raggedOf(layout).itemCapacity, queryVectors: query.length / layout.dim };
  const listed: SegmentFacts = { ...facts, admitted, tokenLists: lists };
  const plan = planSegment(listed);
  const note = explaining()?.of(view);
  note?.planned(space.name, listed, plan);
  if (plan.kind !== 'tokenLists') return null;
  seePlan(plan);
  note?.mark('plan');
  deadline.claim({ kind: 'planned', ns: planNs(listed, plan) });
  const options = { probes: plan.probes, keep: plan.compared, rows: view.rows };
  const ranked = withinTime(() => kernels.byTokens(slot, codes, tokenLists, query, admission, options));
  const rows = ranked.rows.slice().filter((row) => !isOwn(view, search, row));
  note?.mark('token_lists');
  if (rows.length >= Math.min(facts.k, admitted ?? view.rows)) return { rows, plan };
  note?.fallBack();
  return null;
}

function isOwn(view: SegmentView, { own }: NearestSearch, row: number): boolean {
  return own !== null && own.row === row && own.view === view;
}

/** The k best of some rows: by codes first, where the plan says so. */
function bestHits(
  view: SegmentView,
  vector: VectorReader,
  space: DenseSpace,
  query: Float32Array,
  { k, plan, rows }: ComparedRows & { readonly k: number },
): Hit[] {
  const note = explaining()?.of(view);
  const { codes } = vector;
  if (!plan.useCodes || codes === null) {
    const best = bestOf(rows, scoreRows(view, vector, space, query, rows), k);
    note?.compared(rows.length);
    return hitsOf(view, space, best);
  }
  if (vector.layout.quantization === null) {
    const left = possibleRows(rows, scoreBy(codes, view, vector, query, rows).slice(), vector, query, k);
    note?.compared(rows.length);
    const best = bestOf(left, scoreRows(view, vector, space, query, left), k);
    note?.compared(left.length, true);
    return hitsOf(view, space, best);
  }
  const coded = bestOf(rows, scoreBy(codes, view, vector, query, rows), plan.rescore ? Math.max(k, plan.keep) : k);
  note?.compared(rows.length);
  if (!plan.rescore) {
    const scores = coded.scores.map((score) => possibleScore(space.distance, score));
    return hitsOf(view, space, { ...coded, scores });
  }
  const found = coded.rows.slice(0, coded.count);
  const best = bestOf(found, scoreRows(view, vector, space, query, found), k);
  note?.compared(found.length, true);
  return hitsOf(view, space, best);
}

/** The rows that may be among the k best, by scores by codes in their order. */
function possibleRows(rows: Uint32Array, scores: Float32Array, { layout }: VectorReader, query: Float32Array, k: number): Uint32Array {
  const { codes, metric, dim } = layout;
  const interval = codes === null || codes.lost === null ? null : maxSimInterval(metric, { ...codes, lost: codes.lost }, query, dim);
  if (interval === null || rows.length <= k) return rows;
  const least = interval.least(bestOf(rows, scores, k).scores[k - 1] as number);
  // Not a number, as infinite terms leave it, may be anything.
  return rows.filter((_, at) => !(interval.most(scores[at] as number) < least));
}

/** The k best of these rows, by scores in their order. */
function bestOf(rows: Uint32Array, scores: Float32Array, k: number): Ranked {
  const top = new TopRows(Math.min(k, rows.length));
  rows.forEach((row, at) => {
    top.add(row, scores[at] as number);
  });
  return top.ranked();
}

function hitsOf(view: SegmentView, { distance }: DenseSpace, ranked: Ranked): Hit[] {
  const hits = Array.from({ length: ranked.count }, (_, i) =>
    hitOf(view, ranked.rows[i] as number, shownScore(distance, ranked.scores[i] as number)),
  );
  explaining()?.of(view).answered('hits', hits.length);
  return hits;
}

/** The shown score of each of these rows; NaN for rows without the vector. */
export function scoreMultiRows(view: SegmentView, space: DenseSpace, query: Float32Array, rows: Uint32Array): Float32Array {
  const shown = new Float32Array(rows.length).fill(Number.NaN);
  const vector = view.reader.vector(space.name);
  if (vector === undefined) return shown;
  const present = rows.filter((row) => hasVector(vector, row));
  if (present.length === 0) return shown;
  const scores = scoreRows(view, vector, space, query, present);
  let next = 0;
  rows.forEach((row, at) => {
    if (hasVector(vector, row)) shown[at] = shownScore(space.distance, scores[next++] as number);
  });
  return shown;
}

/** MaxSim of each row, higher is better. rows: each has the vector. The scores may be a view on scratch. */
function scoreRows(view: SegmentView, vector: VectorReader, space: DenseSpace, query: Float32Array, rows: Uint32Array): Float32Array {
  const { params } = space;
  if (params.datatype === 'uint8' && params.distance === 'Cosine') return byteCosines(view, space, query, rows);
  const { original } = vector;
  if (original === null) throw new Error(`the vectors of '${space.name}' are not in memory`);
  return scoreBy(original, view, vector, query, rows);
}

/** MaxSim by originals or by codes: matrix has a row for each token vector. */
function scoreBy(matrix: Matrix, view: SegmentView, vector: VectorReader, query: Float32Array, rows: Uint32Array): Float32Array {
  const { kernels, slot, handle } = view.reader;
  new Uint32Array(handle.memory.buffer, slot + handle.layout.scratch.rows, rows.length).set(rows);
  return withinTime(() => kernels.maxSim(slot, matrix, raggedOf(vector.layout).offsets, rows.length, query));
}

/** Bytes are stored as given, so their lengths have to be divided out: a plain loop, as it is rare. */
function byteCosines(view: SegmentView, { name, params }: DenseSpace, query: Float32Array, rows: Uint32Array): Float32Array {
  return Float32Array.from(rows, (row) => {
    // A query may have thousands of vectors, and so may a row.
    view.reader.deadline.check();
    const value = view.vectorOf(name, row);
    if (value?.kind !== 'multi') return Number.NEGATIVE_INFINITY;
    spend('cpu', (query.length / params.size) * value.values.length);
    return maxSimilarity(params.distance, query, value.values, params.size);
  });
}
