import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { PointId } from '../../protocols/model/point-id.js';
import { type LeaderTag, NO_TAG, type ShardEntry, type TimedWrite } from '../../protocols/model/shard-log.js';
import type { UpdateOperation } from '../../protocols/model/update.js';
import { pack, unpack } from '../../protocols/pack.js';
import { decodeUpdate, encodeUpdate, NOTHING } from '../../protocols/update-codec.js';
import type { AnswerOf, Ask } from '../../storage/threads/portion.js';
import { decodePortionAnswer, encodePortion } from '../../storage/threads/portion-codec.js';
import { sampleConfig } from '../actors/samples.js';
import { VirtualDisk } from './disk.js';
import { type EngineMistakes, VirtualEngine } from './engine.js';
import { ownerOf } from './engine-leaving.js';
import { Stream } from './random.js';
import { bucketOf } from './replica-files.js';
import { Life, World } from './world.js';

const KEY = 'points/0';
const DEADLINE_MS = 1e12;

test('operations are ordered, logged and applied, and read by id', async () => {
  const { engine, run } = await opened();
  const written = await run(engine.write(KEY, by(7), ordered([upsert(3, 1)])));
  assert.deepEqual(
    written.entries.map(({ tag }) => tag),
    [{ peer: 1, term: 7, index: 1 }],
  );
  assert.deepEqual(await run(engine.position(KEY)), { last: { peer: 1, term: 7, index: 1 }, base: NO_TAG });
  assert.deepEqual(await run(read(engine, 'retrieve', { ids: [3, 4], with_payload: true })), [{ id: 3, payload: { value: 1 } }]);
  await assert.rejects(run(engine.write(KEY, by(6), ordered([upsert(3, 2)]))), { code: 'conflict' });
});

test('in the place of an operation that fails, and of what hangs on it, the log has one that changes nothing', async () => {
  const { engine, run } = await opened();
  const operations = [upsert(8, 1), setPayload(9, 1), upsert(9, 2)].map((operation, at) => encodeUpdate({ operation, chained: at > 0 }));
  const { entries, failure } = await run(engine.write(KEY, by(1), { ...ordered([]), operations }));
  const nothing = encodeUpdate(NOTHING);
  assert.deepEqual([entries.map((entry) => entry.operation), failure?.code], [[operations[0], nothing, nothing], 'notFound']);
  assert.deepEqual((await run(engine.position(KEY))).last, entries[2]?.tag);
  assert.deepEqual(await run(read(engine, 'scroll', { with_payload: false })), { points: [{ id: 8 }], next_page_offset: null });
});

test('a point that is older than the log is not changed but removed, until its bucket has been compared or filled', async () => {
  const { engine, run } = await opened();
  for (const id of [1, 2, 3]) await run(engine.write(KEY, by(1), ordered([upsert(id, id)])));
  const same = await run(engine.digest(KEY, null));
  const at = { peer: 5, term: 3, index: 9 };
  await run(engine.resetLog(KEY, at));
  const buckets = same.buckets.slice();
  buckets[bucketOf(2)] = 7n;
  await run(engine.digest(KEY, { ...same, at, buckets }));
  const entries = [1, 2].map((id, after) => ({ tag: { ...at, index: 10 + after }, operation: setPayloadBytes(id, 5) }));
  await run(engine.append(KEY, at, entries, 'applied'));
  const { points } = (await run(read(engine, 'scroll', { with_payload: true }))) as { points: { id: number; payload: object }[] };
  assert.deepEqual(points, [
    { id: 1, payload: { value: 5 } },
    { id: 3, payload: { value: 3 } },
  ]);
});

