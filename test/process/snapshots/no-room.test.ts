/** Snapshots that the disk has no room for: refused with the reason, and nothing of them stays. */

import assert from 'node:assert/strict';
import { statfsSync } from 'node:fs';
import { readdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { test } from 'node:test';
import { smallFileSystem } from '../../machine.js';
import { nodeFor, temporaryFolder } from '../support.js';
import { contentOf, download, type ShownSnapshot, upload } from './support.js';

const DISK_MEGABYTES = 96;
const POINTS = 4000;
const MEBIBYTE = 1 << 20;

test('a snapshot, an upload and a restore without room are refused, and the collection goes on as it was', async (t) => {
  const folder = smallFileSystem(t, DISK_MEGABYTES);
  if (folder === null) return;
  const elsewhere = await temporaryFolder(t);
  const environment = { SERVICE__STORAGE__DISK_FREE_MIN_MB: '8', SERVICE__STORAGE__SNAPSHOTS_PATH: join(elsewhere, 'snapshots') };
  const node = await nodeFor(t, { folder, environment });
  const { client, url } = node;
  await client.result('PUT', '/collections/c', { vectors: { size: 256, distance: 'Dot' }, optimizers_config: { indexing_threshold: 0 } });
  for (let from = 0; from < POINTS; from += 500) {
    const points = Array.from({ length: 500 }, (_, at) => ({
      id: from + at,
      vector: Array.from({ length: 256 }, (_, d) => (from + at + d) % 7),
    }));
    await client.result('PUT', '/collections/c/points?wait=true', { points });
  }
  const made = await client.result<ShownSnapshot>('POST', '/collections/c/snapshots');
  const archive = await download(url, `/collections/c/snapshots/${made.name}`);
  const content = await contentOf(client, 'c');
  const { bavail, bsize } = statfsSync(folder);
  // Room for a write, and for less than an archive.
  await writeFile(join(folder, 'other'), new Uint8Array(Math.max(0, bavail * bsize - 8 * MEBIBYTE - archive.length / 2)));

  const refused = [
    await client.call('POST', '/collections/c/snapshots'),
    await upload(url, '/collections/c/snapshots/upload?priority=snapshot', archive),
    await client.call('PUT', '/collections/d/snapshots/recover', {
      location: `${url}/collections/c/snapshots/${made.name}`,
      priority: 'snapshot',
    }),
  ];
  for (const { status, text } of refused) {
    assert.equal(status, 507, text);
    assert.match(text, /disk/);
  }
  assert.deepEqual(await contentOf(client, 'c'), content);
  assert.deepEqual(await client.result('GET', '/collections'), { collections: [{ name: 'c' }] });
  assert.equal((await client.result<ShownSnapshot[]>('GET', '/collections/c/snapshots')).length, 1);
  assert.deepEqual(await readdir(join(folder, 'storage', 'temp')), []);
  assert.deepEqual(
    (await readdir(join(folder, 'storage', 'collections'))).filter((name) => name.startsWith('.creating') || name.startsWith('.ex')),
    [],
  );
  assert.equal((await client.call('GET', '/livez')).status, 200);
});
