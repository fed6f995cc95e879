/** A node of a cluster on real files: what is desired comes about, whatever was there and wherever it crashed. */

import assert from 'node:assert/strict';
import { mkdtemp, readdir, readFile, rm, truncate } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { type CollectionStore, openCollectionStore } from '../../../actors/collection/store.js';
import type { CarriedOut, Desired, DesiredCollection } from '../../../actors/context/desired.js';
import { deadReplicas } from '../../../actors/context/view.js';
import type { AliasStore } from '../../../actors/node/alias-store.js';
import { TroupeError } from '../../../protocols/errors.js';
import { pointsOf, printStorage, startClusterNode, storeWith } from '../cluster-node.js';
import { sampleConfig } from '../samples.js';

let base: string;

before(async () => {
  base = await mkdtemp(join(tmpdir(), 'troupe-cluster-node-'));
});
after(() => rm(base, { recursive: true, force: true }));

const newStorage = () => mkdtemp(join(base, 'storage-'));

/** `uid.revision:shards`, with the revision as the indexing threshold; a shard is of the entry behind its `@`, or of `uid`. */
function collection(short: string): DesiredCollection {
  const [, uid, revision, shards] = /^(\d+)\.(\d+):(.*)$/.exec(short) as unknown as [string, string, string, string];
  const parts = shards === '' ? [] : shards.split(',').map((shard) => shard.split('@').map(Number));
  const ids = parts.map(([id]) => id as number);
  const since = parts.map(([, index]) => index ?? Number(uid));
  return {
    uid: Number(uid),
    revision: Number(revision),
    config: sampleConfig({ indexing_threshold: Number(revision) }),
    shards: ids,
    since,
  };
}

function desired(
  index: number,
  collections: Record<string, string>,
  aliases: Record<string, string> = {},
  more: Partial<Desired> = {},
): Desired {
  return {
    index,
    clusterId: 'ours',
    peerId: 7,
    collections: new Map(Object.entries(collections).map(([name, short]) => [name, collection(short)])),
    aliases: new Map(Object.entries(aliases)),
    ...more,
  };
}

const FIRST = desired(5, { a: '1.1:0', b: '2.2:1,2', c: '3.3:' }, { x: 'a' });
const SECOND = desired(8, { a: '1.6:0', b: '2.2:2,3', c: '3.3:0' }, { x: 'b', y: 'c' });
const THIRD = desired(12, { a: '9.9:0', c: '3.12:0' }, { y: 'c' });

const PRINTED_FIRST = `
a: uid 1 revision 1 shards 0, threshold 1, files 0
b: uid 2 revision 2 shards 1,2, threshold 2, files 1,2
c: uid 3 revision 3 shards , threshold 3, files
alias x→a`;
const PRINTED_SECOND = `
a: uid 1 revision 6 shards 0, threshold 6, files 0
b: uid 2 revision 2 shards 2,3, threshold 2, files 2,3
c: uid 3 revision 3 shards 0, threshold 3, files 0
alias x→b
alias y→c`;
const PRINTED_THIRD = `
a: uid 9 revision 9 shards 0, threshold 9, files 0
c: uid 3 revision 12 shards 0, threshold 12, files 0
alias y→c`;

async function printed(storage: string): Promise<string> {
  return `\n${(await printStorage(storage)).replace(/ +$/gm, '')}`;
}

