/**
 * A node against a plain model: random writes of every kind, and searches, scrolls, counts and retrievals that must
 * answer what the model does, while segments are built and merged behind them and the process is killed now and then.
 * Everything written is acknowledged before the kill (`kill.test.ts` kills in the midst of writes).
 *
 * Repeat a run with TROUPE_SEED=<seed>; more rounds with TROUPE_ROUNDS=<number>.
 */

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { type Random, seededRandom } from '../../ops/random.js';
import type { RestClient } from '../../ops/rest-client.js';
import { compareIds } from '../../protocols/model/point-id.js';
import { type CollectionInfo, nodeFor, temporaryFolder, until, untilIndexed } from './support.js';

const ROUNDS = Number(process.env.TROUPE_ROUNDS ?? 120);
/** Rounds between two kills. */
const LIFE = 30;
const IDS = 900;
const DIM = 12;
const TAGS = ['red', 'green', 'blue'];
/** Scores are float32 sums. */
const SCORE_ERROR = 1e-3;

type Id = number | string;
type Payload = Record<string, unknown>;

interface ModelPoint {
  readonly vectors: { readonly [name: string]: readonly number[] };
  readonly payload: Payload;
}

type Model = Map<Id, ModelPoint>;

interface Point {
  readonly id: Id;
  readonly payload: Payload;
  readonly vector: { readonly [name: string]: readonly number[] };
  readonly score?: number;
}

/** A filter as requests write it, and what it means. */
interface Condition {
  readonly wire: object;
  readonly passes: (id: Id, point: ModelPoint) => boolean;
}

/** A write: one operation of `points/batch`. */
interface Write {
  readonly name: string;
  readonly body: object;
}

/** Requests of single operations. */
const ROUTES: Readonly<Record<string, readonly [method: string, path: string]>> = {
  upsert: ['PUT', 'points'],
  delete: ['POST', 'points/delete'],
  set_payload: ['POST', 'points/payload'],
  overwrite_payload: ['PUT', 'points/payload'],
  delete_payload: ['POST', 'points/payload/delete'],
  clear_payload: ['POST', 'points/payload/clear'],
  update_vectors: ['PUT', 'points/vectors'],
  delete_vectors: ['POST', 'points/vectors/delete'],
};

test('a node answers as a plain model does, through builds and kills', { timeout: 120_000 }, async (t) => {
  const seed = Number(process.env.TROUPE_SEED ?? Date.now() % 1_000_000);
  t.diagnostic(`TROUPE_SEED=${seed}`);
  const random = seededRandom(seed);
  const folder = await temporaryFolder(t);
  const model: Model = new Map();
  let round = 0;
  try {
    let node = await nodeFor(t, { folder });
    await createCollection(node.client);
    for (; round < ROUNDS; round++) {
      await write(node.client, model, random);
      for (let i = 0; i < 4; i++) await ask(node.client, model, random);
      if (round % LIFE === LIFE / 2) await untilBuilt(node.client);
      if (round % LIFE !== LIFE - 1) continue;
      await node.end('SIGKILL');
      node.client.close();
      node = await nodeFor(t, { folder });
      await compareAll(node.client, model);
    }
    await untilIndexed(node.client, 'c', 1);
    await compareAll(node.client, model);
  } catch (error) {
    throw new Error(`TROUPE_SEED=${seed}, round ${round}`, { cause: error });
  }
});

/** Builds go on behind the writes; this waits for one, so that none of them is missed where the machine is slow. */
async function untilBuilt(client: RestClient): Promise<void> {
  await until(
    () => client.result<CollectionInfo>('GET', '/collections/c'),
    (info) => info.indexed_vectors_count > 0,
  );
}

/** Thresholds so low that builds run all the time. */
async function createCollection(client: RestClient): Promise<void> {
  await client.result('PUT', '/collections/c', {
    vectors: { a: { size: DIM, distance: 'Euclid' }, b: { size: DIM, distance: 'Dot' } },
    hnsw_config: { full_scan_threshold: 10 },
    optimizers_config: { indexing_threshold: 1, deleted_threshold: 0.1, vacuum_min_vector_number: 100, default_segment_number: 1 },
  });
  await client.result('PUT', '/collections/c/index?wait=true', { field_name: 'n', field_schema: 'integer' });
  await client.result('PUT', '/collections/c/index?wait=true', { field_name: 'tags', field_schema: 'keyword' });
}

// ------------------------------------------------------------------ writes

/** One request of one write or several. The model is changed first, so that each write of a batch starts from the one before. */
async function write(client: RestClient, model: Model, random: Random): Promise<void> {
  const writes = Array.from({ length: random.integer(4) === 0 ? 3 : 1 }, () => change(model, random));
  // What is not waited for is applied before the next request that waits, so that one follows.
  const wait = random.integer(3) > 0;
  if (writes.length > 1) {
    const operations = writes.map(({ name, body }) => ({ [name]: body }));
    await client.result('POST', `/collections/c/points/batch?wait=${wait}`, { operations });
  } else {
    for (const { name, body } of writes) {
      const [method, path] = ROUTES[name] as readonly [string, string];
      await client.result(method, `/collections/c/${path}?wait=${wait}`, body);
    }
  }
  if (!wait) await client.result('POST', '/collections/c/points/payload/clear?wait=true', { filter: { must: [{ has_id: [IDS + 1] }] } });
}

