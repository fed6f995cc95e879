/** Carries out a portion of a read on snapshots of some shards: decode, run each ask, encode. */

import type { FieldSchema } from '../../../protocols/model/collection.js';
import type { PayloadSelector, VectorSelector } from '../../../protocols/model/filter.js';
import type { VectorValue } from '../../../protocols/model/vector.js';
import { levelText } from '../../../query/explain/sentences.js';
import { adviceOf } from '../../explain/advise.js';
import { Explainer, type ExplainPlace, NOWHERE } from '../../explain/explainer.js';
import { checkDeadline, limitsOf } from '../../threads/deadline.js';
import { encodePlainAnswer, isPlain } from '../../threads/plain-portion.js';
import type {
  Ask,
  Counts,
  Extras,
  Hits,
  PortionAnswer,
  Scores,
  ScoresAsk,
  ShardAnswer,
  ShownParts,
  TermSums,
  TermsAsk,
  Values,
  ValuesAsk,
} from '../../threads/portion.js';
import { decodePortion, encodePortionAnswer } from '../../threads/portion-codec.js';
import { HIT_BYTES, type Hit, hitOf } from '../nearest/hit.js';
import { scoreRows } from '../nearest/search.js';
import { valueCounts } from '../query/facet.js';
import { valuesOfRow } from '../query/group-values.js';
import { inputBytes } from '../query/inputs.js';
import { PointViews } from '../query/point-view.js';
import { countPoints, type FoundRow } from '../query/points.js';
import { partsOf } from '../snapshot/row-parts.js';
import type { ReplicaSnapshot } from '../snapshot/snapshot-view.js';
import { frequenciesIn } from '../snapshot/term-counts.js';
import { vectorSpace } from '../snapshot/vector-space.js';
import { goneIds, leavingPoints, ownedIds, strayIds } from './leaving.js';
import { askedHits } from './level.js';
import { type FoundPoint, Shards } from './shards.js';

/** Rows shown between two checks of the deadline. */
const CHECK_ROWS = 64;

/**
 * The encoded answer, in a buffer of its own, plain if the portion is. snapshots: at least one; all asks see these. random: 0 <= n < 1.
 * Errors: those of the first ask that fails; `timeout`.
 */
export function runPortion(
  body: Uint8Array,
  snapshots: readonly ReplicaSnapshot[],
  random: () => number,
  place: ExplainPlace = NOWHERE,
): Uint8Array {
  const startedMs = performance.now();
  const shards = new Shards(snapshots);
  const { asks, explain } = decodePortion(body);
  const answer =
    explain === true
      ? explainedAnswer(shards, asks, random, new Explainer(place, startedMs))
      : { answers: asks.map((ask) => answerOf(shards, ask, random)) };
  const plain = isPlain(body) ? encodePlainAnswer(answer) : null;
  // What packs it keeps its memory for the next one.
  return plain ?? new Uint8Array(encodePortionAnswer(answer));
}

function explainedAnswer(shards: Shards, asks: readonly Ask[], random: () => number, explainer: Explainer): PortionAnswer {
  explainer.mark('decode');
  const answers = explainer.run(() =>
    asks.map((ask) => {
      explainer.begin(askText(ask));
      const answer = answerOf(shards, ask, random);
      explainer.mark('show');
      return answer;
    }),
  );
  return { answers, explanation: { ...explainer.told(shards.snapshots), advice: adviceOf(explainer) } };
}

function askText(ask: Ask): string {
  switch (ask.kind) {
    case 'level': {
      const among = ask.candidates?.reduce((sum, { ids }) => sum + ids.length, 0) ?? null;
      return levelText(ask.query.kind, ask.using, ask.count, among);
    }
    case 'count':
      return 'how many points pass';
    case 'facet':
      return `values of \`${ask.key}\``;
    case 'scores':
      return 'similarities of points';
    default:
      return ask.kind;
  }
}

