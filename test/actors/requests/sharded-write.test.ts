import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { ReplicaEntry } from '../../../actors/context/view.js';
import { LocalShards } from '../../../actors/requests/own-points.js';
import { writeSharded } from '../../../actors/requests/sharded-write.js';
import type { ReplicationEntry } from '../../../actors/shard-log/view.js';
import type { ReplicationInput } from '../../../cluster/replication/messages.js';
import { decodeUpdate } from '../../../protocols/update-codec.js';
import { ringOf, shardIndexOf } from '../../../storage/sharding/ring.js';
import type { RawRequest, WriteOperation } from '../../../storage/threads/messages.js';
import { FakeEngine } from '../fake-engine.js';
import { FakeWorld } from '../fake-world.js';
import { sampleConfig } from '../samples.js';

const SHARDS = [0, 1, 2];
/** Ids of each shard. */
const IDS = SHARDS.map((shard) => Array.from({ length: 100 }, (_, id) => id).filter((id) => shardIndexOf(ringOf(SHARDS), id) === shard));
const idOf = (shard: number, at = 0): number => IDS[shard]?.[at] as number;

interface World {
  readonly engine: FakeEngine;
  readonly states: Map<number, ReplicaEntry['state']>;
  write(operation: WriteOperation, body: object, wait?: boolean): Promise<unknown>;
}

/** Three shards whose logs write to a pretended engine. */
async function world(): Promise<World> {
  const engine = new FakeEngine();
  const { ports } = new FakeWorld();
  const config = sampleConfig();
  for (const shard of SHARDS) await engine.openReplica({ key: `c/${shard}`, config }, null);
  engine.calls.length = 0;
  const states = new Map<number, ReplicaEntry['state']>();
  const write = async (operation: WriteOperation, body: object, wait = true) => {
    const replicas = new Map(SHARDS.map((shard) => [shard, replicaOf(shard, states.get(shard) ?? 'Serving')]));
    const replications = new Map(SHARDS.map((shard) => [shard, logOf(shard, engine)]));
    const request: RawRequest = { path: {}, query: {}, body: Buffer.from(JSON.stringify(body)), deadlineMs: Number.MAX_SAFE_INTEGER };
    const entry = { name: 'c', error: null, replicas, replications };
    const writer = new LocalShards(entry, { operation, request }, ports.clock, ports.timers);
    const answer = await writeSharded(engine, { operation, wait, request, params: config.params, shards: SHARDS }, writer);
    return JSON.parse(Buffer.from(answer).toString());
  };
  return { engine, states, write };
}

function replicaOf(shard: number, state: ReplicaEntry['state']): ReplicaEntry {
  const key = `c/${shard}`;
  return { key, state, reason: null, actor: { path: key } as unknown as ReplicaEntry['actor'] };
}

function logOf(shard: number, engine: FakeEngine): ReplicationEntry {
  const key = `c/${shard}`;
  const ask = async (make: (caller: number) => ReplicationInput) => {
    const input = make(1);
    if (input.kind === 'missing') return engine.missing(key, input.ids);
    assert.ok(input.kind === 'write');
    const { operations, until } = input;
    engine.calls.push(`write ${key} ${operations.map((bytes) => decodeUpdate(bytes).operation.kind).join()} until ${until}`);
    return { numbers: operations.map((_, at) => 10 * shard + at), status: until === 'logged' ? 'acknowledged' : 'completed' };
  };
  return { actor: { path: key, ask } } as unknown as ReplicationEntry;
}

test('each shard gets the points that are its own, and the largest number is the answer', async () => {
  const { engine, write } = await world();
  assert.deepEqual(await write('deletePoints', { points: [idOf(0), idOf(2)] }), { operation_id: 20, status: 'completed' });
  assert.deepEqual(engine.calls.sort(), ['write c/0 deletePoints until shown', 'write c/2 deletePoints until shown']);
});

test('nobody is asked for points of a request that nobody waits for, or that concerns one shard', async () => {
  const { engine, write } = await world();
  const payload = { payload: { a: 1 } };
  const answer = await write('setPayload', { ...payload, points: [idOf(0), idOf(1)] }, false);
  assert.deepEqual(answer, { operation_id: 10, status: 'acknowledged' });
  await write('setPayload', { ...payload, points: [idOf(1), idOf(1, 1)] });
  assert.deepEqual(engine.calls.sort(), [
    'write c/0 setPayload until logged',
    'write c/1 setPayload until logged',
    'write c/1 setPayload until shown',
  ]);
});

test('a point that is not there is found before any shard has written', async () => {
  const { engine, write } = await world();
  engine.absent.add(idOf(2));
  const refused = write('setPayload', { payload: { a: 1 }, points: [idOf(0), idOf(2)] });
  await assert.rejects(refused, { code: 'notFound', detail: `No point with id ${idOf(2)} found` });
  assert.deepEqual(engine.calls.sort(), [`missing c/0 ${idOf(0)}`, `missing c/2 ${idOf(2)}`]);
});

test('of a batch, what stands before an operation that fails is done on all shards, and nothing behind it on any', async () => {
  const { engine, write } = await world();
  engine.absent.add(idOf(1));
  const operations = [
    { delete: { points: [idOf(0), idOf(1, 1)] } },
    { clear_payload: { points: [idOf(1)] } },
    { delete: { points: [idOf(0, 1), idOf(2)] } },
  ];
  await assert.rejects(write('batchUpdate', { operations }), { code: 'notFound' });
  assert.deepEqual(engine.calls.slice(0, 2).sort(), ['write c/0 deletePoints until applied', 'write c/1 deletePoints until applied']);
  assert.deepEqual(engine.calls.slice(2), [`missing c/1 ${idOf(1)}`]);
});

test('each operation of a batch has an answer of its own', async () => {
  const { write } = await world();
  const operations = [{ delete: { points: [idOf(1)] } }, { delete: { points: [idOf(1), idOf(0)] } }];
  assert.deepEqual(await write('batchUpdate', { operations }), [
    { operation_id: 10, status: 'completed' },
    { operation_id: 11, status: 'completed' },
  ]);
  assert.deepEqual(await write('batchUpdate', { operations: [] }), []);
});

test('no shard writes when one of those concerned takes no writes', async () => {
  const { engine, states, write } = await world();
  states.set(2, 'Failed');
  await assert.rejects(write('deletePoints', { points: [idOf(0), idOf(2)] }), { code: 'unavailable', detail: /shard 2 takes no writes/ });
  assert.deepEqual(engine.calls, []);
  await write('deletePoints', { points: [idOf(0), idOf(1)] });
  assert.equal(engine.calls.length, 2);
});

test('a request that cannot be decoded reaches no shard', async () => {
  const { engine, write } = await world();
  await assert.rejects(
    write('upsertPoints', {
      points: [
        { id: 1, vector: [1] },
        { id: 'x', vector: [1] },
      ],
    }),
    { code: 'wrongInput' },
  );
  assert.deepEqual(engine.calls, []);
});