test('collections, shards and aliases become what is desired, one desire after the other', async () => {
  const storage = await newStorage();
  const { carryOut, view, engine } = await startClusterNode(storage);
  assert.deepEqual(await carryOut(FIRST), { index: 5, failures: [] });
  assert.equal(await printed(storage), PRINTED_FIRST);
  assert.deepEqual([...engine.open.keys()].sort(), ['a/0', 'b/1', 'b/2']);
  const kept = await pointsOf(storage, 'b', 2);
  assert.deepEqual(await carryOut(SECOND), { index: 8, failures: [] });
  assert.equal(await printed(storage), PRINTED_SECOND);
  assert.equal(await pointsOf(storage, 'b', 2), kept);
  assert.deepEqual([...engine.open.keys()].sort(), ['a/0', 'b/2', 'b/3', 'c/0']);
  assert.equal(engine.open.get('a/0')?.config.optimizer_config.indexing_threshold, 6);
  const ofFormer = await pointsOf(storage, 'a', 0);
  assert.deepEqual(await carryOut(THIRD), { index: 12, failures: [] });
  assert.equal(await printed(storage), PRINTED_THIRD);
  assert.notEqual(await pointsOf(storage, 'a', 0), ofFormer, 'a new collection of the same name is empty');
  assert.deepEqual([...view.collections.keys()].sort(), ['a', 'c']);
});

test('a collection without shards here is listed, and Active at once', async () => {
  const { carryOut, view } = await startClusterNode(await newStorage());
  await carryOut(desired(1, { c: '1.1:' }));
  const entry = view.collections.get('c');
  assert.deepEqual([entry?.error, entry?.replicas.size, entry?.belonging?.shards], [null, 0, []]);
});

test('the same desire again changes nothing and is answered at once after a restart', async () => {
  const storage = await newStorage();
  await (await startClusterNode(storage)).carryOut(SECOND);
  const again = await startClusterNode(storage);
  await again.until(() => again.view.collections.size === 3);
  const points = await pointsOf(storage, 'b', 3);
  assert.deepEqual(await again.carryOut(SECOND), { index: 8, failures: [] });
  assert.equal(await pointsOf(storage, 'b', 3), points);
});

test('consensus that has read its log again, and asks for what is there, is told so again', async () => {
  const { carryOut, node, told, until } = await startClusterNode(await newStorage());
  await carryOut(FIRST);
  const before = told.length;
  node.report({ kind: 'desire', desired: FIRST });
  await until(() => told.length > before);
  assert.deepEqual(told.at(-1), { index: 5, failures: [] });
});

test('a desire from before a crash does not turn back what came of later ones', async () => {
  const storage = await newStorage();
  await (await startClusterNode(storage)).carryOut(THIRD);
  const again = await startClusterNode(storage);
  const kept = await pointsOf(storage, 'c', 0);
  await again.carryOut(desired(6, { b: '2.2:1', c: '3.3:' }));
  assert.equal(await pointsOf(storage, 'c', 0), kept);
  assert.equal(await pointsOf(storage, 'a', 0).then(() => 'there'), 'there');
  await again.carryOut(THIRD);
  assert.equal(await printed(storage), PRINTED_THIRD);
  assert.equal(await pointsOf(storage, 'c', 0), kept);
});

test('what was made outside of the cluster, by another one, or as another peer is set aside with its files', async () => {
  const storage = await newStorage();
  const store = await openCollectionStore(storage, () => {});
  const config = sampleConfig();
  const belonging = { clusterId: 'ours', peerId: 7, uid: 1, revision: 1, shards: [0], index: 1 };
  await store.create({ name: 'single', config });
  await store.create({ name: 'theirs', config, belonging: { ...belonging, clusterId: 'theirs' } });
  await store.create({ name: 'former', config, belonging: { ...belonging, peerId: 6 } });
  await store.create({ name: 'deleted', config, belonging });
  const node = await startClusterNode(storage);
  await node.until(() => node.view.collections.size === 4);
  await node.carryOut(desired(5, { single: '5.5:0' }));
  assert.equal(
    await printed(storage),
    `
single: uid 5 revision 5 shards 0, threshold 5, files 0
set aside: former
set aside: single
set aside: theirs`,
  );
  const warned = node.world.logged.filter((line) => line.startsWith('warn'));
  assert.equal(warned.length, 3);
  assert.match(warned.join('\n'), /the collection in theirs is not used: it belongs to another cluster; its files are kept as .*set-aside/);
});

