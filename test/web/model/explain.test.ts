import assert from 'node:assert/strict';
import { test } from 'node:test';
import {
  canExplain,
  type ExplainAnswer,
  explainedPath,
  explanationIn,
  rowsOf,
  type SearchStep,
  type ShardWork,
} from '../../../web/model/explain.js';

const SEARCH: SearchStep = {
  level: 'points nearest to a vector, 3 points wanted',
  plan: 'walk',
  reason: 'A walk is cheaper.',
  time_us: 60,
  stages: [
    { stage: 'filter', time_us: 20 },
    { stage: 'walk', time_us: 40 },
  ],
  matches_estimated: { min: 0, expected: 40, max: 80 },
  matches: 30,
  ef: 64,
  hops: 70,
  scored_on: 'codes',
  rows_scored: 900,
  rows_rescored: 20,
  bytes_read: 14_400,
  found: 3,
  filter: {
    cache: 'miss',
    payloads_read: 100,
    conditions: [
      { condition: 'city match "Berlin"', answered_by: 'index', index: 'keyword', matches: 30 },
      { condition: 'n match 1', answered_by: 'payload', index: null, matches: null },
    ],
  },
};

function shardOf(shard_id: number, peer_id: number | null, round = 0): ShardWork {
  const segments = [{ segment_id: 1, kind: 'sealed', rows: 1000, time_us: 60, searches: [SEARCH] }];
  return { shard_id, peer_id, thread: 'reader 0', round, time_us: 60, segments };
}

function explanationOf(shards: readonly ShardWork[], stages: ExplainAnswer['stages'], time_us: number): ExplainAnswer {
  return { operation: 'query', collection: 'books', thread: 'reader 0', time_us, summary: '', stages, shards, advice: [] };
}

/** Each row with its place in percent. */
function picture(explanation: ExplainAnswer): string[] {
  return rowsOf(explanation).map(({ depth, left, title, width }) => {
    const [from, to] = [Math.round(100 * left), Math.round(100 * (left + width))];
    return `${'  '.repeat(depth)}${title} ${from}–${to}`;
  });
}

test('the work of one thread is drawn one after the other, the shards behind the decoding', () => {
  const stages = [
    { stage: 'decode', time_us: 10 },
    { stage: 'merge', time_us: 10 },
    { stage: 'encode', time_us: 20 },
  ];
  assert.deepEqual(picture(explanationOf([shardOf(0, null)], stages, 100)), [
    'query of books, reader 0 0–100',
    '  decode 0–10',
    '  shard 0, reader 0 10–70',
    '    segment 1, sealed, 1,000 rows 10–70',
    '      walk: points nearest to a vector, 3 points wanted 10–70',
    '        filter 10–30',
    '        walk 30–70',
    '  merge 70–80',
    '  encode 80–100',
  ]);
});

test('shards of several nodes lie side by side in the wait of the thread that asked them, round after round', () => {
  const stages = [
    { stage: 'decode', time_us: 20 },
    { stage: 'shards', time_us: 160 },
    { stage: 'encode', time_us: 20 },
  ];
  const shards = [shardOf(0, 7), shardOf(1, 7), shardOf(2, 8), shardOf(2, 8, 1)];
  const drawn = picture(explanationOf(shards, stages, 200)).filter((row) => /shard|decode|encode/.test(row));
  // Two shards in turn take 120 µs, the next round 60: together a little more than the wait, which they are fitted into.
  assert.deepEqual(drawn, [
    '  decode 0–10',
    '  shards 10–90',
    '    shard 0 on node 7, reader 0 10–37',
    '    shard 1 on node 7, reader 0 37–63',
    '    shard 2 on node 8, reader 0 10–37',
    '    shard 2 on node 8, reader 0 63–90',
    '  encode 90–100',
  ]);
});

test('a search tells its figures and its reasons in sentences', () => {
  const row = rowsOf(explanationOf([shardOf(0, null)], [{ stage: 'decode', time_us: 1 }], 61)).find(({ kind }) => kind === 'search');
  assert.deepEqual(row?.figures, [
    '30 rows pass',
    '40 were expected',
    '900 scored on codes',
    '20 scored anew',
    '70 hops with ef 64',
    '14.4 kB',
    '3 found',
  ]);
  assert.deepEqual(row?.reasons, [
    'A walk is cheaper.',
    '“city match "Berlin"” was answered by the keyword index, 30 rows.',
    '“n match 1” has no index that helps, so payloads decided it.',
    'To decide the filter 100 payloads were read.',
  ]);
});

test('an explanation is found in the answer of a read, and in no other text', () => {
  const explanation = explanationOf([], [], 5);
  assert.deepEqual(explanationIn(JSON.stringify({ result: [], explain: explanation })), explanation);
  for (const text of ['', 'null', '[]', '{"result":true}', '{"explain":true}', 'plain']) assert.equal(explanationIn(text), null, text);
});

test('reads of points can be explained, by their address', () => {
  const reads = [
    'points',
    'points/query',
    'points/query/batch',
    'points/search/groups',
    'points/search/matrix/pairs',
    'points/scroll',
    'facet',
  ];
  for (const path of reads) assert.equal(canExplain('POST', `/collections/c/${path}`), true, path);
  assert.equal(canExplain('GET', '/collections/c/points/7?consistency=1'), true);
  for (const path of ['points/payload', 'points/delete', 'index', 'points/vectors'])
    assert.equal(canExplain('POST', `/collections/c/${path}`), false, path);
  assert.equal(canExplain('GET', '/collections/c'), false);
  assert.equal(canExplain('PUT', '/collections/c/points'), false);
  assert.equal(explainedPath('/a'), '/a?explain=true');
  assert.equal(explainedPath('/a?timeout=3'), '/a?timeout=3&explain=true');
  assert.equal(explainedPath('/a?explain=true'), '/a?explain=true');
});
