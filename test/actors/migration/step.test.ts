import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { MigrationEffect, MigrationMessage } from '../../../actors/migration/messages.js';
import { idle, type MigrationState, type Passing, type Working, waiting } from '../../../actors/migration/state.js';
import { startMigration, stepMigration } from '../../../actors/migration/step.js';
import type { Migration, MigrationPart } from '../../../cluster/apply/migration.js';
import { noProgress } from '../../../cluster/transfer/progress.js';
import type { ErrorFacts } from '../../../protocols/errors.js';

const NOW = 1000;
const TASK = { name: 'm', collection: 'c', uid: 7, shardId: 0, term: 3, startedAt: 5 };
const MEMORY = { task: TASK, call: 4, sequence: 10, copiedUpTo: -1 };
const PAGE = [
  { shard: 1, points: 2, operation: Uint8Array.of(1) },
  { shard: 2, points: 3, operation: Uint8Array.of(2, 2) },
];

/** Points of shard 0 go to shards 1 and 2, which are new; peers 1 and 2 serve reads. */
function part(change: Partial<Migration> = {}, isDone = false): MigrationPart {
  const migration: Migration = {
    startedAt: 5,
    stage: 'copying',
    busy: [0],
    done: [],
    source: [0],
    target: [1, 2],
    receiving: [1, 2],
    filter: null,
    mirrors: true,
    ...change,
  };
  return { migration, isDone, shardMapVersion: 6, readers: [1, 2] };
}

const SWITCHING = part({ stage: 'switching' });
const CLEANING = part({ stage: 'cleaning', mirrors: true });

function stageWith(given: MigrationPart = part()) {
  return { ...MEMORY, part: given, progress: noProgress('stream_records', given.migration.stage, NOW) };
}

function passing(given: MigrationPart = part(), pass: Partial<Passing['pass']> = {}): Passing {
  return { ...stageWith(given), index: 90, pass: { number: 1, points: 0, upTo: 95, ...pass } };
}

/** The call of a state that has just been entered, and what it carries. */
const CALL = 5;
function to(shardId: number, sequence = 11) {
  return { shardId, shardMapVersion: 6, fence: { startedAt: 5, from: 0, term: 3, sequence } };
}

/** What a message leads to: the fields that are named here, and all effects. */
function check<State extends MigrationState>(
  state: State,
  message: MigrationMessage,
  expected: Partial<Record<string, unknown>> & { readonly kind: MigrationState['kind'] },
  ...effects: MigrationEffect[]
): MigrationState {
  const step = stepMigration(state, message);
  const known: Record<string, unknown> = { ...step.state };
  assert.deepEqual(Object.fromEntries(Object.keys(expected).map((name) => [name, known[name]])), expected);
  assert.deepEqual(step.effects, effects);
  return step.state;
}

test('an actor that starts knows of no copies and looks at what is agreed', () => {
  const { effects, state } = startMigration(TASK);
  assert.deepEqual(state, { kind: 'Idle', task: TASK, call: 0, sequence: 0, copiedUpTo: -1 });
  assert.deepEqual(effects, [{ kind: 'watch' }]);
});

test('a stage begins by asking all peers that serve reads whether they know the shard map version', () => {
  const progress = noProgress('stream_records', 'copying', NOW);
  const ask: MigrationEffect = { kind: 'askShardMaps', call: CALL, peers: [1, 2], shardMapVersion: 6 };
  check(
    idle(MEMORY),
    { kind: 'agreed', part: part(), nowMs: NOW },
    { kind: 'Informing', informed: [], progress },
    { kind: 'show', progress },
    ask,
  );
});

test('a shard that is done with the stage waits for the next one', () => {
  const state = idle(MEMORY);
  assert.equal(stepMigration(state, { kind: 'agreed', part: part({}, true), nowMs: NOW }).state, state);
});

test('peers that do not know the shard map version yet are asked again after a pause, the others not', () => {
  const state = { ...stageWith(), kind: 'Informing', informed: [] } as const;
  const informed: MigrationMessage = { kind: 'informed', call: 4, peers: [2] };
  const next = check(state, informed, { kind: 'Waiting' }, { kind: 'retrySoon', call: 4 });
  const ask: MigrationEffect = { kind: 'askShardMaps', call: CALL, peers: [1], shardMapVersion: 6 };
  check(next, { kind: 'retry', call: 4 }, { kind: 'Informing', informed: [2] }, ask);
});