test('a collection whose configuration is damaged is named as failed and kept, and set aside when it is not desired', async () => {
  const storage = await newStorage();
  await (await startClusterNode(storage)).carryOut(desired(1, { a: '1.1:0' }));
  await truncate(join(storage, 'collections', 'a', 'config.json'), 50);
  const node = await startClusterNode(storage);
  await node.until(() => node.view.collections.size === 1);
  const { failures } = await node.carryOut(desired(2, { a: '1.1:0', b: '2.2:0' }));
  assert.deepEqual(
    failures.map(({ collection, uid, detail }) => [collection, uid, /cannot be read/.test(detail)]),
    [['a', 1, true]],
  );
  assert.deepEqual((await node.carryOut(desired(3, { b: '2.2:0' }))).failures, []);
  assert.match((await readdir(join(storage, 'set-aside'))).join(), /^a\./);
});

test('a replica that cannot be opened is a failure that ends when it can', async () => {
  const storage = await newStorage();
  await (await startClusterNode(storage)).carryOut(desired(1, { a: '1.1:0' }));
  const node = await startClusterNode(storage);
  node.engine.unopenable.set('a/0', new TroupeError('storage', 'data.mdb is torn'));
  await node.until(() => node.view.collections.get('a')?.error != null);
  const { failures } = await node.carryOut(desired(2, { a: '1.1:0' }));
  assert.deepEqual(failures, [{ collection: 'a', uid: 1, shardId: 0, detail: 'data.mdb is torn' }]);
  node.engine.unopenable.clear();
  node.world.advance(1000);
  await node.until(() => node.told.at(-1)?.failures.length === 0);
  assert.equal(node.told.at(-1)?.index, 2);
});

test('a creation that fails is reported, does not hold up the others, and is tried again', async () => {
  const node = await startClusterNode(await newStorage());
  node.engine.unopenable.set('a/0', new TroupeError('storage', 'the disk is full'));
  const { failures, index } = await node.carryOut(desired(4, { a: '1.1:0', b: '2.2:0' }));
  assert.deepEqual([index, failures], [4, [{ collection: 'a', uid: 1, shardId: 0, detail: 'the disk is full' }]]);
  assert.equal(node.view.collections.get('a')?.replicas.get(0)?.state, 'Failed');
  node.engine.unopenable.clear();
  await node.world.settle();
  node.world.advance(1000);
  await node.until(() => node.told.at(-1)?.failures.length === 0);
  assert.deepEqual([...node.view.collections.keys()].sort(), ['a', 'b']);
});

test('a new collection whose replicas do not open stays, so that the cluster learns that their files are gone', async () => {
  let removals = 0;
  const node = await startClusterNode(await newStorage(), ({ aliases, store }) => {
    const remove = async () => {
      removals += 1;
    };
    return { aliases, store: storeWith(store, { remove }) };
  });
  node.engine.unopenable.set('a/0', new TroupeError('storage', 'its files are gone'));
  await node.carryOut(desired(4, { a: '1.1:0' }));
  const dead = deadReplicas(node.view, { isAhead: () => false });
  assert.deepEqual(dead, [{ collection: 'a', uid: 1, shardId: 0, since: 1, mayBeAhead: false }]);
  node.engine.unopenable.clear();
  await node.world.settle();
  node.world.advance(1000);
  await node.until(() => node.told.at(-1)?.failures.length === 0 && node.view.collections.get('a')?.error === null);
  assert.deepEqual([removals, deadReplicas(node.view, { isAhead: () => false })], [0, []]);
});

test('a shard that cannot be opened after its addition is a failure of replicas that ends when it can, and the others go on', async () => {
  const node = await startClusterNode(await newStorage());
  await node.carryOut(desired(1, { a: '1.1:0' }));
  node.engine.unopenable.set('a/1', new TroupeError('storage', 'the disk is full'));
  const { failures } = await node.carryOut(desired(2, { a: '1.1:0,1' }));
  const failure = { collection: 'a', uid: 1, detail: 'the disk is full' };
  assert.deepEqual(failures, [{ ...failure, shardId: 1 }], 'the replica that serves is none');
  assert.equal(node.engine.open.has('a/0'), true);
  node.engine.unopenable.clear();
  await node.world.settle();
  node.world.advance(1000);
  await node.until(() => node.told.at(-1)?.failures.length === 0);
});

