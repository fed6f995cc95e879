import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Condition } from '../../../protocols/model/filter.js';
import { conditionText, levelText, planSentence, summaryOf } from '../../../query/explain/sentences.js';
import { planSegment, type SegmentFacts } from '../../../query/plan.js';

const FACTS: SegmentFacts = {
  rows: 60_000,
  live: 60_000,
  admitted: null,
  hasGraph: true,
  codes: null,
  exact: false,
  indexedOnly: false,
  hnswEf: 64,
  efDefault: 100,
  shards: 1,
  k: 10,
  fullScanThresholdKb: 10_000,
  dim: 784,
  element: 'f32',
  m0: 32,
  valueGraph: null,
};
const reason = (change: Partial<SegmentFacts>): string => {
  const facts = { ...FACTS, ...change };
  return planSentence(planSegment(facts), facts);
};

test('each reason of a plan is a sentence', () => {
  const table: readonly [Partial<SegmentFacts>, string][] = [
    [{}, 'A walk of the graph is estimated at 566 µs, reading all rows in order at 23940 µs.'],
    [
      { admitted: 6000 },
      'A walk of the graph is estimated at 779 µs, scoring the rows that pass one by one at 2754 µs; 10 % of the 60000 rows in the graph pass.',
    ],
    [{ exact: true }, 'The request asks for an exact search, so all 60000 rows are scored.'],
    [{ hasGraph: false, admitted: 1 }, 'The segment has no graph of this vector (yet), so the 1 row that pass the filter is scored.'],
    [{ admitted: 15 }, 'Most of the rows are wanted, so the 15 rows that pass the filter are scored.'],
    [{ admitted: 0 }, 'No row passes the filter.'],
    [{ hasGraph: false, indexedOnly: true }, 'The request asks for `indexed_only`, and the segment still waits for its graph.'],
    [
      { admitted: 300 },
      'The vectors take 919 kB, less than `full_scan_threshold` (10000 kB), so the 300 rows that pass the filter are scored.',
    ],
  ];
  for (const [change, text] of table) assert.equal(reason(change), text);
});

test('conditions and levels are told in one line, long lists and texts by their beginning', () => {
  const table: readonly [Condition, string][] = [
    [{ kind: 'match', key: 'city', match: { kind: 'value', value: 'Berlin' } }, 'city match "Berlin"'],
    [{ kind: 'match', key: 'n', match: { kind: 'any', values: [1, 2, 3, 4, 5] } }, 'n any 1, 2, 3 … (5)'],
    [{ kind: 'match', key: 't', match: { kind: 'textAny', text: 'a'.repeat(100) } }, `t text_any "${'a'.repeat(80)}…"`],
    [{ kind: 'range', key: 'n', range: { gte: 1, lt: 5 } }, 'n range ≥ 1 < 5'],
    [{ kind: 'hasId', ids: [7] }, 'one of 1 id'],
  ];
  for (const [condition, text] of table) assert.equal(conditionText(condition), text);
  assert.equal(levelText('nearest', '', 1, null), 'points nearest to a vector, 1 point wanted');
  assert.equal(levelText('formula', '', 10, 40), 'points by a formula, 10 points wanted among 40 candidates of prefetches');
});

test('a summary of a read that looked at nothing says so', () => {
  assert.equal(summaryOf({ advice: [], shards: [], stages: [] }), 'no segment was looked at; 0 shards');
  assert.equal(summaryOf({ advice: [], shards: [], stages: [{ stage: 'points', time_us: 1 }] }), 'points by id; 0 shards');
});
