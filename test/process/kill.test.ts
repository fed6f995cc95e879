/**
 * SIGKILL at random moments under write load. Several writers change points through every kind of write while segments
 * are built, merged and dropped behind them; after each restart every acknowledged change must be there, and a batch
 * must be there as a whole or not at all.
 *
 * Repeat a run with TROUPE_SEED=<seed>; more kills with TROUPE_KILLS=<number>.
 */

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { startNodeProcess } from '../../ops/node-process.js';
import { type RandomNumbers, seededRandom } from '../../ops/random.js';
import type { RestClient } from '../../ops/rest-client.js';
import { testSeed } from '../seed.js';
import { type NodeUnderTest, nodeFor, type Point, type ScoredPoint, sortedById, temporaryFolder, untilIndexed } from './support.js';

const KILLS = Number(process.env.TROUPE_KILLS ?? 36);
const WRITERS = 4;
/** Groups of points that each writer changes; a group is always written as one batch. */
const GROUPS_PER_WRITER = 12;
const GROUP_POINTS = 8;
/** Points of a batch that is written once and never changed; they make the segments grow, so that builds run all the time. */
const BULK_POINTS = 800;
const BULK_FIRST_ID = 1_000_000;
const DIM = 16;
const INDEXING_THRESHOLD_KB = 20;
const ACKNOWLEDGED_MAX = 60;
/** One start in so many is killed before it is ready. */
const EARLY_KILL_EVERY = 6;
const EARLY_KILL_MS_MAX = 350;

/** What a group's points hold: null when they are deleted. */
type GroupState = { readonly revision: number; readonly note: string | null } | null;

interface Group {
  readonly number: number;
  /** What the node has acknowledged. */
  acknowledged: GroupState;
  /** What a request that nobody answered would have made of it; undefined: no such request. */
  unanswered: GroupState | undefined;
}

interface Model {
  readonly groups: readonly Group[];
  /** Bulk batches by number: acknowledged or not answered. */
  readonly bulk: Map<number, 'acknowledged' | 'unanswered'>;
  nextRevision: number;
  nextBulk: number;
}

test('after each of many kills under write load, every acknowledged write is there and no batch is half applied', async (t) => {
  const seed = testSeed();
  t.diagnostic(`TROUPE_SEED=${seed}`);
  const random = seededRandom(seed);
  const folder = await temporaryFolder(t);
  const model: Model = {
    groups: Array.from({ length: WRITERS * GROUPS_PER_WRITER }, (_, number) => ({ number, acknowledged: null, unanswered: undefined })),
    bulk: new Map(),
    nextRevision: 1,
    nextBulk: 0,
  };
  let acknowledged = 0;
  let kills = 0;
  try {
    for (let round = 0; kills < KILLS; round++) {
      if (round > 0 && round % EARLY_KILL_EVERY === 0) kills += await killWhileStarting(folder, random.integer(EARLY_KILL_MS_MAX));
      const node = await nodeFor(t, { folder });
      if (round === 0) await createCollection(node.client);
      await verify(node.client, model, random);
      acknowledged += await writeUntilKilled(node, model, random);
      kills++;
      node.client.close();
    }
    const node = await nodeFor(t, { folder });
    await verify(node.client, model, random);
    await verifyBulkVectors(node.client, model);
    // Or else nothing was built while the kills came, and the test has missed half of its subject.
    await untilIndexed(node.client, 'c', 1);
  } catch (error) {
    throw new Error(`TROUPE_SEED=${seed}, after ${kills} kills`, { cause: error });
  }
  t.diagnostic(`${kills} kills, ${acknowledged} acknowledged writes, ${model.bulk.size * BULK_POINTS} bulk points`);
});

async function createCollection(client: RestClient): Promise<void> {
  await client.result('PUT', '/collections/c', {
    vectors: { size: DIM, distance: 'Euclid' },
    optimizers_config: { indexing_threshold: INDEXING_THRESHOLD_KB, vacuum_min_vector_number: 100, default_segment_number: 2 },
  });
  await client.result('PUT', '/collections/c/index?wait=true', { field_name: 'group', field_schema: 'integer' });
}

/** Kills a node that is just starting, perhaps while it recovers. 1 when that came in time, 0 when it was ready before. */
async function killWhileStarting(folder: string, delayMs: number): Promise<number> {
  let timer: NodeJS.Timeout | undefined;
  const started = startNodeProcess({
    folder,
    onSpawn: (kill) => {
      timer = setTimeout(() => kill('SIGKILL'), delayMs);
    },
  });
  const node = await started.catch(() => null);
  clearTimeout(timer);
  if (node !== null) await node.end('SIGKILL');
  return 1;
}

// ------------------------------------------------------------------ writing