/** Changes the model; the write that does the same to a node. */
function change(model: Model, random: Random): Write {
  if (model.size === 0) return upsert(model, random);
  const { wire, ids } = selection(model, random);
  const edit = (edited: (point: ModelPoint) => ModelPoint) => {
    for (const id of ids) model.set(id, edited(model.get(id) as ModelPoint));
  };
  switch (random.integer(10)) {
    case 4:
      for (const id of ids) model.delete(id);
      return { name: 'delete', body: wire };
    case 5: {
      const payload = payloadOf(random);
      edit((point) => ({ ...point, payload: { ...point.payload, ...payload } }));
      return { name: 'set_payload', body: { payload, ...wire } };
    }
    case 6: {
      const payload = payloadOf(random);
      edit((point) => ({ ...point, payload }));
      return { name: 'overwrite_payload', body: { payload, ...wire } };
    }
    case 7:
      edit(({ vectors, payload: { tags: _, ...payload } }) => ({ vectors, payload }));
      return { name: 'delete_payload', body: { keys: ['tags'], ...wire } };
    case 8:
      edit(({ payload, vectors: { b: _, ...vectors } }) => ({ payload, vectors }));
      return { name: 'delete_vectors', body: { vector: ['b'], ...wire } };
    case 9: {
      if (ids.length === 0) return upsert(model, random);
      const vectors = new Map(ids.map((id) => [id, { b: vectorOf(random) }]));
      for (const [id, vector] of vectors) {
        const { payload, vectors: old } = model.get(id) as ModelPoint;
        model.set(id, { payload, vectors: { ...old, ...vector } });
      }
      return { name: 'update_vectors', body: { points: [...vectors].map(([id, vector]) => ({ id, vector })) } };
    }
    default:
      return upsert(model, random);
  }
}

function upsert(model: Model, random: Random): Write {
  const ids = [...new Set(Array.from({ length: 1 + random.integer(120) }, () => idOf(random.integer(IDS))))];
  const points = ids.map((id) => {
    const vectors: ModelPoint['vectors'] = { a: vectorOf(random), ...(random.integer(4) === 0 ? {} : { b: vectorOf(random) }) };
    const payload = payloadOf(random);
    model.set(id, { vectors, payload });
    return { id, vector: vectors, payload };
  });
  return { name: 'upsert', body: { points } };
}

/** Points to change: by their ids, or those among them that pass a filter. */
function selection(model: Model, random: Random): { wire: object; ids: readonly Id[] } {
  const all = [...model.keys()];
  const ids = [...new Set(Array.from({ length: Math.min(all.length, 15) }, () => all[random.integer(all.length)] as Id))];
  if (random.integer(2) === 0) return { wire: { points: ids }, ids };
  const { wire, passes } = conditionOf(random);
  return { wire: { filter: { must: [wire, { has_id: ids }] } }, ids: ids.filter((id) => passes(id, model.get(id) as ModelPoint)) };
}

/** Integer ids, and some UUIDs. */
function idOf(number: number): Id {
  return number % 5 === 0 ? `${String(number).padStart(8, '0')}-0000-4000-8000-000000000000` : number;
}

function vectorOf(random: Random): number[] {
  return Array.from({ length: DIM }, () => random.integer(2048) / 64 - 16);
}

function payloadOf(random: Random): Payload {
  const payload: Payload = { m: random.integer(100) };
  if (random.integer(5) > 0) payload.n = random.integer(100);
  if (random.integer(3) > 0) payload.tags = TAGS.filter(() => random.integer(2) === 0);
  return payload;
}

// ------------------------------------------------------------------ questions

function conditionOf(random: Random): Condition {
  const value = random.integer(100);
  const tag = TAGS[random.integer(TAGS.length)] as string;
  const tagsOf = (point: ModelPoint) => (point.payload.tags ?? []) as string[];
  const below = (key: string): Condition => ({
    wire: { key, range: { lt: value } },
    passes: (_, { payload }) => typeof payload[key] === 'number' && payload[key] < value,
  });
  switch (random.integer(7)) {
    case 0:
      return below('n');
    case 1:
      return below('m');
    case 2:
      return { wire: { key: 'n', match: { value } }, passes: (_, { payload }) => payload.n === value };
    case 3:
      return { wire: { key: 'tags', match: { any: [tag] } }, passes: (_, point) => tagsOf(point).includes(tag) };
    case 4:
      return { wire: { is_empty: { key: 'tags' } }, passes: (_, point) => tagsOf(point).length === 0 };
    case 5:
      return { wire: { has_vector: 'b' }, passes: (_, { vectors }) => vectors.b !== undefined };
    default: {
      const inner = [conditionOf(random), conditionOf(random)] as const;
      const kind = (['must', 'should', 'must_not'] as const)[random.integer(3)] as 'must' | 'should' | 'must_not';
      return {
        wire: { [kind]: inner.map(({ wire }) => wire) },
        passes: (id, point) => {
          const passed = inner.filter((condition) => condition.passes(id, point)).length;
          return kind === 'must' ? passed === 2 : kind === 'should' ? passed > 0 : passed === 0;
        },
      };
    }
  }
}

