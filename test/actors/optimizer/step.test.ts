import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { OptimizerEffect, OptimizerMessage } from '../../../actors/optimizer/messages.js';
import { describePlan } from '../../../actors/optimizer/plan.js';
import { buildsOf, type OptimizerState } from '../../../actors/optimizer/state.js';
import { startOptimizer, stepOptimizer } from '../../../actors/optimizer/step.js';
import type { ErrorFacts } from '../../../protocols/errors.js';
import type { ReplicaStats, SegmentStats } from '../../../storage/threads/messages.js';
import { dueSegment, indexedSegment, sampleConfig, sampleSegment, sampleStats } from '../samples.js';

const CONFIG = sampleConfig();
const LATER = 1e12;
const FULL: ErrorFacts = { code: 'storage', detail: 'no space left on device' };
const REPORT = { rows: 5000, milliseconds: 12, graphs: [] };
const DUE = sampleStats([dueSegment({ id: 1 })]);
const DONE = sampleStats([sampleSegment({ id: 2 }), indexedSegment({ id: 3 })]);

const idle = startOptimizer(CONFIG, { cpus: 4 }).state;

/** Effects as text, without announcements. */
function print(effects: readonly OptimizerEffect[]): string[] {
  return effects.flatMap((effect) => {
    switch (effect.kind) {
      case 'announce':
        return [];
      case 'askStats':
        return ['ask for stats'];
      case 'requestThreads':
        return [`request ${effect.id}: ${effect.threads} threads for ${describePlan(effect.plan)}`];
      case 'build':
        return [`build ${effect.id} with ${effect.threads}: ${describePlan(effect.plan)}`];
      case 'releaseThreads':
        return [`release ${effect.id}`];
      case 'wakeLater':
        return [`wake ${effect.delayMs}`];
      case 'coolDown':
        return [`cool down ${effect.failures}`];
      case 'tellPace':
        return [`${effect.bytes} bytes came`];
      default:
        return [`note ${effect.text}`];
    }
  });
}

function told(stats: ReplicaStats, nowMs = LATER, paceBytesPerSecond = 0): OptimizerMessage {
  return { kind: 'stats', stats, paceBytesPerSecond, nowMs };
}

/** The figures at a write. */
function statsAt(nowMs: number, ...segments: SegmentStats[]): OptimizerMessage {
  return told(sampleStats(segments, { lastWriteMs: nowMs }), nowMs);
}

/** The state and effects after several messages. */
function play(state: OptimizerState, ...messages: OptimizerMessage[]): { state: OptimizerState; effects: OptimizerEffect[] } {
  const effects: OptimizerEffect[] = [];
  let current = state;
  for (const message of messages) {
    const step = stepOptimizer(current, message);
    current = step.state;
    effects.push(...step.effects);
  }
  return { state: current, effects };
}

const due = told(DUE);
const granted: OptimizerMessage = { kind: 'granted', id: 1, threads: 2, nowMs: LATER };
const built: OptimizerMessage = { kind: 'built', id: 1, report: REPORT, stats: DONE, nowMs: LATER };
const failed: OptimizerMessage = { kind: 'buildFailed', id: 1, error: FULL, nowMs: LATER };

test('an optimizer starts Idle and asks for the figures of its replica', () => {
  const { state, effects } = startOptimizer(CONFIG, { cpus: 4 });
  assert.equal(state.kind, 'Idle');
  assert.deepEqual(print(effects), ['ask for stats']);
});

test('an Idle optimizer asks for threads when there is a plan', () => {
  const { state, effects } = stepOptimizer(idle, due);
  assert.equal(state.kind, 'Waiting');
  assert.deepEqual(print(effects), ['wake null', 'request 1: 4 threads for indexing: 1 to one segment with a graph']);
});

test('an optimizer looks again when the upload may have paused', () => {
  const uploading = sampleStats([dueSegment()], { lastWriteMs: LATER - 100 });
  const { state, effects } = stepOptimizer(idle, told(uploading));
  assert.equal(state.kind, 'Idle');
  assert.deepEqual(print(effects), ['wake 200']);
  assert.equal(stepOptimizer(state, { kind: 'wake', nowMs: LATER + 200 }).state.kind, 'Waiting');
});

test('rows of a paced stream are built once they have gathered for a while, with half of the CPUs, and those that come meanwhile gather anew', () => {
  const start = play(idle, statsAt(LATER, dueSegment({ id: 1 })));
  assert.deepEqual(print(start.effects), ['wake 300']);
  const paced = play(start.state, statsAt(LATER + 60_000, dueSegment({ id: 1 })));
  assert.deepEqual(print(paced.effects), ['wake null', 'request 1: 2 threads for indexing: 1 to one segment with a graph']);
  const meanwhile = [dueSegment({ id: 1, building: true, frozen: true }), dueSegment({ id: 2 })];
  const building = play(paced.state, granted, statsAt(LATER + 61_000, ...meanwhile), statsAt(LATER + 62_000, ...meanwhile));
  assert.deepEqual(print(building.effects).slice(1), ['80000 bytes came', 'wake null', 'wake null'], 'two seconds are too short');
  const next = play(building.state, statsAt(LATER + 121_000, ...meanwhile));
  assert.deepEqual(print(next.effects).slice(1), ['request 2: 2 threads for indexing: 2 to one segment with a graph']);
});

