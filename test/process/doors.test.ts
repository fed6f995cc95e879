/** Every operation through REST and through gRPC, asked for by unmodified clients: the answers are the same. */

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { QdrantClient } from '@qdrant/js-client-rest';
import { ROUTES } from '../../http/routes.js';
import { CHANGES, CREATIONS } from './clients/collection-cases.js';
import { Doors } from './clients/doors.js';
import { ERRORS } from './clients/error-cases.js';
import { FILMS, FILMS_SETTINGS } from './clients/films.js';
import { READS } from './clients/read-cases.js';
import { uploadFilms } from './clients/upload-films.js';
import type { Json } from './clients/values.js';
import { WRITES } from './clients/write-cases.js';
import { nodeFor, temporaryFolder, until } from './support.js';

/** Operations that may answer before they have been carried out. */
const WAITING = /^(upsert|update|delete|set|overwrite|clear|batch|create)_(points|payload|vectors|update|field_index|vector_name)$/;

test('REST and gRPC', async (context) => {
  const node = await nodeFor(context, { folder: await temporaryFolder(context) });
  const doors = new Doors(node);

  await context.test('reads of every kind answer the same through both doors', async (t) => {
    await uploadFilms(doors);
    let empty = 0;
    const differences = await differencesOf(READS, async ([operation, args, collection]) => {
      const outcome = await doors.both(operation, collection ?? 'films', args);
      assert.ok('result' in outcome, `${operation} ${JSON.stringify(args)} failed: ${JSON.stringify(outcome)}`);
      if (/"points":\[\]|^\[\]$/.test(JSON.stringify(outcome.result))) empty++;
    });
    t.diagnostic(`${READS.length} reads, ${empty} of them with nothing found`);
    assert.deepEqual(differences, []);
  });

  await context.test('requests that cannot be carried out fail through both doors for the same reason', async (t) => {
    const differences = await differencesOf(ERRORS, async ([operation, args, collection]) => {
      const outcome = await doors.both(operation, collection ?? 'films', WAITING.test(operation) ? { wait: true, ...args } : args);
      assert.ok('failed' in outcome, `${operation} ${JSON.stringify(args)} was carried out: ${JSON.stringify(outcome)}`);
    });
    t.diagnostic(`${ERRORS.length} errors`);
    assert.deepEqual(differences, []);
  });

  await context.test('collections made and changed through one door are those made and changed through the other', async () => {
    const made = [...CREATIONS.keys()];
    const differences = [
      ...(await differencesOf(made, async (at) => {
        await doors.both('create_collection', `grpc-${at}`, CREATIONS[at], `rest-${at}`);
        await sameInfo(doors, `rest-${at}`, `grpc-${at}`);
      })),
      ...(await differencesOf(CHANGES, async ([at, change]) => {
        const outcome = await doors.both('update_collection', `grpc-${at}`, change, `rest-${at}`);
        assert.ok('result' in outcome, `${JSON.stringify(change)} failed: ${JSON.stringify(outcome)}`);
        await sameInfo(doors, `rest-${at}`, `grpc-${at}`);
      })),
    ];
    assert.deepEqual(differences, []);
  });

  await context.test('points written through one door are those written through the other', async (t) => {
    for (const name of ['rest', 'grpc']) {
      await doors.rest('create_collection', name, FILMS_SETTINGS);
      await doors.rest('upsert_points', name, { points: FILMS as Json, wait: true });
    }
    const differences = await differencesOf(WRITES, async ([operation, args]) => {
      const outcome = await doors.both(operation, 'grpc', args, 'rest');
      assert.ok('result' in outcome, `${operation} ${JSON.stringify(args)} failed: ${JSON.stringify(outcome)}`);
      if (args.wait === false) return;
      const all = { limit: 1000, with_payload: true, with_vector: true };
      const [rest, grpc] = [await doors.rest('scroll_points', 'rest', all), await doors.rest('scroll_points', 'grpc', all)];
      assert.deepEqual(grpc, rest, `${operation} ${JSON.stringify(args)}`);
    });
    t.diagnostic(`${WRITES.length} writes`);
    assert.deepEqual(differences, []);
    await sameInfo(doors, 'rest', 'grpc');
  });

  await context.test('aliases, names and what the node is are the same through both doors', async () => {
    const create = (collection_name: string, alias_name: string) => ({ create_alias: { collection_name, alias_name } });
    const changes: Json[][] = [
      [create('films', 'now'), create('films', 'later'), create('more-films', 'then')],
      [{ rename_alias: { old_alias_name: 'later', new_alias_name: 'soon' } }, { delete_alias: { alias_name: 'then' } }],
      [{ delete_alias: { alias_name: 'soon' } }, create('more-films', 'soon')],
    ];
    for (const actions of changes) {
      // An action carried out twice in a row is an error or changes nothing: the doors take turns with a start from nothing.
      assert.equal(await doors.rest('update_aliases', '', { actions, timeout: 5 }), true);
      const byRest = await doors.both('get_collections_aliases', '');
      await forgetAliases(doors);
      for (const earlier of changes.slice(0, changes.indexOf(actions) + 1)) await doors.grpc('update_aliases', '', { actions: earlier });
      assert.deepEqual(aliasesIn(await doors.both('get_collections_aliases', '')), aliasesIn(byRest));
      for (const name of ['films', 'more-films', 'rest']) await doors.both('get_collection_aliases', name);
    }
    await doors.both('count_points', 'now', { exact: true });
    await doors.both('query_points', 'now', { query: 3, using: 'plot' });

    await doors.both('root', '');
    await doors.both('get_collections', '');
    for (const name of ['films', 'none', 'now']) await doors.both('collection_exists', name);
    await doors.both('collection_cluster_info', 'films');
    await doors.both('list_shard_keys', 'films');
    await doors.both('delete_collection', 'grpc', { timeout: 5 }, 'rest');
    await doors.both('delete_collection', 'none');
    await doors.both('get_collections', '');
  });

  await context.test('snapshots made through one door are listed and deleted through the other', async () => {
    const operations = [
      ['create_snapshot', 'list_snapshots', 'delete_snapshot', 'films'],
      ['create_full_snapshot', 'list_full_snapshots', 'delete_full_snapshot', ''],
    ] as const;
    for (const [create, list, remove, name] of operations) {
      doors.asked.add(create);
      const made = [await doors.rest(create, name), await doors.grpc(create, name)] as { name: string; checksum: string }[];
      for (const { checksum } of made) assert.match(checksum, /^[0-9a-f]{64}$/);
      const listed = await doors.both(list, name);
      assert.deepEqual('result' in listed && [...(listed.result as unknown[])].sort(byName), made.toSorted(byName));
      const [first, second] = made.map((snapshot) => ({ snapshot_name: snapshot.name }));
      assert.equal(await doors.grpc(remove, name, first), true);
      assert.equal(await doors.rest(remove, name, second), true);
      assert.ok('failed' in (await doors.both(remove, name, first)));
      assert.deepEqual(await doors.both(list, name), { result: [] });
    }
    for (const operation of ['create_snapshot', 'list_snapshots'] as const) assert.ok('failed' in (await doors.both(operation, 'none')));
    assert.ok('failed' in (await doors.both('delete_snapshot', 'none', { snapshot_name: 'a.snapshot' })));
  });

  await context.test('a snapshot restores its collection under another name, through the client', async () => {
    const client = new QdrantClient({ url: node.url });
    const made = await client.createSnapshot('films');
    const location = `${node.url}/collections/films/snapshots/${made?.name}`;
    assert.equal(await client.recoverSnapshot('restored', { location, priority: 'snapshot', checksum: made?.checksum ?? null }), true);
    const all = { limit: 1000, with_payload: true, with_vector: true };
    assert.deepEqual(await doors.rest('scroll_points', 'restored', all), await doors.rest('scroll_points', 'films', all));
    const byNearest = { query: 3, using: 'plot', limit: 20 };
    assert.deepEqual(await doors.rest('query_points', 'restored', byNearest), await doors.rest('query_points', 'films', byNearest));
    const body = { location, priority: 'snapshot', checksum: '0'.repeat(64) } as const;
    await assert.rejects(client.recoverSnapshot('never', body), { status: 400 });
    assert.deepEqual(await client.collectionExists('never'), { exists: false });
    assert.equal(await client.deleteSnapshot('films', made?.name ?? ''), true);
    await client.deleteCollection('restored');
  });

  await context.test('every operation that has a method of gRPC was asked for through both doors', (t) => {
    const shared = ROUTES.filter(({ grpc }) => grpc !== null).map(({ name }) => name);
    const missing = shared.filter((name) => !doors.asked.has(name));
    t.diagnostic(`${shared.length} operations, ${doors.count} requests through both doors`);
    assert.deepEqual(missing, []);
  });
});

