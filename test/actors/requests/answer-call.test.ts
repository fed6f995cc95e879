import assert from 'node:assert/strict';
import { test } from 'node:test';
import { MemoryRoom } from '../../../actors/context/memory-room.js';
import type { NodeServices } from '../../../actors/context/services.js';
import { type CollectionEntry, NodeView, type ReplicaEntry } from '../../../actors/context/view.js';
import { answerCalls } from '../../../actors/requests/answer-call.js';
import type { WriteInput } from '../../../cluster/replication/messages.js';
import type { CollectionRecord } from '../../../cluster/state/state.js';
import { NO_TAG } from '../../../protocols/model/shard-log.js';
import { decodeUpdate, NOTHING } from '../../../protocols/update-codec.js';
import { FakeEngine } from '../fake-engine.js';
import { indexedSegment, sampleConfig, sampleStats } from '../samples.js';
import { Peers, SELF, UID } from './support.js';

/** A node that a peer asks for what its replica has; `during` happens while a reader is at it. */
function world(during: (parts: { peers: Peers; life: { resets: number }; replicas: Map<number, ReplicaEntry> }) => void) {
  const peers = new Peers();
  peers.agree({ 0: { leader: 2, 1: 'Active', 2: 'Active' } });
  const life = { resets: 0 };
  const replicas = new Map([[0, { key: 'c/0', state: 'Serving', reason: null } as unknown as ReplicaEntry]]);
  const written: WriteInput[] = [];
  const ask = async (make: (replyTo: number) => WriteInput) => {
    written.push(make(1));
    return { numbers: [12], status: 'completed' };
  };
  const replications = new Map([[0, { actor: { ask }, resets: () => life.resets }]]);
  const view = new NodeView();
  view.list({
    name: 'c',
    folder: 'c',
    belonging: { uid: UID, shards: [0], since: [4] },
    replicas,
    replications,
  } as unknown as CollectionEntry);
  const portion = async () => {
    during({ peers, life, replicas });
    return { body: Buffer.from('points'), positions: [9] };
  };
  const engine = Object.assign(new FakeEngine(), { portion });
  const services = { assignments: peers.assignments, engine } as unknown as NodeServices;
  const answer = answerCalls({ fences: new Map(), asked: new Set(), view, services, clock: peers.world.ports.clock });
  const call = {
    kind: 'read',
    collection: 'c',
    uid: UID,
    shards: [0],
    body: Buffer.from(''),
    timeoutMs: 1000,
    measured: false,
    shardMapVersion: UID,
  } as const;
  return { answer, read: () => answer(2, call), peers, replicas, services, view, written };
}

test('a portion is answered with where its replicas are in their logs', async () => {
  const answer = await world(() => {}).read();
  assert.deepEqual(answer.kind === 'answered' && answer.positions, [9]);
});

test('a portion whose replica became Dead, was set to a newer place in the log or went while it was read is refused: it may have less than its position says', async () => {
  const changes: Parameters<typeof world>[0][] = [
    ({ peers }) => peers.agree({ 0: { leader: 2, 1: 'Dead', 2: 'Active' } }),
    ({ life }) => {
      life.resets += 1;
    },
    ({ replicas }) => replicas.clear(),
  ];
  for (const change of changes) await assert.rejects(world(change).read(), { code: 'conflict' });
});

test('the figures that a peer gets know of no merge for which this node has no memory', async () => {
  const { answer, services, view } = world(() => {});
  const segments = [1, 2, 3].map((id) => indexedSegment({ id }));
  const stats = sampleStats(segments, { key: 'c/0', lastWriteMs: -60_000 });
  const entry = { ...view.collections.get('c'), config: sampleConfig(), optimizers: new Map() } as unknown as CollectionEntry;
  view.list(entry);
  const statusWith = async (budgetBytes: number) => {
    const room = new MemoryRoom({ budgetBytes, usedBytes: () => 0, noteHeld: () => {} });
    Object.assign(services, { cpus: 2, room, engine: { stats: () => stats } });
    const told = await answer(2, { kind: 'figures', collection: 'c', uid: UID, shards: [0] });
    return told.kind === 'figures' && told.figures.map(({ status }) => status);
  };
  assert.deepEqual(await statusWith(1 << 30), ['yellow']);
  assert.deepEqual(await statusWith(1000), ['green']);
});

test('a replica that is Dead on this node alone says why it serves no reads', async () => {
  const { read, replicas } = world(() => {});
  const reason = { code: 'storage', detail: 'its files are gone' } as const;
  replicas.set(0, { ...(replicas.get(0) as ReplicaEntry), state: 'Failed', reason });
  await assert.rejects(read(), { code: 'unavailable', message: new RegExp(`on peer ${SELF}: its files are gone`) });
});

test('a call for a replica that was made anew comes to nothing while the files of the one before are here, and the other way round', async () => {
  const { answer } = world(() => {});
  const shard = { collection: 'c', uid: UID, shardId: 0 };
  for (const since of [3, 5])
    await assert.rejects(answer(2, { kind: 'resetLog', shard, since, term: 1, at: NO_TAG }), {
      code: 'conflict',
      message: /that is meant is not on this node, or not yet/,
    });
});

test('a barrier is an entry that changes nothing, and is taken where too few replicas serve; not behind a later copy of its shard', async () => {
  const { answer, peers, written } = world(() => {});
  const shard = { collection: 'c', uid: UID, shardId: 0 };
  const call = { kind: 'barrier', shard, timeoutMs: 1000, shardMapVersion: UID } as const;
  assert.deepEqual(await answer(2, call), { kind: 'barrier', index: 12 });
  const [{ isCopy, operations, until } = assert.fail()] = written;
  assert.deepEqual([operations.map((bytes) => decodeUpdate(bytes).operation), until, isCopy], [[NOTHING.operation], 'applied', true]);

  await assert.rejects(answer(2, { ...call, shardMapVersion: UID + 1 }), { code: 'conflict' });
  const fence = { startedAt: 5, from: 0, term: 1, sequence: 3 };
  await assert.rejects(answer(2, { ...call, fence }), { code: 'conflict', message: /over, or not begun here/ });
  const record = peers.assignments.agreed?.collections.get('c') as CollectionRecord;
  const keyCopy = { source: 'a', target: 'b', filter: null, stage: 'copying', done: [], startedAt: 5 } as const;
  peers.show({ c: { ...record, keyCopy } });
  assert.deepEqual(await answer(2, { ...call, fence }), { kind: 'barrier', index: 12 });
  await assert.rejects(answer(2, { ...call, fence: { ...fence, sequence: 2 } }), { code: 'conflict', message: /come late/ });
});
