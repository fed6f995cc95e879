import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { test } from 'node:test';
import type { PeerMessage } from '../../../cluster/peer-messages.js';
import { openPeerTransport } from '../../../cluster/transport/open.js';
import { PeerPortError } from '../../../cluster/transport/port-error.js';
import { TroupeError } from '../../../protocols/errors.js';
import { applied, CLUSTER, closeAll, connect, isConnected, peer } from './support.js';

test('three peers hear each other’s messages in order, whoever has called', async () => {
  const peers = await Promise.all([peer(1), peer(2), peer(3)]);
  await connect(...peers);
  for (const from of peers) {
    for (const to of peers) {
      if (to !== from) for (let i = 0; i < 100; i++) from.transport.send(to.id, [applied(from.id * 1000 + i)]);
    }
  }
  for (const { id, heard } of peers) {
    await heard.until('all have arrived', () => heard.messages.length === 200);
    for (const from of peers.filter((other) => other.id !== id)) {
      const indexes = heard.messages.flatMap(({ from: sender, message }) =>
        sender === from.id && message.kind === 'applied' ? [message.index] : [],
      );
      assert.deepEqual(
        indexes,
        Array.from({ length: 100 }, (_, i) => from.id * 1000 + i),
      );
    }
  }
  await closeAll(...peers);
});

test('messages that are sent in one turn travel in one frame', async () => {
  const [a, b] = await Promise.all([peer(1), peer(2)]);
  await connect(a, b);
  for (let i = 0; i < 50; i++) a.transport.send(2, [applied(i)]);
  await b.heard.until('all have arrived', () => b.heard.messages.length === 50);
  assert.deepEqual(b.heard.batches, [50]);
  await closeAll(a, b);
});

test('a message of Raft arrives with its sender and receiver, and its largest entry fits', async () => {
  const [a, b] = await Promise.all([peer(1), peer(2 ** 47)]);
  await connect(a, b);
  const bytes = new Uint8Array(4 << 20).fill(7);
  const entries = [{ index: 9, term: 3, payload: { kind: 'operation' as const, bytes } }];
  const head = { from: 1, to: 2 ** 47, term: 3 };
  const append: PeerMessage = {
    kind: 'raft',
    message: { ...head, kind: 'append', prevIndex: 8, prevTerm: 3, entries, commit: 8, round: 4 },
  };
  a.transport.send(2 ** 47, [append, append, applied(1)]);
  await b.heard.until('all have arrived', () => b.heard.messages.length === 3);
  assert.deepEqual(b.heard.messages[0], { from: 1, message: append });
  await closeAll(a, b);
});

test('ten thousand entries of a kilobyte reach a peer', async () => {
  const [a, b] = await Promise.all([peer(1), peer(2)]);
  await connect(a, b);
  const bytes = new Uint8Array(1024);
  for (let i = 0; i < 10_000; i += 100) {
    const entries = Array.from({ length: 100 }, (_, at) => ({ index: i + at, term: 1, payload: { kind: 'operation' as const, bytes } }));
    const message = { kind: 'append' as const, from: 1, to: 2, term: 1, prevIndex: i, prevTerm: 1, entries, commit: 0, round: 1 };
    a.transport.send(2, [{ kind: 'raft', message }]);
  }
  await b.heard.until('all have arrived', () => b.heard.messages.length === 100);
  assert.deepEqual(a.heard.lost, []);
  await closeAll(a, b);
});

test('what is sent to a peer without a stream is dropped, counted and told, never during the call', async () => {
  const a = await peer(1);
  a.transport.setPeers(new Map([[2, 'http://127.0.0.1:1']]));
  a.transport.send(2, [applied(1), applied(2)]);
  a.transport.send(3, [applied(1)]);
  assert.deepEqual(a.heard.lost, []);
  await a.heard.until('it was told', () => a.heard.lost.length === 2);
  assert.deepEqual(a.heard.lost.sort(), [2, 3]);
  await a.heard.until('a call has failed', () => /ECONNREFUSED/.test(a.transport.connections().get(2)?.lastError ?? ''));
  const { connected, failures, protocolVersion, lastErrorMs } = a.transport.connections().get(2) ?? assert.fail();
  assert.deepEqual({ connected, failures, protocolVersion }, { connected: false, failures: 2, protocolVersion: null });
  assert.ok(Math.abs((lastErrorMs as number) - Date.now()) < 60_000);
  await closeAll(a);
});