/** Lets all writers work until a random number of writes is acknowledged, then kills the node in the midst of the others. */
async function writeUntilKilled(node: NodeUnderTest, model: Model, random: RandomNumbers): Promise<number> {
  const target = 1 + random.integer(ACKNOWLEDGED_MAX);
  const lateMs = random.unit() * 5;
  let acknowledged = 0;
  let killed: Promise<unknown> | null = null;

  const onAcknowledged = () => {
    if (++acknowledged < target || killed !== null) return;
    killed = new Promise<void>((done) => setTimeout(done, lateMs)).then(() => node.end('SIGKILL'));
  };
  const writers = Array.from({ length: WRITERS }, (_, writer) => {
    const own = seededRandom(random.integer(2 ** 31));
    const groups = model.groups.slice(writer * GROUPS_PER_WRITER, (writer + 1) * GROUPS_PER_WRITER);
    return write(node, model, groups, own, onAcknowledged);
  });
  await Promise.all(writers);
  await killed;
  return acknowledged;
}

/** One writer: one request after the other, until the connection breaks. */
async function write(
  node: NodeUnderTest,
  model: Model,
  groups: readonly Group[],
  random: RandomNumbers,
  onAcknowledged: () => void,
): Promise<void> {
  for (let bulk = 0; ; ) {
    if (bulk < 2 && random.integer(8) === 0) {
      bulk++;
      const number = model.nextBulk++;
      model.bulk.set(number, 'unanswered');
      const answered = await send(node.client, 'PUT', '/collections/c/points?wait=true', { points: bulkPoints(number) });
      if (answered === null) return;
      if (answered) model.bulk.set(number, 'acknowledged');
      else model.bulk.delete(number);
      if (answered) onAcknowledged();
      continue;
    }
    const group = groups[random.integer(groups.length)] as Group;
    const change = nextChange(group, model, random);
    group.unanswered = change.after;
    const wait = random.integer(3) > 0;
    const answered = await send(node.client, change.method, `/collections/c/${change.path}?wait=${wait}`, change.body);
    if (answered === null) return;
    group.unanswered = undefined;
    if (!answered) continue;
    group.acknowledged = change.after;
    onAcknowledged();
  }
}

/** True: acknowledged; false: refused, so nothing may have changed; null: no answer. */
async function send(client: RestClient, method: string, path: string, body: unknown): Promise<boolean | null> {
  const answer = await client.call(method, path, body).catch(() => null);
  if (answer === null) return null;
  if (answer.status === 429 || answer.status === 503) return false;
  assert.equal(answer.status, 200, `${method} ${path}: ${answer.text}`);
  return true;
}

interface Change {
  readonly method: string;
  readonly path: string;
  readonly body: unknown;
  readonly after: GroupState;
}

function nextChange(group: Group, model: Model, random: RandomNumbers): Change {
  const { number, acknowledged } = group;
  const ids = groupIds(number);
  const kind = random.integer(10);
  if (acknowledged === null || kind < 5) {
    const after = { revision: model.nextRevision++, note: null };
    return { method: 'PUT', path: 'points', body: { points: groupPoints(number, after) }, after };
  }
  const note = `note ${model.nextRevision++}`;
  const noted = { revision: acknowledged.revision, note };
  switch (kind) {
    case 5:
      return { method: 'POST', path: 'points/payload', body: { payload: { note }, points: ids }, after: noted };
    case 6:
      return { method: 'POST', path: 'points/payload', body: { payload: { note }, filter: groupFilter(number) }, after: noted };
    case 7:
      return {
        method: 'POST',
        path: 'points/payload/delete',
        body: { keys: ['note'], points: ids },
        after: { revision: acknowledged.revision, note: null },
      };
    case 8:
      return { method: 'POST', path: 'points/delete', body: { points: ids }, after: null };
    default:
      return { method: 'POST', path: 'points/delete', body: { filter: groupFilter(number) }, after: null };
  }
}

function groupFilter(number: number): unknown {
  return { must: [{ key: 'group', match: { value: number } }] };
}

function groupIds(number: number): number[] {
  return Array.from({ length: GROUP_POINTS }, (_, member) => number * GROUP_POINTS + member);
}

function groupPoints(number: number, state: NonNullable<GroupState>): Point[] {
  return groupIds(number).map((id, member) => ({
    id,
    vector: vectorFor(id + state.revision * 1013),
    payload: { group: number, member, revision: state.revision, ...(state.note === null ? {} : { note: state.note }) },
  }));
}

function bulkPoints(number: number): Point[] {
  return Array.from({ length: BULK_POINTS }, (_, i) => {
    const id = BULK_FIRST_ID + number * BULK_POINTS + i;
    return { id, vector: vectorFor(id), payload: { bulk: number } };
  });
}

