/** Who is let in to the internal port: by a key, by certificates, by both. */

import assert from 'node:assert/strict';
import { once } from 'node:events';
import { connect as connectSocket, createServer, type Socket } from 'node:net';
import { type TestContext, test } from 'node:test';
import { OutgoingCalls } from '../../../cluster/transport/calls.js';
import { type Entrance, type PeerTls, silentWay } from '../../../cluster/transport/entrance.js';
import { PROTOCOL_VERSIONS } from '../../../cluster/transport/handshake.js';
import type { PeerTransportOptions } from '../../../cluster/transport/open.js';
import { MEMBER_PREFACE, memberKey } from '../../../cluster/transport/proof.js';
import { Authority } from '../../../ops/tls/authority.js';
import { applied, CLUSTER, connect, peer, type TestPeer } from './support.js';

const authority = new Authority('authority', Date.now());
const stranger = new Authority('another authority', Date.now());
const SMALL = { kind: 'reached', collection: 'c', uid: 7, shards: [1] } as const;
/** Goes alone, as a call of gRPC. */
const LARGE = { ...SMALL, shards: Array.from({ length: 50_000 }, (_, shard) => shard) };

interface Logged {
  readonly peer: TestPeer;
  readonly lines: string[];
}

async function open(t: TestContext, id: number, entrance: Entrance, more: Partial<PeerTransportOptions> = {}): Promise<Logged> {
  const lines: string[] = [];
  const log = { warn: (message: string, facts: Record<string, unknown>) => void lines.push(`${message}: ${String(facts.reason)}`) };
  const opened = await peer(id, { entrance, log, ...more });
  t.after(() => opened.transport.close());
  return { peer: opened, lines };
}

function byKeys(...keys: string[]): Entrance {
  return { tls: null, keys: keys.map(memberKey) };
}

function certificate(hosts = ['127.0.0.1'], by = authority, uses: ('server' | 'client')[] = ['server', 'client']): PeerTls {
  return { ...by.sign({ name: 'node', hosts, uses }), ca: authority.cert };
}

function byTls(tls = certificate(), ...keys: string[]): Entrance {
  return { tls, keys: keys.map(memberKey) };
}

/** Messages, small and large calls and requests pass in both directions. */
async function talk(a: TestPeer, b: TestPeer): Promise<void> {
  await connect(a, b);
  for (const [from, to] of [
    [a, b],
    [b, a],
  ] as const) {
    from.transport.send(to.id, [applied(from.id)]);
    await to.heard.until('the message', () => to.heard.applied().includes(from.id));
    for (const call of [SMALL, LARGE]) await assert.rejects(from.transport.call(to.id, call, 5000), /no replica here/);
  }
}

/** The reasons in both logs, once a has tried to reach b for a while. */
async function refused(a: Logged, b: Logged): Promise<readonly [string, string]> {
  const uris = new Map([a.peer, b.peer].map(({ id, uri }) => [id, uri]));
  a.peer.transport.setPeers(uris);
  const reason = () => a.peer.transport.connections().get(b.peer.id)?.lastError ?? null;
  while (reason() === null || b.lines.length === 0) await new Promise((resolve) => setTimeout(resolve, 10));
  a.peer.transport.send(b.peer.id, [applied(1)]);
  assert.equal(a.peer.transport.connections().get(b.peer.id)?.connected, false);
  assert.deepEqual(b.peer.heard.messages, []);
  return [reason() as string, b.lines[0] as string];
}

test('nodes with the same key talk; keys are changed node by node', async (t) => {
  const old = await open(t, 1, byKeys('old'));
  const changing = await open(t, 2, byKeys('new', 'old'));
  const changed = await open(t, 3, byKeys('new'));
  await talk(old.peer, changing.peer);
  await talk(changing.peer, changed.peer);
  assert.deepEqual([...old.lines, ...changing.lines, ...changed.lines], []);
});