test('what listens at the address and is no peer, is told in words that stay the same', async () => {
  const door = createServer((_, response) => response.end('not found')).listen(0, '127.0.0.1');
  await once(door, 'listening');
  const a = await peer(1);
  const uri = `http://127.0.0.1:${(door.address() as AddressInfo).port}`;
  const request = { kind: 'describe', clusterId: 'c' } as const;
  const reason = /what listens there is no internal port of a peer/;
  for (const _ of [1, 2]) await assert.rejects(a.transport.request(uri, request, 5000), { code: 'unavailable', message: reason });
  await assert.rejects(a.transport.request('http://127.0.0.1:1', request, 5000), {
    message: /no connection: connect ECONNREFUSED 127\.0\.0\.1:1$/,
  });
  door.close();
  await closeAll(a);
});

test('a peer that restarts on its port is connected again within a second, and its failures are forgotten', async () => {
  for (const [id, other] of [
    [1, 2],
    [2, 1],
  ] as const) {
    const [a, before] = await Promise.all([peer(id), peer(other)]);
    const failedCall = () => /ECONNREFUSED/.test(a.transport.connections().get(other)?.lastError ?? '');
    await connect(a, before);
    await before.transport.close();
    await a.heard.until('the loss is told', () => a.heard.changes.includes(`-${other}`));
    await a.heard.until('calls have failed', failedCall);
    const after = await peer(other, { port: before.transport.port });
    const started = performance.now();
    after.transport.setPeers(new Map([[id, a.uri]]));
    await a.heard.until('it is back', () => isConnected(a, other));
    const milliseconds = performance.now() - started;
    assert.ok(milliseconds < 1500, `${milliseconds} ms`);
    a.transport.send(other, [applied(7)]);
    await after.heard.until('a message has arrived', () => after.heard.applied().includes(7));
    await a.heard.until('failures are forgotten', () => a.transport.connections().get(other)?.lastError === null);
    assert.deepEqual(a.heard.changes, [`+${other}`, `-${other}`, `+${other}`]);
    await closeAll(a, after);
  }
});

test('a peer of another cluster, another id or other versions is refused, and both sides show why', async () => {
  const a = await peer(1);
  const cases = [
    { other: await peer(2, { clusterId: 'other' }), called: 2, pattern: /part of cluster a-cluster, peer 2 of cluster other/ },
    { other: await peer(5), called: 3, pattern: /peer 5 answers where peer 3 was called/ },
    { other: await peer(4, { versions: { min: 7, max: 8 } }), called: 4, pattern: /speaks version 1, the other one versions 7 to 8/ },
    { other: await peer(6, { clusterId: null }), called: 6, pattern: /of cluster \(none\)/ },
  ];
  a.transport.setPeers(new Map([...cases.map(({ other, called }) => [called, other.uri] as const), [9, a.uri]]));
  for (const { called, pattern } of [...cases, { called: 9, pattern: /both sides have the peer id 1/ }]) {
    await a.heard.until(`${pattern}`, () => pattern.test(a.transport.connections().get(called)?.lastError ?? ''));
  }
  cases[0]?.other.transport.setPeers(new Map([[1, a.uri]]));
  await cases[0]?.other.heard.until('the other side shows it too', () =>
    /part of cluster other, peer 1 of cluster a-cluster/.test(cases[0]?.other.transport.connections().get(1)?.lastError ?? ''),
  );
  assert.deepEqual(a.heard.changes, []);
  await closeAll(a, ...cases.map(({ other }) => other));
});

