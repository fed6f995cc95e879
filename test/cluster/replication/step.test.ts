import assert from 'node:assert/strict';
import { test } from 'node:test';
import { entriesFrom } from '../../../cluster/replication/entry-window.js';
import { FAIL_TICKS } from '../../../cluster/replication/figures.js';
import { indexAfter } from '../../../cluster/replication/leading.js';
import { REPLICA_STATES, type ReplicaState } from '../../../protocols/model/cluster.js';
import { type LogTag, NO_TAG, TERM_GAP } from '../../../protocols/model/shard-log.js';
import { assignment, Machine, SELF, tag } from './machine.js';

const DONE = { kind: 'done', changed: 0 } as const;
const LOST = { code: 'unavailable', detail: 'nobody is there' } as const;

test('a replica that does not lead refuses writes as conflict, so that they are sent elsewhere', () => {
  const pair = assignment({ 1: 'Active', 2: 'Active' });
  const roles = {
    Closed: new Machine().assign(pair),
    Following: new Machine().opened({ ...pair, leader: 2 }),
    Locating: new Machine().opened(pair),
    Syncing: new Machine().opened(pair).give({ kind: 'barrierPassed', run: 1, assignment: pair }),
  };
  roles.Syncing.give({ kind: 'located', run: roles.Syncing.run, last: tag(10, 3) });
  for (const [role, machine] of Object.entries(roles)) {
    assert.equal(machine.role, role);
    const caller = machine.write();
    assert.deepEqual(
      machine.effects.map((effect) => (effect.kind === 'refuse' ? [effect.caller, effect.error.code] : effect.kind)),
      [[caller, 'conflict']],
    );
  }
});

test('what is acknowledged is on every replica that is required by its agreed state', () => {
  const waits: Partial<Record<ReplicaState, boolean>> = {};
  for (const state of REPLICA_STATES) {
    const machine = new Machine().assign(assignment({ 1: 'Active', 2: state }, { term: 3, leader: null }));
    machine.give({ kind: 'opened' }).assign(assignment({ 1: 'Active', 2: state }));
    machine.give({ kind: 'located', run: machine.run, last: tag(10) });
    const caller = machine.written([11]);
    waits[state] = !machine.acknowledged.includes(caller);
  }
  assert.deepEqual(waits, {
    Active: true,
    Dead: false,
    Partial: false,
    Initializing: true,
    Listener: true,
    PartialSnapshot: false,
    Recovery: false,
    Resharding: true,
    ReshardingScaleDown: true,
    ActiveRead: true,
    ManualRecovery: false,
  });
});

test('a write goes to the others once it is on the own disk, and is answered when the last one has it', () => {
  const machine = new Machine().leading(assignment({ 1: 'Active', 2: 'Active', 3: 'Active' }));
  const caller = machine.written([11, 12]);
  assert.deepEqual(machine.acknowledged, []);
  const second = machine.callTo(2, 'append');
  const third = machine.callTo(3, 'append');
  assert.deepEqual(second.request.previous, tag(10));
  assert.deepEqual(
    second.request.entries.map((entry) => entry.tag.index),
    [11, 12],
  );
  assert.deepEqual(machine.answer(2, second.call, DONE).acknowledged, []);
  machine.answer(3, third.call, DONE);
  assert.deepEqual(machine.acknowledged, [caller]);
  assert.deepEqual(machine.all('acknowledge')[0]?.numbers, [11, 12]);
});

test('who waits until it is applied waits for all that serve, and not for a Listener', () => {
  const machine = new Machine().leading(assignment({ 1: 'Active', 2: 'Active', 3: 'Listener' }));
  const caller = machine.written([11], { until: 'applied' });
  const [second, third] = [machine.callTo(2, 'append'), machine.callTo(3, 'append')];
  assert.deepEqual([second.request.until, third.request.until], ['applied', 'logged']);
  machine.answer(3, third.call, DONE);
  assert.deepEqual(machine.answer(2, second.call, DONE).acknowledged, [caller]);
});

test('answers of the own disk are taken in the order of the writes, so that nothing is sent with a gap', () => {
  const machine = new Machine().leading(assignment({ 1: 'Active', 2: 'Active' }));
  machine.write({ until: 'applied' });
  const first = machine.all('logWrite')[0]?.write ?? 0;
  machine.write();
  const second = machine.all('logWrite')[0]?.write ?? 0;
  assert.deepEqual(machine.logged(second, [12]).effects, []);
  const { request } = machine.logged(first, [11]).callTo(2, 'append');
  assert.deepEqual(
    request.entries.map((entry) => entry.tag.index),
    [11, 12],
  );
});

