/** What an explanation says in words. Pure. */

import type { Explanation } from '../../protocols/model/explanation.js';
import type { Condition, DatetimeRange, GeoArea, Match, Range } from '../../protocols/model/filter.js';
import { conditionsOf } from '../filter/wanted-indexes.js';
import type { PlanReason, SegmentFacts, SegmentPlan } from '../plan.js';

/** Texts of users are shown by their first characters. */
const TEXT_LENGTH_MAX = 80;
/** Values of a list that are shown. */
const LISTED_MAX = 3;

/** Why a segment is searched the way it is. */
export function planSentence({ why }: SegmentPlan, { codes, fullScanThresholdKb, live, admitted }: SegmentFacts): string {
  const wanted = rowsText(admitted ?? live);
  const scored = `${admitted === null ? `all ${wanted}` : `the ${wanted} that pass the filter`} ${admitted === 1 ? 'is' : 'are'} scored`;
  const on =
    codes === null ? '' : ' Codes stand for the vectors where that saves bytes, and the best rows are scored anew with the originals.';
  return `${reasonOf(why, scored, fullScanThresholdKb)}${why.kind === 'costs' || why.kind === 'lists' ? on : ''}`;
}

function reasonOf(why: PlanReason, scored: string, thresholdKb: number): string {
  switch (why.kind) {
    case 'nothingWanted':
      return 'No results are wanted.';
    case 'noLiveRows':
      return 'The segment has no rows.';
    case 'noneAdmitted':
      return 'No row passes the filter.';
    case 'indexedOnly':
      return 'The request asks for `indexed_only`, and the segment still waits for its graph.';
    case 'exact':
      return `The request asks for an exact search, so ${scored}.`;
    case 'noGraph':
      return `The segment has no graph of this vector (yet), so ${scored}.`;
    case 'mostRowsWanted':
      return `Most of the rows are wanted, so ${scored}.`;
    case 'placeless':
      return `Such examples lead to no place in the graph, so ${scored}.`;
    case 'coarseCodes':
      return `The codes of the segment are too coarse to tell on which side of examples a row lies, so ${scored}.`;
    case 'manyExamples':
      return `There are too many examples for a walk of the graph, so ${scored}.`;
    case 'belowThreshold':
      return `The vectors take ${Math.round(why.kilobytes)} kB, less than \`full_scan_threshold\` (${thresholdKb} kB), so ${scored}.`;
    case 'lists': {
      const share = why.selectivity >= 1 ? '' : `; ${percent(why.selectivity)} of the rows pass`;
      return `The rows lie in ${why.count} lists on disk, of which the ${why.probes} nearest are read${share}.`;
    }
    case 'tokenLists':
    case 'fewerThanTokenLists': {
      const lists = `Looking at the ${why.probes} nearest of ${why.count} lists of token vectors is estimated at ${micros(why.ns)}`;
      return `${lists}, comparing the rows that pass one by one at ${micros(why.exhaustiveNs)}.`;
    }
    case 'fewerThanLists':
      return `So few rows are wanted that reading each takes less than reading ${why.probes} lists on disk, so ${scored}.`;
    case 'costs': {
      const { ns, of, rows, selectivity } = why.walk;
      const graph = of === null ? 'the graph' : `the graph of ${of}`;
      const exhaustive = why.exhaustive === 'scan' ? 'reading all rows in order' : 'scoring the rows that pass one by one';
      const share = selectivity >= 1 ? '' : `; ${percent(selectivity)} of the ${rowsText(rows)} in the graph pass`;
      return `A walk of ${graph} is estimated at ${micros(ns)}, ${exhaustive} at ${micros(why.exhaustiveNs)}${share}.`;
    }
    default:
      return why satisfies never;
  }
}

/** What a level of a query asks for. */
export function levelText(kind: string, using: string, wanted: number, among: number | null): string {
  const vector = using === '' ? '' : ` by \`${using}\``;
  const candidates = among === null ? '' : ` among ${count(among, 'candidate')} of prefetches`;
  return `${LEVELS[kind] ?? kind}${vector}, ${count(wanted, 'point')} wanted${candidates}`;
}

const LEVELS: Readonly<Record<string, string>> = {
  list: 'points in the order of ids',
  nearest: 'points nearest to a vector',
  recommend: 'points like examples',
  discover: 'points on the side of examples',
  context: 'points within a context',
  relevanceFeedback: 'points by rated examples',
  orderBy: 'points in the order of a payload key',
  sample: 'points at random',
  formula: 'points by a formula',
};

