/** Random reads of every kind, each compared with what the model says. */

import assert from 'node:assert/strict';
import type { RandomNumbers } from '../../../ops/random.js';
import type { RestClient } from '../../../ops/rest-client.js';
import { compareIds } from '../../../protocols/model/point-id.js';
import { compareApproximate, comparePoint, compareRanked, type FoundPoint, type Wanted } from './compare.js';
import { ALL, elementsAt, type Filter, filterOf } from './filters.js';
import { chance, IDS, idOf, many, one } from './points.js';
import { flatQuery, type Level, preciseNames, rankedOf, TiedCut, treeQuery, wantedOf } from './queries.js';
import { groupValues, nearestScoring } from './scorings.js';
import { IDF, type Id, type Index, isDistance, type Json, type Model, type Payload, type Sparse, scoreOf, type Value } from './state.js';
import { without } from './writes.js';

/** What a run has compared. */
export interface Tally {
  readonly cases: Map<string, number>;
  /** Of approximate searches: points found that belong to the best ones, and how many those are. */
  hits: number;
  of: number;
}

export interface Asked {
  readonly client: RestClient;
  readonly model: Model;
  readonly random: RandomNumbers;
  readonly tally: Tally;
}

const READS: readonly (readonly [name: string, weight: number, read: (asked: Asked) => Promise<void>])[] = [
  ['count', 4, count],
  ['scroll', 2, scroll],
  ['order', 2, order],
  ['retrieve', 1, retrieve],
  ['facet', 2, facet],
  ['query', 7, flat],
  ['tree', 4, tree],
  ['approximate', 4, approximate],
  ['idf', 1, idf],
  ['groups', 2, groups],
  ['matrix', 1, matrix],
];
const WEIGHTED = READS.flatMap((read) => many(read[1], () => read));

/** One read of a random kind. */
export async function ask(asked: Asked): Promise<void> {
  const [name, , read] = one(asked.random, WEIGHTED);
  await read(asked);
  asked.tally.cases.set(name, (asked.tally.cases.get(name) ?? 0) + 1);
}

function post<T>({ client }: Asked, path: string, body: object): Promise<T> {
  return client.result<T>('POST', `/collections/${COLLECTION}/${path}`, body);
}

/** An alias: the collection behind it changes. */
export const COLLECTION = 'now';

function matching(model: Model, { passes }: Filter): Id[] {
  return model.inOrder().flatMap(([id, point]) => (passes(id, point) ? [id] : []));
}

function someFilter({ model, random }: Asked): Filter {
  return chance(random, 5) ? ALL : filterOf(model, random);
}

// ------------------------------------------------------------------ points

async function count(asked: Asked): Promise<void> {
  const filter = filterOf(asked.model, asked.random, 3);
  const found = await post<{ count: number }>(asked, 'points/count', { filter: filter.wire, exact: true });
  assert.equal(found.count, matching(asked.model, filter).length, `count of ${JSON.stringify(filter.wire)}`);
}

async function scroll(asked: Asked): Promise<void> {
  await compareScroll(asked, someFilter(asked), 20 + asked.random.integer(200));
}

/** All points that pass, page by page. */
export async function compareScroll(asked: Asked, filter: Filter, limit: number): Promise<void> {
  const { model } = asked;
  const found: FoundPoint[] = [];
  let offset: Id | null | undefined;
  do {
    const body = { filter: filter.wire, limit, offset, with_payload: true, with_vector: true };
    const page = await post<{ points: FoundPoint[]; next_page_offset: Id | null }>(asked, 'points/scroll', body);
    found.push(...page.points);
    offset = page.next_page_offset;
  } while (offset !== null);
  const what = `scroll of ${JSON.stringify(filter.wire)}`;
  const ids = matching(model, filter);
  assert.deepEqual(
    found.map(({ id }) => id),
    ids,
    what,
  );
  for (const point of found) comparePoint(point, model.points.get(point.id) as never, what);
}