test('a required replica that answers errors for two seconds is to be Dead, and only what is agreed ends the waiting', () => {
  const machine = new Machine().leading(assignment({ 1: 'Active', 2: 'Active', 3: 'Active' }));
  const caller = machine.written([11]);
  machine.answer(3, machine.callTo(3, 'append').call, DONE);
  const proposals: number[] = [];
  for (let tick = 0; tick < FAIL_TICKS + 5; tick++) {
    const { role } = machine.state;
    const busy = role.kind === 'Leading' ? role.channels.get(2)?.busy : null;
    if (busy != null) machine.give({ kind: 'callFailed', run: machine.run, peer: 2, call: busy.call, error: LOST, isLost: true });
    machine.ticks(1);
    proposals.push(...machine.all('judgeAlone').map(({ peer }) => peer));
    assert.deepEqual(machine.acknowledged, []);
  }
  assert.deepEqual(proposals, [2]);
  machine.assign(assignment({ 1: 'Active', 2: 'Dead', 3: 'Active' }));
  assert.deepEqual(machine.acknowledged, [caller]);
});

test('a replica that is not there is nobody’s trouble while nothing is written', () => {
  const machine = new Machine().leading(assignment({ 1: 'Active', 2: 'Active' }));
  const caller = machine.written([11]);
  machine.answer(2, machine.callTo(2, 'append').call, DONE);
  assert.ok(caller > 0);
  assert.deepEqual(machine.ticks(2 * FAIL_TICKS).all('judgeAlone'), []);
});

test('with fewer replicas than write_consistency_factor nothing is written; what is on too few by then is told so', () => {
  const pair = assignment({ 1: 'Active', 2: 'Active' }, { writeFactor: 2 });
  const machine = new Machine().leading(pair);
  machine.written([11]);
  machine.assign({ ...pair, replicas: new Map([[SELF, 'Active'] as const, [2, 'Dead'] as const]) });
  const [tooFew] = machine.all('refuse');
  assert.match(tooFew?.error.detail ?? '', /send it again when more replicas are active/);
  assert.equal(tooFew?.error.outcome, 'unknown');
  machine.write();
  assert.match(machine.all('refuse')[0]?.error.detail ?? '', /nothing was written/);
  assert.deepEqual(machine.all('logWrite'), []);
  machine.written([12], { isCopy: true });
  assert.equal(machine.all('acknowledge').length, 1, 'what another shard had acknowledged has to go somewhere');
});

test('a new leader takes over the longest log before it takes writes, and counts on at a multiple that nobody has used', () => {
  const before = assignment({ 1: 'Active', 2: 'Active', 3: 'Active' }, { leader: 2, term: 3 });
  const machine = new Machine().opened(before).assign({ ...before, leader: SELF, term: 4 });
  machine.give({ kind: 'located', run: machine.run, last: tag(5, 3) });
  assert.equal(machine.role, 'Syncing');
  const [second, third] = [machine.callTo(2, 'position'), machine.callTo(3, 'position')];
  machine.answer(2, second.call, { kind: 'position', last: tag(5, 3), base: NO_TAG });
  machine.answer(3, third.call, { kind: 'position', last: tag(7, 3), base: NO_TAG });
  const entries = [6, 7].map((index) => ({ tag: tag(index, 3), operation: Uint8Array.of(1) }));
  machine.answer(3, machine.callTo(3, 'entriesAfter').call, { kind: 'entries', entries, last: tag(7, 3) });
  assert.deepEqual(machine.all('takeOver')[0]?.entries, entries);
  machine.give({ kind: 'tookOver', run: machine.run, last: tag(7, 3) });
  assert.equal(machine.role, 'Leading');
  machine.write();
  assert.equal(machine.all('logWrite')[0]?.as.indexAfter, 2 * TERM_GAP - 1);
});

test('a replica that is to lead by an old agreed state, and meets a log of a later term, waits for the newer state', () => {
  const before = assignment({ 1: 'Active', 2: 'Active' }, { leader: 2, term: 3 });
  const machine = new Machine().opened(before).assign({ ...before, leader: SELF, term: 4 });
  machine.give({ kind: 'located', run: machine.run, last: tag(5, 3) });
  machine.answer(2, machine.callTo(2, 'position').call, { kind: 'position', last: tag(4 * TERM_GAP, 5), base: NO_TAG });
  assert.equal(machine.role, 'Syncing');
  assert.deepEqual(machine.all('call'), [], 'entries of another leader are no base for an older term');
  machine.assign({ ...before, leader: 2, term: 5 });
  assert.equal(machine.role, 'Following');
});

