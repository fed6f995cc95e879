/**
 * Queries that score points by their similarities to several examples: recommendation, discovery, context, relevance
 * feedback. Points that a walk of the graph has found, or all that may be an answer, are scored exactly, block of rows by block: kernels give the
 * similarities to one example after the other, and pure functions (`query/recommend.ts`, `query/discover.ts`) combine them.
 */

import { TroupeError } from '../../../protocols/errors.js';
import type { VectorInput, VectorValue } from '../../../protocols/model/vector.js';
import { contextScores, discoverScores, feedbackWeights } from '../../../query/discover.js';
import { type ExampleForm, walkSettles } from '../../../query/example-plan.js';
import { mergeRanked } from '../../../query/merge.js';
import { bestScore, type ExampleScorer, weightedScores } from '../../../query/recommend.js';
import { similarScores } from '../../../query/shown-score.js';
import { TopRows } from '../../../vectors/top-rows.js';
import { explaining } from '../../explain/explainer.js';
import { checkDeadline } from '../../threads/deadline.js';
import type { ExampleQuery } from '../../walk/examples.js';
import { givenValue } from '../../walk/inputs.js';
import type { PagedNode } from '../../walk/walk.js';
import type { Candidates } from '../nearest/candidates.js';
import { type Hit, hitOf } from '../nearest/hit.js';
import { leavesOut, scoreRows, scoringWork } from '../nearest/search.js';
import { admittedBits } from '../snapshot/admitted.js';
import { liveRows } from '../snapshot/live-rows.js';
import { hasVector, type ReplicaSnapshot, type SegmentView } from '../snapshot/snapshot-view.js';
import { vectorSpace } from '../snapshot/vector-space.js';
import { type ExampleTask, exampleTask, likelyExampleRows } from './example-walk.js';

/** Rows scored at once: their similarities to some examples stay in the processor's cache. */
const BLOCK_ROWS = 4096;
/** Examples looked at between two checks of the deadline. */
const CHECK_EXAMPLES = 256;
/** Similarities held at once: thousands of examples make the blocks of rows smaller. */
const BLOCK_SCORES = 1 << 20;

/**
 * The page of points by a query with examples, best first; points without the vector are left out.
 * query: its inputs are values. node, candidates: as for every way of scoring (see `level.ts`).
 * Errors: those of `scoreRows`; `timeout`.
 */
export function exampleHits(
  snapshots: readonly ReplicaSnapshot[],
  node: PagedNode,
  query: ExampleQuery,
  candidates: Candidates | null,
): Hit[] {
  const space = vectorSpace(snapshots, node.using);
  const { examples, form, scorer } = scoringOf(query, () => checkDeadline(snapshots));
  const values = examples.map(resolvedValue);
  // A point that is named many times is the same value: it is compared with rows once.
  const distinct = [...new Set(values)];
  const blockRows = Math.max(1, Math.min(BLOCK_ROWS, Math.floor(BLOCK_SCORES / Math.max(1, values.length))));
  const isWalkable = candidates === null && snapshots.some(({ segments }) => segments.length > 0);
  const task = isWalkable ? exampleTask(space, node, form, values) : null;
  const allRows = (view: SegmentView): Uint32Array => {
    const rows = wantedRows(view, node, candidates);
    const [first] = values;
    if (first !== undefined) view.reader.deadline.claim(scoringWork(view, space, first, rows.length, values.length));
    return rows;
  };
  const lists = snapshots.flatMap((snapshot) =>
    snapshot.segments.map((view) => {
      // A value that does not fit is refused, also where there is no row to compare it with.
      distinct.forEach((value, at) => {
        if (at % CHECK_EXAMPLES === 0) view.reader.deadline.check();
        scoreRows(view, space, value, NO_ROWS);
      });
      const note = explaining()?.of(view);
      note?.way('examples', 'Every row that may be an answer is compared with each example.');
      const score = (block: Uint32Array): Float32Array => {
        const similarities = new Map<VectorValue, Float32Array>();
        for (const value of distinct) {
          view.reader.deadline.check();
          similarities.set(value, similarScores(space.distance, scoreRows(view, space, value, block)));
        }
        const ofExamples = values.map((value) => similarities.get(value) as Float32Array);
        return scorer(ofExamples, block.length);
      };
      const bestOf = (rows: Uint32Array): Hit[] => bestHits(view, rows, { k: node.limit + node.offset, blockRows }, score);
      const best = leavesOut(view, snapshot, space, node.params) ? [] : (walkedHits(view, snapshot, task, bestOf) ?? bestOf(allRows(view)));
      note?.answered('hits', best.length);
      return best;
    }),
  );
  return mergeRanked(lists, { ...node, better: 'larger' });
}

