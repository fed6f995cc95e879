/** An acknowledged operation that ends the process each time it is applied. */

import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { rm } from 'node:fs/promises';
import { join } from 'node:path';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { nodeFor, type Point, temporaryFolder, until } from './support.js';

const DYING = fileURLToPath(new URL('./dying-process.js', import.meta.url));

test('an operation that ended the process twice is not applied a third time: its replica is Dead with the reason, and the others serve', async (t) => {
  const folder = await temporaryFolder(t);
  const first = await nodeFor(t, { folder });
  for (const name of ['poisoned', 'well']) {
    await first.client.result('PUT', `/collections/${name}`, { vectors: { size: 4, distance: 'Dot' } });
    const points = [{ id: 1, vector: [1, 2, 3, 4], payload: { color: 'red' } }];
    await first.client.result('PUT', `/collections/${name}/points?wait=true`, { points });
  }
  await first.end('SIGTERM');
  const storage = join(folder, 'storage');
  for (const what of ['log', 'replay']) {
    const dying = spawn(process.execPath, [DYING, storage, 'poisoned', what], { stdio: ['ignore', 'ignore', 'inherit'] });
    const [, signal] = (await once(dying, 'exit')) as [number | null, string | null];
    assert.equal(signal, 'SIGKILL', what);
  }

  const node = await nodeFor(t, { folder });
  const read = (name: string) => node.client.call('POST', `/collections/${name}/points`, { ids: [1], with_payload: true });
  assert.equal((await read('well')).status, 200);
  const refused = await until(
    () => read('poisoned'),
    ({ text }) => text.includes('has ended the process'),
  );
  assert.equal(refused.status, 503, refused.text);
  assert.match(
    refused.text,
    /the replica is Dead: operation \d+ is logged and cannot be applied: applying operation \d+ has ended the process 2 times/,
  );
  await node.end('SIGTERM');

  // A fourth start finds the same; whoever has given the node more memory lets it try again.
  await rm(join(storage, 'collections', 'poisoned', '0', 'applying.json'));
  const again = await nodeFor(t, { folder });
  const [point] = await again.client.result<Point[]>('POST', '/collections/poisoned/points', { ids: [1], with_payload: true });
  assert.equal(point?.payload?.color, 'blue');
});
