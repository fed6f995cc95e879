/** An explanation of a read as a tree for people. */

import { bytesText, countText, cut } from '../client/tables.js';

export interface ToldStage {
  readonly stage: string;
  readonly time_us: number;
}

interface ToldEstimate {
  readonly min: number;
  readonly expected: number;
  readonly max: number;
}

interface ToldCondition {
  readonly condition: string;
  readonly answered_by: string;
  readonly index: string | null;
  readonly matches: number | null;
}

interface ToldSearch {
  readonly level: string;
  readonly plan: string;
  readonly reason: string;
  readonly time_us: number;
  readonly stages: readonly ToldStage[];
  readonly matches_estimated: ToldEstimate | null;
  readonly matches: number | null;
  readonly ef: number | null;
  readonly hops: number | null;
  readonly scored_on: string | null;
  readonly rows_scored: number;
  readonly rows_rescored: number;
  readonly bytes_read: number;
  readonly found: number;
  readonly filter: { readonly cache: string; readonly payloads_read: number; readonly conditions: readonly ToldCondition[] } | null;
}

interface ToldSegment {
  readonly segment_id: number;
  readonly kind: string;
  readonly rows: number;
  readonly time_us: number;
  readonly searches: readonly ToldSearch[];
}

interface ToldShard {
  readonly shard_id: number;
  readonly peer_id: number | bigint | null;
  readonly thread: string;
  readonly time_us: number;
  readonly segments: readonly ToldSegment[];
}

interface ToldAdvice {
  readonly reason: string;
  readonly call: { readonly method: string; readonly path: string; readonly body: unknown } | null;
}

/** Of an answer with `explain`, as far as it is shown. */
export interface ToldExplanation {
  readonly summary: string;
  readonly thread: string;
  readonly time_us: number;
  readonly stages: readonly ToldStage[];
  readonly shards: readonly ToldShard[];
  readonly advice: readonly ToldAdvice[];
}

interface Branch {
  readonly lines: readonly string[];
  readonly below: readonly Branch[];
}

const CONDITION_WIDTH = 60;

export function explanationText(explanation: ToldExplanation): string {
  const { advice, shards, stages, summary, thread, time_us: time } = explanation;
  const tree: Branch = {
    lines: [`${summary}`, `${timeText(time)} in ${thread}${stagesText(stages)}`],
    below: shards.map(shardBranch),
  };
  const hints = advice.flatMap(({ call, reason }) => [
    `\n→ ${reason}\n`,
    ...(call === null ? [] : [`  ${call.method} ${call.path} ${JSON.stringify(call.body)}\n`]),
  ]);
  return drawn(tree, '', '').join('') + hints.join('');
}

function shardBranch({ peer_id: peer, segments, shard_id: id, thread, time_us: time }: ToldShard): Branch {
  const where = peer === null ? thread : `peer ${peer}, ${thread}`;
  return { lines: [`shard ${id}: ${timeText(time)} in ${where}`], below: segments.map(segmentBranch) };
}

function segmentBranch({ kind, rows, searches, segment_id: id, time_us: time }: ToldSegment): Branch {
  return { lines: [`segment ${id}, ${kind}, ${countText(rows)} rows: ${timeText(time)}`], below: searches.map(searchBranch) };
}

function searchBranch(search: ToldSearch): Branch {
  const { ef, filter, found, hops, level, matches, matches_estimated: estimated, plan, reason, stages, time_us: time } = search;
  const facts = [
    `${countText(found)} found`,
    matches === null ? '' : `${countText(matches)} pass${estimated === null ? '' : ` (${countText(estimated.expected)} expected)`}`,
    search.rows_scored > 0 ? `${countText(search.rows_scored)} scored${search.scored_on === null ? '' : ` on ${search.scored_on}`}` : '',
    search.rows_rescored > 0 ? `${countText(search.rows_rescored)} rescored` : '',
    hops === null ? '' : `${countText(hops)} hops${ef === null ? '' : ` with ef ${ef}`}`,
    search.bytes_read > 0 ? `${bytesText(search.bytes_read)} read` : '',
  ];
  return {
    lines: [
      `${level}: ${plan}, ${timeText(time)}${stagesText(stages)}`,
      reason,
      facts.filter((fact) => fact !== '').join(' · '),
      ...(filter === null ? [] : filterLines(filter)),
    ],
    below: [],
  };
}

function filterLines({ cache, conditions, payloads_read: payloads }: NonNullable<ToldSearch['filter']>): string[] {
  return [
    `filter: cache ${cache}${payloads > 0 ? `, ${countText(payloads)} payloads read` : ''}`,
    ...conditions.map(({ answered_by: by, condition, index, matches }) => {
      const how = by.replaceAll('_', ' ');
      return `  ${cut(condition, CONDITION_WIDTH)}: by ${how}${index === null ? '' : ` (${index})`}${matches === null ? '' : `, ${countText(matches)}`}`;
    }),
  ];
}

/** The longest stages first; those under a hundredth of all are left out. */
function stagesText(stages: readonly ToldStage[]): string {
  const sum = stages.reduce((total, { time_us: time }) => total + time, 0);
  const shown = stages.filter(({ time_us: time }) => time > 0 && time >= sum / 100).sort((a, b) => b.time_us - a.time_us);
  return shown.length === 0 ? '' : ` (${shown.map(({ stage, time_us: time }) => `${stage} ${timeText(time)}`).join(', ')})`;
}

function timeText(microseconds: number): string {
  return microseconds < 1000 ? `${Math.round(microseconds)} µs` : `${(microseconds / 1000).toFixed(microseconds < 10_000 ? 2 : 1)} ms`;
}

function drawn({ below, lines }: Branch, lead: string, rest: string): string[] {
  return [
    ...lines.map((line, at) => `${at === 0 ? lead : `${rest}${below.length > 0 ? '│  ' : '   '}`}${line}\n`),
    ...below.flatMap((branch, at) => {
      const isLast = at === below.length - 1;
      return drawn(branch, `${rest}${isLast ? '└─ ' : '├─ '}`, `${rest}${isLast ? '   ' : '│  '}`);
    }),
  ];
}
