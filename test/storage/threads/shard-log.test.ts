/** A replica's part in its shard's log, on real writers and disks. */

import assert from 'node:assert/strict';
import { mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { type TestContext, test } from 'node:test';
import { TroupeError } from '../../../protocols/errors.js';
import type { CollectionConfig } from '../../../protocols/model/collection.js';
import { isSameTag, type LeaderTag, type LogTag, NO_TAG, type ShardEntry, type TimedWrite } from '../../../protocols/model/shard-log.js';
import type { UpdateOperation } from '../../../protocols/model/update.js';
import { encodeUpdate, NOTHING } from '../../../protocols/update-codec.js';
import { EnginePool } from '../../../storage/pool/pool.js';
import type { ReplicaCheckpoint } from '../../../storage/threads/shard-log.js';
import { verifyReplicas } from '../../../storage/verify/verify-lmdb.js';
import { byIds, configOf, specOf, temporaryFolder, upsert } from '../replica/support.js';
import { ALONE } from '../write.js';

const LEADER = { peer: 7, term: 3 };

async function poolOf(t: TestContext): Promise<EnginePool> {
  const pool = await EnginePool.start({ readers: 1, writers: 1 });
  t.after(() => pool.close());
  return pool;
}

/** An open replica in a folder of its own. */
async function replicaOf(t: TestContext, pool: EnginePool, key: string, config = configOf(), folder = temporaryFolder(t)): Promise<string> {
  const { readers: _, ...spec } = specOf(folder, config);
  await pool.openReplica({ ...spec, key }, null);
  return folder;
}

/** A write and its leader. */
function write(
  operations: readonly UpdateOperation[],
  { indexAfter = 0, peer = LEADER.peer, term = LEADER.term, ...changes }: Partial<LeaderTag & TimedWrite> = {},
): [LeaderTag, TimedWrite] {
  const encoded = operations.map((operation, index) => encodeUpdate({ operation, chained: index > 0 }));
  return [
    { indexAfter, peer, term },
    { operations: encoded, until: 'applied', deadlineMs: Number.MAX_SAFE_INTEGER, ...changes },
  ];
}

const put = (id: number, text = ''): UpdateOperation => upsert([{ id, seed: id, payload: { text } }]);
const clear = (id: number): UpdateOperation => ({ kind: 'clearPayload', selector: byIds(id) });
/** Points that wide take an operation of some megabytes. */
const WIDE = configOf({ size: 65_536, distance: 'Dot' });

/** An operation of 4 MB, which changes nothing. */
function large(): UpdateOperation {
  const ids = Array.from({ length: 16 }, (_, id) => id);
  const values = new Float32Array(16 * 65_536);
  const vectors = [{ kind: 'dense' as const, name: '', dim: 65_536, points: null, values }];
  return { kind: 'upsert', batch: { ids, vectors, payloads: ids.map(() => undefined) }, mode: 'updateOnly' };
}

const indexes = (entries: readonly ShardEntry[]): number[] => entries.map(({ tag }) => tag.index);

async function tail(pool: EnginePool, key: string, after: LogTag): Promise<readonly ShardEntry[]> {
  const part = await pool.entriesAfter(key, after, Number.MAX_SAFE_INTEGER);
  if (part.kind !== 'entries') throw new Error(`the log says ${part.kind}`);
  assert.ok(isSameTag(part.last, part.entries.at(-1)?.tag ?? after));
  return part.entries;
}

async function pointsOf(pool: EnginePool, key: string): Promise<string> {
  const body = new TextEncoder().encode(JSON.stringify({ limit: 1000, with_payload: true, with_vector: true }));
  const request = { path: {}, query: {}, body, deadlineMs: Number.MAX_SAFE_INTEGER };
  return Buffer.from(await pool.read('scroll', [key], request)).toString('utf8');
}

const failsWith = (code: string) => (error: unknown) => error instanceof TroupeError && error.code === code;

test('the bytes of a write stay those of its caller, who may give them again', async (t) => {
  const pool = await poolOf(t);
  for (const key of ['a/0', 'b/0']) await replicaOf(t, pool, key);
  const asked = write([put(1), put(2, 'x'.repeat(100_000))]);
  const before = asked[1].operations.map((bytes) => bytes.slice());
  const { entries } = await pool.write('a/0', ...asked);
  assert.deepEqual(asked[1].operations, before);
  await pool.append('b/0', NO_TAG, entries, 'applied');
  assert.deepEqual(asked[1].operations, before);
  const again = await pool.write('a/0', ...asked);
  assert.deepEqual(
    again.entries.map(({ operation }) => operation),
    before,
  );
});

test('a leader gives its operations tags in the order of the calls, and they are in the log with these', async (t) => {
  const pool = await poolOf(t);
  await replicaOf(t, pool, 'a/0');
  assert.deepEqual(await pool.position('a/0'), { last: NO_TAG, base: NO_TAG });
  const answers = await Promise.all([
    pool.write('a/0', ...write([put(1), put(2)], { until: 'logged' })),
    pool.write('a/0', ...write([put(3)], { indexAfter: 99 })),
    pool.write('a/0', ...write([put(4)], { until: 'logged' })),
    pool.write('a/0', ...write([put(5, 'x'.repeat(100_000))])),
  ]);
  assert.deepEqual(
    answers.map(({ entries }) => indexes(entries)),
    [[1, 2], [100], [101], [102]],
  );
  const { last } = await pool.position('a/0');
  assert.deepEqual(last, { ...LEADER, index: 102 });
  assert.deepEqual(
    await tail(pool, 'a/0', NO_TAG),
    answers.flatMap(({ entries }) => entries),
  );
  assert.equal(pool.stats('a/0')?.points, 5);
  assert.deepEqual(pool.stats('a/0')?.position, { last, base: NO_TAG });
});

test('in the place of an operation that fails, and of what hangs on it, the log has one that changes nothing', async (t) => {
  const pool = await poolOf(t);
  for (const key of ['a/0', 'b/0']) await replicaOf(t, pool, key);
  const written = await Promise.all([
    pool.write('a/0', ...write([put(1), put(2)], { until: 'logged' })),
    pool.write('a/0', ...write([put(3), clear(99), put(4), clear(1)])),
    // Whoever does not wait is not told.
    pool.write('a/0', ...write([clear(2), clear(97)], { until: 'logged' })),
  ]);
  assert.deepEqual(
    written.map(({ entries }) => indexes(entries)),
    [
      [1, 2],
      [3, 4, 5, 6],
      [7, 8],
    ],
  );
  assert.deepEqual(
    written.map(({ failure }) => failure?.code),
    [undefined, 'notFound', undefined],
  );
  const entries = written.flatMap((one) => one.entries);
  const nothing = encodeUpdate(NOTHING);
  assert.deepEqual(
    entries.filter(({ operation }) => Buffer.compare(operation, nothing) === 0).map(({ tag }) => tag.index),
    [4, 5, 6, 8],
  );
  assert.deepEqual(await tail(pool, 'a/0', NO_TAG), entries);
  await pool.append('b/0', NO_TAG, entries, 'applied');
  assert.equal(await pointsOf(pool, 'b/0'), await pointsOf(pool, 'a/0'));
});

test('replicas that take over the entries of another one come to the same points and versions, whatever the parts are', async (t) => {
  const pool = await poolOf(t);
  for (const key of ['a/0', 'b/0', 'c/0']) await replicaOf(t, pool, key);
  await pool.write('a/0', ...write([put(1), put(2, 'y'.repeat(70_000))]));
  const { last } = await pool.position('a/0');
  // An earlier release logged what failed, too.
  const failing = [put(3), clear(99), put(4), clear(1)].map((operation, at) => ({
    tag: { ...last, index: last.index + 1 + at },
    operation: encodeUpdate({ operation, chained: at > 0 }),
  }));
  await pool.append('a/0', last, failing, 'applied');
  await pool.write('a/0', ...write([clear(2)], { term: 4, peer: 8, indexAfter: 2 ** 20 }));
  const entries = await tail(pool, 'a/0', NO_TAG);
  assert.deepEqual(await pool.append('b/0', NO_TAG, entries, 'applied'), { peer: 8, term: 4, index: 2 ** 20 + 1 });
  // One at a time, each twice: what hangs on a failed one is passed over all the same.
  let previous = NO_TAG;
  for (const entry of entries) {
    await pool.append('c/0', previous, [entry], 'logged');
    await pool.append('c/0', previous, [entry], 'applied');
    previous = entry.tag;
  }
  const points = await pointsOf(pool, 'a/0');
  assert.match(points, /"id":3/);
  assert.doesNotMatch(points, /"id":4/);
  for (const key of ['b/0', 'c/0']) {
    assert.equal(await pointsOf(pool, key), points);
    assert.deepEqual(await tail(pool, key, NO_TAG), entries);
    assert.deepEqual(pool.stats(key)?.position, pool.stats('a/0')?.position);
  }
});

test('what does not follow is refused, and nothing of it is logged', async (t) => {
  const pool = await poolOf(t);
  await replicaOf(t, pool, 'a/0');
  const [first, second] = (await pool.write('a/0', ...write([put(1), put(2)]))).entries as [ShardEntry, ShardEntry];
  const later = { ...second, tag: { ...second.tag, index: 9 } };
  await assert.rejects(pool.write('a/0', ...write([put(3)], { term: 2 })), failsWith('conflict'));
  await assert.rejects(pool.write('a/0', ...write([put(3)], { peer: 8 })), failsWith('conflict'));
  await assert.rejects(pool.write('a/0', ...write([put(3)], { deadlineMs: 1 })), failsWith('timeout'));
  await assert.rejects(pool.append('a/0', { ...LEADER, index: 8 }, [later], 'applied'), failsWith('conflict'));
  await assert.rejects(pool.append('a/0', first.tag, [later], 'applied'), failsWith('conflict'));
  const column = { kind: 'dense' as const, name: 'new', dim: 1, points: null, values: Float32Array.of(1) };
  const unknown: UpdateOperation = { kind: 'upsert', batch: { ids: [4], vectors: [column], payloads: [undefined] } };
  await assert.rejects(pool.write('a/0', ...write([unknown])), failsWith('wrongInput'));
  const entry = { tag: later.tag, operation: encodeUpdate({ operation: unknown, chained: false }) };
  await assert.rejects(pool.append('a/0', second.tag, [entry], 'applied'), failsWith('unavailable'));
  assert.deepEqual((await pool.position('a/0')).last, second.tag);
});

test('a log tells what follows an operation, that it does not go back so far, or that it has another one', async (t) => {
  const pool = await poolOf(t);
  const folder = await replicaOf(t, pool, 'a/0', WIDE);
  for (let count = 1; count <= 20; count++) await pool.write('a/0', ...write([large()], { until: count === 20 ? 'applied' : 'logged' }));
  const { base, last } = await pool.position('a/0');
  // 64 MB of them are kept.
  assert.ok(base.index >= 4 && base.index <= 6, `from ${base.index} on`);
  assert.deepEqual(base, { ...LEADER, index: base.index });
  assert.equal((await pool.entriesAfter('a/0', { ...base, index: base.index - 1 }, 1)).kind, 'compacted');
  assert.equal((await pool.entriesAfter('a/0', { ...base, term: 2 }, 1)).kind, 'diverged');
  assert.equal((await pool.entriesAfter('a/0', { ...last, peer: 9 }, 1)).kind, 'diverged');
  assert.equal((await pool.entriesAfter('a/0', { ...last, index: last.index + 1 }, 1)).kind, 'diverged');
  const some = await pool.entriesAfter('a/0', base, 9 << 20);
  assert.deepEqual(some.kind === 'entries' && indexes(some.entries), [base.index + 1, base.index + 2, base.index + 3]);
  assert.deepEqual(some.kind === 'entries' && some.last, last);
  await pool.closeReplica('a/0');
  await replicaOf(t, pool, 'a/0', WIDE, folder);
  assert.deepEqual(await pool.position('a/0'), { base, last });
  // Operations that nobody can read any more are as if they were not there: they are applied.
  rmSync(`${folder}/wal`, { recursive: true });
  assert.equal((await pool.entriesAfter('a/0', base, 1)).kind, 'compacted');
});

test('a log that is reset goes on behind the given operation, also after it was opened again', async (t) => {
  const pool = await poolOf(t);
  const folder = await replicaOf(t, pool, 'a/0');
  const at = { peer: 9, term: 4, index: 2 };
  await pool.write('a/0', ...write([put(1, 'x'.repeat(70_000)), put(2), put(3, 'x'.repeat(9000))]));
  await pool.write('a/0', ...write([put(4, 'x'.repeat(70_000))], { until: 'logged' }));
  await pool.resetLog('a/0', at);
  assert.deepEqual(await pool.position('a/0'), { last: at, base: at });
  const { entries } = await pool.write('a/0', ...write([put(5, 'x'.repeat(70_000))], { ...at }));
  assert.deepEqual(indexes(entries), [3]);
  await pool.closeReplica('a/0');
  await replicaOf(t, pool, 'a/0', undefined, folder);
  assert.deepEqual(await tail(pool, 'a/0', at), entries);
  assert.equal((await pool.entriesAfter('a/0', NO_TAG, 1)).kind, 'compacted');
});

test("a replica that had no leader gets one: its operations are nobody's, the later ones that leader's", async (t) => {
  const pool = await poolOf(t);
  const config: CollectionConfig = configOf();
  const folder = await replicaOf(t, pool, 'a/0', config);
  // What is logged and applied in one commit has no record without a leader.
  await pool.write('a/0', ...write([put(1), put(3)], { ...ALONE, until: 'logged' }));
  assert.deepEqual(await pool.position('a/0'), { last: { ...NO_TAG, index: 2 }, base: NO_TAG });
  await pool.write('a/0', ...write([put(2)], { indexAfter: 10 }));
  await pool.closeReplica('a/0');
  await replicaOf(t, pool, 'a/0', config, folder);
  assert.deepEqual(
    (await tail(pool, 'a/0', NO_TAG)).map(({ tag }) => tag),
    [
      { ...NO_TAG, index: 1 },
      { ...NO_TAG, index: 2 },
      { ...LEADER, index: 11 },
    ],
  );
});

test('a replica is filled from another one by settings and buckets while that one goes on, and is then its equal', async (t) => {
  const pool = await poolOf(t);
  for (const key of ['a/0', 'b/0']) await replicaOf(t, pool, key);
  const field: UpdateOperation = { kind: 'createFieldIndex', field: 'text', schema: { type: 'keyword' } };
  await pool.write('a/0', ...write([field, ...Array.from({ length: 50 }, (_, id) => put(id, `t${id}`))]));
  await pool.write('b/0', ...write([put(70), put(3), { ...field, field: 'other' }], { peer: 1, term: 1 }));
  const { last } = await pool.position('a/0');
  await pool.resetLog('b/0', last);
  await pool.applySettings('b/0', await pool.settings('a/0'));
  const ours = await pool.digest('a/0', null);
  const theirs = await pool.digest('b/0', ours);
  assert.deepEqual([ours.at, theirs.at], [last, last]);
  assert.deepEqual([ours.points.reduce((sum, points) => sum + points), theirs.points.reduce((sum, points) => sum + points)], [50, 2]);
  const buckets = [...ours.buckets.keys()].filter((bucket) => ours.buckets[bucket] !== theirs.buckets[bucket]);
  const first = await pool.bucketPoints('a/0', buckets.slice(0, 20));
  assert.ok((await pool.replaceBuckets('b/0', first.bytes)) >= first.points);
  // An operation between the parts, which changes a point that is not there yet.
  const { entries } = await pool.write('a/0', ...write([put(3, 'again'), clear(49)]));
  await pool.append('b/0', last, entries, 'applied');
  const second = await pool.bucketPoints('a/0', buckets.slice(20));
  assert.deepEqual(second.at, entries.at(-1)?.tag);
  await pool.replaceBuckets('b/0', second.bytes);
  const digest = await pool.digest('a/0', null);
  assert.deepEqual(await pool.digest('b/0', digest), digest);
  assert.equal(await pointsOf(pool, 'b/0'), await pointsOf(pool, 'a/0'));
  assert.deepEqual(pool.stats('b/0')?.fields, pool.stats('a/0')?.fields);
});

/** What a target gets of a checkpoint: so many bytes of each file. */
function received(t: TestContext, { files, folder }: ReplicaCheckpoint): string {
  const copy = temporaryFolder(t);
  for (const { bytes, path: file } of files) {
    mkdirSync(path.dirname(path.join(copy, file)), { recursive: true });
    writeFileSync(path.join(copy, file), readFileSync(path.join(folder, file)).subarray(0, bytes));
  }
  return copy;
}

test('a checkpoint that is made while writes and builds go on opens as a replica, whose log goes on behind it', async (t) => {
  const pool = await poolOf(t);
  const folder = await replicaOf(t, pool, 'a/0');
  const seal = async (): Promise<void> => {
    const segments = pool.stats('a/0')?.segments.flatMap(({ id, rows }) => (rows > 0 ? [id] : [])) ?? [];
    const plan = { plan: 'segment', segments, missingFields: ['text'], withGraph: true, threads: 1, niceness: 0 } as const;
    await pool.build('a/0', plan, () => {}, new AbortController().signal);
  };
  const field: UpdateOperation = { kind: 'createFieldIndex', field: 'text', schema: { type: 'keyword' } };
  await pool.write('a/0', ...write([field, ...Array.from({ length: 600 }, (_, id) => put(id, `t${id % 7}`))]));
  await seal();
  await pool.write('a/0', ...write(Array.from({ length: 300 }, (_, at) => put(500 + at, 'x'.repeat(at * 4)))));
  const target = temporaryFolder(t);
  const copying = pool.checkpoint('a/0', target, true);
  const meanwhile = [
    seal(),
    ...Array.from({ length: 60 }, (_, at) => pool.write('a/0', ...write([put(at * 9, 'later'.repeat(500)), put(2000 + at)]))),
  ];
  const checkpoint = await copying;
  await assert.rejects(pool.checkpoint('a/0', target, true), failsWith('conflict'));
  await Promise.all(meanwhile);
  await seal();
  assert.ok(checkpoint.at.index >= 901);
  const copy = received(t, checkpoint);
  assert.deepEqual([...(await verifyReplicas([copy])).values()], [null]);
  await replicaOf(t, pool, 'b/0', undefined, copy);
  assert.deepEqual(await pool.position('b/0'), { last: checkpoint.at, base: checkpoint.at });
  await pool.append('b/0', checkpoint.at, await tail(pool, 'a/0', checkpoint.at), 'applied');
  const digest = await pool.digest('a/0', null);
  assert.deepEqual(await pool.digest('b/0', digest), digest);
  assert.equal(await pointsOf(pool, 'b/0'), await pointsOf(pool, 'a/0'));
  await pool.releaseCheckpoint('a/0');
  await pool.closeReplica('a/0');
  await replicaOf(t, pool, 'a/0', undefined, folder);
  assert.equal(await pointsOf(pool, 'b/0'), await pointsOf(pool, 'a/0'));
});

test('the log keeps what follows a checkpoint until it is released', async (t) => {
  const pool = await poolOf(t);
  await replicaOf(t, pool, 'a/0', WIDE);
  await pool.write('a/0', ...write([large()]));
  const { at } = await pool.checkpoint('a/0', temporaryFolder(t), true);
  for (let count = 0; count < 19; count++) await pool.write('a/0', ...write([large()]));
  assert.equal((await tail(pool, 'a/0', at)).length, 19);
  await pool.releaseCheckpoint('a/0');
  await pool.write('a/0', ...write([large()]));
  assert.equal((await pool.entriesAfter('a/0', at, 1)).kind, 'compacted');
});

test('a log keeps nothing more for a copy that nobody goes on from', async (t) => {
  const pool = await poolOf(t);
  await replicaOf(t, pool, 'a/0', WIDE);
  await pool.write('a/0', ...write([large()]));
  const { at } = await pool.checkpoint('a/0', temporaryFolder(t), false);
  await assert.rejects(pool.checkpoint('a/0', temporaryFolder(t), false), failsWith('conflict'));
  for (let count = 0; count < 19; count++) await pool.write('a/0', ...write([large()]));
  assert.equal((await pool.entriesAfter('a/0', at, 1)).kind, 'compacted');
  await pool.releaseCheckpoint('a/0');
});

test('entries have the time of their leader, on every replica, and the log tells how far it reaches until a time', async (t) => {
  const pool = await poolOf(t);
  await replicaOf(t, pool, 'a/0');
  const times: number[] = [];
  for (const id of [1, 2, 3]) {
    await pool.write('a/0', ...write([put(id), put(id + 10)]));
    const [entry] = (await tail(pool, 'a/0', NO_TAG)).slice(-1);
    times.push(entry?.timeMs as number);
    await new Promise((done) => setTimeout(done, 3));
  }
  assert.ok(
    times.every((time) => Math.abs(time - Date.now()) < 60_000),
    String(times),
  );
  await replicaOf(t, pool, 'b/0');
  const all = await tail(pool, 'a/0', NO_TAG);
  await pool.append('b/0', NO_TAG, all, 'applied');
  assert.deepEqual(await tail(pool, 'b/0', NO_TAG), all);
  const [first, second, third] = [all[1], all[3], all[5]].map((entry) => entry?.tag as LogTag) as [LogTag, LogTag, LogTag];
  const [firstMs, secondMs, thirdMs] = times as [number, number, number];
  const reach = await pool.reachOf('b/0', first, secondMs);
  assert.ok(reach.kind === 'reaches');
  const { bytes, ...figures } = reach;
  assert.ok(bytes > 0);
  assert.deepEqual(figures, { kind: 'reaches', fromMs: firstMs, to: second, toMs: secondMs, operations: 2, nextMs: thirdMs });
  const nothing = await pool.reachOf('b/0', first, secondMs - 1);
  assert.ok(nothing.kind === 'reaches' && nothing.operations === 0 && nothing.nextMs === secondMs);
  const whole = await pool.reachOf('b/0', first, thirdMs + 1);
  assert.ok(whole.kind === 'reaches' && whole.to.index === third.index && whole.nextMs === null);
  assert.deepEqual(await pool.reachOf('b/0', { ...first, term: 9 }, secondMs), { kind: 'diverged', last: third });
  // A leader of an earlier release sends no times.
  const tag = { ...third, index: third.index + 1 };
  await pool.append('b/0', third, [{ tag, operation: all[0]?.operation as Uint8Array }], 'applied');
  assert.deepEqual(await pool.reachOf('b/0', second, Date.now()), { kind: 'untimed', at: tag });
  assert.equal((await pool.reachOf('b/0', first, secondMs)).kind, 'reaches');
});

test('a checkpoint that cannot be made leaves nothing behind, and the next one is made', async (t) => {
  const pool = await poolOf(t);
  const folder = await replicaOf(t, pool, 'a/0');
  await pool.write('a/0', ...write([put(1)]));
  await assert.rejects(pool.checkpoint('a/0', `${folder}/format.json/below`, true), failsWith('storage'));
  const target = `${temporaryFolder(t)}/new`;
  const { files } = await pool.checkpoint('a/0', target, true);
  assert.deepEqual(files.map((file) => file.path).sort(), ['format.json', 'lmdb/data.mdb']);
  // The replica closes when a copy of it is made to its end.
  await pool.releaseCheckpoint('a/0');
  const copying = pool.checkpoint('a/0', target, true);
  await pool.closeReplica('a/0');
  assert.deepEqual((await copying).at, { ...LEADER, index: 1 });
});