function answerOf(shards: Shards, ask: Ask, random: () => number): ShardAnswer {
  checkDeadline(shards.snapshots);
  switch (ask.kind) {
    case 'level': {
      const { hits, total } = askedHits(shards, ask, random);
      const orderValues = ask.query.kind === 'orderBy' ? hits.map(({ orderValue }) => orderValue as number | bigint) : null;
      return hitsAnswer(shards, hits, ask.extras, { orderValues, total });
    }
    case 'points': {
      const hits = shards.found(ask.points).map(({ view, row }) => hitOf(view, row, 1));
      return hitsAnswer(shards, hits, ask.extras, { orderValues: null, total: 0 });
    }
    case 'values':
      return storedValues(shards, ask);
    case 'terms':
      return termSums(shards.snapshots, ask);
    case 'scores':
      return exactScores(shards, ask);
    case 'count':
      return { kind: 'count', count: countPoints(shards.snapshots, ask.filter) };
    case 'facet': {
      const counts = valueCounts(shards.snapshots, ask);
      return { kind: 'counts', values: [...counts.keys()], counts: [...counts.values()] } satisfies Counts;
    }
    case 'field':
      return { kind: 'field', schema: indexedFields(shards.snapshots).get(ask.key) ?? null };
    case 'leaving':
      return leavingPoints(shards.snapshots, ask);
    case 'owned':
      return ownedIds(shards.snapshots, ask);
    case 'gone':
      return goneIds(shards.snapshots, ask);
    case 'stray':
      return strayIds(shards.snapshots, ask);
    default:
      return ask satisfies never;
  }
}

// ------------------------------------------------------------------ hits

function hitsAnswer(shards: Shards, hits: readonly Hit[], extras: Extras, other: Pick<Hits, 'orderValues' | 'total'>): Hits {
  const { groupBy } = extras;
  limitsOf(shards.snapshots)?.hold(hits.length * HIT_BYTES);
  return {
    kind: 'hits',
    ...shards.columns(hits),
    ...other,
    shown: shownParts(shards.snapshots, hits, extras),
    groups: groupBy === null ? null : checked(hits, ({ view, row }) => valuesOfRow(view, row, groupBy)),
  };
}

function shownParts(
  snapshots: readonly ReplicaSnapshot[],
  hits: readonly Hit[],
  { withPayload, withVector }: { readonly withPayload: PayloadSelector; readonly withVector: VectorSelector },
): readonly ShownParts[] | null {
  if (withPayload.kind === 'none' && withVector.kind === 'none') return null;
  const { config, vectors } = snapshots[0] as ReplicaSnapshot;
  const views = new PointViews(config, vectors, withPayload, withVector);
  limitsOf(snapshots)?.hold(views.bytes(hits.length));
  return checked(hits, ({ view, row }) => {
    const { payload, vector } = views.record(view, row);
    return { ...(payload && { payload }), ...(vector && { vector }) };
  });
}

function checked<T>(rows: readonly FoundRow[], make: (found: FoundRow) => T): T[] {
  return rows.map((found, at) => {
    if (at % CHECK_ROWS === 0) found.view.reader.deadline.check();
    return make(found);
  });
}

// ------------------------------------------------------------------ vectors of points

function storedValues(shards: Shards, { points, using }: ValuesAsk): Values {
  const found = shards.found(points);
  const values = checked(found, ({ view, row }): VectorValue | null => {
    const value = view.vectorOf(using, row);
    // A name that no point can have is another mistake.
    if (value === undefined) vectorSpace(shards.snapshots, using);
    else view.reader.deadline.hold(inputBytes(value));
    return value ?? null;
  });
  return { kind: 'values', ...namesOf(found), values };
}

function exactScores(shards: Shards, { using, values, points, terms }: ScoresAsk): Scores {
  const space = vectorSpace(shards.scoredWith(terms), using);
  const found = shards.found(points);
  const parts = partsOf(found);
  const scores = new Float32Array(values.length * found.length).fill(Number.NaN);
  values.forEach((value, at) => {
    checkDeadline(shards.snapshots);
    for (const { view, rows, positions } of parts) {
      const some = scoreRows(view, space, value, rows);
      positions.forEach((place, i) => {
        scores[at * found.length + place] = some[i] as number;
      });
    }
  });
  return { kind: 'scores', ...namesOf(found), scores };
}

function namesOf(found: readonly FoundPoint[]): Pick<Values, 'shards' | 'ids'> {
  return { shards: found.map(({ shard }) => shard), ids: found.map(({ id }) => id) };
}

// ------------------------------------------------------------------ sums

function termSums(snapshots: readonly ReplicaSnapshot[], { using, indices }: TermsAsk): TermSums {
  vectorSpace(snapshots, using);
  const frequencies = frequenciesIn(snapshots, using);
  return { kind: 'terms', indices, rows: Float64Array.from(indices, (index) => frequencies.rowsWith(index)), filled: frequencies.filled };
}

/** Of the first shard: all have the same, but while an index is made or dropped. */
function indexedFields(snapshots: readonly ReplicaSnapshot[]): ReadonlyMap<string, FieldSchema> {
  return snapshots[0]?.segments[0]?.fields ?? new Map();
}
