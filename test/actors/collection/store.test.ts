import assert from 'node:assert/strict';
import { type FileHandle, mkdir, mkdtemp, open, readdir, readFile, readlink, rename, rm, truncate, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, beforeEach, test } from 'node:test';
import { type CollectionStore, openCollectionStore } from '../../../actors/collection/store.js';
import { folderName } from '../../../storage/disk/folder-name.js';
import { sampleConfig } from '../samples.js';

let base: string;
let storage: string;
let store: CollectionStore;

before(async () => {
  base = await mkdtemp(join(tmpdir(), 'troupe-store-'));
});
after(() => rm(base, { recursive: true, force: true }));
beforeEach(async () => {
  storage = await mkdtemp(join(base, 'storage-'));
  store = await openCollectionStore(storage, (path, error) => assert.fail(`${path}: ${error}`));
  await store.scan();
});

const collection = (name: string, threshold = 10) => ({ name, config: sampleConfig({ indexing_threshold: threshold }) });

test('the folder of all collections is on disk before a collection can be in it', async (t) => {
  if (process.platform !== 'linux') return t.skip('needs /proc to name the folders');
  const probe = await open(base);
  const synced: string[] = [];
  const handles = Object.getPrototypeOf(probe) as FileHandle;
  await probe.close();
  const { sync } = handles;
  t.mock.method(handles, 'sync', async function (this: FileHandle) {
    synced.push(await readlink(`/proc/self/fd/${this.fd}`));
    return sync.call(this);
  });
  const fresh = join(base, 'fresh');
  await openCollectionStore(fresh, () => {});
  assert.deepEqual(new Set(synced), new Set([base, fresh]));
});

test('a created collection is found and loaded as it was', async () => {
  await store.create(collection('Pictures'));
  assert.deepEqual(await store.scan(), ['+50ictures']);
  assert.deepEqual(await store.load('+50ictures'), collection('Pictures'));
});

test('creating what exists returns it as it is', async () => {
  await store.create(collection('a', 1));
  assert.deepEqual(await store.create(collection('a', 2)), collection('a', 1));
});

test('a saved configuration replaces the former one and leaves no other file', async () => {
  await store.create(collection('a', 1));
  await store.save(collection('a', 2));
  assert.deepEqual(await store.load('a'), collection('a', 2));
  assert.deepEqual(await readdir(store.path('a')), ['config.json']);
});

test('names that differ in case only are two collections', async () => {
  await store.create(collection('name', 1));
  await store.create(collection('NAME', 2));
  assert.equal((await store.load(folderName('name'))).config.optimizer_config.indexing_threshold, 1);
  assert.equal((await store.load(folderName('NAME'))).config.optimizer_config.indexing_threshold, 2);
});

test('a torn configuration is reported by name', async () => {
  await store.create(collection('a'));
  const file = join(store.path('a'), 'config.json');
  await truncate(file, 100);
  await assert.rejects(store.load('a'), { code: 'storage', detail: `${file} is damaged: its end is missing` });
});

test('a missing configuration is reported by name', async () => {
  await mkdir(join(store.path('a'), '0'), { recursive: true });
  assert.deepEqual(await store.scan(), ['a']);
  await assert.rejects(store.load('a'), { code: 'storage', detail: `${join(store.path('a'), 'config.json')} is missing` });
});

test('a configuration in the folder of another collection is not taken for it', async () => {
  await store.create(collection('a'));
  await rename(store.path('a'), store.path('b'));
  await assert.rejects(store.load('b'), { code: 'storage', detail: /belongs to the collection a/ });
});

test('a removed collection is gone for good, and removing it again does no harm', async () => {
  await store.create(collection('a'));
  await writeFile(join(store.path('a'), 'large'), new Uint8Array(100_000));
  await store.remove('a');
  await store.remove('a');
  assert.deepEqual(await store.scan(), []);
  await assert.rejects(readFile(store.path('a')), { code: 'ENOENT' });
});

test("a removed shard's files are gone, and removing them again does no harm", async () => {
  await store.create(collection('a'));
  for (const shard of ['1', '2']) await mkdir(join(store.path('a'), shard));
  await store.removeShard('a', 1);
  await store.removeShard('a', 1);
  assert.deepEqual((await readdir(store.path('a'))).sort(), ['2', 'config.json']);
});

test("a shard's files that are set aside take the place of those before, and no start finds them", async () => {
  await store.create(collection('a'));
  const shard = join(store.path('a'), '1');
  assert.equal(await store.setShardAside('a', 1), null);
  let kept: string | null = null;
  for (const round of ['one', 'two']) {
    await mkdir(shard);
    await writeFile(join(shard, 'data'), round);
    kept = await store.setShardAside('a', 1);
  }
  assert.equal(await readFile(join(kept as string, 'data'), 'utf8'), 'two');
  assert.deepEqual(await readdir(store.path('a')), ['config.json']);
  assert.deepEqual(await store.scan(), ['a']);
});

test('that a shard is ahead of its other replicas is known to the next start, and goes with its files', async () => {
  await store.create(collection('a'));
  assert.equal(store.isAhead('a', 1), false);
  await store.noteAhead('a', 1, true);
  const later = await openCollectionStore(storage, () => {});
  assert.deepEqual([later.isAhead('a', 1), later.isAhead('a', 2)], [true, false]);
  await later.noteAhead('a', 1, false);
  assert.equal(store.isAhead('a', 1), false);
  await store.noteAhead('a', 1, true);
  await store.removeShard('a', 1);
  assert.equal(store.isAhead('a', 1), false);
});

