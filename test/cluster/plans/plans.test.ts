/** Plans as text: what moves where, and what each peer holds before and after. */

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { planDrain } from '../../../cluster/plans/drain.js';
import { type Sizes, shardName } from '../../../cluster/plans/layout.js';
import { planLeaving } from '../../../cluster/plans/leadership.js';
import { nextStep } from '../../../cluster/plans/next.js';
import { balanceOf, type Plan } from '../../../cluster/plans/plan.js';
import { planRebalance } from '../../../cluster/plans/rebalance.js';
import { replacedPeer } from '../../../cluster/plans/replaced.js';
import { planReplication } from '../../../cluster/plans/replication.js';
import type { ClusterCommand } from '../../../cluster/state/commands.js';
import type { ClusterState } from '../../../cluster/state/state.js';
import type { PeerId } from '../../../protocols/model/cluster.js';
import { configOf, Log, printShards } from '../samples.js';

const LIMITS = { incoming: 1, outgoing: 1, method: 'stream_records' } as const;
const nobody = () => false;

/** Collection `a` whose replicas are Active where `placement` has them. */
function cluster(peers: readonly PeerId[], factor: number, placement: readonly (readonly PeerId[])[]): Log {
  const log = new Log(peers);
  log.propose({ kind: 'createCollection', name: 'a', config: configOf({ replication_factor: factor }), placement });
  const all = placement.flatMap((held, shardId) => held.map((peerId) => ({ shardId, peerId })));
  set(log, 'Active', ...all.map(({ peerId, shardId }) => [shardId, peerId] as const));
  return log;
}

function set(log: Log, to: 'Active' | 'Dead', ...replicas: readonly (readonly [shardId: number, peerId: PeerId])[]): void {
  const changes = replicas.map(([shardId, peerId]) => ({ collection: 'a', uid: 2, shardId, peerId, from: null, to, term: null }));
  assert.equal(log.say({ kind: 'setReplicaStates', changes }), 'done');
}

function printPlan(state: ClusterState, plan: Plan, sizes: Sizes = new Map()): string {
  const { after, before } = balanceOf(state, plan, sizes);
  const loads = (balance: typeof before) =>
    [...balance].map(([peerId, { bytes, replicas }]) => `${peerId}: ${replicas} (${bytes})`).join(', ');
  return [
    ...plan.moves.map(({ collection, from, shardId, to }) => `${collection}/${shardId}: ${from ?? 'copy'} → ${to ?? 'dropped'}`),
    ...plan.stuck.map(({ collection, reason, shardId }) => `${collection}/${shardId} stays: ${reason}`),
    `before ${loads(before)}`,
    `after  ${loads(after)}`,
  ].join('\n');
}

/** Carries out what the leader would, each transfer at once, and prints it. */
function carryOut(log: Log, isGone: (peerId: PeerId) => boolean = nobody, isLost = isGone): string[] {
  const lines: string[] = [];
  for (let steps = 0; steps < 50; steps++) {
    const leaving = planLeaving(log.state, (peerId) => !isGone(peerId));
    if (leaving !== null) {
      const { term, collection, from, shardId, to, uid } = leaving;
      assert.equal(log.say({ kind: 'changeLeader', collection, uid, shardId, to, term }), 'done');
      lines.push(`lead ${shardId}: ${from} → ${to}`);
    }
    const step = nextStep(log.state, LIMITS, isGone, isLost);
    if (step === null) return lines;
    if (step.kind === 'remove') {
      log.membership(log.state.membership.map(({ peerId }) => peerId).filter((peerId) => peerId !== step.peerId));
      lines.push(`remove ${step.peerId}`);
      continue;
    }
    lines.push(inWords(step.operation));
    assert.equal(log.say(step.operation), 'done');
    const { operation } = step;
    if (operation.kind === 'startTransfer') log.say({ kind: 'finishTransfer', collection: 'a', transfer: operation.transfer, term: null });
  }
  throw new Error(`no end: ${lines.join(', ')}`);
}

