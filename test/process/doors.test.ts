/** Every operation through REST and through gRPC, asked for by unmodified clients: the answers are the same. */

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { type Args, Doors } from './clients/doors.js';
import { FILM_INDEXES, FILMS, FILMS_SETTINGS } from './clients/films.js';
import { CHANGES, CREATIONS } from './clients/collection-cases.js';
import { ERRORS } from './clients/error-cases.js';
import { READS } from './clients/read-cases.js';
import { WRITES } from './clients/write-cases.js';
import type { Json } from './clients/values.js';
import { nodeFor, temporaryFolder } from './support.js';

test('REST and gRPC', async (context) => {
  const node = await nodeFor(context, { folder: await temporaryFolder(context) });
  const doors = new Doors(node);

  await context.test('reads of every kind answer the same through both doors', async (t) => {
    await uploadFilms(doors);
    let empty = 0;
    const differences = await differencesOf(READS, async ([operation, args]) => {
      const outcome = await doors.both(operation, 'films', args);
      assert.ok('result' in outcome, `${operation} ${JSON.stringify(args)} failed: ${JSON.stringify(outcome)}`);
      if (/"points":\[\]|^\[\]$/.test(JSON.stringify(outcome.result))) empty++;
    });
    t.diagnostic(`${READS.length} reads, ${empty} of them with nothing found`);
    assert.deepEqual(differences, []);
  });

  await context.test('requests that cannot be carried out fail through both doors for the same reason', async (t) => {
    const differences = await differencesOf(ERRORS, async ([operation, args, collection]) => {
      const outcome = await doors.both(operation, collection ?? 'films', args);
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
      const all = { limit: 1000, with_payload: true, with_vector: true };
      const [rest, grpc] = [await doors.rest('scroll_points', 'rest', all), await doors.rest('scroll_points', 'grpc', all)];
      assert.deepEqual(grpc, rest, `${operation} ${JSON.stringify(args)}`);
    });
    t.diagnostic(`${WRITES.length} writes`);
    assert.deepEqual(differences, []);
    await sameInfo(doors, 'rest', 'grpc');
  });
});

/** What was wrong with each of the cases that went wrong. */
async function differencesOf<T>(cases: readonly T[], check: (one: T) => Promise<void>): Promise<string[]> {
  const wrong: string[] = [];
  for (const one of cases) await check(one).catch((error: Error) => wrong.push(error.message));
  return wrong;
}

/** Asks for both collections through both doors. */
async function sameInfo(doors: Doors, ...collections: [string, string]): Promise<void> {
  const infos: unknown[] = [];
  for (const collection of collections) {
    const outcome = await doors.both('get_collection', collection);
    infos.push('result' in outcome ? outcome.result : outcome);
  }
  assert.deepEqual(infos[1], infos[0]);
}

async function uploadFilms(doors: Doors): Promise<void> {
  for (const name of ['films', 'more-films']) await doors.rest('create_collection', name, FILMS_SETTINGS);
  for (const [field_name, field_schema] of FILM_INDEXES) {
    await doors.rest('create_field_index', 'films', { field_name, field_schema, wait: true });
  }
  await doors.rest('upsert_points', 'films', { points: FILMS as Json, wait: true });
  // Points to look up: by ids of films, by values of `length` and by those of `reference`.
  const ids = [1, 2, 3, 61, 62, 63, 64, '11111111-1111-4111-8111-000000000003', '11111111-1111-4111-8111-000000000004'];
  const more = ids.map((id, at) => ({ ...(FILMS[at + 20] as Args), id }));
  await doors.rest('upsert_points', 'more-films', { points: more, wait: true });
}
