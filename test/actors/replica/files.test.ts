import assert from 'node:assert/strict';
import { test } from 'node:test';
import { VerifiedReplicas } from '../../../actors/context/verified-replicas.js';
import { ReplicaFiles } from '../../../actors/replica/files.js';
import { FakeEngine } from '../fake-engine.js';
import { indexedSegment, sampleConfig, sampleStats } from '../samples.js';

const PLAN = { plan: 'segment', segments: [1], missingFields: [], withGraph: true, threads: 1, niceness: 10 } as const;

function setUp(verify: (folders: readonly string[]) => Promise<Map<string, string | null>> = async () => new Map()) {
  const engine = new FakeEngine();
  return { engine, files: new ReplicaFiles(engine, new VerifiedReplicas(verify)) };
}

const open = (files: ReplicaFiles) => files.open('a/0', 'folder', () => sampleConfig());

function turn(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve));
}

test('a replica that is open already is closed before it is opened again', async () => {
  const { engine, files } = setUp();
  await open(files);
  await open(files);
  assert.deepEqual(engine.calls, ['open a/0', 'close a/0', 'open a/0']);
});

test('closing waits for an opening that has begun', async () => {
  let verified = (_result: Map<string, string | null>) => {};
  const { engine, files } = setUp(() => new Promise((resolve) => (verified = resolve)));
  const opening = open(files);
  const closing = files.close('a/0');
  await turn();
  assert.deepEqual(engine.calls, []);
  verified(new Map());
  await Promise.all([opening, closing]);
  assert.deepEqual(engine.calls, ['open a/0', 'close a/0']);
});

test('closing waits until builds that were given up have left the folder', async () => {
  const { engine, files } = setUp();
  await open(files);
  const build = files.build('a/0', PLAN, () => {}, new AbortController().signal);
  const closing = files.close('a/0');
  await turn();
  assert.equal(engine.open.has('a/0'), true);
  engine.builds[0]?.finish(sampleStats([indexedSegment()], { key: 'a/0' }));
  await Promise.all([build, closing]);
  assert.equal(engine.open.has('a/0'), false);
});

test('a failed opening holds up nothing', async () => {
  const { engine, files } = setUp(async () => new Map([['folder', 'damaged']]));
  await assert.rejects(open(files), { code: 'storage', detail: 'damaged' });
  await files.close('a/0');
  assert.deepEqual(engine.calls, ['open a/0 damaged: damaged']);
});

test('a replica is lost until it is open, and one that was open in this process is not', async () => {
  const { files } = setUp();
  const shard = (shardId: number) => ({ collection: 'a', uid: 1, shardId });
  files.noteLost('a/0', shard(0));
  files.noteLost('a/1', shard(1));
  assert.deepEqual([...files.lost], [shard(0), shard(1)]);
  await open(files);
  assert.deepEqual([...files.lost], [shard(1)]);
  await files.close('a/0');
  files.noteLost('a/0', shard(0));
  assert.deepEqual([...files.lost], [shard(1)]);
});

test('a replica whose files were deleted is forgotten: one of its name that lacks its files is lost again', async () => {
  const { files } = setUp();
  await open(files);
  const shard = { collection: 'a', uid: 7, shardId: 0 };
  const lost = () => [...files.lost];
  files.noteLost('a/0', shard);
  assert.deepEqual(lost(), [], 'it was open here');
  files.forget('a', 1);
  files.noteLost('a/0', shard);
  assert.deepEqual(lost(), [], 'it was another shard');
  files.forget('a', null);
  files.noteLost('a/0', shard);
  assert.deepEqual(lost(), [shard]);
  files.forget('a', 0);
  assert.deepEqual(lost(), []);
});