test('rows of a stream wait while the shards of the node that are as fast get more together than builds keep up with', () => {
  const stats = sampleStats([dueSegment({ id: 1 })], { lastWriteMs: LATER + 60_000 });
  const wanted = (paceBytesPerSecond: number) =>
    play(idle, statsAt(LATER, dueSegment({ id: 1 })), told(stats, LATER + 60_000, paceBytesPerSecond));
  assert.equal(wanted(5e6).state.kind, 'Waiting');
  assert.equal(wanted(5.1e6).state.kind, 'Idle');
});

test('an optimizer tells how many bytes of vectors its replica got, whatever is built meanwhile', () => {
  const grown = [dueSegment({ id: 1, building: true, vectorBytes: 81_000 }), dueSegment({ id: 2, vectorBytes: 500 })];
  const published = [indexedSegment({ id: 3 }), dueSegment({ id: 2, vectorBytes: 700 })];
  const first = play(idle, due);
  assert.equal(print(first.effects).join().includes('came'), false, 'what was there at its start did not come');
  const { effects } = play(first.state, granted, told(sampleStats(grown)), told(sampleStats(published)), failed, told(DONE));
  assert.deepEqual(
    print(effects).filter((line) => line.endsWith('came')),
    ['1500 bytes came', '200 bytes came'],
  );
});

test('a plan that stands keeps its place among those who wait', () => {
  const waiting = stepOptimizer(idle, due).state;
  const { state, effects } = stepOptimizer(waiting, told(sampleStats([dueSegment({ id: 1, deleted: 1 })])));
  assert.equal(state.kind, 'Waiting');
  assert.deepEqual(print(effects), []);
});

test('a plan that is void gives up its place', () => {
  const waiting = stepOptimizer(idle, due).state;
  const { state, effects } = stepOptimizer(waiting, told(DONE));
  assert.equal(state.kind, 'Idle');
  assert.deepEqual(print(effects), ['release 1', 'wake null']);
});

test('a grant for a plan that is void is ignored', () => {
  const { state } = play(idle, due, told(DONE));
  assert.equal(stepOptimizer(state, granted).state, state);
});

test('granted threads start the build', () => {
  const { state, effects } = stepOptimizer(stepOptimizer(idle, due).state, granted);
  assert.equal(state.kind, 'Building');
  assert.deepEqual(print(effects), ['build 1 with 2: indexing: 1 to one segment with a graph']);
  assert.deepEqual(
    buildsOf(state).map(({ id, sources, threads, startedMs }) => ({ id, sources, threads, startedMs })),
    [{ id: 1, sources: [{ id: 1, points: 5000 }], threads: 2, startedMs: LATER }],
  );
});

test('progress is shown for a build that runs only', () => {
  const building = play(idle, due, granted).state;
  const progress = { done: 10, total: 100, stage: 'graph' };
  assert.deepEqual(buildsOf(stepOptimizer(building, { kind: 'progress', id: 1, progress }).state)[0]?.progress, progress);
  assert.equal(stepOptimizer(building, { kind: 'progress', id: 9, progress }).state, building);
});

test('a published build frees its threads and is followed by the next plan', () => {
  const { state, effects } = stepOptimizer(play(idle, due, granted).state, built);
  assert.equal(state.kind, 'Idle');
  assert.deepEqual(print(effects), ['release 1', 'note built indexing: 1 to one segment with a graph', 'wake null']);
  assert.deepEqual(
    state.known.finished.map(({ build, error }) => [build.id, error]),
    [[1, null]],
  );
});

test('sources of a running build are not planned again', () => {
  const { state, effects } = stepOptimizer(play(idle, due, granted).state, due);
  assert.equal(state.kind, 'Building');
  assert.deepEqual(
    print(effects).filter((line) => line.startsWith('request')),
    [],
  );
});

test('a missing field index is built beside a running build, with one thread', () => {
  const building = play(idle, due, granted).state;
  const lacking = sampleStats([dueSegment({ id: 1, building: true }), indexedSegment({ id: 3, missingFields: ['color'] })]);
  const wanting = stepOptimizer(building, told(lacking));
  assert.deepEqual(print(wanting.effects), ['wake null', 'request 2: 1 threads for fieldIndex: color of segment 3']);
  const both = stepOptimizer(wanting.state, { kind: 'granted', id: 2, threads: 1, nowMs: LATER });
  assert.deepEqual(
    buildsOf(both.state).map((build) => build.id),
    [1, 2],
  );
});

