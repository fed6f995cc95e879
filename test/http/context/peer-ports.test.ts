import assert from 'node:assert/strict';
import { once } from 'node:events';
import type { Socket } from 'node:net';
import { type TestContext, test } from 'node:test';
import { setImmediate as turn } from 'node:timers/promises';
import type { MessagePort } from 'node:worker_threads';
import { greetingOf } from '../../../cluster/transport/call-stream.js';
import { dialPlain } from '../../../cluster/transport/dial-calls.js';
import { type Entrance, OPEN_ENTRANCE, silentWay } from '../../../cluster/transport/entrance.js';
import { frameOf } from '../../../cluster/transport/length-frames.js';
import { memberKey } from '../../../cluster/transport/proof.js';
import { PeerPort, type PeerPortSettings } from '../../../http/context/peer-port.js';
import { PeerPorts } from '../../../http/context/peer-ports.js';
import { PeerStreams } from '../../../http/context/peer-streams.js';
import { HELLO, READS_PREFACE } from '../../../http/context/portion-frames.js';
import { PortionStream } from '../../../http/context/portion-stream.js';
import { Authority } from '../../../ops/tls/authority.js';
import type { PeerCard } from '../../../storage/threads/messages.js';
import { connect, peer } from '../../cluster/transport/support.js';

const QUESTION = { collection: 'c', uid: 7, shards: [1, 3], body: Buffer.from('ask'), timeoutMs: 5000, shardMapVersion: 2 };
const KEYS: Entrance = { tls: null, keys: [memberKey('a key of this cluster')] };
const AUTHORITY = new Authority('authority', Date.now());
const TLS = byTls('127.0.0.1');

function byTls(host: string): Entrance {
  return { tls: { ...AUTHORITY.sign({ name: 'node', hosts: [host], uses: ['server', 'client'] }), ca: AUTHORITY.cert }, keys: [] };
}

/** Peer 1, which asks with a reader's streams, and peer 2, whose main thread and two readers say who they are. */
async function pair(t: TestContext, entrance: Entrance = OPEN_ENTRANCE) {
  const [asking, asked] = await Promise.all([peer(1, { entrance }), peer(2, { entrance })]);
  t.after(() => Promise.all([asking.transport.close(), asked.transport.close()]));
  asked.heard.answer = async () => ({ kind: 'answered', body: Buffer.from('main thread'), positions: [4, 4], usage: null });
  await connect(asking, asked);
  const opened: PeerPortSettings[] = [];
  const state = { isAlone: true, nowMs: 0 };
  let start: (reader: number) => void = () => {};
  const threads = {
    openDoors(open: (reader: number) => { readonly port: MessagePort; readonly settings: PeerPortSettings }): number {
      start = (reader) => {
        const { port, settings } = open(reader);
        opened.push(settings);
        const answerPeer = () => (state.isAlone ? { body: Buffer.from(`reader ${reader}`), positions: [4, 4] } : null);
        void new PeerPort({ answerPeer }, port, settings, () => state.nowMs).listen();
      };
      start(0);
      start(1);
      return 2;
    },
  };
  const told: (readonly number[])[] = [];
  const { transport } = asked;
  const ports = new PeerPorts(threads, '127.0.0.1', {
    entrance,
    admits: (hello, certificate) => transport.admits(hello, certificate),
    tellReaderPorts: (numbers) => {
      told.push(numbers);
      transport.tellReaderPorts(numbers);
    },
  });
  t.after(() => ports.close());
  ports.open();
  const card = asking.transport.cardOf?.(2) as PeerCard;
  return { asked, card, opened, ports, restart: (reader: number) => start(reader), state, told };
}

function streamsOf(t: TestContext, card: PeerCard, thread: number): PeerStreams {
  const streams = new PeerStreams();
  streams.show(new Map([[2, card]]), thread);
  t.after(() => streams.show(new Map(), thread));
  return streams;
}

/** Why a reader refuses who begins with this hello; empty: it is cut off. */
async function saidTo(socket: Socket, greeting: Uint8Array): Promise<string> {
  const chunks: Buffer[] = [];
  socket.on('data', (chunk: Buffer) => chunks.push(chunk)).on('error', () => {});
  socket.write(Buffer.concat([READS_PREFACE, frameOf(HELLO, greeting)]));
  await once(socket, 'close');
  return Buffer.concat(chunks).subarray(5).toString();
}