test('the first shard of the source gives new targets its indexes, one after the other, and then waits for a barrier of its own', () => {
  const informed: MigrationMessage = { kind: 'informed', call: 4, peers: [1, 2] };
  const state = { ...stageWith(), kind: 'Informing', informed: [] } as const;
  check(state, informed, { kind: 'Indexing', target: 1, targets: [2] }, { kind: 'copyIndexes', call: CALL, target: 1 });
  const last = { ...stageWith(), kind: 'Indexing', target: 2, targets: [] } as const;
  check(last, { kind: 'indexed', call: 4 }, { kind: 'Settling' }, { kind: 'passBarrier', call: CALL, to: to(0) });
  // Another shard of the source, and copies to a key with points of its own.
  for (const other of [part({ source: [0, 3] }), part({ mirrors: false })]) {
    const shardId = other.migration.mirrors ? 3 : 0;
    const there = { ...stageWith(other), task: { ...TASK, shardId }, kind: 'Informing', informed: [] } as const;
    assert.equal(stepMigration(there, informed).state.kind, 'Settling');
  }
});

test('all points are counted where all of them go, and the first pass begins behind the barrier', () => {
  const passed: MigrationMessage = { kind: 'barrierPassed', call: 4, index: 90 };
  const count: MigrationEffect = { kind: 'read', call: CALL, to: to(0), ask: { kind: 'count', filter: null }, index: 90 };
  check({ ...stageWith(), kind: 'Settling' } as const, passed, { kind: 'Counting', index: 90 }, count);
  const ask = { kind: 'leaving', ring: [1, 2], filter: null, after: -1, from: null } as const;
  const read: MigrationEffect = { kind: 'read', call: CALL, to: to(0), ask, index: 90 };
  const progress = { ...stageWith().progress, total: 8, sendingSinceMs: 1200 };
  const counting = { ...stageWith(), kind: 'Counting', index: 90 } as const;
  const pass = { number: 1, points: 0, upTo: Number.POSITIVE_INFINITY };
  check(
    counting,
    { kind: 'counted', call: 4, count: 8, nowMs: 1200 },
    { kind: 'Reading', pass, progress },
    { kind: 'show', progress },
    read,
  );
  // Some points stay: nobody knows how many go.
  const staying = { ...stageWith(part({ target: [0, 1, 2] })), kind: 'Settling' } as const;
  assert.equal(stepMigration(staying, passed).state.kind, 'Reading');
});

test('a page is written part by part to the leaders of its targets, and then the next page is read', () => {
  const state = { ...passing(), kind: 'Reading', from: null } as const;
  const page: MigrationMessage = { kind: 'pageRead', call: 4, parts: PAGE, next: 60, position: 93 };
  const first = { operation: 'upsertPoints', bytes: Uint8Array.of(1) } as const;
  const copying = check(
    state,
    page,
    { kind: 'Copying', copied: PAGE[0], parts: [PAGE[1]], next: 60, pass: { number: 1, points: 0, upTo: 93 } },
    { kind: 'write', call: CALL, to: to(1), write: first },
  );
  const progress = { ...stageWith().progress, sent: 2, bytes: 1 };
  const second = { operation: 'upsertPoints', bytes: Uint8Array.of(2, 2) } as const;
  const last = check(
    copying,
    { kind: 'written', call: CALL },
    { kind: 'Copying', copied: PAGE[1], parts: [], progress },
    { kind: 'show', progress },
    { kind: 'write', call: 6, to: to(2, 12), write: second },
  );
  const { effects, state: reading } = stepMigration(last, { kind: 'written', call: 6 });
  assert.deepEqual([reading.kind, effects.map(({ kind }) => kind)], ['Reading', ['show', 'read']]);
  assert.deepEqual(reading.kind === 'Reading' && [reading.from, reading.pass], [60, { number: 1, points: 5, upTo: 93 }]);
});

test('after a pass that has copied much comes another one, of what has changed since; a small one is the last', () => {
  const end: MigrationMessage = { kind: 'pageRead', call: 4, parts: [], next: null, position: 99 };
  const much = { ...passing(part(), { points: 501 }), kind: 'Reading', from: 60 } as const;
  const ask = { kind: 'leaving', ring: [1, 2], filter: null, after: 95, from: null } as const;
  const read: MigrationEffect = { kind: 'read', call: CALL, to: to(0), ask, index: 90 };
  check(much, end, { kind: 'Reading', copiedUpTo: 95, pass: { number: 2, points: 0, upTo: Number.POSITIVE_INFINITY } }, read);
  const fence: MigrationEffect = { kind: 'passBarrier', call: CALL, to: to(1) };
  for (const last of [passing(part(), { points: 500 }), passing(SWITCHING, { points: 501 }), passing(part(), { points: 501, number: 20 })])
    check({ ...last, kind: 'Reading', from: 60 } as const, end, { kind: 'Fencing', target: 1, targets: [2] }, fence);
  // Where others write to the targets, too, nothing is removed from them.
  const open = { ...passing(part({ mirrors: false })), kind: 'Reading', from: 60 } as const;
  check(open, end, { kind: 'Finishing', copiedUpTo: 95 }, { kind: 'finish', call: CALL, stage: 'copying' });
});

