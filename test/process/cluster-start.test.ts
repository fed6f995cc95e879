/** How nodes of a cluster are started: by options and variables, again, under another address, afresh, with a damaged log. */

import assert from 'node:assert/strict';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import type { ClusterAnswer } from '../../ops/cluster/local-node.js';
import { launchNode, untilReady } from '../../ops/node-process.js';
import { freePorts } from '../../ops/ports.js';
import { RestClient } from '../../ops/rest-client.js';
import { temporaryFolder, until } from './support.js';

interface Peer {
  readonly client: RestClient;
  readonly uri: string;
  readonly exited: Promise<{ readonly code: number | null }>;
  readonly log: () => string;
  readonly stop: () => Promise<unknown>;
  cluster(): Promise<ClusterAnswer>;
}

interface PeerOptions {
  readonly folder: string;
  readonly options?: readonly string[];
  readonly environment?: Readonly<Record<string, string>>;
  readonly internalPort?: number;
  /** Left out: it must become ready. */
  readonly ready?: false;
}

async function peer(t: TestContext, { folder, options = [], environment = {}, internalPort, ready }: PeerOptions): Promise<Peer> {
  const [port, grpcPort, free] = (await freePorts(3)) as [number, number, number];
  const internal = internalPort ?? free;
  const node = launchNode({
    folder,
    port,
    grpcPort,
    options,
    environment: { SERVICE__CLUSTER__ENABLED: 'true', SERVICE__CLUSTER__P2P__PORT: String(internal), ...environment },
  });
  const client = new RestClient(port);
  t.after(async () => {
    client.close();
    await node.end('SIGKILL');
  });
  if (ready !== false) await untilReady(port, node.exited, node.log, 60_000);
  return {
    client,
    uri: `http://127.0.0.1:${internal}`,
    exited: node.exited,
    log: node.log,
    stop: () => node.end('SIGTERM'),
    cluster: () => client.result<ClusterAnswer>('GET', '/cluster'),
  };
}

function addresses({ peers }: ClusterAnswer): string[] {
  return Object.values(peers)
    .map(({ uri }) => uri.replace(/\/$/, ''))
    .sort();
}

function createCollection({ client }: Peer, name: string): Promise<unknown> {
  return client.result('PUT', `/collections/${name}`, { vectors: { size: 2, distance: 'Dot' }, shard_number: 1 });
}

test('a peer starts again without options as who it was, and with --reinit as another one with the same collections', async (t) => {
  const folder = await temporaryFolder(t);
  const [internalPort] = (await freePorts(1)) as [number];
  const uri = `http://127.0.0.1:${internalPort}`;
  const first = await peer(t, { folder, internalPort, environment: { SERVICE_URI: uri } });
  await createCollection(first, 'kept');
  await first.client.result('PUT', '/collections/kept/points?wait=true', { points: [{ id: 1, vector: [1, 2] }] });
  const founded = await first.cluster();
  assert.deepEqual([addresses(founded), founded.raft_info.role], [[uri], 'Leader']);
  await first.stop();

  // A member does not join anybody, itself neither.
  const again = await peer(t, { folder, internalPort, options: ['--uri', uri, '--bootstrap', uri] });
  assert.equal((await again.cluster()).peer_id, founded.peer_id);
  assert.match(again.log(), /--bootstrap has no effect: this node is a member of its cluster already/);
  await again.stop();

  const reborn = await peer(t, { folder, internalPort, options: ['--uri', uri, '--reinit'] });
  assert.notEqual((await reborn.cluster()).peer_id, founded.peer_id);
  assert.deepEqual(await reborn.client.result('POST', '/collections/kept/points/count', {}), { count: 1 });
});

test('a peer joins without an address of its own, tells a new one, and once removed is told so and joins afresh', async (t) => {
  const [folder, other] = [await temporaryFolder(t), await temporaryFolder(t)];
  const [port] = (await freePorts(1)) as [number];
  const founder = await peer(t, { folder, internalPort: port, options: ['--uri', `http://127.0.0.1:${port}`] });
  const joined = await peer(t, { folder: other, options: ['--bootstrap', founder.uri] });
  assert.deepEqual(addresses(await founder.cluster()), [founder.uri, joined.uri].sort());
  const joinedId = (await joined.cluster()).peer_id;
  await createCollection(joined, 'shared');
  await joined.stop();

  const [movedPort] = (await freePorts(1)) as [number];
  const movedUri = `http://127.0.0.1:${movedPort}`;
  const announced = await peer(t, { folder: other, internalPort: movedPort, options: ['--uri', movedUri] });
  await until(
    () => founder.cluster(),
    (answer) => addresses(answer).includes(movedUri),
  );
  assert.equal((await announced.cluster()).peer_id, joinedId);

  assert.equal(await founder.client.result('DELETE', `/cluster/peer/${joinedId}?force=true`), true);
  await until(
    () => announced.client.call('GET', '/readyz'),
    ({ status }) => status === 503,
  );
  assert.match((await announced.client.call('GET', '/cluster')).text, /removed/);
  await announced.stop();
  const fresh = await peer(t, { folder: other, options: ['--bootstrap', founder.uri] });
  assert.notEqual((await fresh.cluster()).peer_id, joinedId);
  assert.deepEqual(await fresh.client.result('GET', '/collections'), { collections: [{ name: 'shared' }] });
});

test('a peer with a damaged log does not start, says how to recover, and does recover that way', async (t) => {
  const folder = await temporaryFolder(t);
  const [internalPort] = (await freePorts(1)) as [number];
  const options = ['--uri', `http://127.0.0.1:${internalPort}`];
  const sound = await peer(t, { folder, internalPort, options });
  await createCollection(sound, 'kept');
  await sound.stop();
  const file = join(folder, 'storage', 'consensus', 'lmdb', 'data.mdb');
  const bytes = readFileSync(file);
  const at = bytes.lastIndexOf('kept');
  assert.ok(at > 0);
  (bytes[at] as number) ^= 4;
  writeFileSync(file, bytes);

  const damaged = await peer(t, { folder, internalPort, options, ready: false });
  assert.equal((await damaged.exited).code, 1);
  assert.match(damaged.log(), /consensus.*record `entries\/\d+` is damaged.*--reinit/);
  const recovered = await peer(t, { folder, internalPort, options: [...options, '--reinit'] });
  assert.deepEqual(await recovered.client.result('GET', '/collections'), { collections: [{ name: 'kept' }] });
});
