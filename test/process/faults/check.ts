/** Compares what a node holds with what it may hold, by all that a client can ask. */

import type { RestClient } from '../../../ops/rest-client.js';
import { IDS_PER_GROUP, type ModelPoint } from './model.js';
import { collectionsOf, filterOf, groupPoints, type Model, namesOf } from './workload.js';

/**
 * How closely data are compared. `all`: writes are tried, and all that can be asked is compared. `living`: the same after faults in the process itself,
 * where writes have been tried before (`stuckAfter`), and what failed in a build may be told for a while. `shown`: what is shown is compared once more.
 */
export type Look = 'all' | 'living' | 'shown';

/** A group that only probes write. */
const PROBE_GROUP = 9;

/**
 * What is wrong with a node's data, in words. What was found is what is possible from then on. sets: whose collections and aliases are compared.
 */
export async function wrongData(client: RestClient, model: Model, sets: readonly number[], look: Look): Promise<string[]> {
  const findings: string[] = [];
  const there = await collectionsAt(client);
  const names = sets.map(namesOf);
  for (const name of names.flatMap(collectionsOf)) {
    const collection = model.collection(name);
    if (!collection.presence.settle(there.has(name)))
      findings.push(`collection ${name} is ${there.has(name) ? 'there and was deleted' : 'lost'}`);
    if (!there.has(name)) continue;
    const points = await pointsOf(client, name);
    findings.push(...collection.check(points).map((finding) => `${name}: ${finding}`));
    if (look === 'shown') continue;
    findings.push(...(await wrongIndexes(client, name, points)).map((finding) => `${name}: ${finding}`));
    if (look === 'living') continue;
    const { status } = await client.result<{ status: string }>('GET', `/collections/${name}`);
    if (status !== 'green' && status !== 'yellow' && status !== 'grey') findings.push(`${name}: its status is ${status}`);
  }
  const { aliases } = await client.result<{ aliases: { alias_name: string; collection_name: string }[] }>('GET', '/aliases');
  for (const { alias: name } of names) {
    const named = aliases.find(({ alias_name }) => alias_name === name)?.collection_name ?? null;
    if (!model.aliases.get(name)?.settle(named)) findings.push(`the alias ${name} names ${named}`);
  }
  return findings;
}

export async function collectionsAt(client: RestClient): Promise<ReadonlySet<string>> {
  const { collections } = await client.result<{ collections: { name: string }[] }>('GET', '/collections');
  return new Set(collections.map(({ name }) => name));
}

/** Every collection takes a write and shows it; throws otherwise. */
export async function probe(client: RestClient, names: readonly string[]): Promise<void> {
  const points = groupPoints(PROBE_GROUP, 1);
  for (const name of names) {
    await client.result('PUT', `/collections/${name}/points?wait=true`, { points });
    const { count } = await client.result<{ count: number }>('POST', `/collections/${name}/points/count`, {
      exact: true,
      filter: filterOf(PROBE_GROUP),
    });
    if (count !== points.length) throw new Error(`${name} shows ${count} of ${points.length} points that it took`);
    await client.result('POST', `/collections/${name}/points/delete?wait=true`, { points: points.map(({ id }) => id) });
  }
}

/** Collections of some sets that are there for sure, and of which a change can be tried. */
export function certainCollections(model: Model, sets: readonly number[]): string[] {
  const names = sets.map(namesOf).flatMap(collectionsOf);
  return names.filter((name) =>
    model
      .collection(name)
      .presence.all()
      .every((there) => there),
  );
}

async function pointsOf(client: RestClient, name: string): Promise<readonly ModelPoint[]> {
  const body = { limit: 10_000, with_payload: true, with_vector: true };
  const { points } = await client.result<{ points: ModelPoint[] }>('POST', `/collections/${name}/points/scroll`, body);
  // Left by a probe that was cut off.
  return points.filter(({ id }) => id < PROBE_GROUP * IDS_PER_GROUP);
}

/** Counts, filters and searches agree with the points themselves. */
async function wrongIndexes(client: RestClient, name: string, points: readonly ModelPoint[]): Promise<string[]> {
  const findings: string[] = [];
  const count = async (filter?: unknown): Promise<number> =>
    (await client.result<{ count: number }>('POST', `/collections/${name}/points/count`, { exact: true, filter })).count;
  const all = (await count()) - (await count(filterOf(PROBE_GROUP)));
  if (all !== points.length) findings.push(`${all} points are counted, ${points.length} are shown`);
  for (const group of new Set(points.map(({ id }) => Math.floor(id / IDS_PER_GROUP)))) {
    const own = points.filter(({ id }) => Math.floor(id / IDS_PER_GROUP) === group);
    const counted = await count(filterOf(group));
    if (counted !== own.length) findings.push(`a filter finds ${counted} points of group ${group}, ${own.length} are shown`);
    const target = own[0] as ModelPoint;
    const { points: nearest } = await client.result<{ points: { id: number; score: number }[] }>(
      'POST',
      `/collections/${name}/points/query`,
      { query: target.vector, limit: 1, filter: filterOf(group), params: { hnsw_ef: 128 } },
    );
    if (nearest[0]?.score !== 0) findings.push(`the point nearest to the vector of point ${target.id} is ${JSON.stringify(nearest[0])}`);
  }
  return findings;
}