test('while writes wait, copies are listed only where there are more of them than points', () => {
  const state = { ...passing(SWITCHING), kind: 'Fencing', target: 1, targets: [] } as const;
  const points = { kind: 'owned', ring: [1, 2], owner: 1, filter: null, countOnly: true, from: null } as const;
  const copies = { kind: 'owned', ring: [0], owner: 0, filter: null, countOnly: true, from: null } as const;
  const comparing = check(
    state,
    { kind: 'barrierPassed', call: 4, index: 70 },
    { kind: 'Comparing', targetIndex: 70 },
    { kind: 'read', call: CALL, to: to(0), ask: points, index: 90 },
    { kind: 'read', call: CALL, to: to(1), ask: copies, index: 70 },
  );
  const counted = (shardId: number, count: number, next: number | null = null) =>
    ({ kind: 'idsRead', call: CALL, shardId, count, ids: new Uint8Array(), next }) as const;
  const more = check(
    comparing,
    counted(0, 3, 44),
    { kind: 'Comparing' },
    {
      kind: 'read',
      call: CALL,
      to: to(0, 12),
      ask: { ...points, from: 44 },
      index: 90,
    },
  );
  const half = check(more, counted(1, 4), { kind: 'Comparing' });
  check(half, counted(0, 1), { kind: 'Finishing', copiedUpTo: 95 }, { kind: 'finish', call: 6, stage: 'switching' });
  const list = { ...copies, countOnly: false };
  check(half, counted(0, 0), { kind: 'Listing', from: null }, { kind: 'read', call: 6, to: to(1, 13), ask: list, index: 70 });
});

test('copies whose point is gone are removed page by page, and then those in the next target', () => {
  const cleansing = { ...passing(), target: 1, targets: [2], targetIndex: 70 };
  const ids = Uint8Array.of(7);
  const listing = { ...cleansing, kind: 'Listing', from: null } as const;
  const gone: MigrationEffect = { kind: 'read', call: CALL, to: to(0), ask: { kind: 'gone', filter: null, ids }, index: 90 };
  check(listing, { kind: 'idsRead', call: 4, shardId: 1, count: 1, ids, next: 8 }, { kind: 'Checking', ids, next: 8 }, gone);
  const fence: MigrationEffect = { kind: 'passBarrier', call: CALL, to: to(2) };
  check(listing, { kind: 'idsRead', call: 4, shardId: 1, count: 0, ids, next: null }, { kind: 'Fencing', target: 2, targets: [] }, fence);

  const deletion = Uint8Array.of(9);
  const remove: MigrationEffect = { kind: 'write', call: CALL, to: to(1), write: { operation: 'deletePoints', bytes: deletion } };
  const checking = { ...cleansing, kind: 'Checking', ids, next: null } as const;
  check(checking, { kind: 'deletionMade', call: 4, count: 1, deletion, next: null }, { kind: 'Removing', deletion, next: null }, remove);
  check(checking, { kind: 'deletionMade', call: 4, count: 0, deletion: null, next: null }, { kind: 'Fencing', target: 2 }, fence);
  check(
    { ...cleansing, kind: 'Removing', deletion, next: null } as const,
    { kind: 'written', call: 4 },
    { kind: 'Fencing', target: 2 },
    fence,
  );
});

