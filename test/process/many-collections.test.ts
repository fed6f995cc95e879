/** A node with more collections than are kept open: what it does for each is counted. */

import assert from 'node:assert/strict';
import { readdir } from 'node:fs/promises';
import { test } from 'node:test';
import { nodeFor, temporaryFolder } from './support.js';

const COUNT = 60;
/** Collections that stay open, with three descriptors each and one more of a thread (`storage/pool/sleep-policy.ts`). */
const KEPT = 32;
const DESCRIPTORS_OF_ONE = 4;

/** Full garbage collections that the program itself asked for, in all threads. */
const forcedCollections = (log: string): number => log.split('\n').filter((line) => /Mark-Compact.*testing/.test(line)).length;

test('a start opens the first collections only, each of the others answers when it is asked, and none costs a garbage collection', async (t) => {
  const folder = await temporaryFolder(t);
  const first = await nodeFor(t, { folder, nodeArguments: ['--trace-gc'] });
  for (let at = 0; at < COUNT; at++) {
    await first.client.result('PUT', `/collections/c${at}`, { vectors: { size: 4, distance: 'Dot' } });
    const points = [{ id: at, vector: [at, 1, 2, 3] }];
    await first.client.result('PUT', `/collections/c${at}/points?wait=true`, { points });
  }
  assert.deepEqual(await first.end('SIGTERM'), { code: 0, signal: null });
  assert.match(first.log(), /Scavenge|Mark-Compact/, 'the log tells of garbage collections');
  assert.equal(forcedCollections(first.log()), 0);

  const node = await nodeFor(t, { folder, nodeArguments: ['--trace-gc'] });
  const listed = await node.client.result<{ collections: unknown[] }>('GET', '/collections');
  assert.equal(listed.collections.length, COUNT);
  for (let at = 0; at < COUNT; at++) {
    const info = await node.client.result<{ status: string; points_count: number }>('GET', `/collections/c${at}`);
    assert.deepEqual([info.status, info.points_count], ['green', 1], `c${at}, without being opened`);
  }
  if (process.platform === 'linux') {
    const { length } = await readdir(`/proc/${node.pid}/fd`);
    assert.ok(length < 60 + KEPT * DESCRIPTORS_OF_ONE, `${length} descriptors`);
  }
  const scroll = async (at: number) => {
    const { points } = await node.client.result<{ points: { id: number }[] }>('POST', `/collections/c${at}/points/scroll`, {});
    return points.map(({ id }) => id);
  };
  for (let at = 0; at < COUNT; at++) assert.deepEqual(await scroll(at), [at]);
  assert.equal(forcedCollections(node.log()), 0);

  // What was acknowledged is there after a crash, whether a collection was asleep or not.
  for (let at = 0; at < COUNT; at += 7) {
    await node.client.result('PUT', `/collections/c${at}/points?wait=true`, { points: [{ id: 1000, vector: [1, 1, 1, 1] }] });
  }
  await node.end('SIGKILL');
  const again = await nodeFor(t, { folder });
  const counts = async () => {
    const asked = Array.from({ length: COUNT }, (_, at) =>
      again.client.result<{ count: number }>('POST', `/collections/c${at}/points/count`, { exact: true }),
    );
    return (await Promise.all(asked)).map(({ count }) => count);
  };
  const wanted = Array.from({ length: COUNT }, (_, at) => (at % 7 === 0 ? 2 : 1));
  assert.deepEqual(await counts(), wanted);
});