/** Components that a float32 holds exactly, different for different keys. */
function vectorFor(key: number): number[] {
  const random = seededRandom(key);
  return Array.from({ length: DIM }, () => random.integer(4096) / 16 - 128);
}

// ------------------------------------------------------------------ checking

/** Compares what the node holds with the model, and takes it for acknowledged from here on: it was read. */
async function verify(client: RestClient, model: Model, random: RandomNumbers): Promise<void> {
  await verifyGroups(client, model);
  await verifyBulk(client, model);
  await verifyIndexes(client, model, random);
}

async function verifyGroups(client: RestClient, model: Model): Promise<void> {
  const points = await client.result<Point[]>('POST', '/collections/c/points', {
    ids: model.groups.flatMap((group) => groupIds(group.number)),
    with_payload: true,
    with_vector: true,
  });
  const byId = new Map(points.map((point) => [point.id, point]));
  assert.equal(byId.size, points.length, 'a point came twice');
  for (const group of model.groups) {
    const found = groupIds(group.number).flatMap((id) => byId.get(id) ?? []);
    const allowed = group.unanswered === undefined ? [group.acknowledged] : [group.acknowledged, group.unanswered];
    const held = allowed.find((state) => same(found, state === null ? [] : groupPoints(group.number, state)));
    assert.ok(
      held !== undefined,
      `group ${group.number}: acknowledged ${JSON.stringify(group.acknowledged)}, unanswered ${JSON.stringify(group.unanswered)}, found ${JSON.stringify(found)}`,
    );
    group.acknowledged = held;
    group.unanswered = undefined;
  }
}

function same(found: readonly Point[], wanted: readonly Point[]): boolean {
  try {
    assert.deepStrictEqual(found, wanted);
    return true;
  } catch {
    return false;
  }
}

async function verifyBulk(client: RestClient, model: Model): Promise<void> {
  const page = await client.result<{ points: Point[] }>('POST', '/collections/c/points/scroll', {
    offset: BULK_FIRST_ID,
    limit: 1_000_000,
    with_payload: true,
  });
  const counts = new Map<number, number>();
  for (const point of page.points) {
    const number = Number(point.payload?.bulk);
    assert.equal(number, Math.floor((Number(point.id) - BULK_FIRST_ID) / BULK_POINTS));
    counts.set(number, (counts.get(number) ?? 0) + 1);
  }
  for (const [number, count] of counts) {
    assert.equal(count, BULK_POINTS, `bulk batch ${number} is half applied`);
    assert.ok(model.bulk.has(number), `bulk batch ${number} was refused, yet it is there`);
  }
  for (const [number, state] of model.bulk) {
    assert.ok(counts.has(number) || state === 'unanswered', `bulk batch ${number} was acknowledged and is lost`);
    // A batch that is not there leaves its number empty for good.
    if (counts.has(number)) model.bulk.set(number, 'acknowledged');
  }
}

/** The field index, the count and the search agree with the points themselves. */
async function verifyIndexes(client: RestClient, model: Model, random: RandomNumbers): Promise<void> {
  const live = model.groups.filter((group) => group.acknowledged !== null);
  const bulk = [...model.bulk].filter(([, state]) => state === 'acknowledged');
  const { count } = await client.result<{ count: number }>('POST', '/collections/c/points/count', { exact: true });
  assert.equal(count, live.length * GROUP_POINTS + bulk.length * BULK_POINTS);
  for (let i = 0; i < 3; i++) {
    const group = model.groups[random.integer(model.groups.length)] as Group;
    const page = await client.result<{ points: Point[] }>('POST', '/collections/c/points/scroll', {
      filter: groupFilter(group.number),
      limit: 100,
    });
    const wanted = group.acknowledged === null ? [] : groupIds(group.number);
    assert.deepEqual(
      page.points.map((point) => point.id),
      wanted,
    );
    if (group.acknowledged === null) continue;
    const [target] = groupPoints(group.number, group.acknowledged);
    const nearest = await client.result<{ points: ScoredPoint[] }>('POST', '/collections/c/points/query', {
      query: target?.vector,
      limit: 1,
      params: { hnsw_ef: 128 },
    });
    assert.deepEqual(
      nearest.points.map((point) => [point.id, point.score]),
      [[target?.id, 0]],
    );
  }
}

async function verifyBulkVectors(client: RestClient, model: Model): Promise<void> {
  for (const [number, state] of model.bulk) {
    if (state !== 'acknowledged') continue;
    const wanted = bulkPoints(number);
    const points = await client.result<Point[]>('POST', '/collections/c/points', {
      ids: wanted.map((point) => point.id),
      with_payload: true,
      with_vector: true,
    });
    assert.deepEqual(sortedById(points), wanted);
  }
}
