import assert from 'node:assert/strict';
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { LocalCluster } from '../../../ops/cluster/local-cluster.js';
import type { LocalNode } from '../../../ops/cluster/local-node.js';
import { until } from '../../process/support.js';

const FAKE = fileURLToPath(new URL('./fake-node.js', import.meta.url));

async function clusterOf(t: TestContext, nodes: number): Promise<LocalCluster> {
  const folder = await mkdtemp(join(tmpdir(), 'troupe-cluster-test-'));
  const cluster = await LocalCluster.start({ nodes, folder, program: FAKE });
  t.after(async () => {
    await cluster.close();
    await rm(folder, { recursive: true, force: true, maxRetries: 5 });
  });
  return cluster;
}

function start(node: LocalNode): Promise<{ readonly options: string[]; readonly proxied: boolean; readonly unset: boolean }> {
  return node.client.result('GET', '/start');
}

interface Heard {
  readonly heard: string[];
  readonly echoes: string[];
}

function heard(node: LocalNode): Promise<Heard> {
  return node.client.result<Heard>('GET', '/heard');
}

async function say(source: LocalNode, target: LocalNode, text: string): Promise<void> {
  await source.client.result('GET', `/say?port=${target.internalPort}&text=${text}`);
}

test('the first node founds the cluster, the others join at a node that runs, and each has a log and a proxy of its own', async (t) => {
  const cluster = await clusterOf(t, 3);
  const [first, second, third] = cluster.nodes as [LocalNode, LocalNode, LocalNode];
  assert.deepEqual((await start(first)).options, ['--uri', first.uri]);
  assert.deepEqual(await start(second), { options: ['--uri', second.uri, '--bootstrap', first.uri], proxied: true, unset: true });
  assert.deepEqual((await start(third)).options, ['--uri', third.uri, '--bootstrap', first.uri]);
  assert.equal(new Set(cluster.nodes.flatMap((node) => [node.port, node.grpcPort, node.internalPort, node.proxy.url])).size, 12);
  assert.match(await readFile(third.logFile, 'utf8'), /started with --uri/);
  assert.equal(await cluster.peerIdOf(third), third.internalPort);
});

test('a node that was removed starts as a new peer, whether it has heard of its removal or not', async (t) => {
  const cluster = await clusterOf(t, 2);
  const [first, second] = cluster.nodes as [LocalNode, LocalNode];
  await cluster.remove(2);
  assert.equal(second.state, 'ended');
  for (const options of [['--reinit'], []]) {
    await cluster.start(2);
    assert.deepEqual((await start(second)).options, ['--uri', second.uri, ...options, '--bootstrap', first.uri]);
    await second.stop();
  }
});

test('a node that was killed says how it ended, and starts again at its address through one that runs', async (t) => {
  const cluster = await clusterOf(t, 2);
  const [first, second] = cluster.nodes as [LocalNode, LocalNode];
  assert.deepEqual(await first.kill(), { code: null, signal: 'SIGKILL' });
  assert.deepEqual([first.state, first.pid, await first.cluster()], ['ended', null, null]);
  await cluster.start(1);
  assert.deepEqual((await start(first)).options, ['--uri', first.uri, '--bootstrap', second.uri]);
  assert.equal((await first.log()).match(/started with/g)?.length, 2);
  second.pause();
  assert.equal(await second.isReady(200), false);
  second.resume();
  assert.equal(await second.isReady(), true);
  assert.deepEqual(await second.stop(), { code: 0, signal: null });
  assert.equal((await cluster.add()).number, 3);
});

test('a partition is silent both ways, also for new connections, and what waited in front of it arrives when it heals', async (t) => {
  const cluster = await clusterOf(t, 3);
  const [first, second, third] = cluster.nodes as [LocalNode, LocalNode, LocalNode];
  await say(first, second, 'a');
  await until(
    () => heard(first),
    ({ echoes }) => echoes.join('') === 'a',
  );

  cluster.partition([1, 3], [2]);
  await say(first, second, 'b');
  await say(second, first, 'c');
  await say(third, first, 'd');
  await until(
    () => heard(third),
    ({ echoes }) => echoes.join('') === 'd',
  );
  assert.deepEqual(
    [await heard(second), await heard(first)],
    [
      { heard: ['a'], echoes: [] },
      { heard: ['d'], echoes: ['a'] },
    ],
  );

  cluster.heal();
  await until(
    () => heard(first),
    ({ heard, echoes }) => echoes.join('') === 'ab' && heard.join('') === 'dc',
  );
  await until(
    () => heard(second),
    ({ heard, echoes }) => echoes.join('') === 'c' && heard.join('') === 'ab',
  );
});

test('a cut of one way lets the other way through', async (t) => {
  const cluster = await clusterOf(t, 2);
  const [first, second] = cluster.nodes as [LocalNode, LocalNode];
  await say(first, second, 'a');
  await until(
    () => heard(first),
    ({ echoes }) => echoes.join('') === 'a',
  );
  cluster.cut(2, 1);
  await say(first, second, 'b');
  await until(
    () => heard(second),
    ({ heard }) => heard.join('') === 'ab',
  );
  assert.deepEqual((await heard(first)).echoes, ['a']);
  cluster.heal();
  await until(
    () => heard(first),
    ({ echoes }) => echoes.join('') === 'ab',
  );
});

test('a cluster that is started in the folder of another one has its addresses', async (t) => {
  const first = await clusterOf(t, 2);
  const addresses = (cluster: LocalCluster) => cluster.nodes.map(({ url, uri, folder }) => ({ url, uri, folder }));
  await first.close();
  const again = await LocalCluster.start({ nodes: 2, folder: dirname(first.node(1).folder), program: FAKE });
  t.after(() => again.close());
  assert.deepEqual(addresses(again), addresses(first));
});

test('a node that does not become ready ends the start with what it printed, and no process is left', async (t) => {
  const folder = await mkdtemp(join(tmpdir(), 'troupe-cluster-test-'));
  t.after(() => rm(folder, { recursive: true, force: true, maxRetries: 5 }));
  const nodes: LocalNode[] = [];
  const environment = { SERVICE__SERVICE__HTTP_PORT: 'none' };
  const options = { nodes: 2, folder, program: FAKE, environment, readyTimeoutMs: 5000, onNode: (node: LocalNode) => nodes.push(node) };
  await assert.rejects(LocalCluster.start(options), /node 1 (ended before it was|was not) ready/);
  assert.deepEqual(
    nodes.map(({ state }) => state),
    ['ended'],
  );
});