test('the gap between the indexes of two leaders is no lag', () => {
  const before = assignment({ 1: 'Active', 2: 'Active' }, { leader: 2, term: 3 });
  const machine = new Machine().opened(before).assign({ ...before, leader: SELF, term: 4 });
  machine.give({ kind: 'located', run: machine.run, last: tag(5, 3) });
  machine.answer(2, machine.callTo(2, 'position').call, { kind: 'position', last: tag(5, 3), base: NO_TAG });
  machine.written([2 * TERM_GAP]);
  machine.write();
  assert.deepEqual(machine.all('refuse'), []);
});

test('the first leader of all counts on, as does one that leads on in its term', () => {
  assert.equal(indexAfter(NO_TAG, 1), 0);
  assert.equal(indexAfter(tag(7, 4), 4), 7);
  assert.equal(indexAfter(tag(7, 3), 4), 2 * TERM_GAP - 1);
  assert.equal(indexAfter(tag(TERM_GAP, 3), 4), 3 * TERM_GAP - 1);
});

test('leaders of different terms that know of the same operations give different indexes', () => {
  const starts = [4, 5, 6].map((term) => indexAfter(tag(7, 3), term));
  assert.equal(new Set(starts).size, starts.length);
  // The leader of term 4 went on from an operation that only it had, half of TERM_TICKS further at most.
  const ahead = indexAfter(tag(TERM_GAP * 1.2, 3), 4) + TERM_GAP / 2;
  assert.ok(indexAfter(tag(TERM_GAP * 0.9, 3), 5) > ahead);
});

test('a leader that is started again in its term waits for targets that it may have required before', () => {
  const agreed = assignment({ 1: 'Active', 2: 'Partial', 3: 'Partial' });
  const machine = new Machine().opened(agreed);
  machine.give({ kind: 'located', run: machine.run, last: tag(10) });
  assert.equal(machine.role, 'Locating', 'its view may be old');
  machine.give({ kind: 'barrierPassed', run: machine.run, assignment: agreed });
  const [second, third] = [machine.callTo(2, 'position'), machine.callTo(3, 'position')];
  const caller = machine.written([11]);
  assert.deepEqual(machine.acknowledged, []);
  // The log does not continue that of peer 2: it cannot have been required.
  machine.answer(2, second.call, { kind: 'position', last: tag(9, 2), base: NO_TAG });
  diverged(machine, null);
  machine.answer(3, third.call, { kind: 'position', last: tag(10), base: NO_TAG });
  const entries = [{ tag: tag(11), operation: Uint8Array.of(1) }];
  machine.give({
    kind: 'readDone',
    run: machine.run,
    peer: 3,
    call: machine.all('read')[0]?.call ?? 0,
    part: { kind: 'entries', entries },
  });
  assert.deepEqual(machine.acknowledged, []);
  machine.answer(3, machine.callTo(3, 'append').call, DONE);
  assert.deepEqual(machine.acknowledged, [caller]);
});

test('a leader that was started with an old view waits for a barrier and for targets, also in a term that it hears of only then', () => {
  const agreed = assignment({ 1: 'Active', 2: 'Partial' });
  const machine = new Machine().assign({ ...agreed, leader: 2, term: 3 }, false).give({ kind: 'opened' });
  machine.assign(agreed, false).give({ kind: 'located', run: machine.run, last: tag(10) });
  assert.equal(machine.role, 'Locating', 'an earlier life may have led this term');
  machine.give({ kind: 'barrierPassed', run: machine.run, assignment: agreed });
  machine.callTo(2, 'position');
  machine.written([11]);
  assert.deepEqual(machine.acknowledged, [], 'that life may have required the target');
});