function inWords(command: ClusterCommand): string {
  if (command.kind === 'startTransfer') {
    const { from, shardId, to } = command.transfer;
    return `${command.sync ? 'copy' : 'move'} ${shardId}: ${from} → ${to}`;
  }
  return command.kind === 'dropReplica' ? `drop ${command.shardId} on ${command.peerId}` : command.kind;
}

test('what a peer has moves to those with the fewest of the collection, and is dropped where everybody has it', () => {
  const log = cluster([11, 12, 13], 2, [
    [11, 12],
    [12, 13],
    [11, 13],
    [11, 12, 13],
  ]);
  assert.equal(
    printPlan(log.state, planDrain(log.state, 11)),
    `
a/0: 11 → 13
a/2: 11 → 12
a/3: 11 → dropped
before 11: 3 (0), 12: 3 (0), 13: 3 (0)
after  11: 0 (0), 12: 4 (0), 13: 4 (0)`.trim(),
  );
});

test('what has nowhere to go is named', () => {
  const log = cluster([11, 12], 1, [[11], [12]]);
  log.propose({ kind: 'markPeer', peerId: 12, listens: true, leaving: null });
  assert.match(printPlan(log.state, planDrain(log.state, 11)), /^a\/0 stays: no other peer can take it: let one join first\n/);
});

test('a lost peer is drained by copies of what others have, and what nobody has stays', () => {
  const log = cluster([11, 12, 13], 2, [[11, 12], [11, 13], [11]]);
  set(log, 'Dead', [0, 11], [1, 11], [2, 11]);
  const plan = printPlan(log.state, planDrain(log.state, 11));
  assert.match(plan, /^a\/0: copy → 13\na\/1: copy → 12\na\/2 stays: none of its replicas is Active/);
  log.propose({ kind: 'markPeer', peerId: 11, listens: null, leaving: 'drain' });
  assert.deepEqual(
    carryOut(log, (peerId) => peerId === 11),
    ['copy 0: 12 → 13', 'drop 0 on 11', 'copy 1: 13 → 12', 'drop 1 on 11'],
  );
  assert.equal(printShards(log.state, 'a'), '0: 12 Active, 13 Active\n1: 13 Active, 12 Active\n2: 11 Dead');
});

test('draining goes on until nothing is left, one transfer at a time, and removes the peer', () => {
  const log = cluster([11, 12, 13], 1, [[11], [12], [11], [13]]);
  log.propose({ kind: 'markPeer', peerId: 11, listens: null, leaving: 'drain' });
  const first = nextStep(log.state, LIMITS, nobody, nobody);
  assert.ok(first?.kind === 'operation');
  log.propose(first.operation);
  assert.equal(nextStep(log.state, LIMITS, nobody, nobody), null, 'one is under way');
  assert.notEqual(nextStep(log.state, { ...LIMITS, incoming: null, outgoing: null }, nobody, nobody), null);
  const started = first.operation;
  assert.ok(started.kind === 'startTransfer');
  log.propose({ kind: 'finishTransfer', collection: 'a', transfer: started.transfer, term: null });
  assert.deepEqual(carryOut(log), ['move 2: 11 → 13', 'remove 11']);
  assert.equal(log.state.marks.size, 0);
  assert.equal(printShards(log.state, 'a'), '0: 12 Active\n1: 12 Active\n2: 13 Active\n3: 13 Active');
});

test('a new peer gets its share by bytes, and a balanced cluster is left alone', () => {
  const log = cluster([11, 12, 13], 1, [[11], [11], [11], [12], [12], [12]]);
  const sizes = new Map([9, 4, 5, 6, 6, 6].map((mebibytes, shardId) => [shardName(2, shardId), mebibytes << 20]));
  const plan = planRebalance(log.state, sizes);
  assert.equal(
    printPlan(log.state, plan, sizes),
    `
a/0: 11 → 13
a/3: 12 → 13
before 11: 3 (18874368), 12: 3 (18874368), 13: 0 (0)
after  11: 2 (9437184), 12: 2 (12582912), 13: 2 (15728640)`.trim(),
  );
  log.propose({ kind: 'planMoves', moves: plan.moves });
  assert.deepEqual(carryOut(log), ['move 0: 11 → 13', 'move 3: 12 → 13']);
  assert.deepEqual(planRebalance(log.state, sizes).moves, []);
  assert.deepEqual(log.state.plannedMoves, []);
});

