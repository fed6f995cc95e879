/** A node whose machine has no room for what is asked of it: the limit of open files is low (`prlimit`). */

import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { test } from 'node:test';
import { noPrlimit, statusBytes } from '../machine.js';
import { nodeFor, temporaryFolder, until, untilIndexed } from './support.js';

const FILES_MAX = 400;
/** Threads of a node take 40 to 60. */
const ADDRESS_GIB_MAX = 200;
const VECTORS = { size: 32, distance: 'Dot' };

test('a collection with more shards than the machine has room for is refused with the figures, and the node goes on', {
  skip: noPrlimit,
}, async (t) => {
  const folder = await temporaryFolder(t);
  const wrapper = ['prlimit', `--nofile=${FILES_MAX}:${FILES_MAX}`];
  const node = await nodeFor(t, { folder, wrapper });
  await node.client.result('PUT', '/collections/small', { vectors: VECTORS, shard_number: 2 });
  const refused = await node.client.call('PUT', '/collections/large', { vectors: VECTORS, shard_number: 2000 });
  assert.equal(refused.status, 400, refused.text);
  assert.match(
    refused.text,
    /Can't create collection with name large: 2000 more replicas of shards and the 2 that this node has are more than the 60 that it has room for: this process can have 400 open files; raise `ulimit -n`/,
  );
  const { collections } = await node.client.result<{ collections: { name: string }[] }>('GET', '/collections');
  assert.deepEqual(collections, [{ name: 'small' }]);
  const telemetry = await node.client.result<{ app: { engine: { replicas: unknown } } }>('GET', '/telemetry');
  assert.deepEqual(telemetry.app.engine.replicas, {
    open: 2,
    max: 60,
    limitedBy: 'descriptors',
    reason: 'this process can have 400 open files; raise `ulimit -n` (`nofile`)',
  });
  assert.match(node.log(), /this machine has room for 60 replicas of shards/);
  await node.client.result('PUT', '/collections/small/points?wait=true', { points: [{ id: 1, vector: new Array(32).fill(1) }] });
  await node.end('SIGKILL');

  const again = await nodeFor(t, { folder, wrapper });
  assert.deepEqual(await again.client.result('POST', '/collections/small/points/count', { exact: true }), { count: 1 });
});

test('where addresses are few, a few small replicas fit, and more than fit are refused', { skip: noPrlimit }, async (t) => {
  const node = await nodeFor(t, { folder: await temporaryFolder(t), wrapper: ['prlimit', `--as=${ADDRESS_GIB_MAX * 2 ** 30}`] });
  await node.client.result('PUT', '/collections/few', { vectors: VECTORS, shard_number: 20 });
  const points = Array.from({ length: 200 }, (_, id) => ({ id, vector: new Array(32).fill(id) }));
  await node.client.result('PUT', '/collections/few/points?wait=true', { points });
  assert.deepEqual(await node.client.result('POST', '/collections/few/points/count', { exact: true }), { count: 200 });
  const refused = await node.client.call('PUT', '/collections/many', { vectors: VECTORS, shard_number: 300 });
  assert.equal(refused.status, 400, refused.text);
  assert.match(refused.text, /this process can have 200 GiB of addresses; raise `ulimit -v`/);
  assert.equal((await node.client.call('GET', '/livez')).status, 200);
});

test('collections are created up to the limit, and the next one is refused', { skip: noPrlimit }, async (t) => {
  const node = await nodeFor(t, { folder: await temporaryFolder(t), wrapper: ['prlimit', `--nofile=${FILES_MAX}:${FILES_MAX}`] });
  await node.client.result('PUT', '/collections/first', { vectors: VECTORS, shard_number: 59 });
  const both = await Promise.all(['a', 'b'].map((name) => node.client.call('PUT', `/collections/${name}`, { vectors: VECTORS })));
  assert.deepEqual(both.map(({ status }) => status).sort(), [200, 400]);
  assert.equal((await node.client.call('GET', '/livez')).status, 200);
});

test('a node that runs out of addresses refuses what takes some, starts no thread without, and goes on', { skip: noPrlimit }, async (t) => {
  const node = await nodeFor(t, { folder: await temporaryFolder(t) });
  const limit = (bytes: number | 'unlimited') => execFileSync('prlimit', ['--pid', String(node.pid), `--as=${bytes}:unlimited`]);
  // In kilobytes: the builder comes with the first points.
  const optimizers_config = { indexing_threshold: 2, default_segment_number: 1 };
  await node.client.result('PUT', '/collections/here', { vectors: VECTORS, optimizers_config });
  const put = (from: number) => {
    const points = Array.from({ length: 100 }, (_, at) => ({ id: from + at, vector: Array.from({ length: 32 }, (_, n) => at * n + 1) }));
    return node.client.result('PUT', '/collections/here/points?wait=true', { points });
  };
  const leave = (megabytes: number) => limit(statusBytes('VmSize', node.pid) + megabytes * 2 ** 20);
  leave(600);
  await put(0);
  // A builder takes more than that, and what LMDB maps for a replica more than this.
  leave(150);
  const refused = await node.client.call('PUT', '/collections/new', { vectors: VECTORS });
  assert.match(refused.text, /of addresses/);
  leave(600);
  const lack = /failed to build .*cannot start thread builder-\d+: it takes [\d.]+ GiB of addresses/;
  await until(
    async () => node.log(),
    (log) => lack.test(log),
  );
  await put(100);

  limit('unlimited');
  // Only now, as a reader that has not opened the collection takes addresses for it.
  assert.deepEqual(await node.client.result('POST', '/collections/here/points/count', { exact: true }), { count: 200 });
  await node.client.result('PUT', '/collections/newer', { vectors: VECTORS });
  await untilIndexed(node.client, 'here', 100);
});
