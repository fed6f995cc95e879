import assert from 'node:assert/strict';
import { test } from 'node:test';
import { explanationText, type ToldExplanation } from '../../../ops/tools/explanation-text.js';

const SEARCH = {
  level: 'nearest to a vector, 10 wanted',
  plan: 'walk',
  reason: 'The graph is walked.',
  time_us: 650,
  stages: [
    { stage: 'filter', time_us: 50 },
    { stage: 'walk', time_us: 600 },
    { stage: 'plan', time_us: 1 },
  ],
  matches_estimated: { min: 0, expected: 120, max: 400 },
  matches: 118,
  ef: 100,
  hops: 130,
  scored_on: 'codes',
  rows_scored: 1800,
  rows_rescored: 40,
  bytes_read: 102400,
  found: 10,
  filter: {
    cache: 'miss',
    payloads_read: 7,
    conditions: [{ condition: 'city match "Berlin"', answered_by: 'index_and_payload', index: 'keyword', matches: 118 }],
  },
};

test('an explanation is a tree of shards and segments with plans, counts and the longest stages, and what would save', () => {
  const segment = (id: number) => ({ segment_id: id, kind: 'sealed', rows: 10000, time_us: 700, searches: [SEARCH] });
  const explanation: ToldExplanation = {
    summary: 'walk of 2 segments',
    thread: 'reader 0',
    time_us: 12_340,
    stages: [],
    shards: [
      { shard_id: 0, peer_id: null, thread: 'reader 1', time_us: 1500, segments: [segment(3)] },
      { shard_id: 1, peer_id: 77, thread: 'reader 0', time_us: 80, segments: [] },
    ],
    advice: [
      {
        reason: 'An index of city would save most of it.',
        call: { method: 'PUT', path: '/collections/c/index', body: { field_name: 'city' } },
      },
    ],
  };
  assert.equal(
    explanationText(explanation),
    `walk of 2 segments
│  12.3 ms in reader 0
├─ shard 0: 1.50 ms in reader 1
│  └─ segment 3, sealed, 10,000 rows: 700 µs
│     └─ nearest to a vector, 10 wanted: walk, 650 µs (walk 600 µs, filter 50 µs)
│           The graph is walked.
│           10 found · 118 pass (120 expected) · 1,800 scored on codes · 40 rescored · 130 hops with ef 100 · 102 kB read
│           filter: cache miss, 7 payloads read
│             city match "Berlin": by index and payload (keyword), 118
└─ shard 1: 80 µs in peer 77, reader 0

→ An index of city would save most of it.
  PUT /collections/c/index {"field_name":"city"}
`,
  );
});