test('calls of a leader whose term is over are refused; those of a later one end the own lead, and its writes are left open', () => {
  const machine = new Machine().leading(assignment({ 1: 'Active', 2: 'Active' }));
  const caller = machine.written([11]);
  const shard = { collection: 'c', uid: 1, shardId: 0 };
  const append = (term: number) => ({ kind: 'append', shard, leader: 2, term, previous: tag(10), entries: [], until: 'logged' }) as const;
  machine.give({ kind: 'called', caller: 1, from: 2, call: append(3) });
  assert.deepEqual(
    machine.all('refuse').map((effect) => [effect.caller, effect.error.code]),
    [[1, 'conflict']],
  );
  machine.give({ kind: 'called', caller: 2, from: 2, call: append(5) });
  assert.equal(machine.role, 'Following');
  const [refused] = machine.all('refuse');
  assert.equal(refused?.caller, caller);
  assert.equal(refused?.error.outcome, 'unknown');
  assert.equal(machine.all('carryOut').length, 1);
  machine.give({ kind: 'called', caller: 3, from: 3, call: append(4) });
  assert.equal(machine.all('carryOut').length, 0);
});

test('what a transfer begins with is refused by a replica that is Active: it may have been on its way since before', () => {
  const calls = [
    { kind: 'resetLog', at: tag(5) },
    { kind: 'rewindLog', to: tag(5) },
    { kind: 'applySettings', operations: [] },
    { kind: 'digest', leaders: { at: tag(5), buckets: new BigUint64Array(), points: new Uint32Array() } },
    { kind: 'position' },
  ] as const;
  const shard = { collection: 'c', uid: 1, shardId: 0 };
  const carriedOut = (state: ReplicaState): string[] =>
    calls.flatMap((call) => {
      const machine = new Machine().opened(assignment({ 1: state, 2: 'Active' }, { leader: 2 }));
      machine.give({ kind: 'called', caller: 3, from: 2, call: { ...call, shard, term: 4 } });
      return machine.all('carryOut').map((effect) => effect.call.kind);
    });
  assert.deepEqual(carriedOut('Active'), ['digest', 'position']);
  assert.deepEqual(carriedOut('Listener'), ['digest', 'position']);
  assert.deepEqual(carriedOut('Partial'), ['resetLog', 'rewindLog', 'applySettings', 'digest', 'position']);
});

test('entries are kept in memory no longer than until every replica has them', () => {
  const machine = new Machine().leading(assignment({ 1: 'Active', 2: 'Active' }));
  const kept = () =>
    machine.state.role.kind === 'Leading' ? [...entriesFrom(machine.state.role.recent.entries)].map((entry) => entry.tag.index) : [];
  machine.written([11, 12]);
  assert.deepEqual(kept(), [11, 12]);
  machine.answer(2, machine.callTo(2, 'append').call, DONE);
  assert.deepEqual(kept(), []);
  machine.written([13]);
  assert.deepEqual(machine.callTo(2, 'append').request.previous, tag(12));
});

test('a channel that has failed and is released costs no ticks', () => {
  const machine = attaching(true, tag(9, 2));
  diverged(machine, null);
  machine.answer(2, machine.callTo(2, 'resetLog').call, DONE);
  const { job } = machine.all('fetch')[0] ?? { job: 0 };
  machine.give({ kind: 'fetched', run: machine.run, peer: 2, job, value: { kind: 'settings', operations: [] } });
  const { call } = machine.callTo(2, 'applySettings');
  machine.give({ kind: 'callFailed', run: machine.run, peer: 2, call, error: LOST, isLost: true });
  machine.give({ kind: 'release', peer: 2 });
  machine.ticks(3);
  assert.deepEqual(machine.ticks(3).effects, []);
});

const WITH_TARGET = assignment({ 1: 'Active', 2: 'Partial' });

/** A leader of a new term that attaches a target, whose log ends with `last`, and is about to look into its own. */
function attaching(mayReset: boolean, last: LogTag): Machine {
  const machine = new Machine()
    .assign({ ...WITH_TARGET, leader: null, term: 3 })
    .give({ kind: 'opened' })
    .assign(WITH_TARGET);
  machine.give({ kind: 'located', run: machine.run, last: tag(10) });
  machine.give({ kind: 'attach', caller: 7, peer: 2, mayReset });
  return machine.answer(2, machine.callTo(2, 'position').call, { kind: 'position', last, base: NO_TAG });
}

/** The own log has not got what that of peer 2 ends with. before: what it has before that. */
function diverged(machine: Machine, before: LogTag | null): Machine {
  const { call } = machine.all('read')[0] ?? { call: 0 };
  return machine.give({ kind: 'readDone', run: machine.run, peer: 2, call, part: { kind: 'diverged', before } });
}

