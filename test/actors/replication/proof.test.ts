import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Assignments } from '../../../actors/replication/assignments.js';
import { Proof } from '../../../actors/replication/proof.js';
import type { ClusterOperation } from '../../../cluster/operations.js';
import { type CollectionRecord, emptyState } from '../../../cluster/state.js';
import { NO_TAG } from '../../../protocols/model/shard-log.js';
import { sampleConfig } from '../samples.js';

const SELF = 1;
const SHARD = { collection: 'c', uid: 7, shardId: 0 };

/** ticks: what others answer; null: they don't. */
function replica({ alone = false, others = [2, 3], since = 4, tick = 0 } = {}) {
  const assignments = new Assignments();
  const replicas = new Map([SELF, ...others].map((peer) => [peer, 'Active'] as const));
  const shard = { key: null, replicas, since: new Map([[SELF, since]]), leader: 2, term: 5 };
  const record: CollectionRecord = {
    uid: SHARD.uid,
    revision: 1,
    config: sampleConfig(),
    shards: new Map([[0, shard]]),
    nextShardId: 1,
    transfers: [],
    autoReplication: false,
    layout: SHARD.uid,
    resharding: null,
    closedKeys: [],
    keyCopy: null,
  };
  const agreed = { ...emptyState('cluster'), appliedIndex: 9, collections: new Map([['c', record]]) };
  assignments.show({ agreed, peerId: SELF, leads: false, connected: new Set(), serves: true, isAloneWithout: () => alone });
  const ticks = new Map<number, number | null>(others.map((peer) => [peer, null]));
  const own = { tick };
  const proposed: ClusterOperation[] = [];
  const clock = { ms: 0, nowMs: () => clock.ms };
  const services = {
    assignments,
    engine: { stats: () => ({ points: 0, position: { last: { ...NO_TAG, tick: own.tick }, base: NO_TAG } }) },
    calls: {
      call: async (peer: number) => {
        const answer = ticks.get(peer) ?? null;
        if (answer === null) throw new Error('it is away');
        return { kind: 'position', last: { peer: 2, clock: 5, tick: answer }, base: NO_TAG } as const;
      },
    },
    propose: async (operation: ClusterOperation) => {
      proposed.push(operation);
      return true;
    },
  };
  const log = { info: () => {}, warn: () => {} };
  const proof = new Proof({ key: 'c/0', shard: SHARD, services, clock, log } as unknown as ConstructorParameters<typeof Proof>[0]);
  return { proof, ticks, own, proposed, clock };
}

test('a replica that has something, is new, or is the only Active one is what it is', () => {
  assert.ok(replica({ tick: 3 }).proof.holds);
  assert.ok(replica({ since: 10 }).proof.holds);
  assert.ok(replica({ others: [] }).proof.holds);
});

test('an empty replica from before the start is read when all others are empty, and not before they have said so', async () => {
  const { proof, ticks } = replica();
  assert.equal(proof.holds, false);
  ticks.set(2, 0);
  assert.equal(await proof.isLeftToAsk(), true);
  assert.equal(proof.holds, false);
  ticks.set(3, 0);
  assert.equal(await proof.isLeftToAsk(), false);
  assert.equal(proof.holds, true);
});

test('an empty replica is read where nobody can say more: the only other voter is away', async () => {
  const { proof } = replica({ alone: true, others: [2] });
  assert.equal(await proof.isLeftToAsk(), false);
  assert.equal(proof.holds, true);
});

test('a replica that is empty where others are not is Dead after two seconds, unless its leader has filled it', async () => {
  const { clock, own, proof, proposed, ticks } = replica();
  ticks.set(2, 8);
  assert.equal(await proof.isLeftToAsk(), true);
  clock.ms += 1999;
  assert.equal(await proof.isLeftToAsk(), true);
  assert.deepEqual([proof.holds, proposed], [false, []]);
  clock.ms += 1;
  assert.equal(await proof.isLeftToAsk(), true);
  const change = { ...SHARD, peerId: SELF, from: 'Active', to: 'Dead', clock: 5 };
  assert.deepEqual(proposed, [{ kind: 'setReplicaStates', changes: [change] }]);
  own.tick = 8;
  assert.equal(await proof.isLeftToAsk(), false);
  assert.ok(proof.holds);
});