test('a replica that does not serve stays a failure while its collection is changed: it is not Active for what nobody has made yet', async () => {
  const storage = await newStorage();
  await (await startClusterNode(storage)).carryOut(desired(1, { a: '1.1:0,1', b: '2.2:0' }));
  const saves: (() => void)[] = [];
  const node = await startClusterNode(storage, (stores) => {
    const save: CollectionStore['save'] = (...saved) =>
      new Promise<void>((resolve) => saves.push(resolve)).then(() => stores.store.save(...saved));
    return { ...stores, store: storeWith(stores.store, { save }) };
  });
  node.engine.unopenable.set('a/1', new TroupeError('storage', 'it was not made to the end'));
  const failure = { collection: 'a', uid: 1, shardId: 1, detail: 'it was not made to the end' };
  await node.carryOut(desired(2, { a: '1.1:0,1', b: '2.2:0' }));
  await node.until(() => node.told.at(-1)?.failures.length === 1);
  const isFailing = (failures: CarriedOut['failures']) => failures.some(({ collection, shardId }) => collection === 'a' && shardId === 1);
  // Two changes after each other: the report between them is about the first one.
  for (const [index, shards] of [
    [3, '0,1,2'],
    [4, '0,1,2,3'],
  ] as const)
    node.node.report({ kind: 'desire', desired: desired(index, { a: `1.1:${shards}`, b: `2.2:0` }) });
  for (const made of [1, 2]) {
    await node.until(() => saves.length === made);
    // Long enough for any report that waits.
    for (let seconds = 0; seconds < 5; seconds++) {
      node.world.advance(1000);
      await node.world.settle();
    }
    saves.at(-1)?.();
  }
  await node.until(() => node.told.at(-1)?.index === 4);
  assert.ok(
    node.told.every(({ failures }) => isFailing(failures)),
    JSON.stringify(node.told),
  );
  assert.deepEqual(node.told.at(-1)?.failures, [failure]);
  node.engine.unopenable.clear();
  await node.until(() => node.told.at(-1)?.failures.length === 0);
});

test('desires that come faster than moves are made: the last one comes about, and the index never waits for all of them', async () => {
  const storage = await newStorage();
  const node = await startClusterNode(storage);
  for (let index = 1; index <= 40; index++) {
    node.node.report({
      kind: 'desire',
      desired: desired(index, { [`c${index % 3}`]: `${index}.${index}:0`, b: '1.1:0' }, { x: `c${index % 3}` }),
    });
    if (index % 4 === 0) node.world.deliver();
    if (index % 7 === 0) await new Promise((resolve) => setImmediate(resolve));
  }
  await node.carryOut(THIRD);
  assert.equal(await printed(storage), PRINTED_THIRD);
  const indexes = node.told.map(({ index }) => index);
  assert.deepEqual(
    [...indexes].sort((one, other) => one - other),
    indexes,
    'it never falls',
  );
});

test('a founder takes its collections into the cluster, and again when it crashed before the cluster began', async () => {
  const storage = await newStorage();
  const store = await openCollectionStore(storage, () => {});
  for (const name of ['a', 'B']) await store.create({ name, config: sampleConfig({ indexing_threshold: 1 }) });
  for (const clusterId of ['first', 'second']) {
    const node = await startClusterNode(storage);
    assert.deepEqual(
      node
        .local()
        ?.collections.map(({ name }) => name)
        .sort(),
      ['B', 'a'],
    );
    const belonging = { clusterId, peerId: 7, uid: 1, revision: 1, shards: [0], index: 1 };
    const adoption = new Map([
      ['a', belonging],
      ['B', belonging],
    ]);
    assert.equal(await node.ask((replyTo) => ({ kind: 'adopt', adoption, replyTo })), true);
  }
  const points = await pointsOf(storage, 'a', 0);
  const node = await startClusterNode(storage);
  await node.carryOut(desired(1, { a: '1.1:0', B: '1.1:0' }, {}, { clusterId: 'second' }));
  assert.equal(await pointsOf(storage, 'a', 0), points);
  assert.equal((await readFile(join(storage, 'collections', '+42', 'config.json'), 'utf8')).includes('"clusterId":"second"'), true);
});

