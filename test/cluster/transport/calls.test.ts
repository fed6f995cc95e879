/** Calls for replicas between real transports. */

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { type DataCall, LostAnswer, NotReached } from '../../../cluster/data-messages.js';
import { TroupeError } from '../../../protocols/errors.js';
import { closeAll, connect, isConnected, peer } from './support.js';

const SHARD = { collection: 'c', uid: 7, shardId: 3 };
const MISSING: DataCall = {
  kind: 'missing',
  shardMapVersion: 7,
  shard: SHARD,
  ids: [1, 2n ** 64n - 1n, 'a4f5b6c7-0000-4000-8000-000000000000'],
  timeoutMs: 50,
};

test('a call arrives as it was made, with its caller, and the reply comes back as it was given', async () => {
  const [a, b] = await Promise.all([peer(1), peer(2)]);
  await connect(a, b);
  const entry = { tag: { peer: 2 ** 47, term: 3, index: 2 ** 40 }, operation: Uint8Array.of(1, 2, 3) };
  const calls: DataCall[] = [
    MISSING,
    {
      kind: 'write',
      shard: SHARD,
      operation: 'upsertPoints',
      operations: [entry.operation],
      until: 'shown',
      timeoutMs: 9,
      measured: true,
      shardMapVersion: 7,
    },
    { kind: 'append', shard: SHARD, since: 7, leader: 2 ** 47, term: 3, previous: entry.tag, entries: [entry, entry], until: 'logged' },
  ];
  const heard: { from: number; call: DataCall }[] = [];
  b.heard.answer = async (from, call) => {
    heard.push({ from, call });
    return { kind: 'digest', at: entry.tag, buckets: BigUint64Array.of(2n ** 64n - 1n, 0n), points: Uint32Array.of(5, 6) };
  };
  for (const call of calls) {
    assert.deepEqual(await a.transport.call(2, call, 5000), {
      kind: 'digest',
      at: entry.tag,
      buckets: BigUint64Array.of(2n ** 64n - 1n, 0n),
      points: Uint32Array.of(5, 6),
    });
  }
  assert.deepEqual(plain(heard), plain(calls.map((call) => ({ from: 1, call }))));
  await closeAll(a, b);
});

test('bytes of a call have memory of their own, which can be given to a worker', async () => {
  const [a, b] = await Promise.all([peer(1), peer(2)]);
  await connect(a, b);
  const operation = new Uint8Array(100).fill(9);
  let received: Uint8Array | undefined;
  b.heard.answer = async (_from, call) => {
    if (call.kind === 'write') [received] = call.operations;
    return { kind: 'missing', id: null };
  };
  const call = {
    shard: SHARD,
    operation: 'upsertPoints',
    operations: [operation],
    until: 'logged',
    timeoutMs: 1000,
    measured: false,
    shardMapVersion: 7,
  } as const;
  await a.transport.call(2, { kind: 'write', ...call }, 5000);
  assert.equal(received?.buffer.byteLength, 100);
  await closeAll(a, b);
});

test('a body of 40 MB arrives both ways, and the stream of heartbeats goes on meanwhile', async () => {
  const [a, b] = await Promise.all([peer(1), peer(2)]);
  await connect(a, b);
  b.heard.answer = async (_from, call) => {
    assert.ok(call.kind === 'read');
    return { kind: 'answered', body: call.body, positions: [4], usage: null };
  };
  const body = new Uint8Array(40 << 20).fill(3);
  const call: DataCall = {
    kind: 'read',
    collection: 'c',
    uid: 7,
    shards: [0],
    body,
    timeoutMs: 30_000,
    measured: false,
    shardMapVersion: 7,
  };
  const reply = await a.transport.call(2, call, 30_000);
  assert.ok(reply.kind === 'answered' && Buffer.compare(reply.body, body) === 0);
  assert.deepEqual([a.heard.changes, b.heard.changes], [['+2'], ['+1']]);
  await closeAll(a, b);
});

test('what the other side refuses is its error; a peer that is unknown or not there is unavailable, and was not reached', async () => {
  const [a, b] = await Promise.all([peer(1), peer(2)]);
  await connect(a, b);
  b.heard.answer = () => Promise.reject(new TroupeError('conflict', 'another leads', { retryAfterMs: 5 }));
  await assert.rejects(a.transport.call(2, MISSING, 5000), { code: 'conflict', detail: 'another leads', retryAfterMs: 5 });
  await assert.rejects(a.transport.call(3, MISSING, 5000), (error) => error instanceof NotReached);
  await b.transport.close();
  await a.heard.until('it is gone', () => !isConnected(a, 2));
  await assert.rejects(a.transport.call(2, MISSING, 5000), (error) => error instanceof NotReached);
  await closeAll(a);
});

