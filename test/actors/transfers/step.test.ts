import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Sight, TransfersEffect, TransfersMessage } from '../../../actors/transfers/messages.js';
import type { TransfersSettings, TransfersState } from '../../../actors/transfers/state.js';
import { startTransfers, stepTransfers } from '../../../actors/transfers/step.js';
import type { ReshardingStage } from '../../../cluster/state/commands.js';
import type { ClusterState, CollectionRecord } from '../../../cluster/state/state.js';
import { configOf } from '../../cluster/samples.js';
import { stateOf } from '../../cluster/transfer/support.js';

const SETTINGS = { limits: { incoming: 1, outgoing: 1 }, comparePeriodTicks: 3, restTicks: 0 };
const UNDER_WAY = stateOf([{ 1: 'Active', 2: 'Partial' }], [{}]);

class Watch {
  state: TransfersState;

  constructor(settings: Partial<TransfersSettings> = {}) {
    this.state = startTransfers({ ...SETTINGS, ...settings }).state;
  }

  hear(message: TransfersMessage): string[] {
    const { effects, state } = stepTransfers(this.state, message);
    this.state = state;
    return effects.map(worded);
  }

  see(agreed: ClusterState | null, given: Partial<Sight> = {}): string[] {
    return this.hear({
      kind: 'saw',
      sight: { agreed, self: 1, leads: false, reachable: new Set([1, 2, 3]), full: new Set(), givingBack: [], asked: new Set(), ...given },
    });
  }
}

function worded(effect: TransfersEffect): string {
  switch (effect.kind) {
    case 'startMigration':
      return `migrate ${effect.task.shardId} in term ${effect.task.term}`;
    case 'stopMigration':
      return `end migration of ${effect.task.shardId}${effect.error === null ? '' : `: ${effect.error.detail}`}`;
    case 'startRun':
      return `start ${effect.run.transfer.to}`;
    case 'stopRun':
      return `stop ${effect.run.transfer.to}: ${effect.outcome}${effect.release ? ', release' : ''}`;
    case 'propose':
      return `propose ${effect.operations.map(({ kind }) => kind).join(' ')}`;
    case 'handOver':
      return `lead of ${effect.handOver.shardId}: ${effect.handOver.from} → ${effect.handOver.to}`;
    case 'giveBack':
      return `give shard ${effect.lead.shardId} back to ${effect.lead.to}`;
    case 'compare':
      return `compare ${effect.comparison.shardId} on ${effect.comparison.peerId}`;
    default:
      return effect.kind;
  }
}

test('a run begins when its transfer is agreed and ends when it stands there no more', () => {
  const watch = new Watch();
  assert.deepEqual(watch.see(UNDER_WAY), ['start 2']);
  assert.deepEqual(watch.see(UNDER_WAY), []);
  assert.deepEqual(watch.see(stateOf([{ 1: 'Active', 2: 'Active' }])), ['stop 2: finished']);
});

test('the target of a transfer that was aborted or restarted is let go, and one of another term never', () => {
  const watch = new Watch();
  watch.see(UNDER_WAY);
  assert.deepEqual(watch.see(stateOf([{ 1: 'Active', 2: 'Partial' }], [{ startedAt: 20 }])), ['stop 2: restarted, release', 'start 2']);
  assert.deepEqual(watch.see(stateOf([{ 1: 'Active' }])), ['stop 2: aborted, release']);
  watch.see(UNDER_WAY);
  assert.deepEqual(watch.see(stateOf([{ 1: 'Active', 2: 'Partial', 3: 'Active' }], [{}], { 0: 3 })), ['stop 2: left']);
});

test('a node that is part of its cluster no more carries nothing out', () => {
  const watch = new Watch();
  watch.see(UNDER_WAY);
  assert.deepEqual(watch.see(null), ['stop 2: left']);
});

test('healing is proposed by the leader of consensus alone, once at a time', () => {
  const watch = new Watch();
  const dead = stateOf([{ 1: 'Active', 2: 'Dead' }]);
  assert.deepEqual(watch.see(dead), []);
  assert.deepEqual(watch.see(dead, { leads: true }), ['propose startTransfer']);
  assert.deepEqual(watch.see(dead, { leads: true }), []);
});