test('both sides show the version that they speak: the highest that both know', async () => {
  const [a, b] = await Promise.all([peer(1), peer(2, { versions: { min: 1, max: 9 } })]);
  await connect(a, b);
  assert.equal(a.transport.connections().get(2)?.protocolVersion, 1);
  assert.equal(b.transport.connections().get(1)?.protocolVersion, 1);
  await closeAll(a, b);
});

test('a peer that knows the address of the other one suffices, also the one with the higher id', async () => {
  for (const [caller, called] of [
    [1, 2],
    [2, 1],
  ] as const) {
    const [a, b] = await Promise.all([peer(caller), peer(called)]);
    b.transport.setPeers(new Map([[caller, 'http://127.0.0.1:1']]));
    a.transport.setPeers(new Map([[called, b.uri]]));
    await b.heard.until('they are connected', () => isConnected(b, caller));
    b.transport.send(caller, [applied(1)]);
    await a.heard.until('a message has arrived', () => a.heard.applied().length === 1);
    await closeAll(a, b);
  }
});

test('a peer that this node does not know is heard and answered while it is connected, and forgotten after that', async () => {
  const [a, b] = await Promise.all([peer(1), peer(2)]);
  b.transport.setPeers(new Map([[1, a.uri]]));
  await b.heard.until('it has called', () => isConnected(b, 1));
  b.transport.send(1, [applied(1)]);
  await a.heard.until('it is heard', () => a.heard.applied().length === 1);
  a.transport.send(2, [applied(2)]);
  await b.heard.until('it is answered', () => b.heard.applied().length === 1);
  await b.transport.close();
  await a.heard.until('it is forgotten', () => a.transport.connections().size === 0);
  assert.deepEqual(a.heard.changes, ['+2', '-2']);
  await closeAll(a);
});

test('a peer that is cut off hears what was sent before, is heard no more, and is not called again', async () => {
  const [a, b] = await Promise.all([peer(1), peer(2)]);
  await connect(a, b);
  for (let i = 0; i < 500; i++) a.transport.send(2, [applied(i)]);
  a.transport.setPeers(new Map());
  b.transport.send(1, [applied(1)]);
  await b.heard.until('the last message has arrived', () => b.heard.applied().at(-1) === 499);
  await b.heard.until('the end is told', () => b.heard.changes.includes('-1'));
  assert.deepEqual(a.heard.messages, []);
  // It calls as one that is not known.
  await b.heard.until('it is connected as a guest', () => b.heard.changes.filter((change) => change === '+1').length === 2);
  await closeAll(a, b);
});

test('a new address takes effect: the old stream stays until it breaks, then the new one is called', async () => {
  const [a, b] = await Promise.all([peer(1), peer(2)]);
  await connect(a, b);
  const moved = await peer(2);
  a.transport.setPeers(new Map([[2, moved.uri]]));
  assert.ok(isConnected(a, 2));
  await b.transport.close();
  await moved.heard.until('the new one was called', () => isConnected(moved, 1));
  await closeAll(a, moved);
});

test('a message that is larger than any frame may be is dropped, and the next one arrives', async () => {
  const [a, b] = await Promise.all([peer(1), peer(2)]);
  await connect(a, b);
  const entries = [{ index: 1, term: 1, payload: { kind: 'operation' as const, bytes: new Uint8Array(9 << 20) } }];
  const message = { kind: 'append' as const, from: 1, to: 2, term: 1, prevIndex: 0, prevTerm: 0, entries, commit: 0, round: 1 };
  a.transport.send(2, [{ kind: 'raft', message }]);
  await a.heard.until('it was told', () => a.heard.lost.length === 1);
  a.transport.send(2, [applied(5)]);
  await b.heard.until('the next one has arrived', () => b.heard.applied().length === 1);
  assert.deepEqual(b.heard.applied(), [5]);
  await closeAll(a, b);
});