test('a failed build frees its threads, tells why, and the next one waits longer each time', () => {
  const first = stepOptimizer(play(idle, due, granted).state, failed);
  assert.equal(first.state.kind, 'Cooling');
  assert.deepEqual(print(first.effects), [
    'release 1',
    'wake null',
    'note failed to build indexing: 1 to one segment with a graph',
    'cool down 1',
  ]);
  assert.deepEqual(
    first.effects.at(-1)?.kind === 'announce' && (first.effects.at(-1) as { status: { error: unknown } }).status.error,
    FULL,
  );
  const again = play(
    first.state,
    { kind: 'cooled', nowMs: LATER },
    { ...granted, id: 2 } as OptimizerMessage,
    { ...failed, id: 2 } as OptimizerMessage,
  );
  assert.equal(print(again.effects).at(-1), 'cool down 2');
});

test('while it cools it learns of changes and plans nothing', () => {
  const cooling = play(idle, due, granted, failed).state;
  const { state, effects } = stepOptimizer(cooling, told(DONE));
  assert.equal(state.kind, 'Cooling');
  assert.deepEqual(print(effects), []);
  assert.equal(stepOptimizer(state, { kind: 'cooled', nowMs: LATER }).state.kind, 'Idle');
});

test('new settings end the pause after a failure', () => {
  const cooling = play(idle, due, granted, failed).state;
  assert.equal(stepOptimizer(cooling, { kind: 'configure', config: CONFIG, nowMs: LATER }).state.kind, 'Waiting');
});

test('an error is forgotten when a build goes well', () => {
  const { state } = play(
    idle,
    due,
    granted,
    failed,
    { kind: 'cooled', nowMs: LATER },
    { ...granted, id: 2 } as OptimizerMessage,
    {
      ...built,
      id: 2,
    } as OptimizerMessage,
  );
  assert.equal(state.known.trouble, null);
  assert.equal(state.known.finished.length, 2);
});

test('an optimizer that is off builds nothing but missing field indexes', () => {
  const off = startOptimizer(sampleConfig({ max_optimization_threads: 0 }), { cpus: 4 }).state;
  assert.equal(stepOptimizer(off, due).state.kind, 'Idle');
  const lacking = sampleStats([indexedSegment({ id: 3, missingFields: ['color'] })]);
  assert.equal(stepOptimizer(off, told(lacking)).state.kind, 'Waiting');
});

test('the collection bounds the threads of a build', () => {
  const two = startOptimizer(sampleConfig({ max_optimization_threads: 2 }), { cpus: 8 }).state;
  assert.match(print(stepOptimizer(two, due).effects).join(), /request 1: 2 threads/);
});

test('a build that was too large is planned with more results, until one goes well or the settings change', () => {
  const tooLarge: OptimizerMessage = { kind: 'buildFailed', id: 1, error: { ...FULL, reason: 'segmentTooLarge' }, nowMs: LATER };
  const cooled: OptimizerMessage = { kind: 'cooled', nowMs: LATER };
  const { state, effects } = play(idle, due, granted, tooLarge, cooled);
  assert.match(print(effects).at(-1) as string, /indexing: 1 to 2 segments/);
  const again = play(state, { ...granted, id: 2 }, { ...tooLarge, id: 2 }, cooled);
  assert.match(print(again.effects).at(-1) as string, /indexing: 1 to 4 segments/);
  const changed = play(again.state, { kind: 'configure', config: CONFIG, nowMs: LATER });
  assert.match(print(changed.effects).at(-1) as string, /indexing: 1 to one segment/);
  assert.match(print(play(idle, due, granted, failed, cooled).effects).at(-1) as string, /indexing: 1 to one segment/);
});

test('a build that would wait for memory for ever gives way to a smaller one, and the next one is planned in full', () => {
  const segments = [1, 2, 3, 4].map((id) => dueSegment({ id, frozen: true }));
  const stats = told(sampleStats(segments));
  const waiting = play(idle, stats);
  assert.deepEqual(print(waiting.effects).at(-1), 'request 1: 4 threads for indexing: 1 + 2 + 3 + 4 to one segment with a graph');
  const bytes = waiting.state.kind === 'Waiting' ? waiting.state.wanted.plan.bytes : Number.NaN;
  const lacking: OptimizerMessage = { kind: 'lacksRoom', id: 1, leftBytes: 0.6 * bytes, nowMs: LATER };
  const less = play(waiting.state, lacking);
  assert.deepEqual(print(less.effects), ['release 1', 'wake null', 'request 2: 4 threads for indexing: 1 + 2 to one segment with a graph']);
  // News of the replica do not bring the large one back.
  assert.deepEqual(print(play(less.state, stats).effects), []);
  const rest = sampleStats([indexedSegment({ id: 5 }), ...segments.slice(2), dueSegment({ id: 6, frozen: true })]);
  const next = play(
    less.state,
    { kind: 'granted', id: 2, threads: 2, nowMs: LATER },
    { kind: 'built', id: 2, report: REPORT, stats: rest, nowMs: LATER },
  );
  assert.match(print(next.effects).at(-1) as string, /^request 3: 4 threads for indexing: 3 \+ 4 \+ 5 \+ 6 /);
});

test('a build that waits for memory stays as it is where less would get no graph', () => {
  const waiting = play(idle, due);
  assert.equal(stepOptimizer(waiting.state, { kind: 'lacksRoom', id: 1, leftBytes: 10, nowMs: LATER }).state, waiting.state);
});
