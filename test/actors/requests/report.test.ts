import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { PlannedBuild } from '../../../actors/optimizer/plan.js';
import type { OptimizerStatus, RunningBuild } from '../../../actors/optimizer/status.js';
import { collectionView, optimizationsView, type ReplicaFacts, replicaStatus } from '../../../actors/requests/report.js';
import { dueSegment, indexedSegment, sampleConfig, sampleSegment, sampleStats } from '../samples.js';

const CONFIG = sampleConfig();
const FACTS = { nowMs: 1_700_000_010_000, dateMs: 1_700_000_010_000, cpus: 4, resultBytesMax: Number.POSITIVE_INFINITY };
const PLAN: PlannedBuild = {
  kind: 'build',
  reason: 'indexing',
  segments: [1],
  plan: 'segment',
  missingFields: [],
  withGraph: true,
  results: 1,
  bytes: 0,
};
const RUNNING: RunningBuild = {
  id: 1,
  plan: PLAN,
  sources: [{ id: 1, points: 5000 }],
  threads: 2,
  startedMs: 1_700_000_000_000,
  progress: { done: 50, total: 100, stage: 'graph' },
};
const REST: OptimizerStatus = { state: 'Idle', builds: [], wanted: null, error: null, finished: [] };

function replica(facts: Partial<ReplicaFacts> = {}): ReplicaFacts {
  return {
    shardId: 0,
    state: 'Active',
    reason: null,
    stats: sampleStats([sampleSegment(), indexedSegment({ id: 2 })]),
    optimizer: REST,
    ...facts,
  };
}

function status(facts: Partial<ReplicaFacts>, config = CONFIG): string {
  return collectionView(config, [replica(facts)], FACTS).status;
}

test('a collection with nothing to do is green', () => {
  assert.equal(status({}), 'green');
});

test('a collection with work for its optimizer is yellow, also before the optimizer knows', () => {
  assert.equal(status({ stats: sampleStats([dueSegment()]) }), 'yellow');
  assert.equal(status({ stats: sampleStats([dueSegment()], { lastWriteMs: FACTS.nowMs }) }), 'yellow');
  assert.equal(status({ stats: sampleStats([dueSegment({ building: true })]), optimizer: { ...REST, builds: [RUNNING] } }), 'yellow');
});

test('a collection whose writes wait to be applied or whose replica is being opened is yellow', () => {
  assert.equal(status({ stats: sampleStats([], { queuedOperations: 2 }) }), 'yellow');
  assert.equal(status({ state: 'Initializing', stats: null, optimizer: null }), 'yellow');
});

test('a collection with work whose optimizers are off is grey', () => {
  assert.equal(status({ stats: sampleStats([dueSegment()]) }, sampleConfig({ max_optimization_threads: 0 })), 'grey');
  assert.equal(status({}, sampleConfig({ max_optimization_threads: 0 })), 'green');
});

test('what would only make searches quicker is no work that optimizers are missed for', () => {
  const stats = sampleStats([indexedSegment(), indexedSegment({ id: 2 })], { lastWriteMs: 0 });
  assert.equal(status({ stats }), 'yellow');
  assert.equal(status({ stats }, sampleConfig({ max_optimization_threads: 0 })), 'green');
});

test('a collection with a Dead replica or a failed optimizer is red and tells why', () => {
  const broken = { code: 'storage', detail: 'no space left on device' } as const;
  const failing = collectionView(CONFIG, [replica({ optimizer: { ...REST, state: 'Cooling', error: broken } })], FACTS);
  assert.deepEqual([failing.status, failing.optimizer_status], ['red', { error: 'no space left on device' }]);
  const dead = collectionView(CONFIG, [replica({ state: 'Dead', reason: broken, stats: null, optimizer: null })], FACTS);
  assert.deepEqual([dead.status, dead.optimizer_status, dead.points_count], ['red', { error: 'no space left on device' }, 0]);
});

test('a collection of a cluster is red when a shard has no replica that serves, also where the last one left with its peer', () => {
  const inCluster = (...shards: ('Active' | 'Dead')[][]) =>
    collectionView(CONFIG, [], FACTS, { wanted: 0, shards, indexes: new Map() }).status;
  assert.equal(inCluster(['Active']), 'green');
  assert.equal(inCluster(['Active', 'Dead'], ['Active']), 'yellow');
  assert.equal(inCluster(['Active'], ['Dead']), 'red');
  assert.equal(inCluster(['Active'], []), 'red');
});