test('a node with another key, with none, or without TLS is told why it is not let in, before anything of it has an effect', async (t) => {
  const member = await open(t, 1, byKeys('key'));
  const other = await open(t, 2, byKeys('other'));
  const [said, noted] = await refused(other, member);
  assert.match(said, /not admitted: the caller has another key/);
  assert.match(noted, /a connection to the internal port was refused: the caller has another key/);
  assert.match(other.lines[0] as string, /a peer does not let this node in: not admitted: the caller has another key/);

  // As nodes of earlier releases do, too.
  const open3 = await open(t, 3, { tls: null, keys: [] });
  const strict = await open(t, 4, byKeys('key'));
  const [toOpen, ofOpen] = await refused(open3, strict);
  assert.match(toOpen, /refused: the node that was called talks to nodes with its key only/);
  assert.match(ofOpen, /talks to nodes with its key only/);
  const back = await open(t, 5, byKeys('key'));
  const [toKeyed, ofKeyed] = await refused(back, open3);
  assert.match(toKeyed, /has no key/);
  assert.match(ofKeyed, /has no key/);
  await assert.rejects(
    open3.peer.transport.request(strict.peer.uri, { kind: 'describe', clusterId: 'c' } as never, 5000),
    /with its key only/,
  );

  const secure = await open(t, 6, byTls());
  const [toPlain, ofPlain] = await refused(await open(t, 7, { tls: null, keys: [] }), secure);
  assert.match(toPlain, /need TLS \(cluster\.p2p\.enable_tls\)/);
  assert.match(ofPlain, /need TLS/);
});

test('a proof of another connection, or of the other direction, is none', async (t) => {
  const member = await open(t, 1, byKeys('key'));
  const caller = await open(t, 2, byKeys('key'));
  // Records what a member says to prove itself, on its way to the other one.
  const recorded: Buffer[] = [];
  const between = createServer((near) => {
    const far = connectSocket(member.peer.transport.port, '127.0.0.1');
    near.on('data', (chunk) => recorded.push(chunk));
    near.pipe(far).pipe(near);
    for (const socket of [near, far]) socket.on('error', () => {});
  });
  between.listen(0, '127.0.0.1');
  await once(between, 'listening');
  t.after(() => between.close());
  const { port } = between.address() as { port: number };
  caller.peer.transport.setPeers(new Map([[1, `http://127.0.0.1:${port}`]]));
  await member.peer.heard.until('connected', () => member.peer.transport.connections().get(2)?.connected === true);
  const said = Buffer.concat(recorded).subarray(0, MEMBER_PREFACE.length + 32 + 33);

  const replay = await dial(t, member.peer.transport.port);
  replay.write(said);
  assert.match((await restOf(replay)).toString('latin1'), /the caller has another key/);
  // Whoever sends back what it gets has no proof, either.
  const mirror = await dial(t, member.peer.transport.port);
  mirror.write(Buffer.concat([MEMBER_PREFACE, Buffer.alloc(32)]));
  const [number] = (await once(mirror, 'data')) as [Buffer];
  mirror.write(Buffer.concat([Buffer.of(1), number]));
  assert.match((await restOf(mirror)).toString('latin1'), /the caller has another key/);
  assert.equal(member.lines.length, 1);
});

async function dial(t: TestContext, port: number): Promise<Socket> {
  const socket = connectSocket(port, '127.0.0.1');
  t.after(() => socket.destroy());
  await once(socket, 'connect');
  return socket;
}

async function restOf(socket: Socket): Promise<Buffer> {
  const chunks: Buffer[] = [];
  for await (const chunk of socket) chunks.push(chunk as Buffer);
  return Buffer.concat(chunks);
}

test('a node that is called and does not have the key learns nothing by it, and is not talked to', async (t) => {
  const caller = await open(t, 1, byKeys('key'));
  const impostor = createServer((socket) => {
    socket.on('error', () => {});
    let bytes = 0;
    socket.on('data', (chunk) => {
      const before = bytes;
      bytes += chunk.length;
      const head = MEMBER_PREFACE.length + 32;
      if (before < head && bytes >= head) socket.write(Buffer.alloc(32, 5));
      if (before < head + 33 && bytes >= head + 33) socket.write(Buffer.concat([Buffer.of(1), Buffer.alloc(32, 6)]));
    });
  });
  impostor.listen(0, '127.0.0.1');
  await once(impostor, 'listening');
  t.after(() => impostor.close());
  const { port } = impostor.address() as { port: number };
  caller.peer.transport.setPeers(new Map([[2, `http://127.0.0.1:${port}`]]));
  while (caller.lines.length === 0) await new Promise((resolve) => setTimeout(resolve, 10));
  assert.match(caller.lines[0] as string, /answers without having the key/);
});