/** Points by the values of a key that has an index of numbers or times. */
async function order(asked: Asked): Promise<void> {
  const { model, random } = asked;
  const keys = [...model.indexes].filter(([, { type }]) => ['integer', 'float', 'datetime'].includes(type));
  if (keys.length === 0) return;
  const [key, { type }] = one(random, keys);
  const filter = someFilter(asked);
  const direction = one(random, ['asc', 'desc'] as const);
  const start = chance(random, 2) && type !== 'datetime' ? random.integer(60) - 10 : undefined;
  const limit = 1 + random.integer(100);
  const sign = direction === 'asc' ? 1 : -1;
  const wanted = model.inOrder().flatMap(([id, point]) => {
    if (!filter.passes(id, point)) return [];
    const values = new Set(elementsAt(point.payload, key).flatMap((value) => orderValue(type, value)));
    return [...values].filter((value) => start === undefined || sign * (value - start) >= 0).map((value) => ({ id, value }));
  });
  wanted.sort((a, b) => sign * (a.value - b.value || compareIds(a.id, b.id)));
  const orderBy = { key, direction, start_from: start };
  const what = `order by ${JSON.stringify(orderBy)}, limit ${limit}, ${JSON.stringify(filter.wire)}`;
  const ids = wanted.slice(0, limit).map(({ id }) => id);
  const page = await post<{ points: (FoundPoint & { order_value: number })[] }>(asked, 'points/scroll', {
    filter: filter.wire,
    limit,
    order_by: orderBy,
  });
  assert.deepEqual(
    page.points.map(({ id }) => id),
    ids,
    what,
  );
  if (type !== 'datetime')
    assert.deepEqual(
      page.points.map((point) => point.order_value),
      wanted.slice(0, limit).map(({ value }) => value),
      what,
    );
  const queried = await post<{ points: FoundPoint[] }>(asked, 'points/query', { filter: filter.wire, limit, query: { order_by: orderBy } });
  assert.deepEqual(
    queried.points.map(({ id }) => id),
    ids,
    `query: ${what}`,
  );
}

function orderValue(type: string, value: Json): number[] {
  if (type === 'datetime') return typeof value === 'string' && !Number.isNaN(Date.parse(value)) ? [Date.parse(value)] : [];
  return typeof value === 'number' && (type === 'float' || Number.isInteger(value)) ? [value] : [];
}

async function retrieve(asked: Asked): Promise<void> {
  const { model, random } = asked;
  const ids = many(1 + random.integer(40), () => idOf(random.integer(IDS + 50)));
  const there = [...new Set(ids)].filter((id) => model.points.has(id));
  const found = await post<FoundPoint[]>(asked, 'points', { ids, with_payload: true, with_vector: true });
  assert.deepEqual(
    found.map(({ id }) => id),
    there,
    'retrieve',
  );
  for (const point of found) comparePoint(point, model.points.get(point.id) as never, 'retrieve');
  const names = ['m', 'tag', '__proto__'];
  const parts = await post<FoundPoint[]>(asked, 'points', {
    ids,
    with_payload: chance(random, 2) ? names : { exclude: names },
    with_vector: ['e'],
  });
  parts.forEach(({ id, payload, vector }) => {
    const own = model.points.get(id) as { payload: Payload; vectors: { readonly [name: string]: Value } };
    const others = without(own.payload, names);
    const isOthers = Object.keys(payload ?? {}).some((key) => !names.includes(key));
    const included = Object.fromEntries(Object.entries(own.payload).filter(([key]) => names.includes(key)));
    if (isOthers || Object.keys(payload ?? {}).length === 0)
      assert.ok(
        [others, included].some((part) => same(part, payload)),
        `part of ${id}`,
      );
    else assert.deepEqual(payload, included, `part of ${id}`);
    assert.deepEqual(vector?.e, own.vectors.e, `vector e of ${id}`);
  });
}

function same(a: unknown, b: unknown): boolean {
  try {
    assert.deepEqual(a, b);
    return true;
  } catch {
    return false;
  }
}

