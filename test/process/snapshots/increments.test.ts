/** Snapshots that leave out what their base has, on a node of its own: how large they are, what they come back as, and what refuses them. */

import assert from 'node:assert/strict';
import { copyFile, readFile, rename, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { pathToFileURL } from 'node:url';
import { seededRandom } from '../../../ops/random.js';
import type { RestClient } from '../../../ops/rest-client.js';
import { testSeed } from '../../seed.js';
import { type NodeUnderTest, nodeFor, temporaryFolder, untilIndexed } from '../support.js';
import { contentOf, download, type ShownSnapshot, sha256Of, upload } from './support.js';

type Shown = ShownSnapshot & { readonly base?: string };

const POINTS = 4000;
const DIM = 128;
const LIST = '/collections/c/snapshots';

async function put(client: RestClient, from: number, count: number): Promise<void> {
  const random = seededRandom(testSeed() + from);
  for (let at = from; at < from + count; at += 500) {
    const points = Array.from({ length: Math.min(500, from + count - at) }, (_, n) => ({
      id: at + n,
      vector: Array.from({ length: DIM }, () => random.normal()),
      payload: { at: at + n },
    }));
    await client.result('PUT', '/collections/c/points?wait=true', { points });
  }
}

interface Increments {
  readonly node: NodeUnderTest;
  readonly folder: string;
  readonly base: Shown;
  readonly first: Shown;
  readonly second: Shown;
  /** Of the collection at the moment of each snapshot. */
  readonly contents: readonly [unknown[], unknown[], unknown[]];
}

/** A collection with segments, and a snapshot of it, one on that, and one on that. */
async function increments(t: TestContext): Promise<Increments> {
  const folder = await temporaryFolder(t);
  const node = await nodeFor(t, { folder });
  const { client } = node;
  const config = { vectors: { size: DIM, distance: 'Cosine' }, shard_number: 2, optimizers_config: { indexing_threshold: 100 } };
  await client.result('PUT', '/collections/c', config);
  await put(client, 0, POINTS);
  await untilIndexed(client, 'c', 1);
  const contents: unknown[][] = [await contentOf(client, 'c')];
  const base = await client.result<Shown>('POST', LIST);
  await put(client, POINTS, 20);
  await client.result('POST', '/collections/c/points/delete?wait=true', { points: [1, 2, 3] });
  contents.push(await contentOf(client, 'c'));
  const first = await client.result<Shown>('POST', `${LIST}?base=${base.name}`);
  await put(client, 10, 5);
  contents.push(await contentOf(client, 'c'));
  const second = await client.result<Shown>('POST', `${LIST}?base=${first.name}`);
  return { node, folder, base, first, second, contents: contents as [unknown[], unknown[], unknown[]] };
}

const kept = (folder: string, name: string) => join(folder, 'snapshots', 'c', name);

async function recover({ client }: NodeUnderTest, folder: string, name: string, collection: string) {
  const location = pathToFileURL(kept(folder, name)).href;
  return client.call('PUT', `/collections/${collection}/snapshots/recover`, { location, priority: 'snapshot' });
}

test('a snapshot on a base is much smaller after little change, and comes back equal with a chain of bases', async (t) => {
  const { base, contents, first, folder, node, second } = await increments(t);
  const { client, url } = node;
  t.diagnostic(`bytes: ${base.size}, on it ${first.size}, on that ${second.size}`);
  assert.ok(first.size < base.size / 2, `${first.size} bytes on a base of ${base.size}`);
  assert.ok(second.size < base.size / 2, `${second.size} bytes on a base of ${base.size}`);
  // Within a second the list has them by name.
  const listed = await client.result<Shown[]>('GET', LIST);
  assert.deepEqual(new Map(listed.map((one) => [one.name, one])), new Map([base, first, second].map((one) => [one.name, one])));
  assert.deepEqual([base.base, first.base, second.base], [undefined, base.name, first.name]);
  const archive = await download(url, `${LIST}/${second.name}`);
  assert.equal(sha256Of(archive), second.checksum);

  assert.equal((await recover(node, folder, first.name, 'filed')).status, 200);
  assert.deepEqual(await contentOf(client, 'filed'), contents[1]);
  const uploaded = await upload(url, `/collections/uploaded/snapshots/upload?priority=snapshot&checksum=${second.checksum}`, archive);
  assert.equal(uploaded.status, 200, uploaded.text);
  assert.deepEqual(await contentOf(client, 'uploaded'), contents[2]);
  const location = `${url}${LIST}/${second.name}`;
  await client.result('PUT', '/collections/fetched/snapshots/recover', { location, priority: 'snapshot' });
  assert.deepEqual(await contentOf(client, 'fetched'), contents[2]);
  assert.equal((await recover(node, folder, base.name, 'c')).status, 200);
  assert.deepEqual(await contentOf(client, 'c'), contents[0], 'over the collection');
  assert.equal((await recover(node, folder, second.name, 'c')).status, 200);
  assert.deepEqual(await contentOf(client, 'c'), contents[2], 'over the collection, to the later one');
  await node.end('SIGTERM');
  const again = await nodeFor(t, { folder });
  assert.deepEqual(await contentOf(again.client, 'uploaded'), contents[2], 'after a start');
});

test('a snapshot of a shard has a base, too, and is restored by its name', async (t) => {
  const folder = await temporaryFolder(t);
  const { client } = await nodeFor(t, { folder });
  const config = { vectors: { size: DIM, distance: 'Dot' }, shard_number: 1, optimizers_config: { indexing_threshold: 100 } };
  await client.result('PUT', '/collections/c', config);
  await put(client, 0, 2000);
  await untilIndexed(client, 'c', 1);
  const list = '/collections/c/shards/0/snapshots';
  const base = await client.result<Shown>('POST', list);
  await put(client, 2000, 5);
  const content = await contentOf(client, 'c');
  const next = await client.result<Shown>('POST', `${list}?base=${base.name}`);
  assert.ok(next.size < base.size / 2, `${next.size} bytes on a base of ${base.size}`);
  await client.result('POST', '/collections/c/points/delete?wait=true', { filter: {} });
  await client.result('PUT', `${list}/recover`, { location: next.name, priority: 'snapshot' });
  assert.deepEqual(await contentOf(client, 'c'), content);
  const refused = await client.call('POST', `${LIST}?base=${base.name}`);
  assert.equal(refused.status, 404, 'a snapshot of a shard is no base of one of the collection');
  const full = await client.call('POST', `/snapshots?wait=true`);
  assert.equal(full.status, 200);
});

test('a base that another snapshot needs is deleted only by force; then the other one is refused by its name, and nothing changes', async (t) => {
  const { base, contents, first, folder, node, second } = await increments(t);
  const { client, url } = node;
  for (const [name, needing] of [
    [base.name, first.name],
    [first.name, second.name],
  ] as const) {
    const { status, text } = await answered(url, 'DELETE', `${LIST}/${name}`);
    assert.equal(status, 409, text);
    assert.ok(text.includes(needing) && text.includes('force=true'), text);
  }
  const archive = await readFile(kept(folder, base.name));
  await copyFile(kept(folder, base.name), join(folder, 'base.kept'));
  const sums = await readFile(`${kept(folder, base.name)}.checksum`);
  assert.equal((await answered(url, 'DELETE', `${LIST}/${base.name}?force=true`)).status, 200);

  const refused = async (detail: RegExp) => {
    for (const collection of ['c', 'new'])
      for (const name of [first.name, second.name]) {
        const location = pathToFileURL(kept(folder, name)).href;
        const path = `/collections/${collection}/snapshots/recover`;
        const { status, text } = await answered(url, 'PUT', path, { location, priority: 'snapshot' });
        assert.equal(status, 400, text);
        assert.match(text, detail);
      }
    assert.deepEqual(await contentOf(client, 'c'), contents[2]);
    assert.deepEqual(await client.result('GET', '/collections'), { collections: [{ name: 'c' }] });
  };
  const named = base.name.replaceAll('.', '\\.');
  await refused(new RegExp(`needs its base ${named} .*put that file back`));
  const { status, text } = await answered(url, 'POST', `${LIST}?base=${first.name}`);
  assert.equal(status, 400, 'a snapshot that cannot be restored is no base');
  assert.match(text, new RegExp(named));
  assert.equal((await answered(url, 'POST', `${LIST}?base=${base.name}`)).status, 404);

  // Another archive in its place, with the checksum of its own; then a damaged one with the checksum that it had.
  await writeFile(kept(folder, base.name), archive);
  await writeFile(`${kept(folder, base.name)}.checksum`, `${'0'.repeat(64)}\n`);
  await refused(/the one of this name has 0{64}/);
  await writeFile(`${kept(folder, base.name)}.checksum`, sums);
  const damaged = Buffer.from(archive);
  damaged[archive.length >> 1] = (damaged[archive.length >> 1] as number) ^ 1;
  await writeFile(kept(folder, base.name), damaged);
  await refused(new RegExp(`base ${named} .*(damaged|put a sound copy)`));
  await rm(kept(folder, base.name));
  await rename(join(folder, 'base.kept'), kept(folder, base.name));
  assert.equal((await recover(node, folder, second.name, 'new')).status, 200);
  assert.deepEqual(await contentOf(client, 'new'), contents[2]);
});

test('a kill while a snapshot is made on a base, or restored with one, leaves what is listed whole and the collection as it was', async (t) => {
  const { base, contents, first, folder, node, second } = await increments(t);
  const random = seededRandom(testSeed());
  let running = node;
  for (let round = 0; round < 6; round++) {
    const work = round % 2 === 0 ? running.client.call('POST', `${LIST}?base=${base.name}`) : recover(running, folder, second.name, 'c');
    const settled = work.then(
      () => {},
      () => {},
    );
    await new Promise((resolve) => setTimeout(resolve, random.unit() * 300));
    await running.end('SIGKILL');
    await settled;
    running = await nodeFor(t, { folder });
    assert.deepEqual(await contentOf(running.client, 'c'), contents[2]);
    const listed = await running.client.result<Shown[]>('GET', LIST);
    const names = listed.map(({ name }) => name);
    for (const { name } of [base, first, second]) assert.ok(names.includes(name), name);
    for (const { checksum, name } of listed) assert.equal(sha256Of(await download(running.url, `${LIST}/${name}`)), checksum, name);
    for (const one of listed) if (one.base !== undefined) assert.ok(names.includes(one.base), `${one.name} has lost its base`);
  }
});

async function answered(url: string, method: string, path: string, body?: object): Promise<{ status: number; text: string }> {
  const sent = body === undefined ? {} : { body: JSON.stringify(body), headers: { 'content-type': 'application/json' } };
  const answer = await fetch(`${url}${path}`, { method, ...sent });
  return { status: answer.status, text: await answer.text() };
}