test('a call for which no connection comes about has not reached the peer, although there is a stream that the peer has opened', async () => {
  const [a, b] = await Promise.all([peer(1), peer(2)]);
  a.transport.setPeers(new Map([[2, 'http://127.0.0.1:1']]));
  b.transport.setPeers(new Map([[1, a.uri]]));
  await a.heard.until('it was called', () => isConnected(a, 2));
  await assert.rejects(a.transport.call(2, MISSING, 5000), (error) => error instanceof NotReached && /ECONNREFUSED/.test(error.message));
  await closeAll(a, b);
});

test('an answer that does not come in time, or whose peer goes, is lost: the call may be carried out', async () => {
  const [a, b] = await Promise.all([peer(1), peer(2)]);
  await connect(a, b);
  let called = () => {};
  const reached = new Promise<void>((resolve) => {
    called = resolve;
  });
  b.heard.answer = () => {
    called();
    return new Promise(() => {});
  };
  await assert.rejects(a.transport.call(2, MISSING, 200), (error) => error instanceof LostAnswer && error.code === 'timeout');
  const waiting = assert.rejects(
    a.transport.call(2, MISSING, 60_000),
    (error) => error instanceof LostAnswer && error.code === 'unavailable',
  );
  await reached;
  a.transport.setPeers(new Map());
  await waiting;
  await closeAll(a, b);
});

test('a caller of another cluster, or for another peer, is refused', async () => {
  const a = await peer(1);
  const b = await peer(2);
  await connect(a, b);
  let called = 0;
  a.heard.answer = async () => {
    called++;
    return { kind: 'missing', id: null };
  };
  assert.deepEqual(await b.transport.call(1, MISSING, 5000), { kind: 'missing', id: null });
  const c = await peer(3, { clusterId: 'another' });
  c.transport.setPeers(new Map([[1, a.uri]]));
  await assert.rejects(c.transport.call(1, MISSING, 500), { code: 'unavailable' });
  assert.equal(called, 1);
  await closeAll(a, b, c);
});

test('a thousand calls at once are all answered, each with its own answer', async () => {
  const [a, b] = await Promise.all([peer(1), peer(2)]);
  await connect(a, b);
  b.heard.answer = async (_from, call) => ({ kind: 'missing', id: call.kind === 'missing' ? (call.ids[0] ?? null) : null });
  const asked = Array.from({ length: 1000 }, (_, id) => a.transport.call(2, { ...MISSING, ids: [id] } as DataCall, 20_000));
  const replies = await Promise.all(asked);
  assert.deepEqual(
    replies.map((reply) => reply.kind === 'missing' && reply.id),
    Array.from({ length: 1000 }, (_, id) => id),
  );
  await closeAll(a, b);
});

/** Bytes compared as numbers: what arrives are Buffers. */
function plain(value: unknown): unknown {
  if (value instanceof Uint8Array) return [...value];
  if (Array.isArray(value)) return value.map(plain);
  if (typeof value === 'object' && value !== null) return Object.fromEntries(Object.entries(value).map(([key, of]) => [key, plain(of)]));
  return value;
}

test('the internal port knows how many connections it has, and how many calls are under way on them', async () => {
  const [a, b] = await Promise.all([peer(1), peer(2)]);
  assert.deepEqual(b.transport.internalPort(), { connections: 0, plainConnections: 0, callStreams: 0, calls: 0 });
  await connect(a, b);
  let answer = () => {};
  const asked = new Promise<void>((reached) => {
    b.heard.answer = () => {
      reached();
      return new Promise((resolve) => {
        answer = () => resolve({ kind: 'missing', id: null });
      });
    };
  });
  const calling = a.transport.call(2, MISSING, 5000);
  await asked;
  const { callStreams, calls, connections, plainConnections } = b.transport.internalPort();
  assert.deepEqual([callStreams, calls, plainConnections], [1, 1, 1]);
  assert.ok(connections >= 1 && connections <= 3, `${connections}`);
  answer();
  await calling;
  assert.equal(b.transport.internalPort().calls, 0);
  await closeAll(a, b);
});

test('a node that stops answers the small calls that it was asked before, and takes no more', async () => {
  const [a, b] = await Promise.all([peer(1), peer(2)]);
  await connect(a, b);
  let answer = (_: { kind: 'missing'; id: null }) => {};
  const asked = new Promise<void>((reached) => {
    b.heard.answer = () => {
      reached();
      return new Promise((resolve) => {
        answer = resolve;
      });
    };
  });
  const called = a.transport.call(2, MISSING, 20_000).catch((error: unknown) => error);
  await asked;
  const closed = b.transport.close();
  answer({ kind: 'missing', id: null });
  // Its stream of messages has ended as well, and may be noticed first.
  const reply = await called;
  assert.ok(reply instanceof LostAnswer || (reply as { kind?: string }).kind === 'missing');
  await closed;
  await assert.rejects(a.transport.call(2, MISSING, 5000), (error) => error instanceof NotReached || error instanceof LostAnswer);
  await closeAll(a);
});
