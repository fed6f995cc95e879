import assert from 'node:assert/strict';
import { test } from 'node:test';
import { runName, runOutcomeOf, type TransferRun, wantedRuns } from '../../../cluster/transfer/runs.js';
import { stateOf, transferOf } from './support.js';

const UNDER_WAY = stateOf([{ 1: 'Active', 2: 'Partial', 3: 'Active' }], [{ from: 3, to: 2, sync: false }]);

function onlyRun(): TransferRun {
  const [run] = [...wantedRuns(UNDER_WAY, 1).values()];
  assert.ok(run);
  return run;
}

test('the node of the shard’s leader runs a transfer, whatever replica it is from', () => {
  assert.equal(wantedRuns(UNDER_WAY, 1).size, 1);
  assert.equal(wantedRuns(UNDER_WAY, 3).size, 0);
  assert.equal(wantedRuns(UNDER_WAY, 2).size, 0);
});

test('a restart, and another term, make another run', () => {
  const run = onlyRun();
  const names = [run, { ...run, term: 4 }, { ...run, transfer: { ...run.transfer, startedAt: 11 } }].map(runName);
  assert.equal(new Set(names).size, 3);
});

test('transfers between shards are none of these', () => {
  const state = stateOf([{ 1: 'Active', 2: 'Resharding' }], [{ toShardId: 1 }]);
  assert.equal(wantedRuns(state, 1).size, 0);
});

test('what a run came to is read from the agreed state', () => {
  const run = onlyRun();
  assert.equal(runOutcomeOf(stateOf([{ 1: 'Active', 2: 'Active' }]), run), 'finished');
  assert.equal(runOutcomeOf(stateOf([{ 1: 'Active', 3: 'Active' }]), run), 'aborted');
  assert.equal(runOutcomeOf(stateOf([{ 1: 'Active', 2: 'Dead', 3: 'Active' }]), run), 'aborted');
  const again = transferOf({ from: 3, to: 2, startedAt: 12 });
  assert.equal(runOutcomeOf(stateOf([{ 1: 'Active', 2: 'Partial', 3: 'Active' }], [again]), run), 'restarted');
  assert.equal(runOutcomeOf(stateOf([{ 1: 'Dead', 2: 'Partial', 3: 'Active' }], [run.transfer]), run), 'left');
  assert.equal(runOutcomeOf({ ...UNDER_WAY, collections: new Map() }, run), 'aborted');
});
