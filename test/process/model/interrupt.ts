/** Requests in whose midst a node is killed: each is found done as a whole or not at all, in the order they were sent. */

import assert from 'node:assert/strict';
import type { RandomNumbers } from '../../../ops/random.js';
import type { RestClient } from '../../../ops/rest-client.js';
import type { NodeUnderTest } from '../support.js';
import { indexChange, pointsChange, type Step, settingsChange, vectorChange } from './changes.js';
import { ALL } from './filters.js';
import { chance, one } from './points.js';
import { COLLECTION, compareScroll, type Tally } from './reads.js';
import { Model, type Space, wireSpace } from './state.js';

/**
 * Sends changes until a kill breaks the connection. Gives the states that the collection may be in. Of several shards each may
 * have its part of a write or not: there it is the configuration that changes, which is one for all of them.
 */
export async function changeUntilKilled(node: NodeUnderTest, model: Model, random: RandomNumbers, shards: number): Promise<Model[]> {
  // Builds that the kill meets.
  if (chance(random, 2)) await send(node.client, settingsChange(random)[0] as Step);
  const changes = shards === 1 ? [indexChange, vectorChange, vectorChange, pointsChange] : [vectorChange];
  const steps = one(random, changes)(model, random);
  const states = [model];
  const delayMs = random.unit() * 20;
  const killed = new Promise<void>((done) => setTimeout(done, delayMs)).then(() => node.end('SIGKILL'));
  for (const step of steps) {
    const after = new Model(states.at(-1));
    step.apply(after);
    states.push(after);
    const answered = await send(node.client, step).then(
      () => true,
      (error: Error) => {
        if (/: 4\d\d /.test(error.message)) throw error;
        return false;
      },
    );
    if (!answered) break;
    // What is acknowledged is there.
    states.splice(0, states.length - 1);
  }
  await killed;
  return states;
}

/** The one of some states that a collection is in. Throws what speaks against the last of them. */
export async function stateOf(client: RestClient, states: readonly Model[], random: RandomNumbers, tally: Tally): Promise<Model> {
  let reason: unknown;
  for (const model of states) {
    try {
      await compareConfig(client, model);
      await compareScroll({ client, model, random, tally }, ALL, 250);
      return model;
    } catch (error) {
      reason = error;
    }
  }
  throw reason;
}

/** A request that must succeed. */
export async function send(client: RestClient, { method, path, body }: Step): Promise<void> {
  await client.result(method, `/collections/${COLLECTION}${path === '' ? '' : `/${path}`}`, body);
}

interface Config {
  readonly config: { readonly params: { readonly vectors: Record<string, object>; readonly sparse_vectors?: Record<string, object> } };
  readonly payload_schema: Record<string, { readonly data_type: string }>;
}

/** The collection has the indexes and vectors that the model has. */
async function compareConfig(client: RestClient, model: Model): Promise<void> {
  const { config, payload_schema } = await client.result<Config>('GET', `/collections/${COLLECTION}`);
  const types = Object.entries(payload_schema).map(([key, { data_type }]) => [key, data_type]);
  assert.deepEqual(types.sort(), [...model.indexes].map(([key, { type }]) => [key, type]).sort());
  const { vectors, sparse_vectors = {} } = config.params;
  assert.deepEqual([...Object.keys(vectors), ...Object.keys(sparse_vectors)].sort(), [...model.spaces.keys()].sort());
  for (const [name, shown] of Object.entries(vectors)) {
    const wanted = Object.entries(wireSpace(model.space(name) as Space));
    for (const [key, value] of wanted) assert.deepEqual((shown as Record<string, unknown>)[key] ?? 'float32', value, `${name}.${key}`);
  }
}
