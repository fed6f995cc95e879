/** A collection of six shards on one node is what it is with one: every operation, through both doors. */

import assert from 'node:assert/strict';
import { type TestContext, test } from 'node:test';
import type { RestClient } from '../../ops/rest-client.js';
import { compared } from './clients/answers.js';
import { Doors, outcome } from './clients/doors.js';
import { ERRORS } from './clients/error-cases.js';
import { FILMS } from './clients/films.js';
import { difference } from './clients/over-shards.js';
import { READS } from './clients/read-cases.js';
import { uploadFilms } from './clients/upload-films.js';
import type { Json } from './clients/values.js';
import { WRITES } from './clients/write-cases.js';
import { nodeFor, temporaryFolder, until } from './support.js';

const SHARDS = 6;
const KILLS = 5;
/** Operations that may answer before they have been carried out. */
const WAITING = /^(upsert|update|delete|set|overwrite|clear|batch|create)_(points|payload|vectors|update|field_index|vector_name)$/;

interface Described {
  readonly shard_count: number;
  readonly local_shards: readonly { readonly shard_id: number; readonly points_count: number; readonly state: string }[];
}

/** A node whose collections have this many shards unless they say otherwise. */
async function doorsOf(context: TestContext, shards: number, folder?: string): Promise<Doors> {
  const environment = { SERVICE__STORAGE__COLLECTION__SHARD_NUMBER_PER_NODE: String(shards) };
  return new Doors(await nodeFor(context, { folder: folder ?? (await temporaryFolder(context)), environment }));
}

test('a collection of six shards answers as one of a single shard', async (context) => {
  const one = await doorsOf(context, 1);
  const six = await doorsOf(context, SHARDS);
  for (const doors of [one, six]) await uploadFilms(doors);

  await context.test('its points are spread over all of them', async () => {
    const described = (await six.rest('collection_cluster_info', 'films')) as Described;
    assert.equal(described.shard_count, SHARDS);
    assert.deepEqual(
      described.local_shards.map(({ shard_id, state }) => [shard_id, state]),
      Array.from({ length: SHARDS }, (_, shard) => [shard, 'Active']),
    );
    const counts = described.local_shards.map(({ points_count }) => points_count);
    assert.ok(
      counts.every((count) => count > 0),
      String(counts),
    );
    assert.equal(
      counts.reduce((sum, count) => sum + count, 0),
      FILMS.length,
    );
  });

  await context.test('reads of every kind', async (t) => {
    const differences: string[] = [];
    for (const [operation, args, collection = 'films'] of READS) {
      const wanted = await one.both(operation, collection, args);
      const found = await six.both(operation, collection, args);
      differences.push(...difference(found, wanted, `${operation} ${JSON.stringify(args)}`));
    }
    t.diagnostic(`${READS.length} reads`);
    assert.deepEqual(differences, []);
  });

  await context.test('requests that cannot be carried out, which change nothing', async (t) => {
    const differences: string[] = [];
    for (const [operation, args, collection = 'films'] of ERRORS) {
      const whole = WAITING.test(operation) ? { wait: true, ...args } : args;
      const wanted = await outcome(one.rest(operation, collection, whole));
      const found = await outcome(six.rest(operation, collection, whole));
      differences.push(...difference(found, wanted, `${operation} ${JSON.stringify(args)}`));
    }
    t.diagnostic(`${ERRORS.length} errors`);
    assert.deepEqual(differences, []);
    assert.deepEqual(await contents(six, 'films'), await contents(one, 'films'));
  });

  await context.test('operations on points that are not all there, alone and within a batch, change nothing', async () => {
    const present = [1, 2, 3, 4, 5, 6, 7, 8];
    const before = await contents(six, 'films');
    const selections = { set_payload: { payload: { a: 1 } }, delete_payload: { keys: ['year'] }, clear_payload: {} } as const;
    for (const [operation, args] of Object.entries(selections) as [keyof typeof selections, object][]) {
      const refused = await outcome(six.rest(operation, 'films', { points: [...present, 9999], wait: true, ...args }));
      assert.deepEqual('failed' in refused && refused.message, 'Not found: No point with id 9999 found');
    }
    assert.deepEqual(await contents(six, 'films'), before);
    const operations: Json = [
      { set_payload: { payload: { first: true }, points: present } },
      { set_payload: { payload: { second: true }, points: [...present, 9999] } },
      { set_payload: { payload: { third: true }, points: present } },
    ];
    for (const doors of [one, six]) {
      const refused = await outcome(doors.rest('batch_update', 'films', { operations, wait: true }));
      assert.ok('failed' in refused);
    }
    assert.deepEqual(await contents(six, 'films'), await contents(one, 'films'));
  });

  await context.test('writes of every kind', async (t) => {
    const differences: string[] = [];
    for (const [at, [operation, args]] of WRITES.entries()) {
      const wanted = await outcome(one.rest(operation, 'films', args));
      const found = await outcome(at % 2 === 0 ? six.rest(operation, 'films', args) : six.grpc(operation, 'films', args));
      differences.push(...difference(found, wanted, `${operation} ${JSON.stringify(args)}`));
      if (args.wait === false) continue;
      assert.deepEqual(await contents(six, 'films'), await contents(one, 'films'), `${operation} ${JSON.stringify(args)}`);
    }
    t.diagnostic(`${WRITES.length} writes`);
    assert.deepEqual(differences, []);
    assert.deepEqual(await figures(six, 'films'), await figures(one, 'films'));
  });
});

