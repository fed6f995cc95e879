import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { DataCall } from '../../../../cluster/data-messages.js';
import { decodeReply, encodeReply, packReply, unpackCall, unpackReply } from '../../../../cluster/transport/codec/calls.js';
import { seededRandom } from '../../../../ops/random.js';
import { TroupeError } from '../../../../protocols/errors.js';
import { pack } from '../../../../protocols/pack.js';

const SHARD = { collection: 'c', uid: 7, shardId: 3 };
const TAG = { peer: 2 ** 47, term: 3, index: 2 ** 40 };
const BYTES = Uint8Array.of(1, 2, 3);
const SHARDS = { collection: 'c', uid: 7, shards: [0, 3] };
const LED = { shard: SHARD, term: 3 };
const REPLICA = { ...LED, since: 6 };
const CALLS: readonly DataCall[] = [
  {
    kind: 'write',
    shard: SHARD,
    operation: 'upsertPoints',
    operations: [BYTES],
    until: 'shown',
    timeoutMs: 9.5,
    measured: true,
    shardMapVersion: 5,
  },
  { kind: 'missing', shard: SHARD, ids: ['a4f5b6c7-0000-4000-8000-000000000000'], timeoutMs: 50, shardMapVersion: 5 },
  { kind: 'barrier', shard: SHARD, timeoutMs: 50, shardMapVersion: 5, fence: { startedAt: 4, from: 1, term: 3, sequence: 9 } },
  { kind: 'read', ...SHARDS, body: BYTES, timeoutMs: 9, measured: false, shardMapVersion: 5 },
  { kind: 'shardMap', collection: 'c', uid: 7 },
  { kind: 'reached', ...SHARDS },
  { kind: 'shown', shard: SHARD, timeoutMs: 9 },
  { kind: 'figures', ...SHARDS },
  { kind: 'optimizations', collection: 'c', uid: 7 },
  { kind: 'append', ...REPLICA, leader: 1, previous: TAG, entries: [{ tag: TAG, operation: BYTES }], until: 'applied' },
  { kind: 'handOver', ...LED, to: 2 },
  { kind: 'compareReplica', ...LED, peerId: 2 },
  { kind: 'position', ...REPLICA },
  { kind: 'entriesAfter', ...REPLICA, after: TAG, bytesMax: 5 },
  { kind: 'resetLog', ...REPLICA, at: TAG },
  { kind: 'rewindLog', ...REPLICA, to: TAG },
  { kind: 'digest', ...REPLICA, leaders: { at: TAG, buckets: BigUint64Array.of(3n), points: Uint32Array.of(2) } },
  { kind: 'replaceBuckets', ...REPLICA, bytes: BYTES },
  { kind: 'applySettings', ...REPLICA, operations: [BYTES] },
  { kind: 'putFile', ...LED, startedAt: 10, path: 'a', offset: 0, bytes: BYTES },
  { kind: 'installFiles', ...LED, startedAt: 10, files: [{ path: 'a', bytes: 3 }] },
];

/** The value with something else in the place of each of its parts, one at a time. */
function spoiled(value: unknown): unknown[] {
  const others = [undefined, null, -1, Number.NaN, {}, [null], 2 ** 40 + 0.5, Symbol.iterator.toString()].filter(
    (other) => typeof other !== typeof value,
  );
  if (typeof value !== 'object' || value === null || ArrayBuffer.isView(value)) return others;
  if (Array.isArray(value)) return value.flatMap((item, at) => spoiled(item).map((other) => value.with(at, other))).concat([7, 'x', {}]);
  const parts = Object.entries(value).flatMap(([name, part]) => spoiled(part).map((other): unknown => ({ ...value, [name]: other })));
  return [...parts, 7, 'x', null];
}

test('every call is taken as it was made', () => {
  for (const call of CALLS) assert.deepEqual(plain(unpackCall(pack(call))), plain(call));
});

test('a call with a field that is missing or is something else never reaches a shard', () => {
  for (const call of CALLS) {
    const { kind, ...fields } = call;
    const all = spoiled(fields).filter((other) => typeof other === 'object' && other !== null);
    assert.ok(all.length > 5);
    for (const other of all) {
      const bytes = pack({ ...other, kind });
      assert.throws(
        () => unpackCall(bytes),
        { code: 'malformedBody' },
        JSON.stringify(other, (_, value) => (typeof value === 'bigint' ? String(value) : value)),
      );
    }
  }
});

test('bytes that are no call are refused as the mistake of whoever sent them', () => {
  const random = seededRandom(7);
  for (let round = 0; round < 3000; round++) {
    const bytes = Buffer.from(pack(CALLS[round % CALLS.length]));
    for (let change = 0; change <= random.integer(3); change++) bytes[random.integer(bytes.length)] = random.integer(256);
    const body = round % 3 === 0 ? bytes.subarray(0, random.integer(bytes.length)) : bytes;
    try {
      unpackCall(body);
    } catch (error) {
      assert.ok(error instanceof TroupeError && ['malformedBody', 'wrongInput'].includes(error.code), String(error));
    }
  }
});

test('an error of a reply keeps its reason and its outcome; what a later release says of it is read with care', () => {
  const read = (error: object) => unpackReply(pack({ kind: 'error', error }));
  const facts = { code: 'conflict', detail: 'another leads', reason: 'notLeader', outcome: 'none' } as const;
  assert.deepEqual(unpackReply(packReply({ kind: 'error', error: facts })), { kind: 'error', error: facts });
  const refused = { code: 'conflict', detail: 'another leads', reason: 'notLeader' } as const;
  assert.deepEqual(unpackReply(packReply({ kind: 'error', error: refused })), { kind: 'error', error: facts });
  assert.deepEqual(decodeReply(encodeReply({ kind: 'error', error: refused })), { kind: 'error', error: facts });
  const later = { code: 'unavailable', detail: 'why', reason: 'ofLater', outcome: 'ofLater' };
  assert.deepEqual(read(later), { kind: 'error', error: { code: 'unavailable', detail: 'why', outcome: 'unknown' } });
  assert.throws(() => unpackReply(pack({ kind: 'error' })), { code: 'malformedBody' });
});

function plain(call: DataCall | null): unknown {
  return JSON.parse(
    JSON.stringify(call, (_, value) => (typeof value === 'bigint' ? `${value}n` : value instanceof Uint8Array ? [...value] : value)),
  );
}