async function forgetAliases(doors: Doors): Promise<void> {
  const { aliases } = (await doors.rest('get_collections_aliases', '')) as { aliases: { alias_name: string }[] };
  await doors.rest('update_aliases', '', { actions: aliases.map(({ alias_name }) => ({ delete_alias: { alias_name } })) });
}

function byName(one: unknown, other: unknown): number {
  return (one as { name: string }).name < (other as { name: string }).name ? -1 : 1;
}

function aliasesIn(outcome: unknown): unknown[] {
  const { aliases } = (outcome as { result: { aliases: { alias_name: string }[] } }).result;
  return aliases.toSorted((a, b) => a.alias_name.localeCompare(b.alias_name));
}

/** What was wrong with each of the cases that went wrong. */
async function differencesOf<T>(cases: readonly T[], check: (one: T) => Promise<void>): Promise<string[]> {
  const wrong: string[] = [];
  for (const one of cases) await check(one).catch((error: Error) => wrong.push(error.message));
  return wrong;
}

/** Both collections are shown the same, through both doors. */
async function sameInfo(doors: Doors, ...collections: [string, string]): Promise<void> {
  const infos: unknown[] = [];
  for (const collection of collections) {
    // What is shown of a collection at rest does not change between two requests.
    await until(
      () => doors.rest('get_collection', collection) as Promise<{ status: string }>,
      ({ status }) => status === 'green',
    );
    const outcome = await doors.both('get_collection', collection);
    assert.ok('result' in outcome, JSON.stringify(outcome));
    const { config, payload_schema, points_count } = outcome.result as { [member: string]: unknown };
    infos.push({ config, payload_schema, points_count });
  }
  assert.deepEqual(infos[1], infos[0]);
}
