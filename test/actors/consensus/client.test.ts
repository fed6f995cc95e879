import assert from 'node:assert/strict';
import { test } from 'node:test';
import { type ConsensusClient, consensusClient } from '../../../actors/consensus/client.js';
import type { ConsensusLink } from '../../../actors/consensus/link.js';
import { ConsensusView } from '../../../actors/consensus/view.js';
import { CallStats } from '../../../actors/context/call-stats.js';
import { Assignments } from '../../../actors/shard-log/assignments.js';
import { TransferBoard } from '../../../actors/transfers/board.js';
import { TroupeError } from '../../../protocols/errors.js';

const CLOCK = { nowMs: () => 0, dateMs: () => 0 };

function nodeWith(view: ConsensusView): ConsensusClient {
  const counts = { calls: { made: new CallStats(), answered: new CallStats() }, board: new TransferBoard() };
  return consensusClient({
    view,
    clock: CLOCK,
    timers: { after: () => () => {} },
    tickMs: 100,
    link: {} as ConsensusLink,
    replicas: () => [],
    ...counts,
  });
}

/** The outcome that a caller hears when the actor's end is this error. */
async function heard(error: TroupeError): Promise<string> {
  const view = new ConsensusView(CLOCK, new Assignments());
  view.actor = { path: '/node/$consensus', tell: () => 'sent', report: () => 'sent', ask: () => Promise.reject(error) };
  const { submit } = nodeWith(view);
  const submission = { kind: 'operation', operation: { kind: 'deleteCollection', name: 'a' } } as const;
  return submit(submission, 1000).then(
    () => 'done',
    ({ outcome }: TroupeError) => outcome,
  );
}

test('who waits while consensus crashes or ends is not told that nothing happened: what was proposed goes on without it', async () => {
  assert.equal(await heard(new TroupeError('unavailable', '/node/$consensus is stopped', { reason: 'actorCrashed' })), 'unknown');
  assert.equal(await heard(new TroupeError('internal', 'x is not a function')), 'unknown');
  assert.equal(await heard(new TroupeError('unavailable', 'the cluster has no leader')), 'none');
});

test('who asks before there is an actor hears so from the promise, never by a throw', async () => {
  const { api, propose } = nodeWith(new ConsensusView(CLOCK, new Assignments()));
  const starting = { code: 'unavailable', detail: 'the node is starting' };
  await assert.rejects(api.recover(1000), starting);
  await assert.rejects(api.barrier(1000), starting);
  await assert.rejects(propose({ kind: 'noop' }, 1000), starting);
});
