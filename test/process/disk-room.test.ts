/** A disk that becomes full: a small file system of its own, filled by the node's own writes and then by something else. */

import assert from 'node:assert/strict';
import { existsSync, rmSync, statfsSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { smallFileSystem } from '../machine.js';
import { type NodeUnderTest, nodeFor, until } from './support.js';

const DISK_MEGABYTES = 24;
const MEBIBYTE = 1 << 20;
const DIM = 64;
const BATCH = 200;
const BATCHES_MAX = 1000;

interface DiskFacts {
  readonly free_bytes: number;
  readonly reserve_held_bytes: number;
  readonly refuses_writes: boolean;
  readonly refused_writes: number;
}

async function diskOf(node: NodeUnderTest): Promise<DiskFacts> {
  return (await node.client.result<{ app: { engine: { disk: DiskFacts } } }>('GET', '/telemetry?details_level=1')).app.engine.disk;
}

interface CollectionShare {
  readonly id: string;
  readonly disk: { readonly deleted_rows: number; readonly database_bytes: number };
}

/** What a collection has on disk. */
async function shareOf(node: NodeUnderTest, name: string): Promise<CollectionShare['disk']> {
  interface Telemetry {
    readonly collections: { readonly collections: readonly CollectionShare[] };
  }
  const { collections } = await node.client.result<Telemetry>('GET', '/telemetry?details_level=2');
  const found = collections.collections.find(({ id }) => id === name);
  assert.ok(found !== undefined);
  return found.disk;
}

const untilDisk = (node: NodeUnderTest, holds: (disk: DiskFacts) => boolean): Promise<DiskFacts> => until(() => diskOf(node), holds);

function batch(number: number): { id: number; vector: number[] }[] {
  return Array.from({ length: BATCH }, (_, i) => {
    const id = number * BATCH + i;
    return { id, vector: Array.from({ length: DIM }, (_, d) => ((id * 31 + d * 7) % 1000) / 8) };
  });
}

const MAKE = { vectors: { size: DIM, distance: 'Euclid' }, optimizers_config: { indexing_threshold: 0 } };

const upsert = (node: NodeUnderTest, name: string, number: number) =>
  node.client.call('PUT', `/collections/${name}/points?wait=true`, { points: batch(number) });
const countOf = async (node: NodeUnderTest, name: string): Promise<number> =>
  (await node.client.result<{ count: number }>('POST', `/collections/${name}/points/count`, { exact: true })).count;

/** Upserts until the node refuses one. Returns the number of those that it took. */
async function fillBy(node: NodeUnderTest, name: string): Promise<number> {
  for (let taken = 0; taken < BATCHES_MAX; taken++) {
    const answer = await upsert(node, name, taken);
    if (answer.status === 200) continue;
    assert.equal(answer.status, 507, answer.text);
    assert.match(answer.text, /Out of disk space: .* stay free .*storage\.disk_free_min_mb/);
    assert.ok(Number(answer.headers['retry-after']) > 0);
    return taken;
  }
  throw new Error('the disk was never full');
}

/** Takes all that is left of the disk. */
function fillUp(folder: string): string {
  const file = join(folder, 'filler');
  const { bavail, bsize } = statfsSync(folder);
  writeFileSync(file, Buffer.alloc(bavail * bsize));
  return file;
}

test('before the disk is full, writes that need room are refused, while reads and deletions go on and make room', async (t) => {
  const folder = smallFileSystem(t, DISK_MEGABYTES);
  if (folder === null) return;
  const node = await nodeFor(t, { folder });
  await node.client.result('PUT', '/collections/c', MAKE);
  await node.client.result('PUT', '/collections/other', MAKE);
  await untilDisk(node, ({ reserve_held_bytes }) => reserve_held_bytes === 4 * MEBIBYTE);
  const taken = await fillBy(node, 'c');
  assert.ok(taken > 0, 'nothing was taken at all');
  const disk = await diskOf(node);
  assert.ok(disk.refuses_writes || disk.refused_writes > 0, JSON.stringify(disk));
  assert.ok(disk.free_bytes > 2 * MEBIBYTE, `so much stays free: ${disk.free_bytes}`);

  // What was refused has had no effect, and all that is read goes on.
  assert.equal(await countOf(node, 'c'), taken * BATCH);
  const change = { points: [0], payload: { a: 1 } };
  const named = await node.client.call('POST', '/collections/c/points/payload?wait=true', change);
  assert.ok(named.status === 200 || named.status === 507, named.text);
  // Deletions are taken.
  await node.client.result('POST', '/collections/c/points/delete?wait=true', { points: [0, 1, 2] });
  assert.equal(await countOf(node, 'c'), taken * BATCH - 3);
  const { deleted_rows, database_bytes } = await shareOf(node, 'c');
  assert.ok(deleted_rows >= 3, 'what a cleaning will give back is told');
  assert.ok(database_bytes > 0);

  // A collection that goes gives its room back, and writes are taken again.
  await node.client.result('DELETE', '/collections/c');
  await untilDisk(node, ({ free_bytes, refuses_writes }) => !refuses_writes && free_bytes > 8 * MEBIBYTE);
  assert.equal((await upsert(node, 'other', 0)).status, 200);
});

test('a node that was killed starts on a full disk by its reserve, loses nothing, deletes, and makes the reserve again', async (t) => {
  const folder = smallFileSystem(t, DISK_MEGABYTES);
  if (folder === null) return;
  let node = await nodeFor(t, { folder });
  await node.client.result('PUT', '/collections/c', MAKE);
  await node.client.result('PUT', '/collections/gone', MAKE);
  for (let number = 0; number < 10; number++) {
    for (const name of ['c', 'gone']) assert.equal((await upsert(node, name, number)).status, 200);
  }
  await untilDisk(node, ({ reserve_held_bytes }) => reserve_held_bytes > 0);
  await node.end('SIGKILL');
  const filler = fillUp(folder);
  assert.ok(existsSync(join(folder, 'storage', '.reserve')));

  node = await nodeFor(t, { folder });
  const disk = await diskOf(node);
  assert.equal(disk.reserve_held_bytes, 0, 'the reserve is given up');
  assert.ok(disk.refuses_writes);
  assert.equal(await countOf(node, 'c'), 10 * BATCH);
  assert.equal(await countOf(node, 'gone'), 10 * BATCH);
  assert.equal((await upsert(node, 'c', 10)).status, 507);
  await node.client.result('POST', '/collections/c/points/delete?wait=true', { points: [0, 1, 2] });
  await node.client.result('DELETE', '/collections/gone');
  await node.end('SIGKILL');

  // What was deleted stays deleted, and with room again all is as before.
  node = await nodeFor(t, { folder });
  assert.equal(await countOf(node, 'c'), 10 * BATCH - 3);
  rmSync(filler);
  await untilDisk(node, ({ refuses_writes, reserve_held_bytes }) => !refuses_writes && reserve_held_bytes > 0);
  assert.equal((await upsert(node, 'c', 10)).status, 200);
});