/** What every attaching begins with: indexes of payload keys. */
function giveSettings(machine: Machine): void {
  const { job } = machine.all('fetch')[0] ?? { job: 0 };
  machine.give({ kind: 'fetched', run: machine.run, peer: 2, job, value: { kind: 'settings', operations: [] } });
  machine.answer(2, machine.callTo(2, 'applySettings').call, DONE);
}

test('a replica whose log goes on gets the indexes of payload keys as well: an earlier attaching may have ended before', () => {
  const machine = new Machine().leading(assignment({ 1: 'Active', 2: 'Partial' }));
  machine.give({ kind: 'attach', caller: 7, peer: 2, mayReset: true });
  machine.answer(2, machine.callTo(2, 'position').call, { kind: 'position', last: tag(10), base: NO_TAG });
  const read = machine.all('read')[0]?.call ?? 0;
  machine.give({ kind: 'readDone', run: machine.run, peer: 2, call: read, part: { kind: 'entries', entries: [] } });
  assert.deepEqual(machine.all('answer'), []);
  giveSettings(machine);
  assert.deepEqual(machine.all('answer')[0]?.answer, { how: 'delta', entries: 0 });
});

test('the points of a bucket are replaced in their place between operations', () => {
  const machine = new Machine().leading(assignment({ 1: 'Active', 2: 'Active' }));
  machine.give({ kind: 'fill', caller: 7, peer: 2, buckets: [3] });
  const job = machine.all('fetch')[0]?.job ?? 0;
  machine.written([11]);
  assert.deepEqual(machine.all('call'), [], 'nothing passes a place that is not known yet');
  machine.written([12]);
  const value = { kind: 'buckets', at: tag(11), points: 2, bytes: Uint8Array.of(9) } as const;
  machine.give({ kind: 'fetched', run: machine.run, peer: 2, job, value });
  const append = machine.callTo(2, 'append');
  assert.deepEqual(
    append.request.entries.map((entry) => entry.tag.index),
    [11],
  );
  const replace = machine.answer(2, append.call, DONE).callTo(2, 'replaceBuckets');
  machine.answer(2, replace.call, { kind: 'done', changed: 2 });
  assert.deepEqual(machine.all('answer')[0]?.answer, { changed: 2, points: 2, bytes: 1 });
  assert.deepEqual(
    machine.callTo(2, 'append').request.entries.map((entry) => entry.tag.index),
    [12],
  );
});

test('what a replica alone has logged is taken out of its log, which goes on from there', () => {
  const attachedTo = (): Machine => diverged(attaching(false, tag(9, 2)), tag(6, 1));
  const machine = attachedTo();
  const { call, request } = machine.callTo(2, 'rewindLog');
  assert.deepEqual(request.to, tag(6, 1));
  machine.answer(2, call, DONE);
  giveSettings(machine);
  assert.deepEqual(machine.all('answer')[0]?.answer, { how: 'rewound', entries: 0 });
  assert.deepEqual(machine.all('read')[0]?.after, tag(6, 1));
  // Its log has begun anew behind where the two began to differ.
  const other = attachedTo();
  const error = { code: 'conflict', detail: 'the log does not have it' } as const;
  other.give({ kind: 'callFailed', run: other.run, peer: 2, call: other.callTo(2, 'rewindLog').call, error, isLost: false });
  assert.deepEqual(other.all('answer')[0]?.answer, { how: 'refused', entries: 0 });
  assert.deepEqual(other.ticks(30).all('call'), []);
});

test('a transfer hears of it when its target lacks more than the log has while it is compared', () => {
  const machine = new Machine().leading(assignment({ 1: 'Active', 2: 'Partial' }));
  machine.give({ kind: 'attach', caller: 7, peer: 2, mayReset: false });
  machine.answer(2, machine.callTo(2, 'position').call, { kind: 'position', last: tag(4), base: NO_TAG });
  const read = () => machine.all('read')[0]?.call ?? 0;
  const entries = [{ tag: tag(5), operation: Uint8Array.of(1) }];
  machine.give({ kind: 'readDone', run: machine.run, peer: 2, call: read(), part: { kind: 'entries', entries } });
  giveSettings(machine);
  machine.give({ kind: 'readDone', run: machine.run, peer: 2, call: read(), part: { kind: 'entries', entries } });
  const { call } = machine.callTo(2, 'append');
  machine.give({ kind: 'compare', caller: 8, peer: 2 });
  // Its disk is full meanwhile, and the log is trimmed.
  machine.give({ kind: 'callFailed', run: machine.run, peer: 2, call, error: LOST, isLost: true }).give({ kind: 'tick' });
  const [{ job } = { job: 0 }] = machine.all('fetch');
  const value = { kind: 'digest', at: tag(10), buckets: new BigUint64Array(0), points: new Uint32Array(0) } as const;
  machine.give({ kind: 'fetched', run: machine.run, peer: 2, job, value });
  machine.give({ kind: 'readDone', run: machine.run, peer: 2, call: read(), part: { kind: 'compacted' } });
  assert.deepEqual(
    machine.all('refuse').map(({ caller, error }) => [caller, error.code]),
    [[8, 'unavailable']],
  );
});

