/** Snapshots that are restored before a start: `--snapshot`, `--storage-snapshot`, `--force_snapshot`. */

import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { LAUNCHER } from '../../../ops/node-process.js';
import { freePorts } from '../../../ops/ports.js';
import { RestClient } from '../../../ops/rest-client.js';
import { nodeFor, temporaryFolder, until } from '../support.js';
import { contentOf, download, type ShownSnapshot } from './support.js';

interface Started {
  readonly client: RestClient;
  /** Exit code and what it has printed, when it has ended. */
  readonly ended: Promise<{ readonly code: number | null; readonly out: string }>;
  stop(): Promise<unknown>;
}

async function start(t: TestContext, folder: string, ...args: readonly string[]): Promise<Started> {
  const [port, grpcPort] = (await freePorts(2)) as [number, number];
  const environment = {
    ...process.env,
    SERVICE__STORAGE__STORAGE_PATH: join(folder, 'storage'),
    SERVICE__STORAGE__SNAPSHOTS_PATH: join(folder, 'snapshots'),
    SERVICE__SERVICE__HTTP_PORT: String(port),
    SERVICE__SERVICE__GRPC_PORT: String(grpcPort),
    SERVICE__SERVICE__HOST: '127.0.0.1',
  };
  const child = spawn(LAUNCHER, args, { env: environment, stdio: ['ignore', 'pipe', 'pipe'], cwd: folder });
  let out = '';
  for (const stream of [child.stdout, child.stderr]) stream.on('data', (chunk: Buffer) => (out += chunk.toString()));
  const ended = once(child, 'close').then(([code]) => ({ code: code as number | null, out }));
  const client = new RestClient(port);
  const stop = async () => {
    client.close();
    child.kill('SIGTERM');
    return ended;
  };
  t.after(stop);
  return { client, ended, stop };
}

const ready = ({ client }: Started) =>
  until(
    () =>
      client.call('GET', '/readyz').then(
        ({ status }) => status,
        () => 0,
      ),
    (status) => status === 200,
  );

/** Two collections with an alias, and their snapshots as files. */
async function archives(
  t: TestContext,
): Promise<{ readonly folder: string; readonly one: string; readonly full: string; readonly content: unknown[] }> {
  const folder = await temporaryFolder(t);
  const node = await nodeFor(t, { folder });
  const { client, url } = node;
  for (const name of ['a', 'b']) {
    await client.result('PUT', `/collections/${name}`, { vectors: { size: 2, distance: 'Dot' }, shard_number: 2 });
    const points = Array.from({ length: 50 }, (_, id) => ({ id, vector: [id, 1], payload: { name } }));
    await client.result('PUT', `/collections/${name}/points?wait=true`, { points });
  }
  await client.result('POST', '/collections/aliases', { actions: [{ create_alias: { collection_name: 'a', alias_name: 'first' } }] });
  const kept = async (path: string, file: string) => {
    const { name } = await client.result<ShownSnapshot>('POST', path);
    await writeFile(join(folder, file), await download(url, `${path}/${name}`));
    return join(folder, file);
  };
  const one = await kept('/collections/a/snapshots', 'one.snapshot');
  const full = await kept('/snapshots', 'full.snapshot');
  const content = await contentOf(client, 'a');
  await node.end('SIGTERM');
  return { folder, one, full, content };
}

test('collections are restored before a start, under names of their own, and one that exists only by force', async (t) => {
  const { content, one } = await archives(t);
  const folder = await temporaryFolder(t);
  const first = await start(t, folder, '--snapshot', `${one}:x`, '--snapshot', `${one}:y`);
  await ready(first);
  for (const name of ['x', 'y']) assert.deepEqual(await contentOf(first.client, name), content);
  await first.client.result('POST', '/collections/x/points/delete?wait=true', { filter: {} });
  await first.stop();

  const refused = await (await start(t, folder, '--snapshot', `${one}:x`)).ended;
  assert.notEqual(refused.code, 0);
  assert.match(refused.out, /collection x exists already: add --force_snapshot/);

  const forced = await start(t, folder, '--snapshot', `${one}:x`, '--force_snapshot');
  await ready(forced);
  assert.deepEqual(await contentOf(forced.client, 'x'), content);
  assert.deepEqual(await contentOf(forced.client, 'y'), content);
});

test('a whole storage is restored before a start, with its aliases', async (t) => {
  const { content, full, one } = await archives(t);
  const folder = await temporaryFolder(t);
  const node = await start(t, folder, '--storage-snapshot', full);
  await ready(node);
  assert.deepEqual(await contentOf(node.client, 'first'), content);
  assert.equal((await contentOf(node.client, 'b')).length, 50);
  await node.stop();

  const wrong = await (await start(t, await temporaryFolder(t), '--storage-snapshot', one)).ended;
  assert.notEqual(wrong.code, 0);
  assert.match(wrong.out, /is a snapshot of a collection: restore it with --snapshot/);
});

test('a start with an archive that is cut, or is none, ends with the reason and changes nothing', async (t) => {
  const { folder: source, one } = await archives(t);
  const folder = await temporaryFolder(t);
  const bytes = await readFile(one);
  const cut = join(source, 'cut.snapshot');
  await writeFile(cut, bytes.subarray(0, bytes.length - 2000));
  const text = join(source, 'text.snapshot');
  await writeFile(text, 'this is not an archive');
  for (const file of [cut, text, join(source, 'missing.snapshot')]) {
    const { code, out } = await (await start(t, folder, '--snapshot', `${one}:x`, '--snapshot', `${file}:y`)).ended;
    assert.notEqual(code, 0, file);
    assert.match(out, new RegExp(file.replaceAll('.', '\\.')), out);
  }
  const node = await start(t, folder);
  await ready(node);
  assert.deepEqual(await node.client.result('GET', '/collections'), { collections: [] });
});

test('in a cluster snapshots are restored by requests, not before a start', async (t) => {
  const { one } = await archives(t);
  const child = spawn(LAUNCHER, ['--uri', 'http://127.0.0.1:6335', '--snapshot', `${one}:x`], {
    env: { ...process.env, SERVICE__CLUSTER__ENABLED: 'true' },
    cwd: await temporaryFolder(t),
  });
  let out = '';
  child.stderr.on('data', (chunk: Buffer) => (out += chunk.toString()));
  const [code] = await once(child, 'close');
  assert.notEqual(code, 0);
  assert.match(out, /--snapshot: is for nodes of their own; .*snapshots\/recover/);
});
