/** How a read was carried out, as rows of a picture: what lies in what, from where to where in time, and why. */

import { bytes, count, seconds } from './format.js';

interface Stage {
  readonly stage: string;
  readonly time_us: number;
  readonly bytes?: number;
}

interface Estimate {
  readonly min: number;
  readonly expected: number;
  readonly max: number;
}

export interface SearchStep {
  readonly level: string;
  readonly plan: string;
  readonly reason: string;
  readonly time_us: number;
  readonly stages: readonly Stage[];
  readonly matches_estimated: Estimate | null;
  readonly matches: number | null;
  readonly ef: number | null;
  readonly hops: number | null;
  readonly scored_on: string | null;
  readonly rows_scored: number;
  readonly rows_rescored: number;
  readonly bytes_read: number;
  readonly found: number;
  readonly filter: {
    readonly cache: string;
    readonly payloads_read: number;
    readonly conditions: readonly {
      readonly condition: string;
      readonly answered_by: string;
      readonly index: string | null;
      readonly matches: number | null;
    }[];
  } | null;
}

export interface ShardWork {
  readonly shard_id: number;
  readonly peer_id: number | null;
  readonly thread: string;
  readonly round: number;
  readonly time_us: number;
  readonly segments: readonly {
    readonly segment_id: number;
    readonly kind: string;
    readonly rows: number;
    readonly time_us: number;
    readonly searches: readonly SearchStep[];
  }[];
}

export interface TriedIndex {
  readonly field: string;
  readonly reason: string;
  readonly rows_sampled: number;
  readonly time_us: number;
  readonly time_us_with_index: number;
  readonly call: { readonly method: string; readonly path: string; readonly body: object };
}

export interface ExplainAnswer {
  readonly operation: string;
  readonly collection: string;
  readonly thread: string;
  readonly time_us: number;
  readonly summary: string;
  readonly stages: readonly Stage[];
  readonly shards: readonly ShardWork[];
  readonly advice: readonly TriedIndex[];
}

/** One bar of the picture. */
export interface ExplainRow {
  readonly key: string;
  readonly depth: number;
  readonly kind: 'request' | 'stage' | 'shard' | 'segment' | 'search';
  readonly title: string;
  readonly us: number;
  /** Where the bar begins and how long it is, as shares of the whole. */
  readonly left: number;
  readonly width: number;
  /** Why, as sentences; empty where there is nothing to say. */
  readonly reasons: readonly string[];
  readonly figures: readonly string[];
}

/** The explanation in the text of an answer; null where there is none. */
export function explanationIn(text: string): ExplainAnswer | null {
  try {
    const value = (JSON.parse(text) as { explain?: ExplainAnswer } | null)?.explain;
    return typeof value === 'object' && value !== null && Array.isArray(value.shards) ? value : null;
  } catch {
    return null;
  }
}

/** Whether a request reads points, so that it can be explained. */
export function canExplain(method: string, path: string): boolean {
  const [place = ''] = path.split('?');
  if (method === 'GET') return /^\/collections\/[^/]+\/points\/[^/]+$/.test(place);
  return (
    method === 'POST' &&
    /^\/collections\/[^/]+\/(facet|points(\/(scroll|count|(query|search|recommend|discover)(\/(batch|groups|matrix\/(pairs|offsets)))?))?)$/.test(
      place,
    )
  );
}

/** The path of the same request, explained. */
export function explainedPath(path: string): string {
  if (/[?&]explain=/.test(path)) return path;
  return `${path}${path.includes('?') ? '&' : '?'}explain=true`;
}

/**
 * The rows from top to bottom. Work of one thread comes one after the other. Shards of other nodes work side by side, while the thread that asked
 * them waits: they lie within its wait, each from the beginning of its round.
 */
export function rowsOf(explanation: ExplainAnswer): ExplainRow[] {
  const whole = Math.max(explanation.time_us, 0.1);
  const rows: ExplainRow[] = [];
  const add = (row: Omit<ExplainRow, 'left' | 'width'>, fromUs: number, scale: number): void => {
    rows.push({ ...row, left: share(fromUs, whole), width: share(row.us * scale, whole) });
  };
  const { collection, operation, shards, stages, thread, time_us } = explanation;
  add(
    {
      key: 'request',
      depth: 0,
      kind: 'request',
      title: `${operation} of ${collection}, ${thread}`,
      us: time_us,
      reasons: [],
      figures: [],
    },
    0,
    1,
  );
  const isGathered = stages.some(({ stage }) => stage === WAIT);
  let at = 0;
  for (const [place, stage] of stages.entries()) {
    add(stageRow(stage, `stage ${place}`, 1), at, 1);
    if (stage.stage === WAIT) addSideBySide(shards, at, stage.time_us, add);
    at += stage.time_us;
    if (!isGathered && place === 0) at = addInTurn(shards, at, 1, 1, add);
  }
  return rows;
}

/** The stage in which a thread waits for other nodes. */
const WAIT = 'shards';

type Add = (row: Omit<ExplainRow, 'left' | 'width'>, fromUs: number, scale: number) => void;