test('leads whose files are gone are given back one at a time, to peers that answer, and after a pause again', () => {
  const watch = new Watch();
  const agreed = stateOf([{ 1: 'Active', 2: 'Dead' }]);
  const lead = { collection: 'cities', uid: 5, shardId: 0, from: 1, to: 2, term: 3, since: 1 };
  const far = { ...lead, shardId: 1, to: 4 };
  const given = { givingBack: [lead, far] };
  assert.deepEqual(watch.see(agreed, { givingBack: [far] }), []);
  assert.deepEqual(watch.see(agreed, given), ['give shard 0 back to 2']);
  assert.deepEqual(watch.see(agreed, given), []);
  assert.deepEqual(watch.hear({ kind: 'gaveBack', lead, error: { code: 'unavailable', detail: 'away' } }), ['tellGivenBack']);
  const looks = [0, 1, 2, 3, 4].map(() => watch.see(agreed, given).length);
  assert.deepEqual(looks, [0, 0, 0, 0, 1]);
});

test('digests are compared one at a time, and again after a period', () => {
  const watch = new Watch();
  const whole = stateOf([
    { 1: 'Active', 2: 'Active' },
    { 1: 'Active', 3: 'Active' },
  ]);
  const seen = [0, 1, 2, 3, 4].map(() => watch.see(whole));
  assert.deepEqual(seen, [[], [], [], ['compare 0 on 2'], []]);
  const comparison = watch.state.comparison;
  assert.ok(comparison);
  assert.deepEqual(watch.hear({ kind: 'comparisonEnded', comparison, differences: 0, repaired: 0, error: null }), ['count']);
  assert.deepEqual(watch.see(whole), ['compare 1 on 3']);
});

test('a comparison that was asked for goes before those that are due, waits for a transfer of its shard, and is forgotten with its replica', () => {
  const watch = new Watch({ comparePeriodTicks: 0 });
  const whole = { 1: 'Active', 2: 'Active', 3: 'Listener' } as const;
  const asked = new Set(['5/0/3', '5/0/2', '5/1/3']);
  assert.deepEqual(watch.see(stateOf([whole], [{ to: 4 }]), { asked }), ['forgetAsked'], 'shard 1 is not there');
  asked.delete('5/1/3');
  assert.deepEqual(watch.see(stateOf([whole]), { asked }), ['compare 0 on 3']);
  asked.delete('5/0/3');
  assert.deepEqual(watch.see(stateOf([whole]), { asked }), [], 'one at a time');
  const { comparison } = watch.state;
  assert.ok(comparison);
  watch.hear({ kind: 'comparisonEnded', comparison, differences: 0, repaired: 0, error: null });
  assert.deepEqual(watch.see(stateOf([{ 1: 'Active', 2: 'Dead' }]), { asked }), ['forgetAsked'], 'it gets a transfer');
});

test('a transfer whose actor cannot be kept alive is aborted', () => {
  const watch = new Watch();
  watch.see(UNDER_WAY);
  const [name] = watch.state.runs.keys();
  assert.ok(name !== undefined);
  const gaveUp = { kind: 'childGaveUp', name, error: { code: 'internal', detail: 'no' } } as const;
  assert.deepEqual(watch.hear(gaveUp), ['stop 2: aborted', 'propose abortTransfer']);
  // It is not agreed: a transfer that nobody carries out would stand for ever.
  assert.deepEqual(watch.see(UNDER_WAY), ['start 2']);
});

/** Two shards, led by peer 1 and peer 2, whose points go to a third one. */
function migrating(stage: ReshardingStage | null, done: readonly number[] = [], term = 3): ClusterState {
  const state = stateOf([{ 1: 'Active' }, { 2: 'Active' }, { 1: 'Active' }]);
  const record = state.collections.get('cities') as CollectionRecord;
  const shards = new Map([...record.shards].map(([id, shard]) => [id, id === 0 ? { ...shard, term } : shard]));
  const resharding = stage && { direction: 'up', key: null, peerId: null, shardId: 2, stage, done, startedAt: 9 };
  return { ...state, collections: new Map([['cities', { ...record, closedKeys: [], shards, resharding } as CollectionRecord]]) };
}

