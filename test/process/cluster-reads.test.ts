/** A collection of six shards with two replicas each on three nodes is what it is on one node with one: every operation, through both doors. */

import assert from 'node:assert/strict';
import { type TestContext, test } from 'node:test';
import { LocalCluster } from '../../ops/cluster/local-cluster.js';
import { compared } from './clients/answers.js';
import { type Args, Doors, type OperationName, outcome } from './clients/doors.js';
import { ERRORS } from './clients/error-cases.js';
import { difference } from './clients/over-shards.js';
import { READS } from './clients/read-cases.js';
import { uploadFilms } from './clients/upload-films.js';
import { WRITES } from './clients/write-cases.js';
import { nodeFor, temporaryFolder } from './support.js';

const ENVIRONMENT = {
  SERVICE__STORAGE__COLLECTION__SHARD_NUMBER_PER_NODE: '2',
  SERVICE__STORAGE__COLLECTION__REPLICATION_FACTOR: '2',
};
const LEVELS = [undefined, 2, 'quorum', 'majority', 'all'] as const;
const WRITING = /^(upsert|update|delete|set|overwrite|clear|batch|create)_/;
/** Operations that may answer before they have been carried out. */
const WAITING = /^(upsert|update|delete|set|overwrite|clear|batch|create)_(points|payload|vectors|update|field_index|vector_name)$/;
/** What a cluster answers otherwise than a node of its own, as it should. */
const OF_CLUSTERS = /cluster|shard_key|peer/;

test('a collection on three nodes answers as one of a single shard', async (context) => {
  const one = new Doors(await nodeFor(context, { folder: await temporaryFolder(context) }));
  const three = await doorsOfCluster(context);
  const anyOf = (at: number): Doors => three[at % three.length] as Doors;
  for (const doors of [one, anyOf(0)]) await uploadFilms(doors);

  await context.test('reads of every kind, of each node and at every consistency', async (t) => {
    const differences: string[] = [];
    for (const [at, [operation, args, collection = 'films']] of READS.entries()) {
      const wanted = await one.both(operation, collection, args);
      const level = LEVELS[at % LEVELS.length];
      const asked = level === undefined || !takesConsistency(operation) ? args : { ...args, consistency: level };
      const doors = anyOf(at);
      const found = await outcome(at % 2 === 0 ? doors.rest(operation, collection, asked) : doors.grpc(operation, collection, asked));
      differences.push(...difference(found, wanted, `${operation} ${JSON.stringify(asked)}`));
    }
    t.diagnostic(`${READS.length} reads`);
    assert.deepEqual(differences, []);
  });

  await context.test('requests that cannot be carried out, which change nothing', async (t) => {
    const differences: string[] = [];
    const cases = ERRORS.filter(([operation]) => !OF_CLUSTERS.test(operation));
    for (const [at, [operation, args, collection = 'films']] of cases.entries()) {
      const whole = WAITING.test(operation) ? { wait: true, ...args } : args;
      const wanted = await outcome(one.rest(operation, collection, whole));
      const found = await outcome(anyOf(at).rest(operation, collection, whole));
      differences.push(...difference(found, wanted, `${operation} ${JSON.stringify(args)}`));
    }
    t.diagnostic(`${cases.length} errors`);
    assert.deepEqual(differences, []);
    await assertSameContents(one, three);
  });

  await context.test('writes of every kind, at any node', async (t) => {
    const differences: string[] = [];
    for (const [at, [operation, args]] of WRITES.entries()) {
      const asked = anyOf(at);
      const wanted = await outcome(one.rest(operation, 'films', args));
      const found = await outcome(at % 2 === 0 ? asked.rest(operation, 'films', args) : asked.grpc(operation, 'films', args));
      differences.push(...difference(found, wanted, `${operation} ${JSON.stringify(args)}`));
    }
    t.diagnostic(`${WRITES.length} writes`);
    assert.deepEqual(differences, []);
    await assertSameContents(one, three);
  });
});

async function doorsOfCluster(context: TestContext): Promise<Doors[]> {
  const cluster = await LocalCluster.start({ nodes: 3, folder: await temporaryFolder(context), environment: ENVIRONMENT });
  context.after(() => cluster.close());
  return [1, 2, 3].map((number) => new Doors(cluster.node(number)));
}

/** Whether the operation's request has a place for it in both doors. */
function takesConsistency(operation: OperationName): boolean {
  return !WRITING.test(operation) && !operation.startsWith('get_collection');
}

async function assertSameContents(one: Doors, others: readonly Doors[]): Promise<void> {
  const args: Args = { limit: 1000, with_payload: true, with_vector: true };
  const wanted = compared(await one.rest('scroll_points', 'films', args));
  for (const doors of others) {
    assert.deepEqual(compared(await doors.rest('scroll_points', 'films', { ...args, consistency: 'all' })), wanted);
  }
}
