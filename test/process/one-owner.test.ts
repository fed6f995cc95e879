/**
 * One storage folder and two real nodes that cannot see each other's process: in a namespace of its own, as in another container, or as
 * on another machine, which has another boot id. Without a lock of the kernel, too, as on a shared volume that has none.
 */

import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { type TestContext, test } from 'node:test';
import { type Exit, launchNode } from '../../ops/node-process.js';
import { freePorts } from '../../ops/ports.js';
import type { RestAnswer } from '../../ops/rest-client.js';
import { ON_ANOTHER_MACHINE, WITHOUT_KERNEL_LOCK } from '../ops/lock/other-machine.js';
import { type NodeUnderTest, nodeFor, preloaded, temporaryFolder, until } from './support.js';

const EXIT_FAILED = 1;
const EXIT_FOLDER_LOST = 3;
const IN_USE = /the storage folder .* is in use by another process \(pid \d+ on /;

const NAMESPACE = ['unshare', '--pid', '--fork', '--mount-proc', '--kill-child'];

interface Second {
  readonly nodeArguments?: readonly string[];
  readonly wrapper?: readonly string[];
}

/** Starts a node that must be sent away. */
async function assertInUse(t: TestContext, folder: string, second: Second): Promise<void> {
  const [port, grpcPort] = (await freePorts(2)) as [number, number];
  const node = launchNode({ folder, port, grpcPort, ...second });
  t.after(() => node.end('SIGKILL'));
  let exit: Exit | null = null;
  void node.exited.then((ended) => {
    exit = ended;
  });
  const ended = await until(
    async () => exit,
    (found) => found !== null || node.log().includes('Troupe is listening'),
  );
  assert.match(node.log(), IN_USE);
  assert.equal(ended?.code, EXIT_FAILED);
}

const point = (id: number) => ({ id, vector: [id, 1] });

async function createCollection({ client }: NodeUnderTest): Promise<void> {
  await client.result('PUT', '/collections/c', { vectors: { size: 2, distance: 'Dot' } });
}

function put({ client }: NodeUnderTest, id: number): Promise<RestAnswer> {
  return client.call('PUT', '/collections/c/points?wait=true', { points: [point(id)] });
}

async function idsIn({ client }: NodeUnderTest): Promise<number[]> {
  const { points } = await client.result<{ points: { id: number }[] }>('POST', '/collections/c/points/scroll', { limit: 1000 });
  return points.map(({ id }) => id);
}

test('a node on another machine is sent away while the owner of the folder runs, and takes it when the owner was killed', async (t) => {
  const folder = await temporaryFolder(t);
  const owner = await nodeFor(t, { folder, nodeArguments: await preloaded(folder, WITHOUT_KERNEL_LOCK) });
  await createCollection(owner);
  assert.equal((await put(owner, 1)).status, 200);
  const elsewhere = { nodeArguments: await preloaded(folder, ON_ANOTHER_MACHINE, WITHOUT_KERNEL_LOCK) };
  await assertInUse(t, folder, elsewhere);
  assert.equal((await put(owner, 2)).status, 200);
  await owner.end('SIGKILL');
  const next = await nodeFor(t, { folder, ...elsewhere });
  assert.deepEqual(await idsIn(next), [1, 2]);
});

test('a node in another namespace of processes is sent away while the owner runs, and takes the folder when it was killed', async (t) => {
  if (spawnSync(NAMESPACE[0] as string, [...NAMESPACE.slice(1), 'true']).status !== 0)
    return t.skip('needs the right to make namespaces (`unshare --pid --fork --mount-proc`)');
  const folder = await temporaryFolder(t);
  const owner = await nodeFor(t, { folder });
  await createCollection(owner);
  await assertInUse(t, folder, { wrapper: NAMESPACE });
  assert.equal((await put(owner, 1)).status, 200);
  await owner.end('SIGKILL');
  const next = await nodeFor(t, { folder, wrapper: NAMESPACE });
  assert.deepEqual(await idsIn(next), [1]);
});

test('an owner that was stopped and has lost its folder meanwhile acknowledges nothing more, and ends', async (t) => {
  const folder = await temporaryFolder(t);
  const stopped = await nodeFor(t, { folder, nodeArguments: await preloaded(folder, WITHOUT_KERNEL_LOCK) });
  await createCollection(stopped);
  for (const id of [1, 2, 3]) assert.equal((await put(stopped, id)).status, 200);

  process.kill(stopped.pid, 'SIGSTOP');
  const next = await nodeFor(t, { folder, nodeArguments: await preloaded(folder, ON_ANOTHER_MACHINE, WITHOUT_KERNEL_LOCK) });
  assert.deepEqual(await idsIn(next), [1, 2, 3]);
  assert.equal((await put(next, 4)).status, 200);

  // They reach the stopped one first thing when it goes on.
  const refused = (answer: Promise<RestAnswer>): Promise<number> =>
    answer.then(
      ({ status }) => status,
      () => 0,
    );
  const asked = [11, 12, 13, 14].map((id) => refused(put(stopped, id)));
  asked.push(refused(stopped.client.call('PUT', '/collections/d', { vectors: { size: 2, distance: 'Dot' } })));
  asked.push(refused(stopped.client.call('DELETE', '/collections/c')));
  await new Promise((done) => setTimeout(done, 200));
  process.kill(stopped.pid, 'SIGCONT');
  for (const status of await Promise.all(asked)) assert.ok(status === 0 || status >= 500, `acknowledged with ${status}`);
  assert.equal((await stopped.exited).code, EXIT_FOLDER_LOST);
  assert.match(stopped.log(), /another process has taken over the storage folder, this one ends/);

  assert.equal((await put(next, 5)).status, 200);
  await next.end('SIGKILL');
  const last = await nodeFor(t, { folder });
  assert.deepEqual(await idsIn(last), [1, 2, 3, 4, 5]);
  assert.deepEqual(await last.client.result('GET', '/collections'), { collections: [{ name: 'c' }] });
});