test('a migration of a shard that is led here has one actor over all stages, and another one in another term', () => {
  const watch = new Watch();
  assert.deepEqual(watch.see(migrating('copying')), ['migrate 0 in term 3']);
  for (const same of [migrating('copying', [0]), migrating('switching')]) assert.deepEqual(watch.see(same), []);
  assert.deepEqual(watch.see(migrating('switching', [], 4)), ['end migration of 0', 'migrate 0 in term 4']);
  assert.deepEqual(watch.see(migrating(null)), ['end migration of 0']);
  watch.see(migrating('cleaning'));
  assert.deepEqual(watch.see(null), ['end migration of 0']);
});

test('a migration whose actor cannot be kept alive begins again', () => {
  const watch = new Watch();
  watch.see(migrating('copying'));
  const [name] = watch.state.migrations.keys();
  assert.ok(name !== undefined);
  assert.deepEqual(watch.hear({ kind: 'childGaveUp', name, error: { code: 'internal', detail: 'no' } }), ['end migration of 0: no']);
  assert.deepEqual(watch.see(migrating('copying')), ['migrate 0 in term 3']);
  // Nobody knows such a child any more.
  assert.deepEqual(watch.hear({ kind: 'childGaveUp', name: 'other', error: { code: 'internal', detail: 'no' } }), []);
});

/** Two shards that peer 2 leads. */
const UNEVEN = stateOf(
  [
    { 2: 'Active', 3: 'Active' },
    { 2: 'Active', 3: 'Active' },
  ],
  [],
  { 0: 2, 1: 2 },
);
const SPREADS = { comparePeriodTicks: 0, restTicks: 10 };

test('the leader of consensus has a lead handed over once all was at rest for a while, and one at a time', () => {
  const watch = new Watch(SPREADS);
  const many = (count: number, agreed: ClusterState, given: Partial<Sight>) =>
    Array.from({ length: count }, () => watch.see(agreed, given)).flat();
  assert.deepEqual(many(30, UNEVEN, { leads: false }), []);
  assert.deepEqual(many(9, UNEVEN, { leads: true }), []);
  assert.deepEqual(many(20, UNEVEN, { leads: true }), ['lead of 0: 2 → 3']);
  const handOver = { collection: 'c', uid: 1, shardId: 0, from: 2, to: 3, term: 1 };
  assert.deepEqual(watch.hear({ kind: 'handedOver', handOver, why: 'spread', error: null }), ['countHandOver']);
  const even = stateOf(
    [
      { 2: 'Active', 3: 'Active' },
      { 2: 'Active', 3: 'Active' },
    ],
    [],
    { 0: 3, 1: 2 },
  );
  assert.deepEqual(many(30, even, { leads: true }), []);
});

test('the leader of consensus has the leads of a full disk handed over without a rest, each look once those before are done, and none back', () => {
  const watch = new Watch(SPREADS);
  const given = { leads: true, full: new Set([2]) };
  const many = (count: number, agreed: ClusterState, sight: Partial<Sight>) =>
    Array.from({ length: count }, () => watch.see(agreed, sight)).flat();
  assert.deepEqual(many(10, UNEVEN, { ...given, leads: false }), []);
  assert.deepEqual(many(10, UNEVEN, { ...given, full: new Set([2, 3]) }), [], 'nobody has room');
  const both = ['lead of 0: 2 → 3', 'lead of 1: 2 → 3'];
  assert.deepEqual(many(10, UNEVEN, given), both);
  const done = (shardId: number, error: null | { code: 'conflict'; detail: string } = null) =>
    watch.hear({ kind: 'handedOver', handOver: { collection: 'c', uid: 1, shardId, from: 2, to: 3, term: 1 }, why: 'full', error });
  done(0, { code: 'conflict', detail: 'writes wait' });
  assert.deepEqual(many(10, UNEVEN, given), [], 'the other one is under way');
  done(1);
  assert.deepEqual(many(5, UNEVEN, given), both, 'what could not be handed over is tried again');
  done(0);
  done(1);
  const led = stateOf(
    [
      { 2: 'Active', 3: 'Active' },
      { 2: 'Active', 3: 'Active' },
    ],
    [],
    { 0: 3, 1: 3 },
  );
  assert.deepEqual(many(40, led, given), [], 'nothing comes back while the disk is full');
  assert.deepEqual(many(20, led, { ...given, full: new Set() }), ['lead of 0: 3 → 2']);
});

