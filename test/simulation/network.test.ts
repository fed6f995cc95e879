import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { PeerMessage, PeerReply } from '../../cluster/peer-messages.js';
import type { PeerTransport } from '../../cluster/ports.js';
import { CALM_NETWORK, VirtualNetwork } from './network.js';
import { Stream } from './random.js';
import { Life, World } from './world.js';

interface Side {
  readonly transport: PeerTransport;
  readonly life: Life;
  readonly heard: string[];
}

async function twoPeers(): Promise<{ world: World; network: VirtualNetwork; one: Side; two: Side }> {
  const world = new World();
  const network = new VirtualNetwork(world, new Stream(1, 'network'), () => {});
  const open = async (peerId: number): Promise<Side> => {
    const life = new Life(`node-${peerId}`);
    const transport = network.transport(`node-${peerId}`, `http://node-${peerId}:6335`, life);
    const heard: string[] = [];
    await transport.start(
      { peerId, clusterId: () => 'c' },
      {
        received: (from, messages) => {
          for (const message of messages) heard.push(`${from}: ${(message as { index: number }).index}`);
        },
        connectionChanged: (peer, connected) => heard.push(`${peer} ${connected ? 'up' : 'down'}`),
        unreachable: (peer) => heard.push(`${peer} unreachable`),
        requested: async () => ({ kind: 'announced' }),
        called: () => Promise.reject(new Error('not called here')),
      },
    );
    transport.setPeers(new Map([[3 - peerId, `http://node-${3 - peerId}:6335`]]));
    return { transport, life, heard };
  };
  const [one, two] = [await open(1), await open(2)];
  await world.run(1000);
  return { world, network, one, two };
}

function message(index: number): PeerMessage {
  return { kind: 'applied', index };
}

async function sendTen(world: World, { transport }: Side): Promise<void> {
  for (let index = 0; index < 10; index++) transport.send(2, [message(index)]);
  await world.run(1000);
}

test('a calm network delivers everything in order', async () => {
  const { world, one, two } = await twoPeers();
  await sendTen(world, one);
  assert.deepEqual(two.heard, ['1 up', ...Array.from({ length: 10 }, (_, index) => `1: ${index}`)]);
});

test('messages are lost, doubled and reordered when the network is told to', async () => {
  const { world, network, one, two } = await twoPeers();
  network.settings = { ...CALM_NETWORK, duplicateRate: 1, reorder: true };
  await sendTen(world, one);
  assert.equal(two.heard.length, 21);
  assert.notDeepEqual(two.heard.slice(1), [...two.heard.slice(1)].sort());
  network.settings = { ...CALM_NETWORK, lossRate: 1 };
  await sendTen(world, one);
  assert.equal(two.heard.length, 21);
  assert.deepEqual(network.counts.lost, 10);
});

test('a cut goes one way, is noticed on both sides, and can be mended', async () => {
  const { world, network, one, two } = await twoPeers();
  network.cut('node-1', 'node-2');
  await sendTen(world, one);
  two.transport.send(1, [message(77)]);
  await world.run(3000);
  assert.deepEqual(two.heard, ['1 up', '1 down']);
  assert.ok(one.heard.includes('2 down'));
  assert.ok(one.heard.includes('2: 77'));
  network.mend('node-1', 'node-2');
  await sendTen(world, one);
  assert.equal(two.heard.length, 13);
});

test('a request is answered, and fails when nobody is there or the answer is lost', async () => {
  const { world, network, one, two } = await twoPeers();
  const ask = async () => {
    let answer: PeerReply | Error | null = null;
    one.transport.request('http://node-2:6335', { kind: 'describe', clusterId: 'c' }, 500).then(
      (reply) => {
        answer = reply;
      },
      (error: Error) => {
        answer = error;
      },
    );
    await world.run(1000);
    return answer as PeerReply | Error | null;
  };
  assert.deepEqual(await ask(), { kind: 'announced' });
  network.cut('node-2', 'node-1');
  assert.match(String(await ask()), /did not answer within 500 ms/);
  network.heal();
  two.life.alive = false;
  assert.match(String(await ask()), /nobody answers/);
});