test('a target is required from the moment on that it is asked for, and stays so until the agreed state says otherwise', () => {
  const machine = attaching(true, tag(10));
  const read = machine.all('read')[0]?.call ?? 0;
  machine.give({ kind: 'readDone', run: machine.run, peer: 2, call: read, part: { kind: 'entries', entries: [] } });
  giveSettings(machine);
  machine.give({ kind: 'require', caller: 8, peer: 2 });
  const empty = machine.callTo(2, 'append');
  assert.deepEqual([empty.request.entries.length, empty.request.until], [0, 'applied']);
  assert.deepEqual(machine.answer(2, empty.call, DONE).all('answer')[0]?.answer, true);
  machine.give({ kind: 'release', peer: 2 });
  const caller = machine.written([11]);
  assert.deepEqual(machine.acknowledged, []);
  machine.assign({ ...WITH_TARGET, replicas: new Map([[SELF, 'Active'] as const, [2, 'Dead'] as const]) });
  assert.deepEqual(machine.acknowledged, [caller]);
});

test('a write of which nobody knows whether it was logged is left open, and the own log is looked at again', () => {
  const machine = new Machine().leading(assignment({ 1: 'Active', 2: 'Active' }));
  const caller = machine.write();
  const write = machine.all('logWrite')[0]?.write ?? 0;
  machine.give({ kind: 'logFailed', run: machine.run, write, error: { code: 'storage', detail: 'the disk is full' } });
  assert.equal(machine.role, 'Locating');
  const [refused] = machine.all('refuse');
  assert.equal(refused?.caller, caller);
  assert.equal(refused?.error.outcome, 'unknown');
});

test('where nothing can be agreed a replica that is away is not waited for, until it is back', () => {
  const machine = new Machine().leading(assignment({ 1: 'Active', 2: 'Active' }));
  const fail = (): void => {
    const { role } = machine.state;
    const busy = role.kind === 'Leading' ? role.channels.get(2)?.busy : null;
    if (busy != null) machine.give({ kind: 'callFailed', run: machine.run, peer: 2, call: busy.call, error: LOST, isLost: true });
  };
  const caller = machine.written([11]);
  machine.give({ kind: 'aheadNoted', isAhead: true });
  while (machine.all('judgeAlone').length === 0) {
    fail();
    machine.ticks(1);
  }
  assert.deepEqual(machine.acknowledged, []);
  machine.give({ kind: 'aloneJudged', run: machine.run, peer: 2, isAlone: true });
  assert.deepEqual(machine.acknowledged, [caller]);
  const second = machine.written([12]);
  assert.deepEqual(machine.acknowledged, [second]);
  const copy = machine.written([13], { isCopy: true, waitsForAll: true });
  assert.deepEqual(machine.acknowledged, [], 'else a migration would end while the replica still shows points that went');
  assert.deepEqual(
    machine.all('refuse').map(({ caller: refused, error }) => [refused, error.code, error.outcome]),
    [[copy, 'unavailable', 'unknown']],
  );
  machine.ticks(1);
  machine.answer(2, machine.callTo(2, 'position').call, { kind: 'position', last: tag(10), base: NO_TAG });
  const entries = [11, 12, 13].map((index) => ({ tag: tag(index), operation: Uint8Array.of(1) }));
  machine.give({
    kind: 'readDone',
    run: machine.run,
    peer: 2,
    call: machine.all('read')[0]?.call ?? 0,
    part: { kind: 'entries', entries },
  });
  const append = machine.callTo(2, 'append');
  const third = machine.written([14]);
  assert.deepEqual(machine.acknowledged, [], 'it is waited for again');
  machine.answer(2, append.call, DONE);
  machine.answer(2, machine.callTo(2, 'append').call, DONE);
  assert.deepEqual(machine.acknowledged, [third]);
});