async function facet(asked: Asked): Promise<void> {
  const { model, random } = asked;
  const types: Record<string, (value: Json) => boolean> = {
    keyword: (value) => typeof value === 'string',
    integer: (value) => Number.isInteger(value),
    bool: (value) => typeof value === 'boolean',
    uuid: (value) => typeof value === 'string' && value.length === 36,
  };
  const keys = [...model.indexes].filter(([, { type }]) => types[type] !== undefined);
  if (keys.length === 0) return;
  const [key, { type }] = one(random, keys);
  const filter = someFilter(asked);
  const limit = 1 + random.integer(12);
  const counts = new Map<Json, number>();
  for (const [id, point] of model.points) {
    if (!filter.passes(id, point)) continue;
    for (const value of new Set(elementsAt(point.payload, key).filter((one) => types[type]?.(one))))
      counts.set(value, (counts.get(value) ?? 0) + 1);
  }
  const wanted = [...counts].map(([value, times]) => ({ value, count: times }));
  wanted.sort((a, b) => b.count - a.count || ((a.value as string) < (b.value as string) ? -1 : 1));
  const { hits } = await post<{ hits: object[] }>(asked, 'facet', { key, filter: filter.wire, limit, exact: true });
  assert.deepEqual(hits, wanted.slice(0, limit), `facet of ${key}, ${JSON.stringify(filter.wire)}`);
}

// ------------------------------------------------------------------ queries

async function flat(asked: Asked): Promise<void> {
  const level = flatQuery(asked.model, asked.random, false);
  const { points } = await post<{ points: FoundPoint[] }>(asked, 'points/query', level.wire);
  compareRanked(points, wantedOf(level), JSON.stringify(level.wire));
}

async function tree(asked: Asked): Promise<void> {
  const { level, wanted } = untied(asked);
  const { points } = await post<{ points: FoundPoint[] }>(asked, 'points/query', level.wire);
  compareRanked(points, wanted, JSON.stringify(level.wire));
}

/** A tree of which the model can tell what its limits cut. */
function untied(asked: Asked): { level: Level; wanted: Wanted } {
  for (;;) {
    const level = treeQuery(asked.model, asked.random);
    try {
      return { level, wanted: wantedOf(level) };
    } catch (error) {
      if (!(error instanceof TiedCut)) throw error;
    }
  }
}

/** A search as the node likes to do it: as many points as there are, with true scores, most of them the best. */
async function approximate(asked: Asked): Promise<void> {
  const { model, random, tally } = asked;
  const using = one(random, ['e', 'd', 'c', 'm', 't', 's']);
  const filter = chance(random, 2) ? ALL : filterOf(model, random);
  const scoring = nearestScoring(model, random, using);
  const [limit, offset] = [1 + random.integer(30), chance(random, 4) ? random.integer(10) : 0];
  const params = { hnsw_ef: 64, quantization: { rescore: true, oversampling: 4 } };
  const body = { query: scoring.wire, using, filter: filter.wire, limit, offset, params };
  const { points } = await post<{ points: FoundPoint[] }>(asked, 'points/query', body);
  const scored = [...model.points].flatMap(([id, point]): [Id, number][] => {
    const score = filter.passes(id, point) && !scoring.named.includes(id) ? scoring.score(point) : undefined;
    return score === undefined ? [] : [[id, score]];
  });
  const { hits, of } = compareApproximate(points, { ...scoring, scored, limit, offset }, JSON.stringify(body));
  tally.hits += hits;
  tally.of += of;
}

/** The weight of a term depends on rows that a build has yet to drop, so only that all scores have the same one is compared. */
async function idf(asked: Asked): Promise<void> {
  const { model, random } = asked;
  const filter = someFilter(asked);
  const index = random.integer(30);
  const limit = 1 + random.integer(40);
  const body = { query: { indices: [index], values: [2] }, using: IDF, filter: filter.wire, limit, params: { exact: true } };
  const { points } = await post<{ points: FoundPoint[] }>(asked, 'points/query', body);
  const values = [...model.points].flatMap(([id, point]): [Id, number][] => {
    const sparse = point.vectors[IDF] as Sparse | undefined;
    const value = filter.passes(id, point) ? (sparse?.values[sparse.indices.indexOf(index)] ?? 0) : 0;
    return value === 0 ? [] : [[id, value]];
  });
  const [best] = points;
  const weight = best === undefined ? 1 : (best.score as number) / (new Map(values).get(best.id) ?? Number.NaN);
  assert.ok(weight > 0 && weight < 2 * Math.log(2 + 100 * IDS), `weight ${weight} of ${JSON.stringify(body)}`);
  const scored = values.map(([id, value]): [Id, number] => [id, weight * value]);
  compareRanked(points, { scored, better: 'larger', limit, offset: 0, slack: 0 }, JSON.stringify(body));
}

