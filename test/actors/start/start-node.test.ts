import assert from 'node:assert/strict';
import { mkdtemp, readdir, rm, truncate, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import type { NodeApi } from '../../../actors/requests/node-api.js';
import type { ActorTelemetry } from '../../../actors/runtime/telemetry.js';
import { startNode } from '../../../actors/start/start-node.js';
import { TroupeError } from '../../../protocols/errors.js';
import type { RawRequest } from '../../../storage/threads/messages.js';
import { FakeEngine } from '../fake-engine.js';
import { FakeWorld } from '../fake-world.js';
import { dueSegment, indexedSegment, sampleConfig, sampleSegment, sampleStats } from '../samples.js';

let base: string;

before(async () => {
  base = await mkdtemp(join(tmpdir(), 'troupe-node-'));
});
after(() => rm(base, { recursive: true, force: true }));

interface Started {
  readonly node: NodeApi;
  readonly engine: FakeEngine;
  readonly world: FakeWorld;
  readonly storagePath: string;
  /** The answer of a call that needs messages to move. */
  readonly run: <Answer>(call: Promise<Answer>) => Promise<Answer>;
}

async function start(options: { storagePath?: string; engine?: FakeEngine; damaged?: ReadonlyMap<string, string> } = {}): Promise<Started> {
  const storagePath = options.storagePath ?? (await mkdtemp(join(base, 'storage-')));
  const engine = options.engine ?? new FakeEngine();
  const world = new FakeWorld();
  const node = await startNode({
    storagePath,
    pool: engine,
    log: world.log,
    clock: world.ports.clock,
    ports: world.ports,
    cpus: 4,
    optimizerCpuBudget: 2,
    verify: async (folders) => new Map(folders.map((folder) => [folder, options.damaged?.get(folder) ?? null])),
  });
  const run = async <Answer>(call: Promise<Answer>): Promise<Answer> => {
    let done = false;
    const ended = call.finally(() => {
      done = true;
    });
    ended.catch(() => {});
    while (!done) {
      world.deliver();
      await new Promise((resolve) => setTimeout(resolve, 1));
    }
    // A log that has just been opened finds its end.
    await world.settle();
    return ended;
  };
  await run(node.whenReady());
  return { node, engine, world, storagePath, run };
}

function request(world: Pick<FakeWorld, 'nowMs'>, body: object = { points: [1] }): RawRequest {
  return { path: {}, query: {}, body: Buffer.from(JSON.stringify(body)), deadlineMs: world.nowMs + 10_000 };
}

function text(bytes: Uint8Array): string {
  return new TextDecoder().decode(bytes);
}

function actorAt(tree: ActorTelemetry, path: string): ActorTelemetry | undefined {
  if (tree.path === path) return tree;
  return [...tree.children].map((child) => actorAt(child, path)).find((found) => found !== undefined);
}

const DELETED = '{"operation_id":1,"status":"completed"}';
const FIELD = { field_name: 'color', field_schema: 'keyword' };
const MISSING = { code: 'notFound', detail: "Collection `pictures` doesn't exist!" };

test('a collection lives from its creation to its deletion', async () => {
  const { node, engine, run, storagePath, world } = await start();
  assert.equal(node.exists('pictures'), false);
  assert.equal(await run(node.deleteCollection('pictures')), false);
  assert.throws(() => node.info('pictures'), MISSING);
  assert.equal(await run(node.createCollection('pictures', sampleConfig())), true);
  assert.deepEqual(node.listCollections(), ['pictures']);
  assert.equal(node.info('pictures').status, 'green');
  await assert.rejects(run(node.createCollection('pictures', sampleConfig())), {
    code: 'conflict',
    detail: 'Collection `pictures` already exists!',
  });
  assert.equal(text(await node.read('pictures', 'scroll', request(world))), 'scroll of pictures/0');
  assert.equal(text(await run(node.write('pictures', 'deletePoints', true, request(world)))), DELETED);
  assert.equal(await run(node.deleteCollection('pictures')), true);
  assert.equal(node.exists('pictures'), false);
  await assert.rejects(run(node.read('pictures', 'scroll', request(world))), MISSING);
  await assert.rejects(run(node.write('pictures', 'deletePoints', true, request(world))), MISSING);
  assert.equal(await run(node.createCollection('pictures', sampleConfig())), true);
  assert.deepEqual(engine.calls, ['open pictures/0', 'write pictures/0 deletePoints until shown', 'close pictures/0', 'open pictures/0']);
  assert.deepEqual(
    (await readdir(join(storagePath, 'collections'))).filter((name) => !name.startsWith('.deleted')),
    ['pictures'],
  );
});

test('collections are there again after a restart, with their changed configuration', async () => {
  const first = await start();
  for (const name of ['name', 'Name', 'あ'.repeat(255)]) await first.run(first.node.createCollection(name, sampleConfig()));
  await first.run(first.node.updateCollection('Name', (config) => ({ ...config, metadata: { changed: true } })));
  assert.deepEqual(first.node.info('Name').config.metadata, { changed: true });
  await first.run(first.node.close());
  assert.deepEqual([...first.engine.open.keys()], []);
  const second = await start({ storagePath: first.storagePath });
  assert.deepEqual(second.node.listCollections(), ['Name', 'name', 'あ'.repeat(255)]);
  assert.deepEqual(second.node.info('Name').config.metadata, { changed: true });
  assert.equal(second.node.info('name').config.metadata, undefined);
  assert.deepEqual(second.engine.open.get('Name/0')?.config.metadata, { changed: true });
});

test('a replica that is checked for long keeps no other one from being served', async () => {
  const first = await start();
  for (const name of ['large', 'small']) await first.run(first.node.createCollection(name, sampleConfig()));
  await first.run(first.node.close());
  const engine = new FakeEngine();
  const world = new FakeWorld();
  let finishCheck = (): void => {};
  const node = await startNode({
    storagePath: first.storagePath,
    pool: engine,
    log: world.log,
    clock: world.ports.clock,
    ports: world.ports,
    verify: (folders) => {
      const sound = new Map(folders.map((folder) => [folder, null]));
      if (!folders.some((folder) => folder.includes('large'))) return Promise.resolve(sound);
      return new Promise((done) => {
        finishCheck = () => done(sound);
      });
    },
  });
  const deliverUntil = async (wanted: () => boolean): Promise<void> => {
    while (!wanted()) {
      world.deliver();
      await new Promise((resolve) => setTimeout(resolve, 1));
    }
  };
  await deliverUntil(() => node.listCollections().includes('small') && node.info('small').status === 'green');
  assert.equal(text(await node.read('small', 'scroll', request(world))), 'scroll of small/0');
  assert.deepEqual(engine.calls, ['open small/0']);
  // It is not known yet, which is another thing than not being there.
  assert.throws(() => node.exists('large'), { code: 'unavailable' });
  finishCheck();
  await deliverUntil(() => node.listCollections().includes('large') && node.info('large').status === 'green');
});

test('a collection is used by its alias, also after a restart, until one of the two goes', async () => {
  const first = await start();
  await first.run(first.node.createCollection('pictures', sampleConfig()));
  await first.run(first.node.changeAliases([{ kind: 'create', alias: 'a/б', collection: 'pictures' }]));
  assert.deepEqual(first.engine.aliases, new Map([['a/б', 'pictures']]));
  assert.equal(text(await first.node.read('a/б', 'scroll', request(first.world))), 'scroll of pictures/0');
  assert.equal(text(await first.run(first.node.write('a/б', 'deletePoints', true, request(first.world)))), DELETED);
  await first.run(first.node.updateCollection('a/б', (config) => ({ ...config, metadata: { via: 'alias' } })));
  await first.run(first.node.close());
  const { engine, node, run } = await start({ storagePath: first.storagePath });
  assert.deepEqual(node.info('a/б').config.metadata, { via: 'alias' });
  assert.deepEqual(node.listCollections(), ['pictures']);
  assert.deepEqual(node.aliases(null), [{ alias_name: 'a/б', collection_name: 'pictures' }]);
  assert.deepEqual([node.exists('a/б'), await run(node.deleteCollection('a/б'))], [true, false]);
  await run(node.deleteCollection('pictures'));
  assert.deepEqual([node.exists('a/б'), node.aliases(null), engine.aliases.size], [false, [], 0]);
});

test('a torn alias file is reported and the node starts without aliases', async () => {
  const first = await start();
  await first.run(first.node.createCollection('pictures', sampleConfig()));
  await first.run(first.node.changeAliases([{ kind: 'create', alias: 'x', collection: 'pictures' }]));
  await first.run(first.node.close());
  await truncate(join(first.storagePath, 'aliases.json'), 50);
  const second = await start({ storagePath: first.storagePath });
  assert.deepEqual([second.node.listCollections(), second.node.exists('x')], [['pictures'], false]);
  assert.ok(second.world.logged.some((line) => line.includes('aliases.json is damaged')));
});

test('an update is refused with what its change throws, and changes nothing', async () => {
  const { node, run } = await start();
  await run(node.createCollection('pictures', sampleConfig()));
  const refused = node.updateCollection('pictures', () => {
    throw new TroupeError('wrongInput', 'no such vector');
  });
  await assert.rejects(run(refused), { code: 'wrongInput', detail: 'no such vector' });
  assert.deepEqual(node.info('pictures').config, sampleConfig());
  await assert.rejects(run(node.updateCollection('other', (config) => config)), { code: 'notFound' });
});

test('a collection with a torn configuration is listed with its error, refuses everything, and can be deleted', async () => {
  const first = await start();
  await first.run(first.node.createCollection('pictures', sampleConfig()));
  await first.run(first.node.createCollection('whole', sampleConfig()));
  await first.run(first.node.close());
  const file = join(first.storagePath, 'collections', 'pictures', 'config.json');
  await truncate(file, 200);
  const { node, run, world } = await start({ storagePath: first.storagePath });
  assert.deepEqual(node.listCollections(), ['pictures', 'whole']);
  assert.equal(node.info('whole').status, 'green');
  const damaged = { code: 'storage', detail: `${file} is damaged: its end is missing` };
  assert.throws(() => node.info('pictures'), damaged);
  await assert.rejects(run(node.read('pictures', 'scroll', request(world))), damaged);
  await assert.rejects(run(node.write('pictures', 'deletePoints', true, request(world))), damaged);
  await assert.rejects(run(node.updateCollection('pictures', (config) => config)), damaged);
  assert.ok(world.logged.some((line) => line.startsWith('error') && line.includes(file)));
  assert.equal(await run(node.deleteCollection('pictures')), true);
  assert.equal(await run(node.createCollection('pictures', sampleConfig())), true);
});

test('a replica with a damaged database is Dead with the reason, tries again, and serves when it can', async () => {
  const first = await start();
  await first.run(first.node.createCollection('pictures', sampleConfig()));
  await first.run(first.node.close());
  const folder = join(first.storagePath, 'collections', 'pictures', '0');
  const damaged = new Map([[folder, `${folder}/lmdb/data.mdb is damaged`]]);
  const { node, engine, run, world } = await start({ storagePath: first.storagePath, damaged });
  const dead = { code: 'unavailable', detail: new RegExp(`${folder}/lmdb/data.mdb is damaged`) };
  assert.equal(node.info('pictures').status, 'red');
  await assert.rejects(run(node.read('pictures', 'scroll', request(world))), dead);
  await assert.rejects(run(node.write('pictures', 'deletePoints', true, request(world))), dead);
  const replica = actorAt(node.telemetry(), '/node/pictures/shard-0/replica');
  assert.deepEqual([replica?.state, replica?.facts], ['Failed', { replicaState: 'Dead' }]);
  damaged.clear();
  world.advance(1000);
  await world.settle();
  assert.equal(node.info('pictures').status, 'green');
  assert.deepEqual(engine.calls, [`open pictures/0 damaged: ${folder}/lmdb/data.mdb is damaged`, 'open pictures/0']);
  assert.equal(text(await node.read('pictures', 'count', request(world))), 'count of pictures/0');
});

test('a collection of several shards answers from all of them or not at all', async () => {
  const { node, engine, run, world } = await start();
  const config = sampleConfig();
  await run(node.createCollection('pictures', { ...config, params: { ...config.params, shard_number: 3 } }));
  assert.equal(text(await node.read('pictures', 'scroll', request(world))), 'scroll of pictures/0,pictures/1,pictures/2');
  assert.deepEqual([...node.localShards('pictures').keys()], [0, 1, 2]);
  engine.unopenable.set('pictures/1', new TroupeError('storage', 'no space left on device'));
  engine.fail('pictures/1', new TroupeError('storage', 'its disk is gone'));
  await engine.closeReplica('pictures/1');
  await world.settle();
  const dead = { code: 'unavailable', detail: /its disk is gone/ };
  await assert.rejects(run(node.read('pictures', 'scroll', request(world))), dead);
  assert.equal(node.info('pictures').status, 'red');
  assert.equal(node.localShards('pictures').get(1)?.state, 'Dead');
  const points = Array.from({ length: 50 }, (_, id) => id);
  const body = Buffer.from(JSON.stringify({ points }));
  await assert.rejects(run(node.write('pictures', 'deletePoints', true, { ...request(world), body })), dead);
  assert.deepEqual(
    engine.calls.filter((call) => call.startsWith('write')),
    [],
  );
});

test('builds and segments of several shards have names of their own', async () => {
  const engine = new FakeEngine();
  const shards = [0, 1];
  for (const shard of shards) engine.statsAtOpening.set(`pictures/${shard}`, sampleStats([sampleSegment()], { key: `pictures/${shard}` }));
  const { node, run } = await start({ engine });
  const config = sampleConfig();
  await run(node.createCollection('pictures', { ...config, params: { ...config.params, shard_number: shards.length } }));
  const { idle_segments } = node.optimizations('pictures');
  assert.equal(new Set(idle_segments.map(({ uuid }) => uuid)).size, shards.length);
});

test('a collection whose replica cannot be opened is not created and leaves nothing behind', async () => {
  const { node, engine, run, storagePath } = await start();
  engine.unopenable.set('pictures/0', new TroupeError('storage', 'no space left on device'));
  await assert.rejects(run(node.createCollection('pictures', sampleConfig())), { code: 'storage', detail: 'no space left on device' });
  engine.unopenable.clear();
  assert.equal(await run(retryConflict(() => node.createCollection('pictures', sampleConfig()))), true);
  assert.deepEqual(
    (await readdir(join(storagePath, 'collections'))).filter((name) => !name.startsWith('.deleted')),
    ['pictures'],
  );
});

/** The name is free a moment after the failed creation was answered. */
async function retryConflict(create: () => Promise<boolean>): Promise<boolean> {
  for (;;) {
    try {
      return await create();
    } catch (error) {
      if (!(error instanceof TroupeError) || error.code !== 'conflict') throw error;
    }
  }
}

test('a replica that the engine gives up is opened anew', async () => {
  const { node, engine, run, world } = await start();
  await run(node.createCollection('pictures', sampleConfig()));
  engine.fail('pictures/0', new TroupeError('storage', 'the disk refuses'));
  await world.settle();
  assert.deepEqual(
    [node.info('pictures').status, node.info('pictures').optimizer_status],
    ['red', { error: 'the replica is Dead: the disk refuses' }],
  );
  world.advance(1000);
  await world.settle();
  assert.equal(node.info('pictures').status, 'green');
  assert.deepEqual(engine.calls, ['open pictures/0', 'close pictures/0', 'open pictures/0']);
});

test('an optimizer builds what is due, shows its progress and result, and rests', async () => {
  const { node, engine, run, world } = await start();
  await run(node.createCollection('pictures', sampleConfig()));
  engine.tellStats(sampleStats([dueSegment({ id: 1 })]));
  assert.equal(node.info('pictures').status, 'yellow');
  await world.settle();
  const build = engine.builds[0];
  assert.deepEqual(build?.plan, {
    plan: 'segment',
    segments: [1],
    missingFields: [],
    withGraph: true,
    results: 1,
    threads: 2,
    niceness: 10,
  });
  assert.deepEqual(node.buildBudget(), { threads: 2, threadsMax: 2, waiting: 0 });
  build?.progress({ done: 1, total: 4, stage: 'graph' });
  await world.settle();
  assert.deepEqual([node.optimizations('pictures').running[0]?.progress.done, node.info('pictures').status], [1, 'yellow']);
  build?.finish(sampleStats([sampleSegment({ id: 2 }), indexedSegment({ id: 3 })]));
  await world.settle();
  assert.deepEqual([node.info('pictures').status, node.info('pictures').indexed_vectors_count], ['green', 5000]);
  assert.deepEqual(
    node.optimizations('pictures').completed.map((each) => each.status),
    ['done'],
  );
  assert.equal(node.buildBudget().threads, 0);
});

test('a failed build makes the collection red until one goes well', async () => {
  const { node, engine, run, world } = await start();
  await run(node.createCollection('pictures', sampleConfig()));
  engine.tellStats(sampleStats([dueSegment({ id: 1 })]));
  await world.settle();
  engine.builds[0]?.fail(new TroupeError('storage', 'no space left on device'));
  await world.settle();
  assert.deepEqual([node.info('pictures').status, node.info('pictures').optimizer_status], ['red', { error: 'no space left on device' }]);
  world.advance(1000);
  await world.settle();
  engine.builds[1]?.finish(sampleStats([indexedSegment({ id: 3 })]));
  await world.settle();
  assert.equal(node.info('pictures').status, 'green');
});

test('an optimizer that crashes goes on after a while, and after many crashes its replica goes on without it', async () => {
  const { node, engine, run, world } = await start();
  await run(node.createCollection('pictures', sampleConfig()));
  const { build } = engine;
  engine.build = () => {
    throw new Error('no such thing');
  };
  engine.tellStats(sampleStats([dueSegment({ id: 1 })]));
  await world.settle();
  assert.equal(actorAt(node.telemetry(), OPTIMIZER)?.state, 'Restarting');
  assert.equal(node.buildBudget().threads, 0);
  engine.build = build;
  world.advance(100);
  await world.settle();
  assert.deepEqual([actorAt(node.telemetry(), OPTIMIZER)?.state, engine.builds.length], ['Building', 1]);
  engine.build = () => {
    throw new Error('no such thing');
  };
  engine.builds[0]?.finish(sampleStats([dueSegment({ id: 1 })]));
  for (let restart = 0; restart < 10; restart++) {
    await world.settle();
    world.advance(40_000);
  }
  await world.settle();
  assert.equal(actorAt(node.telemetry(), OPTIMIZER), undefined);
  assert.deepEqual([node.info('pictures').status, node.info('pictures').optimizer_status], ['red', { error: 'no such thing' }]);
  assert.equal(text(await run(node.write('pictures', 'deletePoints', true, request(world)))), DELETED);
});

const OPTIMIZER = '/node/pictures/shard-0/replica/optimizer';

test('deleting a collection gives up its build before its files are closed', async () => {
  const { node, engine, run, world } = await start();
  await run(node.createCollection('pictures', sampleConfig()));
  engine.tellStats(sampleStats([dueSegment({ id: 1 })]));
  await world.settle();
  assert.equal(await run(node.deleteCollection('pictures')), true);
  assert.equal(engine.builds[0]?.signal.aborted, true);
  assert.equal(node.buildBudget().threads, 0);
});

test('builds of all collections share one budget', async () => {
  const { node, engine, run, world } = await start();
  for (const name of ['pictures', 'texts']) {
    await run(node.createCollection(name, sampleConfig()));
    engine.tellStats(sampleStats([dueSegment({ id: 1 })], { key: `${name}/0` }));
  }
  await world.settle();
  assert.equal(engine.builds.length, 1);
  engine.builds[0]?.finish(sampleStats([indexedSegment({ id: 3 })]));
  await world.settle();
  assert.deepEqual(
    engine.builds.map((build) => build.key),
    ['pictures/0', 'texts/0'],
  );
});

test('streams that are slow enough one by one are built while they run only if they are so together', async () => {
  const built = async (bytesPerSecond: number) => {
    const { node, engine, run, world } = await start();
    const names = ['pictures', 'texts'];
    for (const name of names) await run(node.createCollection(name, sampleConfig({ indexing_threshold: 1000 })));
    for (let ms = 0; ms <= 5000; ms += 100) {
      const segment = dueSegment({ id: 1, vectorBytes: (bytesPerSecond * ms) / 1000 + 1 });
      for (const name of names) engine.tellStats(sampleStats([segment], { key: `${name}/0`, lastWriteMs: world.nowMs }));
      await world.settle();
      world.advance(100);
    }
    return engine.builds.map(({ key }) => key);
  };
  // Four CPUs keep up with 5 MB a second. The other one waits for threads.
  assert.deepEqual(await built(2.3e6), ['pictures/0']);
  assert.deepEqual(await built(3e6), []);
});

test('creating a field index with wait is answered when every sealed segment has it', async () => {
  const { node, engine, run, world } = await start();
  await run(node.createCollection('pictures', sampleConfig()));
  const lacking = sampleStats([indexedSegment({ id: 3, missingFields: ['color'] })]);
  engine.tellStats(lacking);
  let answered = false;
  const answer = node.write('pictures', 'createFieldIndex', true, request(world, FIELD)).then((body) => {
    answered = true;
    return text(body);
  });
  await world.settle();
  assert.equal(answered, false);
  assert.deepEqual(
    engine.builds.map(({ plan }) => [plan.plan, plan.missingFields, plan.threads]),
    [['fieldIndex', ['color'], 1]],
  );
  engine.builds[0]?.finish(sampleStats([indexedSegment({ id: 3 })]));
  await world.settle();
  assert.equal(answered, true);
  assert.equal(await answer, '{"operation_id":1,"status":"completed"}');
  assert.equal(
    text(await run(node.write('pictures', 'createFieldIndex', false, request(world, FIELD)))),
    '{"operation_id":2,"status":"acknowledged"}',
  );
});

test('a write that is not answered by its deadline ends with timeout', async () => {
  const { node, engine, run, world } = await start();
  await run(node.createCollection('pictures', sampleConfig()));
  engine.write = () => new Promise(() => {});
  const refused = assert.rejects(node.write('pictures', 'deletePoints', true, request(world)), { code: 'timeout' });
  await world.settle();
  world.advance(11_000);
  await refused;
});

test('figures that come quicker than messages move replace each other', async () => {
  const { node, engine, run, world } = await start();
  await run(node.createCollection('pictures', sampleConfig()));
  const before = actorAt(node.telemetry(), '/node/pictures/shard-0/replica')?.processed ?? 0;
  for (let commit = 0; commit < 100; commit++) engine.tellStats(sampleStats([sampleSegment({ rows: commit })]));
  await world.settle();
  const replica = actorAt(node.telemetry(), '/node/pictures/shard-0/replica');
  assert.equal((replica?.processed ?? 0) - before, 2);
  assert.equal(node.info('pictures').points_count, 99);
});

test('telemetry shows the tree of actors with their states', async () => {
  const { node, run } = await start();
  await run(node.createCollection('Pictures', sampleConfig()));
  const lines: string[] = [];
  const visit = (actor: ActorTelemetry): void => {
    lines.push([actor.path, actor.kind, actor.state, ...Object.values(actor.facts)].join(' '));
    for (const child of actor.children) visit(child);
  };
  visit(node.telemetry());
  assert.deepEqual(lines, [
    '/node node Active',
    '/node/+50ictures collection Serving',
    '/node/+50ictures/shard-0 shard Serving',
    '/node/+50ictures/shard-0/replica replica Serving Active 0',
    '/node/+50ictures/shard-0/replica/optimizer optimizer Idle',
    '/node/+50ictures/shard-0/replication replication Leading',
  ]);
});

test('a storage path that cannot be used fails the start with the reason', async () => {
  const storagePath = join(base, 'a-file');
  await writeFile(storagePath, '');
  await assert.rejects(start({ storagePath }), { code: 'storage', detail: /a-file.*cannot be used/ });
});

test('a node with real mailboxes and timers does the same', async () => {
  const engine = new FakeEngine();
  const storagePath = await mkdtemp(join(base, 'storage-'));
  const node = await startNode({ storagePath, pool: engine, log: new FakeWorld().log, verify: async () => new Map() });
  await node.whenReady();
  assert.equal(await node.createCollection('pictures', sampleConfig()), true);
  const writes = Array.from({ length: 50 }, () => node.write('pictures', 'deletePoints', true, request({ nowMs: Date.now() })));
  assert.equal((await Promise.all(writes)).length, 50);
  assert.equal(await node.deleteCollection('pictures'), true);
  await node.close();
  assert.equal(node.telemetry().state, 'Stopped');
  await assert.rejects(node.createCollection('pictures', sampleConfig()), { code: 'unavailable' });
});