test('figures of the collection come from its segments and indexed fields', () => {
  const stats = sampleStats([sampleSegment({ rows: 10, deleted: 1 }), indexedSegment({ id: 2 })], {
    fields: new Map([
      ['color', { type: 'keyword' as const }],
      ['__proto__', { type: 'integer' as const, params: { type: 'integer', lookup: true } }],
    ]),
    fieldPoints: new Map([['color', 12]]),
    queuedOperations: 3,
  });
  const view = collectionView(CONFIG, [replica({ stats })], FACTS);
  assert.deepEqual(
    [view.points_count, view.segments_count, view.indexed_vectors_count, view.update_queue, view.optimizer_status],
    [5009, 2, 5000, { length: 3 }, 'ok'],
  );
  assert.equal(
    JSON.stringify(view.payload_schema),
    '{"color":{"data_type":"keyword","points":12},"__proto__":{"data_type":"integer","params":{"type":"integer","lookup":true},"points":0}}',
  );
});

test('the optimizations report tells what runs, waits, is done and rests', () => {
  const stats = sampleStats([
    dueSegment({ id: 1, building: true }),
    indexedSegment({ id: 2, missingFields: ['color'] }),
    sampleSegment({ id: 3, rows: 4 }),
  ]);
  const finished = [{ build: { ...RUNNING, id: 7 }, finishedMs: RUNNING.startedMs + 1500, error: null }];
  const view = optimizationsView(
    CONFIG,
    [replica({ stats, optimizer: { ...REST, state: 'Building', builds: [RUNNING], finished } })],
    FACTS,
  );
  assert.deepEqual(view.summary, { queued_optimizations: 1, queued_segments: 1, queued_points: 5000, idle_segments: 1 });
  assert.deepEqual(view.running[0]?.progress, {
    name: 'graph',
    started_at: '2023-11-14T22:13:20.000Z',
    duration_sec: 10,
    done: 50,
    total: 100,
  });
  assert.equal(view.queued[0]?.optimizer, 'fieldIndex');
  assert.deepEqual(
    view.completed.map((build) => [build.status, build.progress.duration_sec]),
    [['done', 1.5]],
  );
  assert.deepEqual(view.idle_segments, [{ uuid: '00000000-0000-8000-8000-000000000003', points_count: 4 }]);
  const uuid = /^[0-9a-f]{8}-[0-9a-f]{4}-8000-8000-[0-9a-f]{12}$/;
  assert.match(view.running[0]?.uuid ?? '', uuid);
});

test('the optimizations report tells what waits for an upload to pause, and for optimizers to be on', () => {
  const queuedOf = (lastWriteMs: number, config = CONFIG) => {
    const stats = sampleStats([dueSegment(), sampleSegment({ id: 2 })], { lastWriteMs });
    const { queued, summary } = optimizationsView(config, [replica({ stats })], FACTS);
    return [summary.queued_optimizations, summary.queued_segments, ...queued.map(({ optimizer }) => optimizer)];
  };
  assert.deepEqual(queuedOf(FACTS.nowMs), [1, 1, 'indexing']);
  assert.deepEqual(queuedOf(FACTS.nowMs, sampleConfig({ max_optimization_threads: 0 })), [1, 1, 'indexing']);
  assert.deepEqual(queuedOf(0, sampleConfig({ max_optimization_threads: 0 })), [1, 1, 'indexing']);
  assert.deepEqual(queuedOf(0, sampleConfig({ indexing_threshold: 0 })), [0, 0]);
});

test('a clock that was set moves the dates of builds, and no duration', () => {
  const finished = [{ build: { ...RUNNING, id: 7 }, finishedMs: RUNNING.startedMs + 1500, error: null }];
  const optimizer = { ...REST, state: 'Building', builds: [RUNNING], finished } as const;
  const aDayOn = { ...FACTS, dateMs: FACTS.dateMs + 86_400_000 };
  const view = optimizationsView(CONFIG, [replica({ optimizer })], aDayOn);
  assert.equal(view.running[0]?.progress.started_at, '2023-11-15T22:13:20.000Z');
  assert.equal(view.running[0]?.progress.duration_sec, 10);
  assert.equal(view.completed[0]?.progress.finished_at, '2023-11-15T22:13:21.500Z');
  assert.equal(view.completed[0]?.progress.duration_sec, 1.5);
});

test('a replica has the status of a collection that is nothing else, and is red where its configuration cannot be read', () => {
  assert.equal(replicaStatus(CONFIG, replica(), FACTS), 'green');
  assert.equal(replicaStatus(CONFIG, replica({ state: 'Dead' }), FACTS), 'red');
  assert.equal(replicaStatus(null, replica(), FACTS), 'red');
});