/** Rounds follow one another, and take the time of their slowest thread. */
function addSideBySide(shards: readonly ShardWork[], fromUs: number, waitUs: number, add: Add): void {
  const rounds = [...new Set(shards.map(({ round }) => round))]
    .sort((a, b) => a - b)
    .map((round) => shards.filter((one) => one.round === round));
  const lanes = rounds.map((of) => [...new Set(of.map(laneOf))].map((lane) => of.filter((one) => laneOf(one) === lane)));
  const times = lanes.map((of) => Math.max(...of.map(sumOf)));
  const total = times.reduce((sum, us) => sum + us, 0);
  const scale = total === 0 ? 1 : Math.min(1, waitUs / total);
  let at = fromUs;
  lanes.forEach((of, place) => {
    for (const lane of of) addInTurn(lane, at, 2, scale, add);
    at += (times[place] as number) * scale;
  });
}

function laneOf({ peer_id, thread }: ShardWork): string {
  return `${peer_id} ${thread}`;
}

function sumOf(parts: readonly { readonly time_us: number }[]): number {
  return parts.reduce((sum, { time_us }) => sum + time_us, 0);
}

/** Returns where the last one ends. */
function addInTurn(shards: readonly ShardWork[], fromUs: number, depth: number, scale: number, add: Add): number {
  let at = fromUs;
  for (const shard of shards) {
    const { peer_id, round, segments, shard_id, thread, time_us } = shard;
    const key = `shard ${shard_id} ${round} ${peer_id}`;
    const where = peer_id === null ? '' : ` on node ${peer_id}`;
    add({ key, depth, kind: 'shard', title: `shard ${shard_id}${where}, ${thread}`, us: time_us, reasons: [], figures: [] }, at, scale);
    for (const { kind, rows, searches, segment_id, time_us: us } of segments) {
      const own = `${key} ${segment_id}`;
      const title = `segment ${segment_id}, ${kind}, ${count(rows)} rows`;
      add({ key: own, depth: depth + 1, kind: 'segment', title, us, reasons: [], figures: [] }, at, scale);
      for (const [place, search] of searches.entries()) {
        const name = `${own} ${place}`;
        add(searchRow(search, rows, name, depth + 2), at, scale);
        for (const [step, stage] of search.stages.entries()) {
          add(stageRow(stage, `${name} ${step}`, depth + 3), at, scale);
          at += stage.time_us * scale;
        }
      }
    }
  }
  return at;
}

function stageRow({ bytes: read = 0, stage, time_us }: Stage, key: string, depth: number): Omit<ExplainRow, 'left' | 'width'> {
  return { key, depth, kind: 'stage', title: stage, us: time_us, reasons: [], figures: read === 0 ? [] : [bytes(read)] };
}

/** rows: of the segment. */
function searchRow(search: SearchStep, rows: number, key: string, depth: number): Omit<ExplainRow, 'left' | 'width'> {
  const { bytes_read, ef, filter, found, hops, level, matches, matches_estimated, plan, reason, rows_rescored, rows_scored, scored_on } =
    search;
  const figures = [
    ...(matches === null ? [] : [`${count(matches)} rows pass`]),
    // Without an index nothing is known before.
    ...(matches_estimated === null || (matches_estimated.min === 0 && matches_estimated.max === rows)
      ? []
      : [`${count(matches_estimated.expected)} were expected`]),
    ...(rows_scored === 0 ? [] : [`${count(rows_scored)} scored${scored_on === null ? '' : ` on ${scored_on}`}`]),
    ...(rows_rescored === 0 ? [] : [`${count(rows_rescored)} scored anew`]),
    ...(hops === null ? [] : [`${count(hops)} hops with ef ${ef}`]),
    ...(bytes_read === 0 ? [] : [bytes(bytes_read)]),
    `${count(found)} found`,
  ];
  return {
    key,
    depth,
    kind: 'search',
    title: `${plan}: ${level}`,
    us: search.time_us,
    reasons: [...(reason === '' ? [] : [reason]), ...(filter === null ? [] : filterSentences(filter))],
    figures,
  };
}

function filterSentences({ cache, conditions, payloads_read }: NonNullable<SearchStep['filter']>): string[] {
  if (cache === 'hit') return ['The rows that pass the filter were known from an earlier request.'];
  const read = payloads_read === 0 ? [] : [`To decide the filter ${count(payloads_read)} payloads were read.`];
  return [...conditions.map(conditionSentence), ...read];
}

function conditionSentence({ answered_by, condition, index, matches }: NonNullable<SearchStep['filter']>['conditions'][number]): string {
  const rows = matches === null ? '' : `, ${count(matches)} rows`;
  switch (answered_by) {
    case 'index':
      return `“${condition}” was answered by the ${index} index${rows}.`;
    case 'index_and_payload':
      return `“${condition}” was narrowed down by the ${index} index, and decided by payloads.`;
    case 'cache':
      return `“${condition}” was known from an earlier request${rows}.`;
    default:
      return `“${condition}” has no index that helps, so payloads decided it.`;
  }
}

/** What a trial of an index has shown. */
export function trialSentence({ rows_sampled, time_us, time_us_with_index }: TriedIndex): string {
  const [now, then] = [seconds(time_us / 1e6), seconds(time_us_with_index / 1e6)];
  return `By trial on ${count(rows_sampled)} rows: ${now} for reading all payloads, ${then} for asking an index of the sample.`;
}

function share(part: number, whole: number): number {
  return Math.min(1, Math.max(0, part / whole));
}
