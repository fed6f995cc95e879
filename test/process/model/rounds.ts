/** What a node is asked to do, round after round, and what the model must say of it. */

import assert from 'node:assert/strict';
import type { RandomNumbers } from '../../../ops/random.js';
import type { RestClient } from '../../../ops/rest-client.js';
import { type CollectionInfo, until } from '../support.js';
import { indexChange, settingsChange, vectorChange } from './changes.js';
import { send } from './interrupt.js';
import { chance, many, one } from './points.js';
import { type Asked, ask, COLLECTION, type Tally } from './reads.js';
import { IDF, type Model, SPACES, SPARSE_SPACE, wireSpace } from './state.js';
import { change, ROUTES } from './writes.js';

/** Reads after each write, under way at the same time. */
const READS = 30;
const RECALL_MIN = 0.9;

/** Now and then a change of the collection, a write, and reads. */
export async function playRound(asked: Asked): Promise<void> {
  const { client, model, random } = asked;
  if (chance(random, 6)) await changeCollection(client, model, random);
  await write(client, model, random);
  await Promise.all(many(READS, () => ask(asked)));
}

export function summary({ cases, hits, of }: Tally): string {
  const all = [...cases.values()].reduce((sum, count) => sum + count, 0);
  return `${all} answers compared: ${[...cases].map(([name, count]) => `${name} ${count}`).join(', ')}; recall ${(hits / of).toFixed(4)}`;
}

export function checkRecall({ hits, of }: Tally, seed: number): void {
  assert.ok(hits / of >= RECALL_MIN, `TROUPE_SEED=${seed}: recall ${hits / of}`);
}

/** Builds go on behind the writes; this waits for one, so that none of them is missed where the machine is slow. */
export async function untilBuilt(client: RestClient): Promise<void> {
  await until(
    () => client.result<CollectionInfo>('GET', `/collections/${COLLECTION}`),
    (info) => info.indexed_vectors_count > 0 || info.points_count < 100,
  );
}

/** The collection, with thresholds so low that builds run all the time, and another one for its alias to point to. */
export async function createCollections(client: RestClient, model: Model, random: RandomNumbers, shards: number): Promise<void> {
  for (const [name, space] of Object.entries(SPACES)) model.spaces.set(name, space);
  model.spaces.set(IDF, { ...SPARSE_SPACE, precise: false });
  const dense = [...model.spaces].filter(([, { kind }]) => kind !== 'sparse');
  const body = {
    vectors: Object.fromEntries(dense.map(([name, space]) => [name, { ...wireSpace(space), on_disk: chance(random, 4) }])),
    sparse_vectors: { s: {}, [IDF]: { modifier: 'idf' } },
    hnsw_config: { full_scan_threshold: 10 },
    optimizers_config: {
      indexing_threshold: 1,
      deleted_threshold: 0.1,
      vacuum_min_vector_number: 100,
      default_segment_number: 1 + random.integer(2),
    },
    on_disk_payload: chance(random, 2),
    shard_number: shards,
  };
  await client.result('PUT', '/collections/c', body);
  await client.result('PUT', '/collections/other', { vectors: { size: 2, distance: 'Dot' } });
  await pointAlias(client, 'c');
}

async function pointAlias(client: RestClient, collection: string): Promise<void> {
  const actions = [{ delete_alias: { alias_name: COLLECTION } }, { create_alias: { collection_name: collection, alias_name: COLLECTION } }];
  const { aliases } = await client.result<{ aliases: object[] }>('GET', '/aliases');
  await client.result('POST', '/collections/aliases', { actions: aliases.length === 0 ? actions.slice(1) : actions });
}

// ------------------------------------------------------------------ writes

/** One request of one write or several. The model is changed first, so that each write of a batch starts from the one before. */
async function write(client: RestClient, model: Model, random: RandomNumbers): Promise<void> {
  const writes = many(chance(random, 4) ? 3 : 1, () => change(model, random));
  // What is not waited for is applied before the next request that waits, so that one follows.
  const wait = random.integer(3) > 0;
  if (writes.length > 1) {
    const operations = writes.map(({ name, body }) => ({ [name]: body }));
    await client.result('POST', `/collections/${COLLECTION}/points/batch?wait=${wait}`, { operations });
  } else {
    for (const { name, body } of writes) {
      const [method, path] = ROUTES[name] as readonly [string, string];
      await client.result(method, `/collections/${COLLECTION}/${path}?wait=${wait}`, body);
    }
  }
  if (!wait)
    await client.result('POST', `/collections/${COLLECTION}/points/payload/clear?wait=true`, { filter: { must: [{ has_id: [1e9] }] } });
}

/** An index, a vector, a setting or the alias is made, changed or taken away. */
async function changeCollection(client: RestClient, model: Model, random: RandomNumbers): Promise<void> {
  if (chance(random, 8)) {
    await pointAlias(client, 'other');
    assert.equal((await client.result<CollectionInfo>('GET', `/collections/${COLLECTION}`)).points_count, 0);
    return pointAlias(client, 'c');
  }
  const steps = [indexChange, indexChange, vectorChange, () => settingsChange(random)];
  for (const step of one(random, steps)(model, random)) {
    step.apply(model);
    await send(client, step);
  }
}