function matching(model: Model, { passes }: Pick<Condition, 'passes'>): Id[] {
  return [...model].filter(([id, point]) => passes(id, point)).map(([id]) => id);
}

async function ask(client: RestClient, model: Model, random: Random): Promise<void> {
  const condition = random.integer(5) === 0 ? { wire: {}, passes: () => true } : conditionOf(random);
  const filter =
    Object.hasOwn(condition.wire, 'key') || Object.keys(condition.wire).some((key) => /^(is|has)_/.test(key))
      ? { must: [condition.wire] }
      : condition.wire;
  const ids = matching(model, condition).sort(compareIds);
  switch (random.integer(4)) {
    case 0: {
      const { count } = await client.result<{ count: number }>('POST', '/collections/c/points/count', { filter, exact: true });
      assert.equal(count, ids.length, JSON.stringify(filter));
      break;
    }
    case 1:
      await compareScroll(client, model, { filter, ids }, 1 + random.integer(200));
      break;
    default:
      await compareSearch(client, model, { filter, ids }, random);
  }
}

interface Wanted {
  readonly filter: object;
  /** In order. */
  readonly ids: readonly Id[];
}

async function compareScroll(client: RestClient, model: Model, { filter, ids }: Wanted, limit: number): Promise<void> {
  const found: Point[] = [];
  let offset: Id | null | undefined;
  do {
    const page = await client.result<{ points: Point[]; next_page_offset: Id | null }>('POST', '/collections/c/points/scroll', {
      filter,
      limit,
      offset,
      with_payload: true,
      with_vector: true,
    });
    found.push(...page.points);
    offset = page.next_page_offset;
  } while (offset !== null);
  const wanted = ids.map((id) => ({ id, payload: model.get(id)?.payload, vector: model.get(id)?.vectors }));
  assert.deepEqual(found, wanted, JSON.stringify(filter));
}

/** An exact search gives the best points; any other gives as many, of those that match, with their true scores. */
async function compareSearch(client: RestClient, model: Model, { filter, ids }: Wanted, random: Random): Promise<void> {
  const using = random.integer(2) === 0 ? 'a' : 'b';
  const query = vectorOf(random);
  const limit = 1 + random.integer(60);
  const exact = random.integer(2) === 0;
  const { points } = await client.result<{ points: Point[] }>('POST', '/collections/c/points/query', {
    query,
    using,
    filter,
    limit,
    params: { exact, hnsw_ef: 8 },
  });
  const scored = ids.flatMap((id): [Id, number][] => {
    const vector = model.get(id)?.vectors[using];
    return vector === undefined ? [] : [[id, scoreOf(using, query, vector)]];
  });
  const scores = new Map(scored);
  const shown = `${using}, limit ${limit}, exact ${exact}, ${JSON.stringify(filter)}`;
  assert.equal(points.length, Math.min(limit, scored.length), shown);
  assert.equal(new Set(points.map(({ id }) => id)).size, points.length, `${shown}: a point came twice`);
  const best = scored.map(([, score]) => score).sort((x, y) => (using === 'a' ? x - y : y - x));
  points.forEach(({ id, score = Number.NaN }, at) => {
    const own = scores.get(id);
    assert.ok(own !== undefined, `${shown}: ${id} does not match`);
    assert.ok(Math.abs(score - own) < SCORE_ERROR, `${shown}: ${id} has score ${own}, not ${score}`);
    if (exact) assert.ok(Math.abs(score - (best[at] as number)) < SCORE_ERROR, `${shown}: ${score} at ${at}, not ${best[at]}`);
  });
}

function scoreOf(vector: 'a' | 'b', query: readonly number[], other: readonly number[]): number {
  const sum = (term: (x: number, y: number) => number) => query.reduce((total, x, at) => total + term(x, other[at] as number), 0);
  return vector === 'a' ? Math.sqrt(sum((x, y) => (x - y) ** 2)) : sum((x, y) => x * y);
}

async function compareAll(client: RestClient, model: Model): Promise<void> {
  const ids = [...model.keys()].sort(compareIds);
  await compareScroll(client, model, { filter: {}, ids }, 250);
  const points = await client.result<Point[]>('POST', '/collections/c/points', { ids, with_payload: true, with_vector: ['a'] });
  const wanted = ids.map((id) => ({ id, payload: model.get(id)?.payload, vector: { a: model.get(id)?.vectors.a } }));
  assert.deepEqual(
    points.sort((x, y) => compareIds(x.id, y.id)),
    wanted,
  );
}
