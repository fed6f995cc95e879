import assert from 'node:assert/strict';
import { test } from 'node:test';
import { MemoryRoom } from '../../../../actors/context/memory-room.js';
import { USAGE_UNKNOWN } from '../../../../actors/context/node-usage.js';
import type { CollectionEntry } from '../../../../actors/context/view.js';
import type { Found } from '../../../../actors/requests/collection-names.js';
import { CollectionLimits, type LimitParts } from '../../../../actors/requests/limits/collection-limits.js';
import { openGate } from '../../../../actors/requests/limits/gate.js';
import { limitedPoints } from '../../../../actors/requests/limits/limited-points.js';
import type { NodeApi } from '../../../../actors/requests/node-api.js';
import type { ShardFigures } from '../../../../cluster/data-messages.js';
import type { TroupeError } from '../../../../protocols/errors.js';
import type { StrictModeConfig } from '../../../../protocols/model/collection.js';
import type { RawRequest } from '../../../../storage/threads/messages.js';
import { sampleConfig, sampleSegment, sampleStats } from '../../samples.js';

const REQUEST: RawRequest = { path: {}, query: {}, body: null, deadlineMs: 1 };
const CLOCK = { nowMs: () => 0, dateMs: () => 0 };

/** A collection with one replica here, or in a cluster none. */
function foundWith(strict_mode_config: StrictModeConfig | null, hasReplica = true): Found {
  const config = { ...sampleConfig(), ...(strict_mode_config === null ? {} : { strict_mode_config }) };
  const replicas = new Map(hasReplica ? [[0, { key: 'c/0' }]] : []);
  return { name: 'c', entry: { config, replicas } as unknown as CollectionEntry, record: null };
}

function limitsWith(parts: Partial<LimitParts> = {}): CollectionLimits {
  return new CollectionLimits({ engine: { stats: () => null }, usage: USAGE_UNKNOWN, figures: null, clock: CLOCK, ...parts });
}

function nodeWith(collections: Readonly<Record<string, Found>>, weight = 1, room = new MemoryRoom(null)) {
  const asked: string[] = [];
  const passed: RawRequest[] = [];
  const engine = {
    weigh: async ({ operation }: { readonly operation: string }) => {
      asked.push(operation);
      return weight;
    },
  };
  const answer = async (request: RawRequest) => {
    passed.push(request);
    return new Uint8Array(1);
  };
  const node: Pick<NodeApi, 'read' | 'write'> = {
    read: (_name, _operation, request) => answer(request),
    write: (_name, _operation, _wait, request) => answer(request),
  };
  const find = (name: string) => collections[name] as Found;
  const timers = { after: () => () => {} };
  const limited = limitedPoints(node, { limits: limitsWith(), find, engine, updates: null, room, clock: CLOCK, timers });
  return { asked, limited, passed };
}

test('what a request costs is asked for only where its collection has a limit, and it may say something', async () => {
  const collections = { limited: foundWith({ enabled: true, read_rate_limit: 5, write_rate_limit: 2 }), free: foundWith(null) };
  const { asked, limited } = nodeWith(collections, 3);
  await limited.read('free', 'queryBatch', REQUEST);
  await limited.write('free', 'upsertPoints', true, REQUEST);
  await limited.read('limited', 'count', REQUEST);
  assert.deepEqual(asked, []);
  await limited.read('limited', 'queryBatch', REQUEST);
  const refused = (error: TroupeError) => error.code === 'rateLimited';
  await assert.rejects(limited.read('limited', 'queryBatch', REQUEST), refused);
  await limited.read('limited', 'scroll', REQUEST);
  await assert.rejects(limited.write('limited', 'upsertPoints', true, REQUEST), refused);
  await limited.write('limited', 'createFieldIndex', true, REQUEST);
  assert.deepEqual(asked, ['queryBatch', 'queryBatch', 'upsertPoints']);
  await limited.write('limited', 'deleteFieldIndex', true, REQUEST);
  await assert.rejects(limited.write('limited', 'upsertPoints', true, REQUEST), refused);
  assert.equal(asked.length, 3, 'without a token nobody looks into it');
});

test('a request gets the limits of its collection along while strict mode is enabled', async () => {
  const strict = { enabled: true, max_query_limit: 5 };
  const { limited, passed } = nodeWith({ on: foundWith(strict), off: foundWith({ ...strict, enabled: false }) });
  await limited.read('on', 'query', REQUEST);
  await limited.write('on', 'upsertPoints', true, REQUEST);
  await limited.read('off', 'query', REQUEST);
  await limited.write('off', 'upsertPoints', true, REQUEST);
  const limits = { strict, indexes: null };
  assert.deepEqual(
    passed.map((request) => request.limits),
    [limits, limits, undefined, undefined],
  );
});

test('buckets hold while strict mode is enabled, for reads and writes each, and a changed limit begins with a full one', () => {
  const limits = limitsWith();
  const found = foundWith({ enabled: true, read_rate_limit: 1, write_rate_limit: 2 });
  const read = limits.tokensOf(found, 'read');
  assert.equal(limits.tokensOf(found, 'read'), read);
  assert.equal(limits.tokensOf(found, 'write')?.perMinute, 2);
  const entry = found.entry as CollectionEntry;
  const strictly = (strict_mode_config: StrictModeConfig) => {
    entry.config = { ...sampleConfig(), strict_mode_config };
    return limits.tokensOf(found, 'read');
  };
  assert.equal(strictly({ enabled: false, read_rate_limit: 1 }), null);
  assert.equal(strictly({ enabled: true, read_rate_limit: 1 }), read);
  assert.equal(strictly({ enabled: true, read_rate_limit: 3 })?.perMinute, 3);
  assert.notEqual(limits.tokensOf(foundWith({ enabled: true, read_rate_limit: 3 }), 'read'), limits.tokensOf(found, 'read'));
});