/** Asks until this one answers: streams take a while to open, and to end. */
async function untilAnsweredBy(who: string, streams: PeerStreams): Promise<void> {
  for (;;) {
    const answer = await streams.ask(2, QUESTION, 5000).catch(() => null);
    if (answer !== null && Buffer.from(answer.body).toString() === who) return;
    await turn();
  }
}

for (const [name, entrance] of Object.entries({ 'without a key': OPEN_ENTRANCE, 'with a key': KEYS, 'with TLS': TLS })) {
  test(`a reader's portion is answered by a reader of the peer, and by its main thread where that one cannot or is gone, ${name}`, async (t) => {
    const { card, ports, state } = await pair(t, entrance);
    const streams = [0, 1].map((thread) => streamsOf(t, card, thread)) as [PeerStreams, PeerStreams];
    await untilAnsweredBy('reader 0', streams[0]);
    await untilAnsweredBy('reader 1', streams[1]);
    state.isAlone = false;
    const { body, positions } = await streams[0].ask(2, QUESTION, 5000);
    assert.deepEqual([Buffer.from(body).toString(), positions], ['main thread', [4, 4]]);
    state.isAlone = true;
    await untilAnsweredBy('reader 0', streams[0]);
    await ports.close();
    await untilAnsweredBy('main thread', streams[0]);
  });
}

test('a reader that takes the place of another has its port', async (t) => {
  const { card, opened, ports, restart, told } = await pair(t);
  await untilAnsweredBy('reader 1', streamsOf(t, card, 1));
  const numbers = told.at(-1) as readonly number[];
  assert.equal(numbers.length, 2);
  await ports.close();
  restart(1);
  assert.deepEqual(
    opened.map(({ number }) => number),
    [0, 0, numbers[1]],
  );
  await untilAnsweredBy('reader 1', streamsOf(t, card, 1));
});

test("a reader's port answers nobody without the key, and nobody of another cluster", async (t) => {
  const { card, told } = await pair(t, KEYS);
  await untilAnsweredBy('reader 0', streamsOf(t, card, 0));
  const target = `127.0.0.1:${told.at(-1)?.[0]}`;
  const enter = (entrance: Entrance) => dialPlain(target, silentWay(entrance));
  await assert.rejects(enter(OPEN_ENTRANCE), /talks to nodes with its key only/);
  await assert.rejects(enter({ tls: null, keys: [memberKey('another key')] }), /another key/);
  const stranger = greetingOf({ versions: { min: 1, max: 1 }, clusterId: 'another', from: 1, to: 2, session: 5, release: 'x' });
  assert.equal(await saidTo(await enter(KEYS), stranger), 'this node does not know the caller');
});

test("a reader's port answers a peer only that its certificate names, also when the peer's address has changed meanwhile", async (t) => {
  const { asked, card, state, told } = await pair(t, TLS);
  await untilAnsweredBy('reader 0', streamsOf(t, card, 0));
  const target = `127.0.0.1:${told.at(-1)?.[0]}`;
  assert.equal(
    await saidTo(await dialPlain(target, silentWay(byTls('another.host'))), card.greeting),
    'this node does not know the caller',
  );
  const member = new PortionStream(card.greeting, dialPlain(target, silentWay(TLS)));
  t.after(() => member.close());
  while (!member.isOpen) await turn();
  assert.equal(Buffer.from((await member.ask(QUESTION, 5000))?.body ?? []).toString(), 'reader 0');
  const moved = new Map([
    [1, 'https://another.host:6335'],
    [2, asked.uri],
  ]);
  asked.transport.setPeers(moved);
  state.nowMs += 1000;
  assert.equal(await member.ask(QUESTION, 5000), null);
  assert.equal(member.isOver, true);
  const other = new PortionStream(card.greeting, dialPlain(target, silentWay(byTls('another.host'))));
  t.after(() => other.close());
  while (!other.isOpen) await turn();
  assert.equal(Buffer.from((await other.ask(QUESTION, 5000))?.body ?? []).toString(), 'reader 0');
});