test('a collection that is set aside is kept whole where no start looks, each time in a place of its own', async () => {
  for (let time = 0; time < 2; time++) {
    await store.create(collection('a'));
    await writeFile(join(store.path('a'), 'data'), 'points');
    const kept = await store.setAside('a');
    assert.equal(await readFile(join(kept as string, 'data'), 'utf8'), 'points');
    assert.deepEqual(await store.scan(), []);
  }
  assert.equal((await readdir(join(storage, 'set-aside'))).length, 2);
  assert.equal(await store.setAside('a'), null);
});

test('what a crash left of creations and deletions is swept at the next start', async () => {
  const root = join(storage, 'collections');
  await mkdir(join(root, '.deleted-1', '0'), { recursive: true });
  await mkdir(join(root, '.creating-1'), { recursive: true });
  await writeFile(join(root, '.creating-1', 'config.json.tmp'), 'half');
  assert.deepEqual(await store.scan(), []);
  for (let tries = 0; tries < 100 && (await readdir(root)).length > 0; tries++) await new Promise((resolve) => setTimeout(resolve, 10));
  assert.deepEqual(await readdir(root), []);
});

/** A folder with one file, as a shard's files that are to be exchanged. */
async function stagedShard(text: string): Promise<string> {
  const folder = store.staging(`test-${text}`);
  await mkdir(folder, { recursive: true });
  await writeFile(join(folder, 'points'), text);
  return folder;
}

async function madeShard(name: string, shardId: number, text: string): Promise<void> {
  const folder = join(store.path(name), String(shardId));
  await mkdir(folder);
  await writeFile(join(folder, 'points'), text);
}

const pointsOf = (name: string, shardId: number) => readFile(join(store.path(name), String(shardId), 'points'), 'utf8');
/** What a process finds that starts after this one was killed. */
const afterKill = () => openCollectionStore(storage, (path, error) => assert.fail(`${path}: ${error}`)).then((other) => other.scan());

test('a prepared exchange of several shards that was begun is carried out by the next start', async () => {
  await store.create(collection('a'));
  for (const shard of [0, 1]) await madeShard('a', shard, `old ${shard}`);
  const staged = new Map([0, 1].map((shard) => [shard, stagedShard(`new ${shard}`)] as const));
  const prepared = await store.prepareExchange(
    collection('a'),
    new Map(await Promise.all([...staged].map(async ([id, folder]) => [id, await folder] as const))),
  );
  await store.exchangeShard('a', 0, prepared.folderOf(0));
  assert.deepEqual(await afterKill(), ['a']);
  assert.deepEqual([await pointsOf('a', 0), await pointsOf('a', 1)], ['new 0', 'new 1']);
  assert.deepEqual(await afterKill(), ['a']);
});

test('an exchange that is finished is not carried out again', async () => {
  await store.create(collection('a'));
  await madeShard('a', 0, 'old');
  const prepared = await store.prepareExchange(collection('a'), new Map([[0, await stagedShard('new')]]));
  await store.exchangeShard('a', 0, prepared.folderOf(0));
  await prepared.finish();
  await writeFile(join(store.path('a'), '0', 'points'), 'written later');
  await afterKill();
  assert.equal(await pointsOf('a', 0), 'written later');
});

test('a start makes the collection of a prepared exchange that had not been made', async () => {
  await store.prepareExchange(collection('a'), new Map([[0, await stagedShard('new')]]));
  assert.deepEqual(await afterKill(), ['a']);
  assert.equal(await pointsOf('a', 0), 'new');
});

test('a collection that was deleted does not come back by an exchange that was under way', async () => {
  await store.create(collection('a'));
  await store.prepareExchange(collection('a'), new Map([[0, await stagedShard('new')]]));
  await store.remove('a');
  assert.deepEqual(await afterKill(), []);
});

test('an exchange is given up for a collection that its cluster has made anew since', async () => {
  const belonging = { clusterId: 'c', peerId: 1, uid: 5, revision: 5, shards: [0], index: 5 };
  await store.create({ ...collection('a'), belonging });
  await store.prepareExchange(
    { ...collection('a'), belonging: { ...belonging, uid: 4 } },
    new Map([[0, await stagedShard('of an earlier one')]]),
  );
  await madeShard('a', 0, 'own');
  await afterKill();
  assert.equal(await pointsOf('a', 0), 'own');
});

test('a collection that replaces another one has its configuration and its shards, and nothing of the former', async () => {
  await store.create(collection('a', 1));
  for (const shard of [0, 1]) await madeShard('a', shard, 'old');
  await store.replaceCollection(collection('a', 2), new Map([[0, await stagedShard('new')]]));
  assert.equal((await store.load('a')).config.optimizer_config.indexing_threshold, 2);
  assert.deepEqual((await readdir(store.path('a'))).sort(), ['0', 'config.json']);
  assert.equal(await pointsOf('a', 0), 'new');
});

test('a replacement that was begun is carried out by the next start', async () => {
  await store.create(collection('a', 1));
  await madeShard('a', 0, 'old');
  await store.create(collection('b', 2));
  // As after a kill between the two renames.
  await rename(store.path('b'), join(storage, 'collections', '.replacing-x'));
  await writeFile(join(storage, 'collections', '.replacing-x', 'config.json'), await readFile(join(store.path('a'), 'config.json')));
  assert.deepEqual(await afterKill(), ['a']);
  assert.deepEqual(await readdir(store.path('a')), ['config.json']);
});