test('moves that are not possible any more are left out of what was planned', () => {
  const log = cluster([11, 12], 1, [[11], [11]]);
  const move = (uid: number, shardId: number) => ({ collection: 'a', uid, shardId, from: 11, to: 12 });
  log.propose({ kind: 'planMoves', moves: [move(1, 0), move(2, 1), move(2, 7)] });
  assert.deepEqual(carryOut(log), ['planMoves', 'move 1: 11 → 12']);
});

test('where the number of replicas is kept, missing ones are made and superfluous ones dropped, the leader last', () => {
  const log = cluster([11, 12, 13], 3, [[11, 12], [12], [13]]);
  assert.deepEqual(planReplication(log.state, nobody, nobody).moves, [], 'not where it was not asked for');
  log.propose({ kind: 'setAutoReplication', collection: 'a', enabled: true });
  assert.deepEqual(carryOut(log), ['copy 0: 11 → 13', 'copy 1: 12 → 11', 'copy 1: 12 → 13', 'copy 2: 13 → 11', 'copy 2: 13 → 12']);
  const record = log.state.collections.get('a');
  const config = configOf({ replication_factor: 1 });
  log.propose({ kind: 'updateCollection', name: 'a', config, basedOn: record?.revision ?? 0 });
  const leaders = [...(record?.shards.values() ?? [])].map(({ leader }) => leader);
  assert.equal(carryOut(log).length, 6);
  assert.equal(printShards(log.state, 'a'), leaders.map((leader, shardId) => `${shardId}: ${leader} Active`).join('\n'));
});

test('a Dead replica is healed where it is until its peer is lost, not merely away, and replaced elsewhere then', () => {
  const log = cluster([11, 12, 13], 2, [[11, 12]]);
  log.propose({ kind: 'setAutoReplication', collection: 'a', enabled: true });
  set(log, 'Dead', [0, 11]);
  assert.deepEqual(carryOut(log), []);
  const isFirst = (peerId: PeerId) => peerId === 11;
  assert.deepEqual(carryOut(log, isFirst, nobody), [], 'a restart copies nothing elsewhere');
  assert.deepEqual(carryOut(log, isFirst), ['copy 0: 12 → 13', 'drop 0 on 11']);
});

test('a peer is replaced when another one answers at its address and it has long been silent, and once only', () => {
  const member = (peerId: PeerId, port: number, slash = '') => ({
    peerId,
    uri: `http://node:${port}${slash}`,
    version: '0.5.0',
    voter: true,
  });
  const state = { membership: [member(11, 1), member(12, 2), member(13, 1, '/'), member(14, 4)], marks: new Map() };
  const lost = (...peers: PeerId[]) => {
    const isLost = (peerId: PeerId) => peers.includes(peerId);
    return replacedPeer(state, isLost, (peerId) => !isLost(peerId));
  };
  assert.equal(lost(), null, 'both answer');
  assert.equal(lost(11), 11);
  assert.equal(lost(13), 13, 'whichever is there');
  assert.equal(lost(11, 13), null, 'nobody is there');
  assert.equal(lost(12, 14), null, 'nobody else has the address');
  const marks = new Map([[11, { listens: false, leaving: 'drain' as const }]]);
  assert.equal(
    replacedPeer(
      { ...state, marks },
      (peerId) => peerId === 11,
      (peerId) => peerId !== 11,
    ),
    null,
  );
});

test('a leader that is drained and has nobody to move to hands over before its replica is dropped', () => {
  const log = cluster([11, 12, 13], 3, [
    [11, 12, 13],
    [11, 12, 13],
  ]);
  const leaders = () => [...(log.state.collections.get('a')?.shards.values() ?? [])].map(({ leader }) => leader).join();
  assert.equal(leaders(), '13,11');
  log.propose({ kind: 'markPeer', peerId: 11, listens: null, leaving: 'drain' });
  assert.deepEqual(carryOut(log), ['lead 1: 11 → 12', 'drop 0 on 11', 'drop 1 on 11', 'remove 11']);
  assert.equal(leaders(), '13,12');
});