test('a follower takes over what it lacks, once, and refuses what does not follow or is of a leader that is over', async () => {
  const leader = await opened();
  const follower = await opened();
  const entries: ShardEntry[] = [];
  for (let value = 1; value <= 4; value++)
    entries.push(...(await leader.run(leader.engine.write(KEY, by(2), ordered([upsert(1, value)])))).entries);
  const tags = entries.map(({ tag }) => tag);
  const append = (from: number, to: number) =>
    follower.run(follower.engine.append(KEY, tags[from - 1] ?? NO_TAG, entries.slice(from, to), 'applied'));
  assert.deepEqual(await append(0, 2), tags[1]);
  await assert.rejects(append(3, 4), { code: 'conflict' });
  assert.deepEqual(await append(0, 4), tags[3]);
  assert.deepEqual(await append(1, 3), tags[3]);
  const digests = [await leader.run(leader.engine.digest(KEY, null)), await follower.run(follower.engine.digest(KEY, null))];
  assert.deepEqual(digests[0], digests[1]);
  const old = { tag: { peer: 9, term: 1, index: 5 }, operation: upsertBytes(1, 9) };
  await assert.rejects(follower.run(follower.engine.append(KEY, tags[3] ?? NO_TAG, [old], 'logged')), { code: 'conflict' });
});

test('entries can be had after the base of the log, and after no operation that it has not got', async () => {
  const { engine, run } = await opened({ logKept: 2 });
  for (let value = 1; value <= 5; value++) await run(engine.write(KEY, by(1), ordered([upsert(1, value)])));
  const tag = (index: number) => ({ peer: 1, term: 1, index });
  assert.deepEqual((await run(engine.position(KEY))).base, tag(3));
  assert.equal((await run(engine.entriesAfter(KEY, tag(2), 1e6))).kind, 'compacted');
  assert.equal((await run(engine.entriesAfter(KEY, { ...tag(4), peer: 2 }, 1e6))).kind, 'diverged');
  const part = await run(engine.entriesAfter(KEY, tag(3), 1));
  assert.deepEqual(part.kind === 'entries' && part.entries.map((entry) => entry.tag), [tag(4)]);
});

test('buckets that are replaced make the points of two replicas the same', async () => {
  const one = await opened();
  const other = await opened();
  for (let id = 1; id <= 20; id++) await one.run(one.engine.write(KEY, by(1), ordered([upsert(id, id)])));
  await other.run(other.engine.write(KEY, by(1), ordered([upsert(100, 1)])));
  const { at } = await one.run(one.engine.digest(KEY, null));
  await other.run(other.engine.resetLog(KEY, at));
  const ids = [...Array.from({ length: 20 }, (_, index) => index + 1), 100];
  const { bytes, points } = await one.run(one.engine.bucketPoints(KEY, [...new Set(ids.map(bucketOf))]));
  assert.equal(points, 20);
  assert.equal(await other.run(other.engine.replaceBuckets(KEY, bytes)), 21);
  const digest = await one.run(one.engine.digest(KEY, null));
  assert.deepEqual(await other.run(other.engine.digest(KEY, digest)), digest);
});