test('a collection keeps its shards and their points when the node is killed', async (context) => {
  const folder = await temporaryFolder(context);
  const first = await nodeFor(context, { folder });
  const { client } = first;
  await client.result('PUT', '/collections/c', { vectors: { size: 1, distance: 'Dot' }, shard_number: 3 });
  const points = Array.from({ length: 100 }, (_, id) => ({ id, vector: [id] }));
  await client.result('PUT', '/collections/c/points?wait=true', { points });
  const described = await client.result<Described>('GET', '/collections/c/cluster');
  assert.equal(described.shard_count, 3);
  await first.end('SIGKILL');
  const { client: again } = await nodeFor(context, { folder });
  const { local_shards } = await again.result<Described>('GET', '/collections/c/cluster');
  assert.deepEqual(local_shards, described.local_shards);
  assert.deepEqual(await again.result('POST', '/collections/c/points/count', {}), { count: 100 });
});

test('after kills in the midst of writes every point is at least as new as was acknowledged', async (context) => {
  const folder = await temporaryFolder(context);
  const acknowledged = new Map<number, number>();
  const sent = new Map<number, number>();
  let revision = 0;
  for (let kill = 0; kill < KILLS; kill++) {
    const node = await nodeFor(context, { folder });
    const { client } = node;
    if (kill === 0) await client.result('PUT', '/collections/c', { vectors: { size: 1, distance: 'Dot' }, shard_number: SHARDS });
    await checkRevisions(client, sent, acknowledged);
    let writes = 0;
    let killed: Promise<unknown> | null = null;
    const write = async (writer: number): Promise<void> => {
      while (killed === null) {
        revision++;
        const own = revision;
        const ids = Array.from({ length: 20 }, (_, at) => writer * 1000 + ((own * 7 + at) % 50));
        for (const id of ids) sent.set(id, own);
        const points = ids.map((id) => ({ id, vector: [own], payload: { revision: own } }));
        const answered = await client.result('PUT', `/collections/c/points?wait=${own % 2 === 0}`, { points }).then(
          () => true,
          () => false,
        );
        if (!answered) return;
        for (const id of ids) acknowledged.set(id, own);
        if (++writes > 30 && killed === null) killed = node.end('SIGKILL');
      }
    };
    await Promise.all([0, 1, 2, 3].map(write));
    await killed;
    client.close();
  }
  const { client } = await nodeFor(context, { folder });
  await checkRevisions(client, sent, acknowledged);
  assert.ok(acknowledged.size > 100);
});

/** Each point is of a write that was sent, and not older than what was acknowledged of it. */
async function checkRevisions(
  client: RestClient,
  sent: ReadonlyMap<number, number>,
  acknowledged: ReadonlyMap<number, number>,
): Promise<void> {
  const { points } = await client.result<{ points: { id: number; payload: { revision: number }; vector: [number] }[] }>(
    'POST',
    '/collections/c/points/scroll',
    { limit: 1000, with_payload: true, with_vector: true },
  );
  const found = new Map(points.map(({ id, payload, vector }) => [id, { revision: payload.revision, vector: vector[0] }]));
  for (const [id, least] of acknowledged) {
    const point = found.get(id);
    assert.ok(point !== undefined, `point ${id} is gone`);
    assert.ok(point.revision >= least && point.revision <= (sent.get(id) as number), `point ${id} is of ${point.revision}, not ${least}`);
    assert.equal(point.vector, point.revision);
  }
  assert.ok(points.every(({ id }) => sent.has(id)));
}

async function contents(doors: Doors, collection: string): Promise<unknown> {
  return compared(await doors.rest('scroll_points', collection, { limit: 1000, with_payload: true, with_vector: true }));
}

async function figures(doors: Doors, collection: string): Promise<unknown> {
  const info = await until(
    () => doors.rest('get_collection', collection) as Promise<{ status: string; points_count: number; payload_schema: unknown }>,
    ({ status }) => status === 'green',
  );
  return [info.points_count, info.payload_schema];
}
