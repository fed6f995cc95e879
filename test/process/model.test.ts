/**
 * A node against a plain model (`model/`): random writes of every kind, and reads of every kind that must answer what the
 * model does, while segments are built and merged behind them, indexes and vectors come and go, settings change and the
 * process is ended or killed now and then, also in the midst of a change: then it is there as a whole or not at all.
 *
 * Repeat a run with TROUPE_SEED=<seed>; more rounds with TROUPE_ROUNDS=<number>.
 */

import assert from 'node:assert/strict';
import { type TestContext, test } from 'node:test';
import { type Random, seededRandom } from '../../ops/random.js';
import type { RestClient } from '../../ops/rest-client.js';
import { indexChange, settingsChange, vectorChange } from './model/changes.js';
import { ALL } from './model/filters.js';
import { changeUntilKilled, send, stateOf } from './model/interrupt.js';
import { chance, many, one } from './model/points.js';
import { ask, COLLECTION, compareScroll, type Tally } from './model/reads.js';
import { IDF, Model, SPACES, SPARSE_SPACE, wireSpace } from './model/state.js';
import { change, ROUTES } from './model/writes.js';
import { type CollectionInfo, type NodeUnderTest, nodeFor, temporaryFolder, until } from './support.js';

const ROUNDS = Number(process.env.TROUPE_ROUNDS ?? 90);
/** Rounds between two ends of the process. */
const LIFE = 15;
/** Reads after each write, under way at the same time. */
const READS = 30;
const RECALL_MIN = 0.9;

test(
  'a node answers as a plain model does, through builds, changes of settings and kills',
  {
    timeout: 180_000 + ROUNDS * 2000,
  },
  (t) => compareWithModel(t, ROUNDS, 1),
);

test(
  'a collection of several shards answers as a plain model does, too',
  {
    timeout: 180_000 + ROUNDS * 2000,
  },
  (t) => compareWithModel(t, Math.ceil(ROUNDS / 3), 4),
);

async function compareWithModel(t: TestContext, rounds: number, shards: number): Promise<void> {
  const seed = Number(process.env.TROUPE_SEED ?? Date.now() % 1_000_000);
  t.diagnostic(`TROUPE_SEED=${seed}`);
  const random = seededRandom(seed);
  const folder = await temporaryFolder(t);
  let model = new Model();
  const tally: Tally = { cases: new Map(), hits: 0, of: 0 };
  let round = 0;
  try {
    let node = await nodeFor(t, { folder });
    await createCollections(node.client, model, random, shards);
    for (; round < rounds; round++) {
      if (chance(random, 6)) await changeCollection(node.client, model, random);
      await write(node.client, model, random);
      await Promise.all(many(READS, () => ask({ client: node.client, model, random, tally })));
      if (round % LIFE === LIFE / 2) await untilBuilt(node.client);
      if (round % LIFE !== LIFE - 1) continue;
      const states = await ended(node, model, random, shards);
      node.client.close();
      node = await nodeFor(t, { folder });
      model = await stateOf(node.client, states, random, tally);
    }
    await untilBuilt(node.client);
    await compareScroll({ client: node.client, model, random, tally }, ALL, 250);
  } catch (error) {
    throw new Error(`TROUPE_SEED=${seed}, round ${round}`, { cause: error });
  }
  const cases = [...tally.cases.values()].reduce((sum, count) => sum + count, 0);
  const recall = tally.hits / tally.of;
  t.diagnostic(
    `${cases} answers compared: ${[...tally.cases].map(([name, count]) => `${name} ${count}`).join(', ')}; recall ${recall.toFixed(4)}`,
  );
  assert.ok(recall >= RECALL_MIN, `TROUPE_SEED=${seed}: recall ${recall}`);
}

/** Ends the process, in the midst of a change or at rest. Gives the states that may be found then. */
async function ended(node: NodeUnderTest, model: Model, random: Random, shards: number): Promise<Model[]> {
  if (random.integer(4) > 0) return changeUntilKilled(node, model, random, shards);
  await node.end(chance(random, 2) ? 'SIGTERM' : 'SIGKILL');
  return [model];
}

/** Builds go on behind the writes; this waits for one, so that none of them is missed where the machine is slow. */
async function untilBuilt(client: RestClient): Promise<void> {
  await until(
    () => client.result<CollectionInfo>('GET', `/collections/${COLLECTION}`),
    (info) => info.indexed_vectors_count > 0 || info.points_count < 100,
  );
}

/** The collection, with thresholds so low that builds run all the time, and another one for its alias to point to. */
async function createCollections(client: RestClient, model: Model, random: Random, shards: number): Promise<void> {
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
async function write(client: RestClient, model: Model, random: Random): Promise<void> {
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
async function changeCollection(client: RestClient, model: Model, random: Random): Promise<void> {
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