test('a shard tells what leaves it, what a ring gives to whom, and hides what it gives to others', async () => {
  const { engine, run } = await opened();
  const ids = Array.from({ length: 12 }, (_, at) => at + 1);
  for (const id of ids) await run(engine.write(KEY, by(1), ordered([upsert(id, id)])));
  const ring = [0, 1];
  const others = ids.filter((id) => ownerOf(ring, id) === 1);
  assert.ok(others.length > 0 && others.length < ids.length);
  const asked = async <One extends Ask>(ask: One): Promise<AnswerOf[One['kind']]> => {
    const { body } = await run(engine.portion([KEY], encodePortion({ asks: [ask] }), DEADLINE_MS));
    return decodePortionAnswer(body).answers[0] as AnswerOf[One['kind']];
  };
  /** Of all parts. */
  const listed = async (part: (from: PointId | null) => Promise<{ readonly ids: readonly PointId[]; readonly next: PointId | null }>) => {
    const all: PointId[] = [];
    let from: PointId | null = null;
    do {
      const { ids: some, next } = await part(from);
      all.push(...some);
      from = next;
    } while (from !== null);
    return all;
  };
  const idsIn = (operation: Uint8Array | null) => {
    if (operation === null) return [];
    const decoded = decodeUpdate(operation).operation;
    if (decoded.kind === 'upsert') return decoded.batch.ids;
    return decoded.kind === 'deletePoints' && decoded.selector.kind === 'ids' ? decoded.selector.ids : assert.fail(decoded.kind);
  };
  const leaving = async (after: number) =>
    listed(async (from) => {
      const { next, parts } = await asked({ kind: 'leaving', ring, filter: null, after, from });
      return { ids: parts.flatMap(({ operation }) => idsIn(operation)), next };
    });
  assert.deepEqual(await leaving(0), others);
  assert.deepEqual(await leaving(12), []);
  const stray = await listed(async (from) => {
    const { next, operation } = await asked({ kind: 'stray', ring, from });
    return { ids: idsIn(operation), next };
  });
  assert.deepEqual(stray, others);
  const owned = await listed(async (from) => {
    const { ids: packed, next } = await asked({ kind: 'owned', ring, owner: 1, filter: null, countOnly: false, from });
    return { ids: unpack(packed) as PointId[], next };
  });
  assert.deepEqual(owned, others);
  assert.deepEqual(idsIn((await asked({ kind: 'gone', filter: null, ids: pack([1, 77]).slice() })).operation), [77]);
  const body = Buffer.from(JSON.stringify({ limit: 100 }));
  const shown = await run(engine.read('scroll', [KEY], { path: {}, query: {}, body, deadlineMs: DEADLINE_MS, ring }));
  const { points } = JSON.parse(Buffer.from(shown).toString('utf8')) as { points: { id: PointId }[] };
  assert.deepEqual(
    points.map(({ id }) => id),
    ids.filter((id) => !others.includes(id)),
  );
});

test('a crash loses what was not acknowledged or some of it, and never what was', async () => {
  let lost = 0;
  for (let seed = 1; seed <= 40; seed++) {
    const acknowledged = await crashed(seed, {});
    assert.equal(acknowledged.missing, 0, `seed ${seed}`);
    lost += (await crashed(seed, { answersEarly: true })).missing;
  }
  assert.ok(lost > 0, 'an engine that answers early loses what it answered');
});

/** Writes until a crash; which of the acknowledged ones are gone after it. */
async function crashed(seed: number, mistakes: EngineMistakes): Promise<{ missing: number }> {
  const { disk, engine, life, world } = await opened({ seed, mistakes });
  const acknowledged: PointId[] = [];
  for (let id = 1; id <= 8; id++)
    engine.write(KEY, by(1), { ...ordered([upsert(id, 1)]), until: 'logged' }).then(() => acknowledged.push(id));
  await world.run(new Stream(seed, 'crash').between(0, 15));
  life.alive = false;
  disk.crash();
  const next = await opened({ disk, world });
  const { points } = (await next.run(read(next.engine, 'scroll', { limit: 100 }))) as { points: { id: PointId }[] };
  return { missing: acknowledged.filter((id) => !points.some((point) => point.id === id)).length };
}

test('what is logged and meets a lack of means waits, nothing is logged behind it, and it is applied when the lack is over', async () => {
  const { disk, engine, run } = await opened();
  await run(engine.write(KEY, by(1), ordered([upsert(1, 1)])));
  const { last } = await run(engine.position(KEY));
  disk.lacking = Number.POSITIVE_INFINITY;
  const entries = (index: number) => [{ tag: { ...last, index }, operation: setPayloadBytes(1, index) }];
  await assert.rejects(run(engine.append(KEY, last, entries(2), 'applied')), { code: 'storage', outcome: 'unknown' });
  await assert.rejects(run(engine.append(KEY, { ...last, index: 2 }, entries(3), 'logged')), { code: 'unavailable', outcome: 'none' });
  await assert.rejects(run(engine.digest(KEY, null)), { code: 'storage' });
  assert.equal((await run(engine.position(KEY))).last.index, 2);
  disk.lacking = 0;
  await run(engine.append(KEY, { ...last, index: 2 }, entries(3), 'applied'));
  assert.deepEqual(await run(read(engine, 'retrieve', { ids: [1], with_payload: true })), [{ id: 1, payload: { value: 3 } }]);
});

