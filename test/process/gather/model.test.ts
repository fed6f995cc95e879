/**
 * A collection whose shards are on several nodes against the plain model (`../model/`).
 *
 * Repeat a run with TROUPE_SEED=<seed>; more rounds with TROUPE_ROUNDS=<number>.
 */

import { test } from 'node:test';
import { seededRandom } from '../../../ops/random.js';
import { RestClient } from '../../../ops/rest-client.js';
import { testSeed } from '../../seed.js';
import { ALL } from '../model/filters.js';
import { compareScroll, type Tally } from '../model/reads.js';
import { checkRecall, createCollections, playRound, summary, untilBuilt } from '../model/rounds.js';
import { Model } from '../model/state.js';
import { gatheringNode } from './gathering-node.js';

const ROUNDS = Number(process.env.TROUPE_ROUNDS ?? 12);
const SHARDS = 5;

test('reads over shards of several nodes answer as a plain model does, through builds and changes of settings', {
  timeout: 180_000 + ROUNDS * 2000,
}, async (t) => {
  const seed = testSeed();
  t.diagnostic(`TROUPE_SEED=${seed}`);
  const random = seededRandom(seed);
  const model = new Model();
  const tally: Tally = { cases: new Map(), hits: 0, of: 0 };
  const node = await gatheringNode(t, 1);
  const client = new RestClient(node.port);
  t.after(() => client.close());
  try {
    await createCollections(client, model, random, SHARDS);
    for (let round = 0; round < ROUNDS; round++) await playRound({ client, model, random, tally });
    await untilBuilt(client);
    await compareScroll({ client, model, random, tally }, ALL, 250);
  } catch (error) {
    throw new Error(`TROUPE_SEED=${seed}`, { cause: error });
  }
  t.diagnostic(`${summary(tally)}; ${node.counts.reads} reads gathered by ${node.counts.asks} questions`);
  checkRecall(tally, seed);
});
