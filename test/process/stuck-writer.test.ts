/**
 * A writer whose heap runs full within a transaction of LMDB never ends: the end of its thread waits for the lock that its own transaction
 * holds. Nobody is told of its end, as there is none; only the watch finds it.
 */

import assert from 'node:assert/strict';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { type NodeUnderTest, nodeFor, preloaded, temporaryFolder, until } from './support.js';

const EXIT_STUCK = 4;

/** Loaded before the node, in each of its threads: once a file is there, the next transaction of a writer uses up the heap of its thread. */
const program = (file: string): string => `
  import fs from 'node:fs';
  import { isMainThread } from 'node:worker_threads';
  const { set } = Object.getPrototypeOf(Uint8Array.prototype);
  Object.getPrototypeOf(Uint8Array.prototype).set = function (...words) {
    if (!isMainThread && fs.existsSync(${JSON.stringify(file)}) && new Error().stack.includes('transactionSync')) {
      const kept = [];
      for (;;) kept.push({ at: kept.length, more: [1, 2, 3] });
    }
    return set.apply(this, words);
  };
  Error.stackTraceLimit = 50;`;

interface Telemetry {
  readonly app: {
    readonly engine: {
      readonly workers: readonly { readonly name: string; readonly up: boolean; readonly stuck: { readonly call: string } | null }[];
    };
  };
}

/** A node with three points, and what makes its writer hang with the next one. */
async function nodeThatWillHang(
  t: TestContext,
): Promise<{ readonly node: NodeUnderTest; readonly folder: string; readonly hang: () => Promise<number> }> {
  const folder = await temporaryFolder(t);
  const trigger = join(folder, 'trigger');
  const node = await nodeFor(t, {
    folder,
    nodeArguments: [...(await preloaded(folder, program(trigger))), '--max-old-space-size=64'],
    environment: { SERVICE__STORAGE__PERFORMANCE__THREAD_SILENCE_SEC: '4', TROUPE_RUNTIME: 'newest' },
  });
  const { client } = node;
  await client.result('PUT', '/collections/c', { vectors: { size: 2, distance: 'Dot' } });
  const put = (id: number) => client.call('PUT', '/collections/c/points?wait=true&timeout=30', { points: [{ id, vector: [id, 1] }] });
  for (const id of [1, 2, 3]) assert.equal((await put(id)).status, 200);
  const hang = async () => {
    await writeFile(trigger, '');
    return put(4).then(
      ({ status }) => status,
      () => 0,
    );
  };
  return { node, folder, hang };
}

/** The telemetry of the writer as soon as it is known to hang. */
async function stuckWriter({ client }: NodeUnderTest) {
  return until(
    async () =>
      (await client.result<Telemetry>('GET', '/telemetry?details_level=3')).app.engine.workers.find(({ name }) => name === 'writer-0'),
    (found) => found?.stuck != null,
  );
}

async function assertEndsStuck(node: NodeUnderTest): Promise<void> {
  const exit = await node.exited;
  // Node.js before 22.15 can be ended by a signal only.
  assert.ok(exit.code === EXIT_STUCK || exit.signal === 'SIGKILL', JSON.stringify(exit));
}

test('a writer that hangs in native code is named, does not count as up, and the process ends in order; the next start has everything', async (t) => {
  const { folder, hang, node } = await nodeThatWillHang(t);
  const refused = hang();
  const writer = await stuckWriter(node);
  assert.equal(writer?.up, false);
  assert.match(writer?.stuck?.call ?? '', /^write of c\/0$/);
  assert.equal((await node.client.call('GET', '/readyz')).status, 503);

  await assertEndsStuck(node);
  assert.notEqual(await refused, 200);
  assert.match(node.log(), /an engine worker does not answer and cannot be replaced: the process has to end.*writer-0/);
  const next = await nodeFor(t, { folder });
  const { points } = await next.client.result<{ points: { id: number }[] }>('POST', '/collections/c/points/scroll', {});
  assert.deepEqual(points.map(({ id }) => id).slice(0, 3), [1, 2, 3]);
});

test('a node that is told to end while a writer hangs ends all the same', async (t) => {
  const { hang, node } = await nodeThatWillHang(t);
  const refused = hang();
  await stuckWriter(node);
  process.kill(node.pid, 'SIGTERM');
  await assertEndsStuck(node);
  assert.notEqual(await refused, 200);
});