test('in the place of an operation of a leader that meets a lack of means the log has one that changes nothing', async () => {
  const { disk, engine, run } = await opened();
  disk.lacking = 1;
  const { entries, failure } = await run(engine.write(KEY, by(1), ordered([upsert(1, 1)])));
  assert.deepEqual(
    entries.map(({ operation }) => operation),
    [encodeUpdate(NOTHING)],
  );
  assert.equal(failure?.outcome, 'none');
});

test('a replica that cannot apply its log for long is given up, and applies it when it is opened again', async () => {
  const { disk, engine, run, world } = await opened();
  await run(engine.write(KEY, by(1), ordered([upsert(1, 1)])));
  const failed: string[] = [];
  engine.onFailed((key) => failed.push(key));
  disk.lacking = Number.POSITIVE_INFINITY;
  await run(engine.write(KEY, by(1), { ...ordered([upsert(1, 2)]), until: 'logged' }));
  await world.run(120_000);
  assert.deepEqual(failed, [KEY]);
  await run(engine.closeReplica(KEY));
  const open = () => run(engine.openReplica({ key: KEY, folder: '/node-1/points/0', config: sampleConfig() }, null));
  await assert.rejects(open(), { code: 'storage' });
  disk.lacking = 0;
  await open();
  assert.deepEqual(await run(read(engine, 'retrieve', { ids: [1], with_payload: true })), [{ id: 1, payload: { value: 2 } }]);
});

interface Opening {
  readonly seed?: number;
  readonly logKept?: number;
  readonly mistakes?: EngineMistakes;
  readonly world?: World;
  readonly disk?: VirtualDisk;
}

async function opened({ seed = 1, logKept = 100, mistakes = {}, world = new World(), disk: given }: Opening = {}) {
  const disk = given ?? new VirtualDisk('node-1', world, new Stream(seed, 'disk'), () => {});
  const life = new Life('node-1');
  disk.attach(life);
  const engine = new VirtualEngine(disk, { logKept, nowMs: () => world.nowMs, mistakes });
  /** What it comes to, in virtual time. */
  const run = async <Value>(promise: Promise<Value>): Promise<Value> => {
    promise.catch(() => {});
    await world.run(1000);
    return Promise.race([promise, Promise.resolve().then(() => assert.fail('it does not end'))]);
  };
  await run(engine.openReplica({ key: KEY, folder: '/node-1/points/0', config: sampleConfig() }, null));
  return { disk, engine, life, run, world };
}

function by(term: number): LeaderTag {
  return { peer: 1, term, indexAfter: 0 };
}

function ordered(operations: readonly UpdateOperation[]): TimedWrite {
  const encoded = operations.map((operation, at) => encodeUpdate({ operation, chained: at > 0 }));
  return { operations: encoded, until: 'applied', deadlineMs: DEADLINE_MS };
}

function upsert(id: PointId, value: number): UpdateOperation {
  return { kind: 'upsert', batch: { ids: [id], vectors: [], payloads: [{ value }] } };
}

function setPayload(id: PointId, value: number): UpdateOperation {
  return { kind: 'setPayload', selector: { kind: 'ids', ids: [id] }, payload: { value }, key: null };
}

function setPayloadBytes(id: PointId, value: number): Uint8Array {
  return encodeUpdate({ operation: setPayload(id, value), chained: false });
}

function upsertBytes(id: PointId, value: number): Uint8Array {
  return encodeUpdate({ operation: upsert(id, value), chained: false });
}

async function read(engine: VirtualEngine, operation: 'retrieve' | 'scroll', body: object): Promise<unknown> {
  const request = { path: {}, query: {}, body: Buffer.from(JSON.stringify(body)), deadlineMs: DEADLINE_MS };
  return JSON.parse(Buffer.from(await engine.read(operation, [KEY], request)).toString('utf8'));
}
