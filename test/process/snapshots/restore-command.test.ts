/** `troupe restore` and `troupe verify` of snapshots, with and without a base, on the storage folder of a node that is stopped. */

import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdir, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { LAUNCHER } from '../../../ops/node-process.js';
import { nodeFor, temporaryFolder } from '../support.js';
import { contentOf, download, type ShownSnapshot } from './support.js';

interface Ended {
  readonly code: number | null;
  readonly out: string;
}

async function run(folder: string, environment: Readonly<Record<string, string>>, ...args: readonly string[]): Promise<Ended> {
  const settings = { SERVICE__STORAGE__STORAGE_PATH: join(folder, 'storage'), ...environment };
  const child = spawn(LAUNCHER, args, { env: { ...process.env, ...settings }, cwd: folder, stdio: ['ignore', 'pipe', 'pipe'] });
  let out = '';
  for (const stream of [child.stdout, child.stderr]) stream.on('data', (chunk: Buffer) => (out += chunk.toString()));
  const [code] = await once(child, 'close');
  return { code: code as number | null, out };
}

interface Archives {
  /** Has the archives alone. */
  readonly folder: string;
  readonly base: string;
  readonly next: string;
  /** Of the collection when the second one was made. */
  readonly content: unknown[];
}

async function archives(t: TestContext): Promise<Archives> {
  const source = await temporaryFolder(t);
  const { client, end, url } = await nodeFor(t, { folder: source });
  await client.result('PUT', '/collections/a', { vectors: { size: 2, distance: 'Dot' }, shard_number: 2 });
  const put = (from: number) => {
    const points = Array.from({ length: 50 }, (_, at) => ({ id: from + at, vector: [at, 1] }));
    return client.result('PUT', '/collections/a/points?wait=true', { points });
  };
  const folder = join(await temporaryFolder(t), 'archives');
  await mkdir(folder);
  const kept = async (path: string) => {
    const { name } = await client.result<ShownSnapshot>('POST', path);
    await writeFile(join(folder, name), await download(url, `/collections/a/snapshots/${name}`));
    return name;
  };
  await put(0);
  const base = await kept('/collections/a/snapshots');
  await put(50);
  const next = await kept(`/collections/a/snapshots?base=${base}`);
  const content = await contentOf(client, 'a');
  await end('SIGTERM');
  return { folder, base, next, content };
}

test('a dry run says what a snapshot has and what a restore would do, and changes nothing; without it the collection is there', async (t) => {
  const { base, content, folder: kept, next } = await archives(t);
  const folder = await temporaryFolder(t);
  const file = join(kept, next);
  const restore = (...args: readonly string[]) => run(folder, {}, 'restore', file, ...args);
  const looked = await restore('--dry-run', '--collection', 'b');
  assert.equal(looked.code, 0, looked.out);
  assert.match(looked.out, /1 collections, 2 shards, 100 points of a collection snapshot .* on the base /);
  assert.match(
    looked.out,
    /collection a: shards 0, 1, 100 points, \d+ files \(\d+ bytes\), of which \d+ files \(\d+ bytes\) are in its base/,
  );
  assert.ok(looked.out.includes(`its base ${base} lies beside it`), looked.out);
  assert.match(looked.out, /would create collection b with 100 points/);
  assert.deepEqual(await readdir(folder), [], 'a dry run has made something');

  const restored = await restore('--collection', 'b');
  assert.equal(restored.code, 0, restored.out);
  assert.match(restored.out, /collection b is restored from a snapshot: 100 points/);
  const again = await restore('--collection', 'b');
  assert.equal(again.code, 1);
  assert.match(again.out, /b exists already: add --force_snapshot/);
  const exists = await restore('--dry-run', '--collection', 'b');
  assert.equal(exists.code, 1);
  assert.match(exists.out, /would be refused: collection b exists: add --force_snapshot/);
  const forced = await restore('--dry-run', '--collection', 'b', '--force_snapshot');
  assert.equal(forced.code, 0, forced.out);
  assert.match(forced.out, /would replace collection b/);

  const node = await nodeFor(t, { folder });
  assert.deepEqual(await contentOf(node.client, 'b'), content);
  const inUse = await restore('--collection', 'c');
  assert.equal(inUse.code, 1, 'a node has the folder open');
  await node.client.result('PUT', '/collections/other', { vectors: { size: 3, distance: 'Dot' } });
  await node.end('SIGTERM');
  const differs = await restore('--dry-run', '--collection', 'other');
  assert.equal(differs.code, 1);
  assert.match(differs.out, /other exists: .*a request to the running node could not restore it over that one: .*(3|size)/);
  const all = await run(folder, {}, 'restore', '--dry-run', kept);
  assert.equal(all.code, 0, all.out);
  assert.ok(all.out.includes(`${base}:\n`) && all.out.includes(`${next}:\n`), all.out);
});

