/** The schemas say what the decoders take: each random body that a schema describes is taken, and none that is broken. */

import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { ROUTES } from '../../../http/routes.js';
import { TroupeError } from '../../../protocols/errors.js';
import type { CollectionParams } from '../../../protocols/model/collection.js';
import { OPERATION_SCHEMAS, type OperationName, type OperationSchema } from '../../../protocols/openapi/operations.js';
import { ANYTHING } from '../../../protocols/openapi/schema.js';
import { decodeAliasActions } from '../../../protocols/rest/aliases.js';
import { decodeCollectionClusterUpdate, decodeCreateShardKey, decodeDeleteShardKey } from '../../../protocols/rest/cluster.js';
import { BUILT_IN_DEFAULTS, decodeCreateCollection, decodeUpdateCollection } from '../../../protocols/rest/collections.js';
import { decodeFacet } from '../../../protocols/rest/facet.js';
import { decodeQueryGroups, decodeRecommendGroups, decodeSearchGroups } from '../../../protocols/rest/groups.js';
import { decodeMatrix } from '../../../protocols/rest/matrix.js';
import {
  decodeCount,
  decodeQuery,
  decodeQueryBatch,
  decodeRetrieve,
  decodeScroll,
  decodeSearch,
  decodeSearchBatch,
} from '../../../protocols/rest/queries.js';
import { decodeDiscover, decodeDiscoverBatch, decodeRecommend, decodeRecommendBatch } from '../../../protocols/rest/recommend.js';
import { scannedBody } from '../../../protocols/rest/request-value.js';
import { decodeRecovery } from '../../../protocols/rest/snapshots.js';
import { decodeUpdateBody } from '../../../protocols/rest/update-body.js';
import { decodeNewVector } from '../../../protocols/rest/vector-names.js';
import type { WriteOperation } from '../../../storage/threads/messages.js';
import { bodyOf, describes } from './random-body.js';

const RUNS = 150;
/** Whether a body makes sense (wrongInput, badRequest) and this release does it (unsupported) is not for the schema to say. */
const NOT_FORMAL: readonly string[] = ['wrongInput', 'badRequest', 'unsupported'];

type Decode = (body: Uint8Array) => unknown;

const PARAMS: CollectionParams = {
  vectors: { size: 3, distance: 'Dot' },
  shard_number: 1,
  replication_factor: 1,
  write_consistency_factor: 1,
  on_disk_payload: true,
};

const DECODERS: Partial<Record<OperationName, Decode>> = {
  create_collection: (body) => decodeCreateCollection(valueIn(body), BUILT_IN_DEFAULTS),
  update_collection: (body) => decodeUpdateCollection(valueIn(body)),
  create_vector_name: (body) => decodeNewVector('new', valueIn(body)),
  update_aliases: (body) => decodeAliasActions(valueIn(body)),
  get_points: (body) => decodeRetrieve(scannedBody(body)),
  scroll_points: (body) => decodeScroll(scannedBody(body)),
  count_points: (body) => decodeCount(scannedBody(body)),
  query_points: (body) => decodeQuery(scannedBody(body)),
  query_batch_points: (body) => decodeQueryBatch(scannedBody(body)),
  query_points_groups: (body) => decodeQueryGroups(scannedBody(body)),
  search_points: (body) => decodeSearch(scannedBody(body)),
  search_batch_points: (body) => decodeSearchBatch(scannedBody(body)),
  search_point_groups: (body) => decodeSearchGroups(scannedBody(body)),
  search_matrix_pairs: (body) => decodeMatrix(scannedBody(body)),
  search_matrix_offsets: (body) => decodeMatrix(scannedBody(body)),
  recommend_points: (body) => decodeRecommend(scannedBody(body)),
  recommend_batch_points: (body) => decodeRecommendBatch(scannedBody(body)),
  recommend_point_groups: (body) => decodeRecommendGroups(scannedBody(body)),
  discover_points: (body) => decodeDiscover(scannedBody(body)),
  discover_batch_points: (body) => decodeDiscoverBatch(scannedBody(body)),
  update_collection_cluster: (body) => decodeCollectionClusterUpdate(valueIn(body)),
  create_shard_key: (body) => decodeCreateShardKey(valueIn(body)),
  delete_shard_key: (body) => decodeDeleteShardKey(valueIn(body)),
  recover_from_snapshot: (body) => decodeRecovery(valueIn(body), false),
  recover_shard_from_snapshot: (body) => decodeRecovery(valueIn(body), true),
  facet: (body) => decodeFacet(scannedBody(body)),
  ...Object.fromEntries(
    ROUTES.flatMap((row) => (row.kind === 'write' ? [[row.name, (body: Uint8Array) => decodeWrite(row.engine, body)]] : [])),
  ),
};

