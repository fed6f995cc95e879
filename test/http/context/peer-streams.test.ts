import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer, type Socket } from 'node:net';
import { type TestContext, test } from 'node:test';
import { setImmediate as turn } from 'node:timers/promises';
import { CallsServer, greetingOf } from '../../../cluster/transport/call-stream.js';
import { packReply, unpackCall } from '../../../cluster/transport/codec/calls.js';
import { frameOf } from '../../../cluster/transport/length-frames.js';
import { PLAIN_PREFACE, plainStream } from '../../../cluster/transport/plain-stream.js';
import { PeerStreams } from '../../../http/context/peer-streams.js';
import { HELLO as WELCOME } from '../../../http/context/portion-frames.js';
import { EnginePool } from '../../../storage/pool/pool.js';
import type { PeerCard } from '../../../storage/threads/messages.js';

const HELLO = { versions: { min: 1, max: 1 }, clusterId: 'c', from: 1, to: 2, session: 5, release: 'x' };
const QUESTION = { collection: 'c', uid: 7, shards: [1, 3], body: Buffer.from('ask'), timeoutMs: 5000, shardMapVersion: 2 };

/** A peer that answers reads, until it is told to be silent; and its card. */
async function peer(t: TestContext) {
  const state = { silent: false, streams: 0 };
  const calls = new CallsServer(async (hello, packed) => {
    assert.equal(hello.from, 1);
    const call = unpackCall(packed);
    assert.equal(call?.kind, 'read');
    if (state.silent) await new Promise(() => {});
    return packReply({ kind: 'answered', body: Buffer.from('told'), positions: [4, 4], usage: null });
  });
  const sockets = new Set<Socket>();
  const server = createServer((socket) => {
    state.streams++;
    sockets.add(socket);
    socket.on('error', () => {});
    calls.accept((events) =>
      plainStream(socket, { bytesMax: 1 << 20, preface: PLAIN_PREFACE }, { ...events, refused: (reason) => events.ended(reason) }),
    );
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  t.after(() => {
    for (const socket of sockets) socket.destroy();
    server.close();
  });
  const { port } = server.address() as { port: number };
  const card: PeerCard = { target: `127.0.0.1:${port}`, session: 5, greeting: greetingOf(HELLO), entrance: { tls: null, keys: [] } };
  return { calls, card, state };
}

/** The first answer: a stream takes a while to open. */
async function answered(streams: PeerStreams): Promise<Awaited<ReturnType<PeerStreams['ask']>>> {
  for (;;) {
    const answer = await streams.ask(2, QUESTION, 5000).catch(() => null);
    if (answer !== null) return answer;
    await turn();
  }
}

test('a peer that is shown is asked over a stream of this thread, once it is open', async (t) => {
  const { card, state } = await peer(t);
  const streams = new PeerStreams();
  t.after(() => streams.show(new Map(), 0));
  await assert.rejects(streams.ask(2, QUESTION, 5000), /no stream to peer 2/);
  streams.show(new Map([[2, card]]), 0);
  const { body, positions } = await answered(streams);
  assert.deepEqual([Buffer.from(body).toString(), positions], ['told', [4, 4]]);
  streams.show(new Map([[2, { ...card }]]), 0);
  await streams.ask(2, QUESTION, 5000);
  assert.equal(state.streams, 1);
});

test('what a peer is asked for is given up when the peer is shown no more, and when it takes too long', async (t) => {
  const { card, state } = await peer(t);
  const streams = new PeerStreams();
  streams.show(new Map([[2, card]]), 0);
  await answered(streams);
  state.silent = true;
  await assert.rejects(streams.ask(2, QUESTION, 20));
  const asked = streams.ask(2, QUESTION, 60_000);
  streams.show(new Map(), 0);
  await assert.rejects(asked);
  await assert.rejects(streams.ask(2, QUESTION, 5000), /no stream to peer 2/);
});

test('another process of a peer gets another stream', async (t) => {
  const { card, state } = await peer(t);
  const streams = new PeerStreams();
  t.after(() => streams.show(new Map(), 0));
  streams.show(new Map([[2, card]]), 0);
  await answered(streams);
  streams.show(new Map([[2, { ...card, session: 6 }]]), 0);
  await answered(streams);
  assert.equal(state.streams, 2);
});

test('a reader of the peer that is silent is given up, and the main thread is asked', async (t) => {
  const { calls, card } = await peer(t);
  let questions = 0;
  const reader = createServer((socket) => {
    socket.once('data', () => socket.write(frameOf(WELCOME, new Uint8Array(0))));
    socket.on('data', () => questions++).on('error', () => {});
  });
  reader.listen(0, '127.0.0.1');
  await once(reader, 'listening');
  t.after(() => reader.close());
  calls.tellReaderPorts([(reader.address() as { port: number }).port]);
  const streams = new PeerStreams();
  t.after(() => streams.show(new Map(), 0));
  streams.show(new Map([[2, card]]), 0);
  // The greeting comes first.
  while (questions < 2) assert.equal(Buffer.from((await answered(streams)).body).toString(), 'told');
});

test('a reader for heavy reads has no connection with peers, which would keep it from its end', async (t) => {
  const { card, state } = await peer(t);
  const entries = {
    reader: new URL('../../../http/rest/readers/entry.js', import.meta.url),
    writer: new URL('../../storage/engine/fake-writer.js', import.meta.url),
  };
  const pool = await EnginePool.start({ readers: 1, writers: 1, entries, heavyIdleMs: 1000 });
  t.after(() => pool.close());
  pool.changeOwnReads(() => ({ isWhole: true, collections: new Map(), peers: new Map([[2, card]]) }));
  const heavy = {
    path: {},
    query: {},
    body: null,
    deadlineMs: Date.now() + 100,
    heavy: { gone: new Int32Array(new SharedArrayBuffer(4)) },
  };
  await assert.rejects(pool.read('query', ['c/0'], heavy));
  const readers = () => pool.depths().workers.filter(({ begun, kind, up }) => kind === 'reader' && begun && up).length;
  while (readers() === 1) await turn();
  while (readers() === 2 || state.streams === 0) await turn();
  assert.equal(state.streams, 1);
});