/** The best of the rows that a walk has found; null: all rows are to be scored. */
function walkedHits(
  view: SegmentView,
  snapshot: ReplicaSnapshot,
  task: ExampleTask | null,
  bestOf: (rows: Uint32Array) => Hit[],
): Hit[] | null {
  const found = task && likelyExampleRows(view, snapshot, task);
  if (task === null || found === null) return null;
  const best = bestOf(found);
  if (walkSettles(task.search, best.at(-1)?.score ?? 0)) return best;
  explaining()?.of(view).fallBack('rows within the context');
  return null;
}

/** The best k of the rows, which are scored block by block. */
function bestHits(
  view: SegmentView,
  rows: Uint32Array,
  { k, blockRows }: { readonly k: number; readonly blockRows: number },
  score: (block: Uint32Array) => Float32Array,
): Hit[] {
  const best = new TopRows(Math.min(k, rows.length));
  for (let from = 0; from < rows.length; from += blockRows) {
    view.reader.deadline.check();
    const block = rows.subarray(from, from + blockRows);
    const scores = score(block);
    for (let at = 0; at < block.length; at++) best.add(block[at] as number, scores[at] as number);
  }
  const ranked = best.ranked();
  return Array.from(ranked.rows, (row, at) => hitOf(view, row, ranked.scores[at] as number));
}

/** The examples in the order in which the scorer takes their similarities. */
function scoringOf(query: ExampleQuery, check: () => void): { examples: readonly VectorInput[]; form: ExampleForm; scorer: ExampleScorer } {
  switch (query.kind) {
    case 'recommend': {
      const { positive, negative, strategy } = query;
      const examples = [...positive, ...negative];
      if (strategy !== 'sum_scores')
        return { examples, form: { kind: 'bestScore', positives: positive.length }, scorer: bestScore(positive.length) };
      const weights = examples.map((_, at) => (at < positive.length ? 1 : -1));
      return { examples, form: { kind: 'sum', weights }, scorer: weightedScores(weights) };
    }
    case 'discover':
      return { examples: [query.target, ...pairsOf(query.context)], form: { kind: 'discover' }, scorer: discoverScores };
    case 'context':
      return { examples: pairsOf(query.pairs), form: { kind: 'context' }, scorer: contextScores };
    case 'relevanceFeedback': {
      const { target, feedback, strategy } = query;
      const weights = feedbackWeights(
        feedback.map(({ score }) => score),
        strategy,
        check,
      );
      return {
        examples: [target, ...feedback.map(({ example }) => example)],
        form: { kind: 'sum', weights },
        scorer: weightedScores(weights),
      };
    }
    default:
      return query satisfies never;
  }
}

function pairsOf(pairs: readonly { readonly positive: VectorInput; readonly negative: VectorInput }[]): VectorInput[] {
  return pairs.flatMap(({ positive, negative }) => [positive, negative]);
}

/** Rows that may be answers and have the vector, ascending. */
function wantedRows(view: SegmentView, { using, filter }: PagedNode, candidates: Candidates | null): Uint32Array {
  const vector = view.reader.vector(using);
  if (vector === undefined || view.rows === 0) return NO_ROWS;
  if (candidates === null) return liveRows(view, admittedBits(view, vector, filter));
  return candidates.get(view)?.filter((row) => hasVector(vector, row)) ?? NO_ROWS;
}

const NO_ROWS = new Uint32Array(0);

/** The walk has looked up the points that the query names. */
function resolvedValue(input: VectorInput): VectorValue {
  if (input.kind === 'point') throw new TroupeError('internal', `point ${input.id} of a query was not looked up`);
  return givenValue(input);
}