/** A condition in one line. */
export function conditionText(condition: Condition): string {
  switch (condition.kind) {
    case 'match':
      return `${condition.key} ${matchText(condition.match)}`;
    case 'range':
    case 'datetimeRange':
      return `${condition.key} ${condition.kind === 'range' ? 'range' : 'datetime range'} ${rangeText(condition.range)}`;
    case 'valuesCount':
      return `${condition.key} values count ${rangeText(condition.range)}`;
    case 'geo':
      return `${condition.key} ${GEO[condition.area.kind]}`;
    case 'isEmpty':
    case 'fieldIsEmpty':
      return `${condition.key} is empty`;
    case 'isNull':
    case 'fieldIsNull':
      return `${condition.key} is null`;
    case 'hasId':
      return `one of ${count(condition.ids.length, 'id')}`;
    case 'hasVector':
      return `has the vector \`${condition.name}\``;
    case 'nested':
      return `nested ${condition.key}: ${count(conditionsOf(condition.filter).length, 'condition')}`;
    case 'filter':
      return `a filter of ${count(conditionsOf(condition.filter).length, 'condition')}`;
    default:
      return condition satisfies never;
  }
}

const GEO: Readonly<Record<GeoArea['kind'], string>> = { box: 'in a box', circle: 'in a circle', polygon: 'in a polygon' };

function matchText(match: Match): string {
  switch (match.kind) {
    case 'value':
      return `match ${valueText(match.value)}`;
    case 'any':
    case 'except': {
      const more = match.values.length > LISTED_MAX ? ` … (${match.values.length})` : '';
      return `${match.kind} ${match.values.slice(0, LISTED_MAX).map(valueText).join(', ')}${more}`;
    }
    default:
      return `${TEXTS[match.kind]} ${valueText(match.text)}`;
  }
}

const TEXTS = { text: 'text', textAny: 'text_any', phrase: 'phrase' } as const;

function valueText(value: string | number | bigint | boolean): string {
  if (typeof value !== 'string') return String(value);
  return JSON.stringify(value.length > TEXT_LENGTH_MAX ? `${value.slice(0, TEXT_LENGTH_MAX)}…` : value);
}

function rangeText(range: Range | DatetimeRange): string {
  const bounds = { gt: '>', gte: '≥', lt: '<', lte: '≤' } as const;
  const parts = (Object.keys(bounds) as (keyof typeof bounds)[]).flatMap((bound) =>
    range[bound] === undefined ? [] : `${bounds[bound]} ${range[bound]}`,
  );
  return parts.join(' ') || 'without bounds';
}

/** Why an index of the field would help. */
export function adviceSentence(field: string, rowsRead: number, rowsWithIndex: number): string {
  const read = `The filter on \`${field}\` has no index, so the payloads of up to ${rowsRead} rows are read`;
  return `${read} whenever its answer is not in the cache; an index would lead to about ${rowsWithIndex} of them.`;
}

/** One line: plans with the number of segments, and the figures that say most. */
export function summaryOf({ advice, shards, stages }: Pick<Explanation, 'advice' | 'shards' | 'stages'>): string {
  const searches = shards.flatMap(({ segments }) => segments.flatMap((segment) => segment.searches));
  const plans = new Map<string, number>();
  for (const { plan } of searches) plans.set(plan, (plans.get(plan) ?? 0) + 1);
  const ways = [...plans].map(([plan, times]) => `${plan}${times > 1 ? ` × ${times}` : ''}`).join(', ');
  const elsewhere = stages.some(({ stage }) => stage === 'points') ? 'points by id' : 'no segment was looked at';
  const peers = new Set(shards.map(({ peer_id }) => peer_id));
  const scored = sum(searches, ({ rows_scored }) => rows_scored);
  const rescored = sum(searches, ({ rows_rescored }) => rows_rescored);
  const payloads = sum(searches, ({ filter }) => filter?.payloads_read ?? 0);
  const parts = [
    ways || elsewhere,
    `${count(new Set(shards.map(({ shard_id }) => shard_id)).size, 'shard')}${peers.size > 1 ? ` on ${peers.size} nodes` : ''}`,
    ...(scored > 0 ? [`${rowsText(scored)} scored`] : []),
    ...(rescored > 0 ? [`${rescored} rescored`] : []),
    ...(payloads > 0 ? [`${count(payloads, 'payload')} read by the filter`] : []),
    ...(advice.length > 0 ? [`an index of ${advice.map(({ field }) => field).join(', ')} would help`] : []),
  ];
  return parts.join('; ');
}

function sum<Item>(items: readonly Item[], of: (item: Item) => number): number {
  return items.reduce((total, item) => total + of(item), 0);
}

function rowsText(rows: number): string {
  return count(rows, 'row');
}

function count(number: number, noun: string): string {
  return `${number} ${noun}${number === 1 ? '' : 's'}`;
}

function micros(nanoseconds: number): string {
  return `${Math.round(nanoseconds / 1000)} µs`;
}

function percent(share: number): string {
  return `${Number((share * 100).toPrecision(2))} %`;
}