/** All but those that take any JSON. */
const WITH_BODY = (Object.keys(OPERATION_SCHEMAS) as OperationName[]).filter((name) => {
  const operation: OperationSchema = OPERATION_SCHEMAS[name];
  return operation.body !== undefined && operation.body !== ANYTHING;
});

function decodeWrite(operation: WriteOperation, body: Uint8Array): void {
  const { failure } = decodeUpdateBody(operation, body, {}, PARAMS);
  if (failure !== null) throw failure;
}

function valueIn(body: Uint8Array) {
  return scannedBody(body).value;
}

/** What decoding comes to: null for a body that is taken. */
function refusal(name: OperationName, body: unknown): TroupeError | null {
  try {
    (DECODERS[name] as Decode)(new TextEncoder().encode(JSON.stringify(body)));
    return null;
  } catch (error) {
    assert.ok(error instanceof TroupeError, `${name}: ${(error as Error).stack}`);
    return error;
  }
}

test('there is a decoder for every body that is described', () => {
  assert.deepEqual(
    WITH_BODY.filter((name) => DECODERS[name] === undefined),
    [],
  );
});

for (const name of WITH_BODY.filter((described) => DECODERS[described] !== undefined)) {
  const schema = (OPERATION_SCHEMAS[name] as { body: Parameters<typeof bodyOf>[0] }).body;

  test(`${name}: a body that the schema describes is of the right form`, () => {
    fc.assert(
      fc.property(bodyOf(schema), (body) => {
        const error = refusal(name, body);
        const formal = error !== null && !NOT_FORMAL.includes(error.code) && !isToItself(body);
        assert.ok(!formal, `${JSON.stringify(body)}: ${error?.message}`);
      }),
      { numRuns: RUNS },
    );
  });

  test(`${name}: a body that is broken in one place is refused`, () => {
    fc.assert(
      fc.property(
        bodyOf(schema).chain((body) => broken(body)),
        (body) => {
          fc.pre(!describes(schema, body));
          assert.notEqual(refusal(name, body), null, JSON.stringify(body));
        },
      ),
      { numRuns: RUNS },
    );
  });
}

/** Whether a shard is to go where it is, which no schema says. */
function isToItself(body: unknown): boolean {
  const { move_shard, replicate_shard } = body as Record<string, Record<string, unknown> | undefined>;
  const transfer = move_shard ?? replicate_shard;
  return transfer !== undefined && transfer.from_peer_id === transfer.to_peer_id;
}

/** The value with another one, of any type, at one place. */
function broken(value: unknown): fc.Arbitrary<unknown> {
  const wrong = fc.constantFrom<unknown>('text', -1, 0.5, true, [], {}, [[]], { x: 1 });
  const places = placesIn(value);
  return fc.tuple(fc.nat(places.length - 1), wrong).map(([at, other]) => replaced(value, places[at] as string[], other));
}

function placesIn(value: unknown, path: readonly string[] = []): (readonly string[])[] {
  if (typeof value !== 'object' || value === null) return [path];
  const inside = Object.entries(value).filter(([key]) => key !== 'shard_key');
  return [path, ...inside.flatMap(([key, inner]) => placesIn(inner, [...path, key]))];
}

function replaced(value: unknown, path: readonly string[], other: unknown): unknown {
  const [key, ...rest] = path;
  if (key === undefined) return other;
  const entries = Object.entries(value as object).map(([name, inner]) => [name, name === key ? replaced(inner, rest, other) : inner]);
  return Array.isArray(value) ? entries.map(([, inner]) => inner) : Object.fromEntries(entries);
}
