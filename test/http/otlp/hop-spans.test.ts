import assert from 'node:assert/strict';
import { test } from 'node:test';
import { hopSpans, writeSpans } from '../../../http/otlp/hop-spans.js';
import type { TraceSpan } from '../../../http/otlp/span.js';
import type { ExplainedShard, Explanation } from '../../../protocols/model/explanation.js';

const REQUEST: TraceSpan = {
  traceId: 'a'.repeat(32),
  spanId: 'request',
  parentSpanId: null,
  name: 'query_points c',
  kind: 'server',
  startUs: 1000,
  endUs: 2000,
  attributes: {},
  isError: false,
};

function shard(id: number, round: number, timeUs: number, segments: ExplainedShard['segments'] = []): ExplainedShard {
  return { shard_id: id, peer_id: null, thread: 'reader 0', round, time_us: timeUs, segments };
}

function explanation(shards: readonly ExplainedShard[]): Explanation {
  const stages = [{ stage: 'decode', time_us: 10 }];
  return { operation: 'query', collection: 'c', thread: 'reader 0', time_us: 1000, summary: '', stages, shards, advice: [] };
}

function spansOf(shards: readonly ExplainedShard[]): readonly TraceSpan[] {
  let next = 0;
  return hopSpans(REQUEST, explanation(shards), () => `id-${next++}`);
}

test('shards of a round begin together, those of the next one after the slowest of them', () => {
  const placed = spansOf([shard(0, 0, 100), shard(1, 0, 300), shard(0, 1, 50)]).map(({ endUs, name, startUs }) => [name, startUs, endUs]);
  assert.deepEqual(placed, [
    ['shard 0', 1010, 1110],
    ['shard 1', 1010, 1310],
    ['shard 0', 1310, 1360],
  ]);
});

test('a segment is below its shard, and what it was searched for below the segment, one after the other', () => {
  const search = (plan: string, timeUs: number) => ({
    level: 'nearest to a vector, 10 wanted',
    plan,
    reason: 'There are few rows.',
    time_us: timeUs,
    stages: [],
    matches_estimated: null,
    matches: null,
    vector: '',
    ef: null,
    hops: null,
    fell_back: false,
    scored_on: 'originals' as const,
    rows_scored: 7,
    rows_rescored: 0,
    bytes_read: 28,
    reads: 0,
    found: 3,
    filter: null,
  });
  const segments = [{ segment_id: 4, kind: 'sealed' as const, rows: 7, time_us: 90, searches: [search('scan', 30), search('walk', 60)] }];
  const [whole, segment, first, second] = spansOf([shard(2, 0, 100, segments)]);
  assert.deepEqual([segment?.parentSpanId, first?.parentSpanId, second?.parentSpanId], [whole?.spanId, segment?.spanId, segment?.spanId]);
  assert.deepEqual([first?.name, first?.startUs, second?.name, second?.startUs], ['scan', 1010, 'walk', 1040]);
  assert.deepEqual([first?.attributes['troupe.rows_scored'], first?.attributes['troupe.reason']], [7, 'There are few rows.']);
});

test('a hop of a write is below the one that it is part of', () => {
  const writer = { name: 'writer', startUs: 1020, endUs: 1030, facts: { 'troupe.operations': 1 }, hops: [] };
  const hops = [{ name: 'shard 0', startUs: 1010, endUs: 1100, facts: {}, hops: [writer] }];
  let next = 0;
  const [shard, inner] = writeSpans(REQUEST, hops, () => `id-${next++}`);
  assert.deepEqual([shard?.parentSpanId, inner?.parentSpanId, inner?.startUs], ['request', shard?.spanId, 1020]);
});

test('a request has 200 spans at most below it', () => {
  assert.equal(spansOf(Array.from({ length: 1000 }, (_, id) => shard(id, 0, 1))).length, 200);
});
