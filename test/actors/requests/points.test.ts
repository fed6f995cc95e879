import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { CollectionEntry, ReplicaEntry } from '../../../actors/context/view.js';
import { ClusterPoints } from '../../../actors/requests/points.js';
import { checkShardMapVersion } from '../../../actors/requests/shard-map.js';
import type { ReachedLog } from '../../../cluster/data-messages.js';
import type { CollectionRecord } from '../../../cluster/state/state.js';
import { TroupeError } from '../../../protocols/errors.js';
import { pointsElsewhere } from '../../../storage/reader/cross-collection.js';
import type { RawRequest } from '../../../storage/threads/messages.js';
import { FakeEngine } from '../fake-engine.js';
import { type Answerer, Peers, SELF, UID } from './support.js';

/** A node with replicas of both shards, and how its own engine answers reads. */
function world(read: () => Promise<Uint8Array>) {
  const peers = new Peers();
  const logs: ReachedLog[] = [{ term: 1, index: 3, held: 3 }];
  peers.agree({ 0: { leader: 1, 1: 'Active', 2: 'Active' }, 1: { leader: 2, 1: 'Active', 2: 'Active' } });
  peers.answers.set(SELF, (call) => {
    if (call.kind === 'reached') return { kind: 'reached', logs: call.shards.map(() => logs.at(-1) as ReachedLog) };
    return {
      kind: 'answered',
      body: Buffer.from('portions'),
      positions: call.kind === 'read' ? call.shards.map(() => (logs.at(-1) as ReachedLog).index) : [],
      usage: null,
    };
  });
  peers.answers.set(2, (call) => ({ kind: 'reached', logs: 'shards' in call ? call.shards.map(() => logs.at(-1) as ReachedLog) : [] }));
  const replicas = new Map([0, 1].map((shard) => [shard, { key: `c/${shard}`, state: 'Serving' } as ReplicaEntry]));
  const life = { resets: 0 };
  const replications = new Map([[0, { resets: () => life.resets }]]);
  const record = peers.assignments.agreed?.collections.get('c') as CollectionRecord;
  const find = () => ({ name: 'c', entry: { name: 'c', replicas, replications } as unknown as CollectionEntry, record });
  const engine = Object.assign(new FakeEngine(), { read });
  const points = new ClusterPoints({ routes: peers.routes, engine, find, propose: () => Promise.reject(new Error('no index is made')) });
  const ask = async (more: Partial<RawRequest> = {}) => {
    const request = { path: {}, query: {}, body: null, deadlineMs: peers.world.nowMs + 10_000, ...more };
    return Buffer.from(await peers.outcome(points.read(find(), 'count', request))).toString();
  };
  return { peers, ask, life, logs };
}

test('a read of a collection that is wholly here goes to the readers, at one replica of each shard', async () => {
  const { ask, peers } = world(async () => Buffer.from('own'));
  assert.equal(await ask(), 'own');
  assert.equal(await ask({ consistency: 1 }), 'own');
  assert.deepEqual([peers.asked, peers.barriers], [[], 0]);
});

test('it is gathered when it needs another collection’s points, or a replica has just gone', async () => {
  for (const error of [pointsElsewhere(), new TroupeError('unavailable', 'replica c/0 is not open here')]) {
    const { ask, peers } = world(() => Promise.reject(error));
    assert.equal(await ask(), 'portions');
    assert.deepEqual(peers.asked, ['read 0+1 of 1']);
  }
  const { ask } = world(() => Promise.reject(new TroupeError('wrongInput', 'no such vector')));
  await assert.rejects(ask(), { code: 'wrongInput' });
});

test('what was read while a replica became Dead, or was set to a newer place in the log, counts for nothing', async () => {
  const changes: ((peers: Peers, life: { resets: number }) => void)[] = [
    (peers) => peers.agree({ 0: { leader: 2, 1: 'Dead', 2: 'Active' }, 1: { leader: 2, 1: 'Active', 2: 'Active' } }),
    (_, life) => {
      life.resets += 1;
    },
  ];
  for (const change of changes) {
    const { ask, life, peers } = world(async () => {
      change(peers, life);
      return Buffer.from('own');
    });
    peers.answers.set(2, () => ({ kind: 'answered', body: Buffer.from('portions'), positions: [3, 3], usage: null }));
    assert.match(await ask(), /portions/);
  }
});

test('at majority the node makes sure of what is agreed, asks all replicas how far they are, and has leaders confirm what was read', async () => {
  const { ask, peers } = world(async () => Buffer.from('own'));
  assert.equal(await ask({ consistency: 'majority' }), 'portions');
  assert.equal(peers.barriers, 1);
  const rounds = [peers.asked.slice(0, 2).sort(), peers.asked.slice(2, 3), peers.asked.slice(3).sort()];
  const both = ['reached 0+1 of 1', 'reached 0+1 of 2'];
  assert.deepEqual(rounds, [both, ['read 0+1 of 1'], ['reached 0 of 1', 'reached 1 of 2']]);
});

test('at majority it is all read again, behind another barrier, when a shard has got another leader meanwhile', async () => {
  const { ask, logs, peers } = world(async () => Buffer.from('own'));
  const own = peers.answers.get(SELF) as Answerer;
  peers.answers.set(SELF, (call, from) => {
    const answer = own(call, from);
    if (call.kind === 'read') logs.push({ term: 2, index: 9, held: 9 });
    return answer;
  });
  assert.equal(await ask({ consistency: 'majority' }), 'portions');
  assert.deepEqual([peers.barriers, peers.asked.filter((asked) => asked.startsWith('read')).length], [2, 2]);
});

test('a read whose own node does not say how far its replicas are ends with its time', async () => {
  const { ask, peers } = world(async () => Buffer.from('own'));
  peers.answers.set(SELF, () => new Promise(() => {}));
  const begunMs = peers.world.nowMs;
  await assert.rejects(ask({ consistency: 'all' }), { code: 'timeout' });
  assert.ok(peers.world.nowMs - begunMs <= 10_100);
});

test('a read that finds no moment between two layouts is told to come again, not what is wrong with them', async () => {
  const { ask } = world(async () => {
    checkShardMapVersion({ shardMapVersion: UID } as CollectionRecord, 'c', UID + 1);
    return assert.fail('another shard map version');
  });
  await assert.rejects(ask(), { code: 'unavailable' });
});

test('a shard that goes meanwhile is nothing that a reader is told to be missing', async () => {
  const { ask, peers } = world(() => Promise.reject(new TroupeError('notFound', 'shard 1 of collection c is gone')));
  const record = peers.assignments.agreed?.collections.get('c') as CollectionRecord;
  peers.show({ c: { ...record, shardMapVersion: UID + 1 } });
  await assert.rejects(ask(), { code: 'unavailable' });
});