/** Stores of a process that ends at its operation number `at`: before it does anything, or when it has done all of it. */
function mortal(at: number, when: 'before' | 'after') {
  let count = 0;
  let dead = false;
  const never = new Promise<never>(() => {});
  const running = new Set<Promise<unknown>>();
  const run = async <Value>(act: () => Promise<Value>): Promise<Value> => {
    if (dead) return never;
    count += 1;
    const isLast = count === at;
    if (isLast) dead = true;
    if (isLast && when === 'before') return never;
    const acting = act();
    running.add(acting);
    const value = await acting.finally(() => running.delete(acting));
    return dead ? never : value;
  };
  const wrap = ({ store, aliases }: { store: CollectionStore; aliases: AliasStore }) => ({
    store: storeWith(store, {
      create: (stored) => run(() => store.create(stored)),
      save: (stored) => run(() => store.save(stored)),
      remove: (folder) => run(() => store.remove(folder)),
      removeShard: (folder, shardId) => run(() => store.removeShard(folder, shardId)),
      setAside: (folder) => run(() => store.setAside(folder)),
    }),
    aliases: { load: () => aliases.load(), save: (map: Parameters<AliasStore['save']>[0]) => run(() => aliases.save(map)) },
  });
  return { wrap, isDead: () => dead, end: () => Promise.allSettled(running) };
}

test('a crash before or after any write to disk leaves what the next start completes', { timeout: 120_000 }, async () => {
  const prepare = async () => {
    const storage = await newStorage();
    const store = await openCollectionStore(storage, () => {});
    await store.create({ name: 'b', config: sampleConfig() });
    return storage;
  };
  let crashes = 0;
  for (const when of ['before', 'after'] as const) {
    for (let at = 1; ; at++) {
      const storage = await prepare();
      const life = mortal(at, when);
      const node = await startClusterNode(storage, life.wrap);
      for (const next of [FIRST, SECOND, THIRD]) {
        node.node.report({ kind: 'desire', desired: next });
        await node.until(() => life.isDead() || node.told.at(-1)?.index === next.index);
        if (life.isDead()) break;
      }
      if (!life.isDead()) break;
      crashes += 1;
      await life.end();
      const next = await startClusterNode(storage);
      await next.carryOut(THIRD);
      await next.until(() => next.told.at(-1)?.failures.length === 0);
      assert.equal(await printed(storage), `${PRINTED_THIRD.replace('\nalias', '\nset aside: b\nalias')}`, `a crash ${when} write ${at}`);
    }
  }
  assert.ok(crashes >= 24, `${crashes} crashes`);
});

test('a replica that went and came again is empty: it missed what was written meanwhile', async () => {
  const storage = await newStorage();
  const { carryOut } = await startClusterNode(storage);
  await carryOut(desired(5, { a: '1.1:0,1@3' }));
  const [first, second] = [await pointsOf(storage, 'a', 0), await pointsOf(storage, 'a', 1)];
  await carryOut(desired(9, { a: '1.1:0,1@8' }));
  assert.equal(await pointsOf(storage, 'a', 0), first);
  assert.notEqual(await pointsOf(storage, 'a', 1), second);
  const again = await startClusterNode(storage);
  const kept = await pointsOf(storage, 'a', 1);
  await again.carryOut(desired(9, { a: '1.1:0,1@8' }));
  assert.equal(await pointsOf(storage, 'a', 1), kept);
});
