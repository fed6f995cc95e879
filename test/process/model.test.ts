/**
 * A node against a plain model (`model/`): random writes of every kind, and reads of every kind that must answer what the
 * model does, while segments are built and merged behind them, indexes and vectors come and go, settings change and the
 * process is ended or killed now and then, also in the midst of a change: then it is there as a whole or not at all.
 *
 * Repeat a run with TROUPE_SEED=<seed>; more rounds with TROUPE_ROUNDS=<number>.
 */

import { type TestContext, test } from 'node:test';
import { type RandomNumbers, seededRandom } from '../../ops/random.js';
import { testSeed } from '../seed.js';
import { ALL } from './model/filters.js';
import { changeUntilKilled, stateOf } from './model/interrupt.js';
import { chance } from './model/points.js';
import { compareScroll, type Tally } from './model/reads.js';
import { checkRecall, createCollections, playRound, summary, untilBuilt } from './model/rounds.js';
import { Model } from './model/state.js';
import { type NodeUnderTest, nodeFor, temporaryFolder } from './support.js';

const ROUNDS = Number(process.env.TROUPE_ROUNDS ?? 60);
/** Rounds between two ends of the process. */
const LIFE = 15;

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
  const seed = testSeed();
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
      await playRound({ client: node.client, model, random, tally });
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
  t.diagnostic(summary(tally));
  checkRecall(tally, seed);
}

/** Ends the process, in the midst of a change or at rest. Gives the states that may be found then. */
async function ended(node: NodeUnderTest, model: Model, random: RandomNumbers, shards: number): Promise<Model[]> {
  if (random.integer(4) > 0) return changeUntilKilled(node, model, random, shards);
  await node.end(chance(random, 2) ? 'SIGTERM' : 'SIGKILL');
  return [model];
}