test('limits of writes come with what is stored on all shards, of live points, and with the indexes, as far as they ask for these', async () => {
  const fields = new Map([['a', { type: 'integer' } as const]]);
  const segment = sampleSegment({ rows: 4, deleted: 1, vectorBytes: 400, payloadBytes: 40 });
  const stats = sampleStats([segment, sampleSegment()], { points: 2, deferredPoints: 1, fields });
  const usage = () => ({ memoryPercent: 50, diskPercent: 60 });
  const here = limitsWith({ engine: { stats: () => stats }, usage });
  const none = { points: 0, vectorBytes: 0, payloadBytes: 0 };
  const unknown = { memoryPercent: null, diskPercent: null };
  const sizes = { points: 3, vectorBytes: 300, payloadBytes: 30 };
  const table: readonly (readonly [StrictModeConfig, object])[] = [
    [{ max_query_limit: 1 }, { indexes: null }],
    [{ unindexed_filtering_update: false }, { indexes: fields }],
    [{ max_points_count: 1 }, { indexes: null, stored: { ...sizes, ...unknown } }],
    [{ max_collection_vector_size_bytes: 1 }, { indexes: null, stored: { ...sizes, ...unknown } }],
    [{ max_disk_usage_percent: 1 }, { indexes: null, stored: { ...none, ...usage() } }],
  ];
  for (const [limit, expected] of table) {
    const strict = { enabled: true, ...limit };
    assert.deepEqual(await here.ofWrite(foundWith(strict), 'upsertPoints'), { strict, ...expected }, JSON.stringify(limit));
  }
  const deletion = await here.ofWrite(foundWith({ enabled: true, max_points_count: 1 }), 'deletePoints');
  assert.equal(deletion?.stored, undefined, 'a deletion is never too much');
  const creation = await here.ofWrite(foundWith({ enabled: true, max_payload_index_count: 1 }), 'createFieldIndex');
  assert.deepEqual(creation?.indexes, fields);
});

test('without a replica here other nodes are asked for the indexes each time, and for sizes once in a second', async () => {
  let nowMs = 0;
  let asked = 0;
  const shard = { points: 3, vectorBytes: 300, payloadBytes: 30, fields: [{ field: 'a', schema: { type: 'integer' }, points: 1 }] };
  const figures = async () => {
    asked += 1;
    return [shard, { ...shard, vectorBytes: undefined }] as unknown as readonly ShardFigures[];
  };
  const limits = limitsWith({ figures, clock: { ...CLOCK, nowMs: () => nowMs } });
  const found = foundWith({ enabled: true, max_points_count: 1, unindexed_filtering_retrieve: false }, false);
  assert.deepEqual((await limits.ofRead(found))?.indexes, new Map([['a', { type: 'integer' }]]));
  await limits.ofRead(found);
  assert.equal(asked, 2);
  const stored = { points: 6, vectorBytes: 300, payloadBytes: 60, memoryPercent: null, diskPercent: null };
  assert.deepEqual((await limits.ofWrite(found, 'upsertPoints'))?.stored, stored);
  nowMs = 999;
  await limits.ofWrite(found, 'upsertPoints');
  assert.equal(asked, 3);
  nowMs = 1000;
  await limits.ofWrite(found, 'upsertPoints');
  assert.equal(asked, 4);
});
test('so many updates go on at a time, others in the order in which they came, and none beyond its deadline', async () => {
  const timers: (() => void)[] = [];
  const after = (_delayMs: number, run: () => void) => {
    timers.push(run);
    return () => {};
  };
  const gate = openGate(2, { nowMs: () => 0, dateMs: () => 0 }, { after });
  const ends: (() => void)[] = [];
  const begun: string[] = [];
  const enter = (name: string) =>
    gate.enter(100, () => {
      begun.push(name);
      return new Promise<void>((done) => ends.push(done));
    });
  const all = ['a', 'b', 'c', 'd'].map(enter);
  await new Promise((done) => setImmediate(done));
  assert.deepEqual([begun.join(''), gate.waiting], ['ab', 2]);
  timers[0]?.();
  await assert.rejects(all[2] as Promise<void>, (error: TroupeError) => error.code === 'timeout');
  ends[0]?.();
  await all[0];
  await new Promise((done) => setImmediate(done));
  assert.deepEqual([begun.join(''), gate.waiting], ['abd', 0]);
  for (const end of ends) end();
  await Promise.all([all[1], all[3]]);
});

test('a node short of memory refuses what takes more and takes what gives some back', async () => {
  const room = new MemoryRoom({ budgetBytes: 1000, usedBytes: () => 800, noteHeld: () => {} });
  const { limited } = nodeWith({ c: foundWith(null) }, 1, room);
  const request = { ...REQUEST, body: new Uint8Array(51) };
  const refused = (error: TroupeError) => error.code === 'outOfMemory' && error.outcome === 'none' && /delete points/.test(error.detail);
  for (const operation of ['upsertPoints', 'updateVectors', 'setPayload', 'batchUpdate'] as const)
    await assert.rejects(limited.write('c', operation, true, request), refused, operation);
  for (const operation of ['deletePoints', 'deleteVectors', 'deletePayload', 'clearPayload', 'deleteFieldIndex'] as const)
    await limited.write('c', operation, true, request);
  await limited.write('c', 'upsertPoints', true, { ...request, body: new Uint8Array(50) });
  await limited.read('c', 'count', request);
});