test('a restore is refused with its reason: no room, a cluster, a base that is missing or damaged, a damaged archive', async (t) => {
  const { base, folder: kept, next } = await archives(t);
  const folder = await temporaryFolder(t);
  const file = join(kept, next);
  const refused = async (reason: RegExp, environment: Readonly<Record<string, string>> = {}) => {
    const before = await readdir(folder, { recursive: true });
    const dry = await run(folder, environment, 'restore', '--dry-run', file);
    assert.equal(dry.code, 1, dry.out);
    assert.match(dry.out, reason);
    assert.match(dry.out, /a restore would be refused: /);
    assert.deepEqual(await readdir(folder, { recursive: true }), before);
  };
  await refused(/would be refused: .*the archive cannot be unpacked.*give the disk more room/, {
    SERVICE__STORAGE__DISK_FREE_MIN_MB: '1000000000',
  });
  await refused(/would be refused: this is a node of a cluster/, { SERVICE__CLUSTER__ENABLED: 'true' });
  await rm(join(kept, base));
  await refused(new RegExp(`would be refused: its base ${base} does not lie beside it`));
  const verified = await run(folder, {}, 'verify', file);
  assert.equal(verified.code, 0, 'its own files are sound');
  assert.ok(verified.out.includes(`needs its base ${base}`), verified.out);
  const real = await run(folder, {}, 'restore', file);
  assert.equal(real.code, 1);
  assert.ok(real.out.includes(`needs its base ${base}`), real.out);
  await writeFile(join(kept, base), 'another file');
  await refused(/no archive of Troupe/);
  await writeFile(file, 'this is not an archive');
  await refused(/cannot be read to its end/);
});

test('verify looks into a base that lies beside the snapshot, and with --unpack into its shards', async (t) => {
  const { base, folder: kept, next } = await archives(t);
  const file = join(kept, next);
  for (const options of [[], ['--unpack']]) {
    const { code, out } = await run(kept, {}, 'verify', ...options, file);
    assert.equal(code, 0, out);
    assert.ok(out.includes(`its base ${base} lies beside it`), out);
  }
  const archive = await readFile(join(kept, base));
  archive[archive.length >> 1] = (archive[archive.length >> 1] as number) ^ 1;
  await writeFile(join(kept, base), archive);
  for (const options of [[], ['--unpack']]) {
    const { code, out } = await run(kept, {}, 'verify', ...options, file);
    assert.equal(code, 1, out);
    assert.match(out, /base .* (cannot be used|with SHA-256)/);
  }
});

test('with --until the log of the stopped collection follows the snapshot up to that moment', async (t) => {
  const folder = await temporaryFolder(t);
  const environment = { SERVICE__STORAGE__POINT_IN_TIME_RESTORE: 'true' };
  const { client, end, url } = await nodeFor(t, { folder, environment });
  await client.result('PUT', '/collections/a', { vectors: { size: 2, distance: 'Dot' }, shard_number: 2 });
  const put = (from: number, text: string) => {
    const points = Array.from({ length: 50 }, (_, at) => ({ id: from + at, vector: [at, 1], payload: { text } }));
    return client.result('PUT', '/collections/a/points?wait=true', { points });
  };
  await put(0, 'first');
  const { name } = await client.result<ShownSnapshot>('POST', '/collections/a/snapshots');
  const file = join(folder, name);
  await writeFile(file, await download(url, `/collections/a/snapshots/${name}`));
  await put(30, 'x'.repeat(2000));
  const content = await contentOf(client, 'a');
  const moment = Date.now() + 1;
  while (Date.now() <= moment) await new Promise((done) => setTimeout(done, 1));
  await client.result('POST', '/collections/a/points/delete?wait=true', { filter: {} });
  await end('SIGTERM');

  const restore = (...args: readonly string[]) => run(folder, environment, 'restore', file, ...args);
  const until = new Date(moment).toISOString();
  const looked = await restore('--dry-run', '--until', until);
  assert.equal(looked.code, 0, looked.out);
  assert.match(
    looked.out,
    /would bring shard 0: the snapshot ends with operation 1 of .*, the log adds 1 up to operation 2 of .*; left out is what follows/,
  );
  const early = await restore('--until', '2020-01-01');
  assert.equal(early.code, 1);
  assert.match(early.out, /take an older snapshot/);
  const done = await restore('--until', until);
  assert.equal(done.code, 0, done.out);
  const again = await nodeFor(t, { folder, environment });
  assert.deepEqual(await contentOf(again.client, 'a'), content);
  await again.client.result('PUT', '/collections/a/points?wait=true', { points: [{ id: 900, vector: [1, 1] }] });
});