async function groups(asked: Asked): Promise<void> {
  const { model, random } = asked;
  const keys = ['tag', 'm', 'deep.a', 'u', 'items[].name', 'n'];
  // An index of integers or UUIDs makes no groups of other texts (see the README of `query`).
  const mixed = ({ type }: Index): boolean => type === 'integer' || type === 'uuid';
  const key = one(
    random,
    keys.filter((name) => name === 'm' || !mixed(model.indexes.get(name) ?? { type: 'none' })),
  );
  const level = { ...flatQuery(model, random, true), limit: 1 + random.integer(8), offset: 0 };
  const size = 1 + random.integer(4);
  const { offset: _, ...wire } = level.wire as { offset?: number };
  const body = { ...wire, limit: level.limit, group_by: key, group_size: size };
  const found = await post<{ groups: { id: Json; hits: FoundPoint[] }[] }>(asked, 'points/query/groups', body);
  const ranked = rankedOf(level, () => true);
  const scores = new Map(ranked);
  const wanted = new Map<Json, number[]>();
  for (const [id, score] of ranked) {
    for (const value of groupValues(model.points.get(id)?.payload as Payload, key)) {
      wanted.set(value, [...(wanted.get(value) ?? []), score]);
    }
  }
  const what = `groups: ${JSON.stringify(body)}, index ${JSON.stringify(model.indexes.get(key))}`;
  // Of groups and points with one score any may come first.
  const best = [...wanted.values()].map((list) => list[0]).slice(0, level.limit);
  assert.deepEqual(
    found.groups.map(({ hits }) => scores.get((hits[0] as FoundPoint).id)),
    best,
    what,
  );
  assert.equal(new Set(found.groups.map(({ id }) => id)).size, best.length, what);
  for (const { id, hits } of found.groups) {
    const ids = hits.map((hit) => hit.id);
    assert.deepEqual(
      ids.map((one) => scores.get(one)),
      wanted.get(id)?.slice(0, size),
      `${what}, group ${id}`,
    );
    assert.equal(new Set(ids).size, ids.length, what);
    for (const one of ids) assert.ok(groupValues(model.points.get(one)?.payload as Payload, key).includes(id as string), what);
  }
}

async function matrix(asked: Asked): Promise<void> {
  const { model, random } = asked;
  const using = one(random, [...preciseNames(model), 'c']);
  const space = model.space(using);
  const filter = someFilter(asked);
  const [sample, limit] = [2 + random.integer(12), 1 + random.integer(5)];
  const body = { using, filter: filter.wire, sample, limit };
  const { pairs } = await post<{ pairs: { a: Id; b: Id; score: number }[] }>(asked, 'points/search/matrix/pairs', body);
  const able = matching(model, filter).filter((id) => model.points.get(id)?.vectors[using] !== undefined);
  const members = [...new Set(pairs.map(({ a }) => a))];
  const what = `matrix: ${JSON.stringify(body)}`;
  assert.equal(members.length, able.length < 2 ? 0 : Math.min(sample, able.length), what);
  assert.ok(
    members.every((id) => able.includes(id)),
    what,
  );
  const value = (id: Id) => model.points.get(id)?.vectors[using] as Value;
  for (const a of members) {
    const scored = members.filter((id) => id !== a).map((id): [Id, number] => [id, scoreOf(space, value(a), value(id))]);
    const found = pairs.filter((pair) => pair.a === a).map(({ b, score }) => ({ id: b, score }));
    compareRanked(found, { scored, better: isDistance(space) ? 'smaller' : 'larger', limit, offset: 0, slack: 0 }, `${what}, ${a}`);
  }
}