test('cleaning walks through the shard until a walk finds no point of another shard', () => {
  const sweep: MigrationEffect = { kind: 'read', call: CALL, to: to(0), ask: { kind: 'stray', ring: [0], from: null }, index: 90 };
  const settling = { ...stageWith(CLEANING), kind: 'Settling' } as const;
  check(settling, { kind: 'barrierPassed', call: 4, index: 90 }, { kind: 'Sweeping', removed: 0 }, sweep);

  const sweeping = { ...stageWith(CLEANING), kind: 'Sweeping', index: 90, removed: 0, from: null } as const;
  const deletion = Uint8Array.of(9);
  const remove: MigrationEffect = { kind: 'write', call: CALL, to: to(0), write: { operation: 'deletePoints', bytes: deletion } };
  const deleting = check(
    sweeping,
    { kind: 'deletionMade', call: 4, count: 3, deletion, next: null },
    { kind: 'Deleting', count: 3 },
    remove,
  );
  const progress = { ...stageWith(CLEANING).progress, sent: 3 };
  const barrier: MigrationEffect = { kind: 'passBarrier', call: 6, to: to(0, 12) };
  check(deleting, { kind: 'written', call: CALL }, { kind: 'Settling' }, { kind: 'show', progress }, barrier);

  const none: MigrationMessage = { kind: 'deletionMade', call: 4, count: 0, deletion: null, next: null };
  check(sweeping, none, { kind: 'Finishing' }, { kind: 'finish', call: CALL, stage: 'cleaning' });
});

/** A state that copies, for what goes for all states that have called for something. */
const COPYING = { ...passing(), kind: 'Copying', copied: PAGE[0], parts: [], next: null } as unknown as Working;

test('a call that may go well another time is made again after a short pause, with a number behind the last one', () => {
  for (const code of ['unavailable', 'conflict', 'busy', 'timeout'] as const) {
    const state = check(COPYING, failed({ code, detail: 'no' }), { kind: 'Waiting', next: COPYING }, { kind: 'retrySoon', call: 4 });
    const write = { operation: 'upsertPoints', bytes: Uint8Array.of(1) } as const;
    check(state, { kind: 'retry', call: 4 }, { kind: 'Copying' }, { kind: 'write', call: CALL, to: to(1), write });
  }
});

test('a call that comes behind those of an earlier process in the same term leaps ahead', () => {
  const late: ErrorFacts = { code: 'conflict', detail: 'late', reason: 'staleCopy' };
  check(COPYING, failed(late), { kind: 'Waiting', next: { ...COPYING, sequence: 20 } }, { kind: 'retrySoon', call: 4 });
});

test('after any other failure the stage begins again after a longer pause, with what is copied', () => {
  const state = { ...COPYING, copiedUpTo: 50 };
  const progress = { ...stageWith().progress, failures: 1, cause: 'no disk' };
  const waits = check(
    state,
    failed({ code: 'storage', detail: 'no disk' }),
    { kind: 'Waiting' },
    { kind: 'show', progress },
    { kind: 'log', level: 'warn', text: 'failed 1 time: no disk' },
    { kind: 'retryLater', call: 4, attempt: 1 },
  );
  const ask: MigrationEffect = { kind: 'askShardMaps', call: CALL, peers: [1, 2], shardMapVersion: 6 };
  check(waits, { kind: 'retry', call: 4 }, { kind: 'Informing', copiedUpTo: 50, informed: [] }, ask);
  // What ends a stage, and indexes, are not tried again alone.
  const finishing = { ...stageWith(), kind: 'Finishing' } as const;
  assert.deepEqual(stepMigration(finishing, failed({ code: 'timeout', detail: 'no' })).effects.at(-1), {
    kind: 'retryLater',
    call: 4,
    attempt: 1,
  });
});

test('an answer to an earlier call changes nothing', () => {
  for (const message of [
    { kind: 'written', call: 3 },
    { kind: 'retry', call: 3 },
  ] as const) {
    assert.equal(stepMigration(COPYING, message).state, COPYING);
  }
});

test('the state follows what is agreed: the same stage goes on with the newest, another one begins, and none ends it', () => {
  const newer = { ...part(), readers: [1, 2, 3] };
  const agreed = (given: MigrationPart | null): MigrationMessage => ({ kind: 'agreed', part: given, nowMs: NOW });
  check(COPYING, agreed(newer), { kind: 'Copying', part: newer, call: 4 });
  check(waiting(COPYING), agreed(newer), { kind: 'Waiting', next: { ...COPYING, part: newer } });
  for (const state of [COPYING, waiting(COPYING)]) {
    check(state, agreed(part({}, true)), { kind: 'Idle', sequence: 10 }, { kind: 'show', progress: null });
    check(state, agreed(null), { kind: 'Over' }, { kind: 'show', progress: null });
    assert.equal(stepMigration(state, agreed(SWITCHING)).state.kind, 'Informing');
  }
});

function failed(error: ErrorFacts): MigrationMessage {
  return { kind: 'failed', call: 4, error };
}