test('with TLS both sides show a certificate of the authority, and the caller looks for the host of the address', async (t) => {
  const [a, b] = [await open(t, 1, byTls()), await open(t, 2, byTls())];
  await talk(a.peer, b.peer);
  const keyed = [await open(t, 3, byTls(certificate(), 'key')), await open(t, 4, byTls(certificate(), 'key'))] as const;
  await talk(keyed[0].peer, keyed[1].peer);

  const others: [Entrance, RegExp, RegExp][] = [
    // Its own certificate is of another authority: the one that was called sees it.
    [byTls(certificate(['127.0.0.1'], stranger)), /not admitted: /, /no connection with TLS comes about: |certificate/],
    [byTls(certificate(['127.0.0.1'], authority, ['client'])), /not admitted: /, /its certificate is one of a client/],
    [byTls(certificate(), 'key'), /has no key/, /has no key/],
  ];
  for (const [at, [entrance, said, noted]] of others.entries()) {
    const called = await open(t, 10 + at, byTls());
    const [toCaller, ofCalled] = await refused(await open(t, 20 + at, entrance), called);
    assert.match(toCaller, said);
    assert.match(ofCalled, noted);
  }
  const misplaced = await open(t, 30, byTls(certificate(['another.host'])));
  const caller = await open(t, 31, byTls());
  caller.peer.transport.setPeers(new Map([[30, misplaced.peer.uri]]));
  while (caller.lines.length === 0) await new Promise((resolve) => setTimeout(resolve, 10));
  assert.match(caller.lines[0] as string, /not admitted: .*(altnames|another\.host)/);
});

test('a node with a certificate of its own host cannot call itself a peer of another host: no stream, no call, no request', async (t) => {
  const member = await open(t, 1, byTls());
  // The address at which the cluster knows peer 2, where nobody is.
  const agreed = new Map([
    [1, member.peer.uri],
    [2, 'https://127.0.0.1:1'],
  ]);
  const elsewhere = byTls(certificate(['another.host']));
  const impostor = await open(t, 2, elsewhere);
  // It calls before the member knows peer 2, and is let in as a guest.
  impostor.peer.transport.setPeers(new Map([[1, member.peer.uri]]));
  await member.peer.heard.until('a guest', () => member.peer.transport.connections().get(2)?.connected === true);
  member.peer.transport.setPeers(agreed);
  await member.peer.heard.until('the guest is gone', () => member.peer.transport.connections().get(2)?.connected === false);
  assert.match(member.lines[0] as string, /who calls itself peer 2 has no certificate for 127\.0\.0\.1/);
  const said = () => impostor.peer.transport.connections().get(1)?.lastError ?? '';
  await impostor.peer.heard.until('it is told why', () => said().includes('who calls itself peer 2'));

  const calls = new OutgoingCalls(() => silentWay(elsewhere));
  t.after(() => calls.close());
  const hello = { versions: PROTOCOL_VERSIONS, clusterId: CLUSTER, from: 2, to: 1, session: 5, release: '0.1.0' };
  const call = (kind: typeof SMALL | typeof LARGE) => calls.call(1, { uri: member.peer.uri, session: 1 }, hello, kind, 5000);
  for (const kind of [SMALL, LARGE]) await assert.rejects(call(kind), /who calls itself peer 2/);
  const moved = { peerId: 2, uri: 'https://another.host:6335', version: '0.1.0' };
  const announce = (peerId: number) =>
    impostor.peer.transport.request(member.peer.uri, { kind: 'announce', clusterId: CLUSTER, member: { ...moved, peerId } }, 5000);
  for (const peerId of [1, 2]) await assert.rejects(announce(peerId), new RegExp(`who calls itself peer ${peerId}`));
  assert.deepEqual(member.peer.heard.messages, []);
});

test('changed certificates hold for connections from then on, and the stream of two peers goes on', async (t) => {
  const [a, b] = [await open(t, 1, byTls()), await open(t, 2, byTls())];
  await talk(a.peer, b.peer);
  const renewed = new Authority('the next authority', Date.now());
  const both = `${authority.cert}${renewed.cert}`;
  for (const { peer: each } of [a, b]) each.transport.renew({ ...renewed.sign({ name: 'node', hosts: ['127.0.0.1'] }), ca: both });
  await talk(a.peer, b.peer);
  const late = await open(t, 3, byTls({ ...renewed.sign({ name: 'node', hosts: ['127.0.0.1'] }), ca: renewed.cert }));
  await talk(late.peer, a.peer);
});

test('a caller that is silent, or stops in the middle of a handshake, does not keep a node from closing', async (t) => {
  const { peer: keyed } = await open(t, 1, byKeys('key'));
  const { peer: secure } = await open(t, 2, byTls());
  const sockets = await Promise.all([
    dial(t, keyed.transport.port),
    dial(t, keyed.transport.port),
    dial(t, secure.transport.port),
    dial(t, secure.transport.port),
  ]);
  sockets[1]?.write(MEMBER_PREFACE);
  sockets[3]?.write(Buffer.from('160301', 'hex'));
  const ends = sockets.map((socket) => {
    socket.on('error', () => {}).resume();
    return new Promise((resolve) => socket.once('close', resolve));
  });
  await Promise.all([keyed.transport.close(), secure.transport.close()]);
  await Promise.all(ends);
});