test('a transfer, and a hand-over that failed, begin the rest anew; without a rest nothing is spread', () => {
  const watch = new Watch(SPREADS);
  const lead = { leads: true, self: 1 };
  for (let look = 0; look < 9; look++) watch.see(UNEVEN, lead);
  const busy = stateOf(
    [
      { 2: 'Active', 3: 'Partial' },
      { 2: 'Active', 3: 'Active' },
    ],
    [{ from: 2, to: 3 }],
    { 0: 2, 1: 2 },
  );
  watch.see(busy, lead);
  for (let look = 0; look < 9; look++) assert.deepEqual(watch.see(UNEVEN, lead), []);
  const seen = Array.from({ length: 6 }, () => watch.see(UNEVEN, lead)).flat();
  assert.deepEqual(seen, ['lead of 0: 2 → 3']);
  const handOver = { collection: 'c', uid: 1, shardId: 0, from: 2, to: 3, term: 1 };
  watch.hear({ kind: 'handedOver', handOver, why: 'spread', error: { code: 'timeout', detail: 'writes wait' } });
  for (let look = 0; look < 9; look++) assert.deepEqual(watch.see(UNEVEN, lead), []);
  const never = new Watch({ ...SPREADS, restTicks: 0 });
  for (let look = 0; look < 40; look++) assert.deepEqual(never.see(UNEVEN, lead), []);
});

/** `UNEVEN`, as peer 2 is drained: its replicas are dropped, as everybody has the shards. */
const DRAINED: ClusterState = {
  ...UNEVEN,
  membership: [2, 3].map((peerId) => ({ peerId, uri: '', version: '', voter: true })),
  marks: new Map([[2, { listens: false, leaving: 'drain' }]]),
  collections: new Map([...UNEVEN.collections].map(([name, record]) => [name, { ...record, config: configOf({ replication_factor: 2 }) }])),
};

test('a lead that has to go but cannot is tried ever more rarely, and at once when it had not to go in between', () => {
  const uid = UNEVEN.collections.get('cities')?.uid ?? 0;
  const needs = [
    // Both leads of a full disk at a time.
    { why: 'full', agreed: UNEVEN, full: new Set([2]), soon: 2 },
    { why: 'leaving', agreed: DRAINED, full: new Set<number>(), soon: 1 },
  ] as const;
  for (const { agreed, full, soon, why } of needs) {
    const watch = new Watch({ ...SPREADS, restTicks: 0 });
    const triesIn = (looks: number): number => {
      let tries = 0;
      for (let look = 0; look < looks; look++) {
        const leads = watch.see(agreed, { leads: true, full });
        tries += leads.length;
        for (const lead of leads) {
          const handOver = { collection: 'cities', uid, shardId: Number(/\d+/.exec(lead)?.[0]), from: 2, to: 3, term: 1 };
          watch.hear({ kind: 'handedOver', handOver, why, error: { code: 'timeout', detail: 'no' } });
        }
      }
      return tries;
    };
    assert.equal(triesIn(600), 2 * 7, `${why}: of two shards, first at looks 5, 10, 20, 40, 80, 160 and 320`);
    watch.see(UNEVEN, { leads: true });
    assert.equal(triesIn(5), soon, why);
  }
});

test('a drained peer whose lead cannot be handed over keeps no full disk from being left', () => {
  const watch = new Watch({ ...SPREADS, restTicks: 0 });
  const sight = { leads: true, full: new Set([2]) };
  const seen = Array.from({ length: 40 }, () => {
    const leads = watch.see(DRAINED, sight);
    for (const lead of leads) {
      const handOver = { collection: 'cities', uid: 5, shardId: Number(/\d+/.exec(lead)?.[0]), from: 2, to: 3, term: 1 };
      watch.hear({ kind: 'handedOver', handOver, why: 'leaving', error: { code: 'timeout', detail: 'no' } });
    }
    return leads.length;
  });
  assert.ok(seen.includes(2), 'both leads at once, as those of a full disk go');
});
