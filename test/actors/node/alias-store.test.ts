import assert from 'node:assert/strict';
import { mkdtemp, readdir, readFile, rm, truncate, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, beforeEach, test } from 'node:test';
import { AliasFile } from '../../../actors/node/alias-store.js';
import { initChecksum } from '../../../storage/disk/checksum.js';

const ALIASES = new Map([
  ['x', 'a'],
  ['__proto__', 'b'],
  ['', 'алиас'],
]);

let base: string;
let folder: string;
let damages: string[];

before(async () => {
  await initChecksum();
  base = await mkdtemp(join(tmpdir(), 'troupe-aliases-'));
});
after(() => rm(base, { recursive: true, force: true }));
beforeEach(async () => {
  folder = await mkdtemp(join(base, 'storage-'));
  damages = [];
});

function openStore(): AliasFile {
  return new AliasFile(folder, (error) => damages.push(error.detail));
}

test('saved aliases are there for the next process, whatever their names, and no other file is', async () => {
  assert.deepEqual(await openStore().load(), new Map());
  await openStore().save(ALIASES);
  assert.deepEqual(await openStore().load(), ALIASES);
  assert.deepEqual(await readdir(folder), ['aliases.json']);
});

test('saves of one store take turns, so that the last one stays', async () => {
  const store = openStore();
  await Promise.all(Array.from({ length: 20 }, (_, at) => store.save(new Map([['x', `collection-${at}`]]))));
  assert.deepEqual(await store.load(), new Map([['x', 'collection-19']]));
});

test('a torn or changed file is reported, kept aside, and nothing is taken from it', async () => {
  for (const damage of [
    (path: string) => truncate(path, 60),
    async (path: string) => writeFile(path, (await readFile(path, 'utf8')).replace('"a"', '"b"')),
    (path: string) => writeFile(path, ''),
  ]) {
    await openStore().save(ALIASES);
    await damage(join(folder, 'aliases.json'));
    assert.deepEqual(await openStore().load(), new Map());
    assert.match(damages.pop() ?? '', /aliases\.json is damaged: .*; the node starts without aliases/);
    assert.deepEqual(await readdir(folder), ['aliases.damaged.json']);
  }
});
