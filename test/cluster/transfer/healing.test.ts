import assert from 'node:assert/strict';
import { test } from 'node:test';
import { type HealingTries, planHealing } from '../../../cluster/transfer/healing.js';
import { stateOf } from './support.js';

const ALL = new Set([1, 2, 3, 4]);
const ONE = { incoming: 1, outgoing: 1 };
const ANY = { incoming: null, outgoing: null };
const NOBODY: ReadonlySet<number> = new Set();
const NO_TRIES: HealingTries = new Map();

function plan(
  state: ReturnType<typeof stateOf>,
  reachable = ALL,
  limits: Parameters<typeof planHealing>[2] = ANY,
  tries = NO_TRIES,
  tick = 100,
  full: ReadonlySet<number> = NOBODY,
) {
  const { operations, tries: next } = planHealing(state, { reachable, full }, limits, tries, tick);
  return {
    lines: operations.map(
      ({ method, sync, transfer: { from, shardId, to } }) => `${shardId}: ${from} → ${to} ${method}${sync ? ' sync' : ''}`,
    ),
    next,
  };
}

test('a Dead replica gets the delta from its shard’s leader when its peer answers', () => {
  assert.deepEqual(plan(stateOf([{ 1: 'Active', 2: 'Dead' }])).lines, ['0: 1 → 2 wal_delta sync']);
});

test('nothing is started for peers that do not answer, from leaders that do not, and where no replica leads', () => {
  assert.deepEqual(plan(stateOf([{ 1: 'Active', 2: 'Dead' }]), new Set([1])).lines, []);
  assert.deepEqual(plan(stateOf([{ 1: 'Active', 2: 'Dead' }]), new Set([2])).lines, []);
  assert.deepEqual(plan(stateOf([{ 1: 'Dead', 2: 'Dead' }])).lines, []);
});

test('a replica on a full disk stays Dead until its peer has room, and is filled at once then', () => {
  const state = stateOf([{ 1: 'Active', 2: 'Dead', 3: 'Dead' }]);
  const { lines, next } = plan(state, ALL, ANY, NO_TRIES, 100, new Set([2]));
  assert.deepEqual(lines, ['0: 1 → 3 wal_delta sync']);
  assert.deepEqual(plan(state, ALL, ANY, next, 101).lines, ['0: 1 → 2 wal_delta sync']);
  // What its source has no room for, is nothing to the copy.
  assert.deepEqual(plan(stateOf([{ 1: 'Active', 2: 'Dead' }]), ALL, ANY, NO_TRIES, 100, new Set([1])).lines, ['0: 1 → 2 wal_delta sync']);
});

test('replicas that are on their way, restored by hand or well are left alone', () => {
  assert.deepEqual(plan(stateOf([{ 1: 'Active', 2: 'Partial', 3: 'ManualRecovery', 4: 'Listener' }])).lines, []);
});

test('a peer gets, and gives, no more automatic transfers of a collection than the limits say', () => {
  const state = stateOf([
    { 1: 'Active', 2: 'Dead' },
    { 1: 'Active', 3: 'Dead' },
    { 3: 'Active', 2: 'Dead' },
    { 4: 'Active', 1: 'Dead' },
  ]);
  assert.deepEqual(plan(state, ALL, ONE).lines, ['0: 1 → 2 wal_delta sync', '3: 4 → 1 wal_delta sync']);
  assert.equal(plan(state, ALL, ANY).lines.length, 4);
  assert.equal(plan(state, ALL, { incoming: 0, outgoing: null }).lines.length, 0);
});

test('a transfer that somebody asked for takes its place among the limits', () => {
  const state = stateOf(
    [
      { 1: 'Active', 2: 'Dead' },
      { 1: 'Active', 2: 'Partial' },
    ],
    [{ shardId: 1, from: 1, to: 2 }],
  );
  assert.deepEqual(plan(state, ALL, ONE).lines, []);
});

test('tries that led nowhere come further and further apart, and are forgotten when the replica is well', () => {
  const dead = stateOf([{ 1: 'Active', 2: 'Dead' }]);
  let tries = NO_TRIES;
  const started: number[] = [];
  for (let tick = 0; tick < 200; tick += 1) {
    const { lines, next } = plan(dead, ALL, ANY, tries, tick);
    if (lines.length > 0) started.push(tick);
    tries = next;
  }
  assert.deepEqual(started, [0, 10, 30, 70, 150]);
  const { next } = plan(stateOf([{ 1: 'Active', 2: 'Active' }]), ALL, ANY, tries, 200);
  assert.equal(next.size, 0);
});

test('a transfer under way keeps what is known of the tries before it', () => {
  const tries = plan(stateOf([{ 1: 'Active', 2: 'Dead' }])).next;
  assert.deepEqual(plan(stateOf([{ 1: 'Active', 2: 'Recovery' }]), ALL, ANY, tries).next, tries);
});
