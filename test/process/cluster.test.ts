/** Nodes of a cluster as real processes: they lose and regain each other, join, and keep what was acknowledged. */

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { LocalCluster } from '../../ops/cluster/local-cluster.js';
import type { LocalNode } from '../../ops/cluster/local-node.js';
import { testSeed } from '../seed.js';
import { agreedState, differencesOf, untilAgreed } from './chaos/agreement.js';
import { runChaos } from './chaos/run.js';
import { temporaryFolder, until } from './support.js';

const CHAOS_MS = 20_000;
/** A multiple of the clients, so that none of them touches another one's. */
const ALIASES = 96;
/** Enough for several snapshots of the log. */
const CHANGES = 600;

test('minorities of three nodes are killed, stopped, paused and cut off: no acknowledged change is lost, and all agree in the end', async (t) => {
  const seed = testSeed();
  t.diagnostic(`TROUPE_SEED=${seed}`);
  const folder = await temporaryFolder(t);
  const report = await runChaos({
    nodes: 3,
    milliseconds: CHAOS_MS,
    clients: 3,
    seed,
    folder,
    faults: ['kill', 'pause', 'part', 'stop', 'cut'],
  });
  t.diagnostic(JSON.stringify(report));
  assert.deepEqual(report.violations, []);
  assert.ok(report.totals.acknowledged > 20);
});

test('a node joins a cluster with many changes by its snapshot, and a majority that is lost stops changes, not reads', async (t) => {
  const folder = await temporaryFolder(t);
  // Else the first node may know in time that the other one has ended, and go on alone (Raft-R11).
  const cluster = await LocalCluster.start({ nodes: 1, folder, environment: { SERVICE__CLUSTER__SURVIVOR: 'never' } });
  t.after(() => cluster.close());
  const first = cluster.node(1);
  await first.client.result('PUT', '/collections/base', { vectors: { size: 4, distance: 'Dot' } });
  const named = (i: number) => ({ create_alias: { alias_name: `alias-${i}`, collection_name: 'base' } });
  const again = (i: number) => ({ actions: [{ delete_alias: { alias_name: `alias-${i}` } }, named(i)] });
  await first.client.result('POST', '/collections/aliases', { actions: Array.from({ length: ALIASES }, (_, i) => named(i)) });
  let changes = CHANGES;
  await Promise.all(
    Array.from({ length: 16 }, async (_, client) => {
      for (let i = client; changes-- > 0; i += 16) await first.client.result('POST', '/collections/aliases', again(i % ALIASES));
    }),
  );
  const second = await cluster.add();
  const { cluster: shown } = await second.client.result<{ cluster: { raft: { snapshot: number } } }>('GET', '/telemetry');
  assert.ok(shown.raft.snapshot > CHANGES / 2, `it was sent everything from entry ${shown.raft.snapshot} on`);
  const state = await untilAgreed(cluster, 10_000);
  assert.equal(Object.keys(state.aliases).length, ALIASES);
  await until(
    () => second.cluster(),
    (answer) => answer?.raft_info.is_voter === true,
  );

  await second.kill();
  const refused = await first.client.call('POST', '/collections/aliases?timeout=20', again(1));
  assert.ok([503, 408].includes(refused.status), refused.text);
  await until(
    () => first.client.call('POST', '/collections/aliases?timeout=20', again(2)),
    ({ status, text }) => status === 503 && /leader/.test(text),
  );
  assert.equal((await first.client.call('GET', '/aliases')).status, 200);
  assert.equal((await first.client.call('GET', '/aliases?consistency=majority')).status, 503);
  cluster.launch(2);
  await cluster.untilReady(2);
  await until(
    () => first.client.call('POST', '/collections/aliases', again(3)),
    ({ status }) => status === 200,
  );
  await untilAgreed(cluster, 10_000);
});

test('another node leads after the leader is lost, and the old one follows it when it is back', async (t) => {
  const folder = await temporaryFolder(t);
  const cluster = await LocalCluster.start({ nodes: 3, folder });
  t.after(() => cluster.close());
  const lost = await cluster.untilLeader();
  await lost.kill();
  const next = await cluster.untilLeader();
  await next.client.result('PUT', '/collections/meanwhile', { vectors: { size: 4, distance: 'Dot' }, shard_number: 1 });
  cluster.launch(lost.number);
  await cluster.untilReady(lost.number);
  await untilAgreed(cluster, 10_000);
  const shown = await agreedState(lost);
  assert.deepEqual(differencesOf(shown.collections, (await agreedState(next)).collections), []);
});

test('a node that moved to another address is found again, though the one with the lower peer id knows only the old one', async (t) => {
  const folder = await temporaryFolder(t);
  const cluster = await LocalCluster.start({ nodes: 2, folder });
  t.after(() => cluster.close());
  await cluster.node(2).stop();
  const moved = await cluster.move(2);
  await cluster.untilReady(2);
  const peerId = String(await cluster.peerIdOf(moved));
  await until(
    () => cluster.node(1).cluster(),
    (answer) => answer?.peers[peerId]?.uri.replace(/\/$/, '') === moved.uri,
  );
  await untilAgreed(cluster, 10_000);
});

test('a peer that was removed while it was away is told so when it is back, and joins afresh under a new peer id', async (t) => {
  const folder = await temporaryFolder(t);
  const cluster = await LocalCluster.start({ nodes: 3, folder });
  t.after(() => cluster.close());
  const [first, , third] = cluster.nodes as [LocalNode, LocalNode, LocalNode];
  await first.client.result('PUT', '/collections/spread', { vectors: { size: 4, distance: 'Dot' } });
  const peerId = await cluster.peerIdOf(third);
  const holding = await first.client.call('DELETE', `/cluster/peer/${peerId}`);
  assert.deepEqual([holding.status, /shard/.test(holding.text)], [400, true], holding.text);
  await first.client.result('DELETE', '/collections/spread');
  await third.kill();
  await first.client.result('DELETE', `/cluster/peer/${peerId}`);

  third.launch([]);
  const told = await until(
    async () => JSON.stringify((await third.cluster())?.consensus_thread_status ?? null),
    (text) => /removed/i.test(text),
  );
  t.diagnostic(told);
  assert.equal(await third.isReady(), false);
  await third.stop();

  await cluster.start(3);
  assert.notEqual(await cluster.peerIdOf(third), peerId);
  const { peers } = await untilAgreed(cluster, 10_000);
  assert.equal(Object.keys(peers as object).length, 3);
});
