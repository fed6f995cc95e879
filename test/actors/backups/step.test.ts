import assert from 'node:assert/strict';
import { test } from 'node:test';
import { type Cron, parseCron } from '../../../actors/backups/cron.js';
import type { BackupOutcome, BackupsEffect, BackupsMessage } from '../../../actors/backups/messages.js';
import type { BackupPlan } from '../../../actors/backups/plan.js';
import { type BackupsState, type PlanStatus, startingBackups } from '../../../actors/backups/state.js';
import { stepBackups } from '../../../actors/backups/step.js';

const plan = (name: string, schedule: string): BackupPlan => ({
  name,
  schedule: parseCron(schedule) as Cron,
  collections: 'all',
  keep: null,
  verify: 'none',
});
const at = (time: string): number => Date.parse(`2026-03-${time}:00Z`);
const look = (time: string): BackupsMessage => ({ kind: 'look', dateMs: at(time) });
const surveyed = (time: string, newest: Record<string, string> = {}): BackupsMessage => ({
  kind: 'surveyed',
  newest: new Map(Object.entries(newest).map(([name, made]) => [name, at(made)])),
  dateMs: at(time),
});
const ended = (time: string, outcome: Partial<BackupOutcome> = {}): BackupsMessage => ({
  kind: 'ended',
  outcome: { made: 1, bytes: 10, removed: 0, failures: [], ...outcome },
  dateMs: at(time),
  durationMs: 5,
});

/** The state after messages, and the plans that were begun, in order. */
function after(plans: readonly BackupPlan[], ...messages: readonly BackupsMessage[]) {
  let state: BackupsState = startingBackups(plans);
  const effects: BackupsEffect[] = [];
  for (const message of messages) {
    const step = stepBackups(state, message);
    state = step.state;
    effects.push(...step.effects);
  }
  const begun = effects.flatMap((effect) => (effect.kind === 'backUp' ? [effect.plan.name] : []));
  return { state, effects, begun };
}

function statusOf(state: BackupsState, name: string): PlanStatus {
  const found = state.kind === 'Starting' ? undefined : state.plans.find((status) => status.plan.name === name);
  assert.ok(found);
  return found;
}

const NIGHTLY = plan('nightly', '0 2 * * *');
const HOURLY = plan('hourly', '@hourly');

test('a plan without backups begins at its next turn, once', () => {
  const before = after([NIGHTLY], surveyed('01T12:00'), look('02T01:59'));
  assert.deepEqual(before.begun, []);
  const whole = after([NIGHTLY], surveyed('01T12:00'), look('02T02:00'), ended('02T02:01'), look('02T02:02'), look('03T01:59'));
  assert.deepEqual(whole.begun, ['nightly']);
  assert.equal(statusOf(whole.state, 'nightly').nextMs, at('03T02:00'));
});

test('turns that were missed while the node was down are made up once', () => {
  const { begun } = after([HOURLY], surveyed('03T12:30', { hourly: '01T12:00' }), look('03T12:31'), ended('03T12:32'), look('03T12:59'));
  assert.deepEqual(begun, ['hourly']);
  assert.deepEqual(after([HOURLY], surveyed('03T12:30', { hourly: '03T12:00' }), look('03T12:31')).begun, [], 'none was missed');
});

test('a date that is set ahead by a day makes one backup, and one that is set back makes none at once', () => {
  const start = [surveyed('10T12:30'), look('11T12:30'), ended('11T12:31')];
  assert.deepEqual(after([HOURLY], ...start, look('11T12:32')).begun, ['hourly']);
  const back = after([HOURLY], ...start, look('10T12:32'), look('10T12:59'));
  assert.deepEqual(back.begun, ['hourly']);
  assert.equal(statusOf(back.state, 'hourly').nextMs, at('10T13:00'), 'it does not wait for the date before');
  assert.deepEqual(after([HOURLY], ...start, look('10T12:32'), look('10T13:00')).begun, ['hourly', 'hourly']);
});

test('a date that is set back by less than an hour brings no turn again', () => {
  const { begun, state } = after([NIGHTLY], surveyed('01T12:00'), look('02T02:00'), ended('02T02:00'), look('02T01:59'), look('02T02:00'));
  assert.deepEqual(begun, ['nightly']);
  assert.equal(statusOf(state, 'nightly').nextMs, at('03T02:00'));
});

test('one plan is at work at a time, and the one that has waited longest follows', () => {
  const plans = [HOURLY, NIGHTLY, plan('early', '30 1 * * *')];
  const messages = [surveyed('02T01:10'), look('02T02:10')];
  assert.deepEqual(after(plans, ...messages).begun, ['early']);
  assert.deepEqual(after(plans, ...messages, look('02T02:11')).begun, ['early']);
  const all = after(plans, ...messages, ended('02T02:20'), ended('02T02:30'), ended('02T02:40'));
  assert.deepEqual(all.begun, ['early', 'hourly', 'nightly']);
  assert.equal(all.state.kind, 'Waiting');
});

test('turns that come while the plan itself is at work are left out', () => {
  const { begun, state } = after([HOURLY], surveyed('02T01:10'), look('02T02:00'), look('02T03:00'), ended('02T04:30'), look('02T04:31'));
  assert.deepEqual(begun, ['hourly']);
  assert.equal(statusOf(state, 'hourly').nextMs, at('02T05:00'));
});

test('a turn with a failure is counted, is no success, and is tried again at the next turn', () => {
  const failed = ended('02T02:01', { made: 0, failures: ['no room'] });
  const { begun, state } = after([NIGHTLY], surveyed('02T01:00', { nightly: '01T02:00' }), look('02T02:00'), failed, look('02T02:30'));
  assert.deepEqual(begun, ['nightly']);
  const status = statusOf(state, 'nightly');
  assert.equal(status.failures, 1);
  assert.equal(status.lastSuccessMs, at('01T02:00'));
  assert.deepEqual(status.last?.failures, ['no room']);
  assert.equal(status.nextMs, at('03T02:00'));
});

test('what a turn has done is shown when it ends', () => {
  const { effects } = after([NIGHTLY], surveyed('02T01:00'), look('02T02:00'), ended('02T02:01', { removed: 3 }));
  const shown = effects.findLast((effect) => effect.kind === 'show');
  assert.deepEqual(
    shown?.plans.map(({ last, lastSuccessMs }) => [last?.removed, last?.bytes, lastSuccessMs]),
    [[3, 10, at('02T02:01')]],
  );
});

test('each look is followed by another one, also while a plan is at work', () => {
  const count = (...messages: readonly BackupsMessage[]) =>
    after([NIGHTLY], surveyed('02T01:00'), ...messages).effects.filter(({ kind }) => kind === 'wakeLater').length;
  assert.equal(count(), 1);
  assert.equal(count(look('02T01:01')), 2);
  assert.equal(count(look('02T02:00'), look('02T02:01')), 3);
  assert.deepEqual(after([NIGHTLY], surveyed('02T01:00'), { kind: 'woke' }).effects.at(-1), { kind: 'askDate' });
});