test('requests carry their answers, their errors and the caller’s address', async () => {
  const [a, b] = await Promise.all([peer(1), peer(2)]);
  const members = [{ peerId: 1, uri: a.uri, version: '0.1.0', voter: true }];
  b.heard.reply = async (request, address) => {
    if (request.kind === 'describe') throw new TroupeError('busy', 'later please', { retryAfterMs: 30 });
    if (request.kind !== 'join') throw new Error('a bug');
    return { kind: 'joined', clusterId: CLUSTER, uri: `http://${address}:${request.port}`, members };
  };
  const join = { kind: 'join' as const, peerId: 9, uri: null, port: 6335, version: '0.1.0' };
  assert.deepEqual(await a.transport.request(b.uri, join, 5000), {
    kind: 'joined',
    clusterId: CLUSTER,
    uri: 'http://127.0.0.1:6335',
    members,
  });
  const describe = { kind: 'describe' as const, clusterId: CLUSTER };
  await assert.rejects(a.transport.request(b.uri, describe, 5000), { code: 'busy', detail: 'later please', retryAfterMs: 30 });
  const announce = { kind: 'announce' as const, clusterId: CLUSTER, member: { peerId: 1, uri: a.uri, version: '0.1.0' } };
  await assert.rejects(a.transport.request(b.uri, announce, 5000), { code: 'internal', detail: 'a bug' });
  b.heard.reply = () => new Promise(() => {});
  await assert.rejects(a.transport.request(b.uri, describe, 100), { code: 'timeout' });
  await assert.rejects(a.transport.request('http://127.0.0.1:1', describe, 5000), { code: 'unavailable' });
  await assert.rejects(a.transport.request('nowhere', describe, 5000), { code: 'wrongInput' });
  const stranger = await peer(3, { versions: { min: 4, max: 4 } });
  await assert.rejects(stranger.transport.request(b.uri, describe, 5000), {
    code: 'unsupported',
    message: /speaks version 1, the other one version 4/,
  });
  await closeAll(a, b, stranger);
  await assert.rejects(a.transport.request(b.uri, describe, 5000), { code: 'unavailable' });
});

test('a transport that was not started turns everybody away and says so', async () => {
  const a = await peer(1);
  const silent = await openPeerTransport({ host: '127.0.0.1', port: 0, release: '0.1.0' });
  const uri = `http://127.0.0.1:${silent.port}`;
  a.transport.setPeers(new Map([[2, uri]]));
  await a.heard.until('its reason is known', () => /this node is starting/.test(a.transport.connections().get(2)?.lastError ?? ''));
  await assert.rejects(a.transport.request(uri, { kind: 'describe', clusterId: CLUSTER }, 5000), { code: 'unavailable' });
  await silent.close();
  await closeAll(a);
});

test('a port that is taken is an error with what the system said', async () => {
  const a = await peer(1);
  await assert.rejects(
    openPeerTransport({ host: '127.0.0.1', port: a.transport.port, release: '0.1.0' }),
    (error) => error instanceof PeerPortError && error.code === 'EADDRINUSE',
  );
  await closeAll(a);
});

test('closing tells the other side at once and delivers what was sent before', async () => {
  const [a, b] = await Promise.all([peer(1), peer(2)]);
  await connect(a, b);
  a.transport.send(2, [applied(1)]);
  await a.transport.close();
  await b.heard.until('the end is told', () => b.heard.changes.includes('-1'), 2000);
  assert.deepEqual(b.heard.applied(), [1]);
  await a.transport.close();
  a.transport.send(2, [applied(2)]);
  await closeAll(b);
});

test('an address of this machine at which nobody listens any more refuses; one that is silent, or another machine’s, does not', async () => {
  const a = await peer(1);
  const b = await peer(2);
  assert.equal(await a.transport.refuses(b.uri), false);
  await b.transport.close();
  assert.equal(await a.transport.refuses(b.uri), true);
  assert.equal(await a.transport.refuses(b.uri.replace('127.0.0.1', 'localhost')), true);
  // An address that no machine has (RFC 5737).
  assert.equal(await a.transport.refuses('http://192.0.2.1:6335'), false);
  const never = await peer(3, { survivor: 'never' });
  assert.equal(await never.transport.refuses(b.uri), false);
  await assert.rejects(a.transport.refuses('nowhere'), { code: 'wrongInput' });
  await closeAll(a, never);
});
