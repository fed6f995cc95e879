/** Every operation that both doors have, as the unmodified clients for REST and gRPC ask for it. */

import assert from 'node:assert/strict';
import { type DescMessage, fromJson, type Message, toJson } from '@bufbuild/protobuf';
import * as proto from '@qdrant/js-client-grpc';
import { QdrantClient as RestClient } from '@qdrant/js-client-rest';
import { ROUTES } from '../../../http/routes.js';
import type { RunningNode } from '../../../ops/node-process.js';
import { ERROR_KINDS } from '../../../protocols/errors.js';
import { batchOf, compared, facetOf, groupsOf, offsetsOf, pairsOf, pointsOf, scrollOf, updateOf } from './answers.js';
import { discoverMessage, orderMessage, queryPointsMessage, readMessage, recommendMessage, searchMessage } from './query-message.js';
import { fieldIndexMessage, infoOf, numbersOf, settingsMessage, vectorNameMessage } from './settings.js';
import { idMessage, type Json, type Members, mapOf, maybe, sent, shardKeyMessage, shardKeyOf } from './values.js';
import { batchMessage, pointsMessage, writeMessage } from './write-message.js';

/** Body and query parameters of a request, as the client for REST takes them together. */
export type Args = { [key: string]: Json };

interface DoorPair {
  rest(client: RestClient, collection: string, args: never): Promise<unknown>;
  /** Name of the request's message, and its members but the collection's name. */
  readonly request: string;
  message(args: Args, collection: string): { [key: string]: Json };
  /** The answer's message as the result of REST. */
  result(message: { [key: string]: Json }): unknown;
}

export type OperationName = keyof typeof PAIRS;

/** By the operation's name in `http/routes.ts`. */
const PAIRS = {
  // REST tells besides which release of this project it is.
  root: pair(
    async (client) => ({ ...(await client.versionInfo()), troupe: undefined }),
    'HealthCheckRequest',
    same,
    ({ title, version, commit }) => ({ title, version, commit }),
  ),

  list_snapshots: pair((client, name) => client.listSnapshots(name), 'ListSnapshotsRequest', same, snapshotList),
  create_snapshot: pair((client, name) => client.createSnapshot(name), 'CreateSnapshotRequest', same, madeSnapshot),
  delete_snapshot: pair(
    (client, name, { snapshot_name }) => client.deleteSnapshot(name, snapshot_name as string),
    'DeleteSnapshotRequest',
    same,
    () => true,
  ),
  list_full_snapshots: pair((client) => client.listFullSnapshots(), 'ListFullSnapshotsRequest', same, snapshotList),
  create_full_snapshot: pair((client) => client.createFullSnapshot(), 'CreateFullSnapshotRequest', same, madeSnapshot),
  delete_full_snapshot: pair(
    (client, _, { snapshot_name }) => client.deleteFullSnapshot(snapshot_name as string),
    'DeleteFullSnapshotRequest',
    same,
    () => true,
  ),

  get_collections: pair(
    (client) => client.getCollections(),
    'ListCollectionsRequest',
    same,
    ({ collections }) => ({ collections }),
  ),
  get_collection: pair(
    (client, name) => client.getCollection(name),
    'GetCollectionInfoRequest',
    same,
    ({ result }) => infoOf(result as Members),
  ),
  // The method of the client leaves out `metadata`.
  create_collection: pair(
    async (client, collection_name, args: object) => (await client.api().createCollection({ collection_name, ...args })).data.result,
    'CreateCollection',
    settingsMessage,
    same0,
  ),
  update_collection: pair((client, name, args) => client.updateCollection(name, args), 'UpdateCollection', settingsMessage, same0),
  delete_collection: pair((client, name, args) => client.deleteCollection(name, args), 'DeleteCollection', same, same0),
  collection_exists: pair((client, name) => client.collectionExists(name), 'CollectionExistsRequest', same, same0),
  get_collection_aliases: pair((client, name) => client.getCollectionAliases(name), 'ListCollectionAliasesRequest', same, aliases),
  get_collections_aliases: pair((client) => client.getAliases(), 'ListAliasesRequest', same, aliases),
  update_aliases: pair((client, _, args) => client.updateCollectionAliases(args), 'ChangeAliases', same, same0),
  collection_cluster_info: pair((client, name) => client.collectionClusterInfo(name), 'CollectionClusterInfoRequest', same, clusterInfo),
  list_shard_keys: pair(
    (client, name) => client.listShardKeys(name),
    'ListShardKeysRequest',
    same,
    ({ shard_keys }) => ({ shard_keys: (shard_keys as { key: Json }[]).map(({ key }) => ({ key: shardKeyOf(key) })) }),
  ),

  create_shard_key: pair((client, name, args) => client.createShardKey(name, args), 'CreateShardKeyRequest', keyRequest, same0),
  delete_shard_key: pair((client, name, args) => client.deleteShardKey(name, args), 'DeleteShardKeyRequest', keyRequest, same0),
  update_collection_cluster: pair(
    (client, name, args) => client.updateCollectionCluster(name, args),
    'UpdateCollectionClusterSetupRequest',
    same,
    same0,
  ),

  create_field_index: pair(
    (client, name, args) => client.createPayloadIndex(name, args),
    'CreateFieldIndexCollection',
    writing(fieldIndexMessage),
    update,
  ),
  delete_field_index: pair(
    (client, name, { field_name, ...args }: { field_name: string }) => client.deletePayloadIndex(name, field_name, args),
    'DeleteFieldIndexCollection',
    writing(same),
    update,
  ),
  create_vector_name: pair(
    (client, name, { vector_name, wait, timeout, ...config }: { vector_name: string; wait: boolean; timeout: number }) =>
      client.createVectorName(name, vector_name, config as never, { wait, timeout }),
    'CreateVectorNameRequest',
    writing(vectorNameMessage),
    update,
  ),
  delete_vector_name: pair(
    (client, name, { vector_name, ...args }: { vector_name: string }) => client.deleteVectorName(name, vector_name, args),
    'DeleteVectorNameRequest',
    writing(same),
    update,
  ),

  get_points: pair(
    (client, name, args) => client.retrieve(name, args),
    'GetPoints',
    withPayload(({ ids, ...args }) => ({ ...readMessage(args), ids: (ids as Json[]).map(idMessage) })),
    ({ result }) => pointsOf(result),
  ),
  scroll_points: pair(
    (client, name, args) => client.scroll(name, args),
    'ScrollPoints',
    ({ offset, order_by, ...args }) =>
      sent({ ...readMessage(args), offset: maybe(offset, idMessage), order_by: maybe(order_by, orderMessage) }),
    scrollOf,
  ),
  count_points: pair(
    (client, name, args) => client.count(name, args),
    'CountPoints',
    readMessage,
    ({ result }) => numbersOf(result as Members),
  ),
  query_points: pair(
    (client, name, args) => client.query(name, args),
    'QueryPoints',
    queryPointsMessage,
    ({ result }) => ({ points: pointsOf(result) }),
  ),
  query_batch_points: pair(
    (client, name, args) => client.queryBatch(name, args),
    'QueryBatchPoints',
    searches('query_points', queryPointsMessage),
    ({ result }) => batchOf(result as Json).map((points) => ({ points })),
  ),
  query_points_groups: pair((client, name, args) => client.queryGroups(name, args), 'QueryPointGroups', queryPointsMessage, groups),
  search_points: pair(
    (client, name, args) => client.search(name, args),
    'SearchPoints',
    withPayload(searchMessage),
    ({ result }) => pointsOf(result),
  ),
  search_batch_points: pair(
    (client, name, args) => client.searchBatch(name, args),
    'SearchBatchPoints',
    searches('search_points', searchMessage),
    batch,
  ),
  // The methods of the client for groups leave out `with_lookup`.
  search_point_groups: pair(
    async (client, collection_name, args: object) =>
      (await client.api().searchPointGroups({ collection_name, ...args } as never)).data.result,
    'SearchPointGroups',
    searchMessage,
    groups,
  ),
  search_matrix_pairs: pair(
    (client, name, args) => client.searchMatrixPairs(name, args),
    'SearchMatrixPoints',
    readMessage,
    ({ result }) => pairsOf(result as Json),
  ),
  search_matrix_offsets: pair(
    (client, name, args) => client.searchMatrixOffsets(name, args),
    'SearchMatrixPoints',
    readMessage,
    ({ result }) => offsetsOf(result as Json),
  ),
  recommend_points: pair(
    (client, name, args) => client.recommend(name, args),
    'RecommendPoints',
    withPayload(recommendMessage),
    ({ result }) => pointsOf(result),
  ),
  recommend_batch_points: pair(
    (client, name, args) => client.recommendBatch(name, args),
    'RecommendBatchPoints',
    searches('recommend_points', recommendMessage),
    batch,
  ),
  recommend_point_groups: pair(
    async (client, collection_name, args: object) =>
      (await client.api().recommendPointGroups({ collection_name, ...args } as never)).data.result,
    'RecommendPointGroups',
    recommendMessage,
    groups,
  ),
  // The method of the client leaves out `filter`.
  discover_points: pair(
    async (client, collection_name, args: object) => (await client.api().discoverPoints({ collection_name, ...args } as never)).data.result,
    'DiscoverPoints',
    discoverMessage,
    ({ result }) => pointsOf(result),
  ),
  discover_batch_points: pair(
    (client, name, args) => client.discoverBatchPoints(name, args),
    'DiscoverBatchPoints',
    searches('discover_points', discoverMessage),
    batch,
  ),
  facet: pair((client, name, args) => client.facet(name, args), 'FacetCounts', readMessage, facetOf),

  upsert_points: pair((client, name, args) => client.upsert(name, args), 'UpsertPoints', writing(pointsMessage), update),
  delete_points: pair((client, name, args) => client.delete(name, args), 'DeletePoints', writing(writeMessage('points')), update),
  set_payload: pair(
    (client, name, args) => client.setPayload(name, args),
    'SetPayloadPoints',
    writing(writeMessage('points_selector')),
    update,
  ),
  overwrite_payload: pair(
    (client, name, args) => client.overwritePayload(name, args),
    'SetPayloadPoints',
    writing(writeMessage('points_selector')),
    update,
  ),
  delete_payload: pair(
    (client, name, args) => client.deletePayload(name, args),
    'DeletePayloadPoints',
    writing(writeMessage('points_selector')),
    update,
  ),
  clear_payload: pair(
    (client, name, args) => client.clearPayload(name, args),
    'ClearPayloadPoints',
    writing(writeMessage('points')),
    update,
  ),
  batch_update: pair(
    (client, name, args) => client.batchUpdate(name, args),
    'UpdateBatchPoints',
    writing(({ operations, ...args }) => ({ ...args, operations: batchMessage(operations as Json) })),
    ({ result }) => (result as Json[]).map(updateOf),
  ),
  // The method of the client leaves out `update_filter`.
  update_vectors: pair(
    async (client, collection_name, args: object) => (await client.api().updateVectors({ collection_name, ...args } as never)).data.result,
    'UpdatePointVectors',
    writing(pointsMessage),
    update,
  ),
  delete_vectors: pair(
    (client, name, args) => client.deleteVectors(name, args),
    'DeletePointVectors',
    writing(writeMessage('points_selector')),
    update,
  ),
} satisfies { [name: string]: DoorPair };

function pair<A = never>(
  rest: (client: RestClient, collection: string, args: A) => Promise<unknown>,
  request: string,
  message: DoorPair['message'],
  result: DoorPair['result'],
): DoorPair {
  return { rest: rest as DoorPair['rest'], request, message, result };
}

function same(args: Args): Args {
  return args;
}

/** The only member of an answer. */
function same0({ result }: { [key: string]: Json }): unknown {
  return result;
}

function keyRequest({ shard_key, timeout, ...args }: Args): Args {
  return {
    timeout: timeout as Json,
    request: { ...args, shard_key: shardKeyMessage(shard_key as Json) },
  };
}

function clusterInfo(info: { [key: string]: Json }): unknown {
  const { local_shards, remote_shards, ...rest } = numbersOf(info) as { [key: string]: { shard_key?: Json }[] };
  const withKeys = (shards: { shard_key?: Json }[] = []) =>
    shards.map((shard) => (shard.shard_key === undefined ? shard : { ...shard, shard_key: shardKeyOf(shard.shard_key) }));
  return { ...rest, local_shards: withKeys(local_shards), remote_shards: withKeys(remote_shards) };
}

function aliases({ aliases: list }: { [key: string]: Json }): unknown {
  return { aliases: list };
}

function update({ result }: { [key: string]: Json }): unknown {
  return updateOf(result as Json);
}

function batch({ result }: { [key: string]: Json }): unknown {
  return batchOf(result as Json);
}

function groups({ result }: { [key: string]: Json }): unknown {
  return groupsOf(result as Json);
}

/** The client for REST asks for payloads unless it is told not to. */
function withPayload(message: (args: Members) => Args): DoorPair['message'] {
  return (args) => message({ with_payload: true, ...args });
}

function snapshotList({ snapshot_descriptions }: Args): Json {
  return (snapshot_descriptions as Args[]).map(describedSnapshot);
}

function madeSnapshot({ snapshot_description }: Args): Json {
  return describedSnapshot(snapshot_description as Args);
}

/** Times have a zone over gRPC. */
function describedSnapshot({ creation_time, size, ...more }: Args): Json {
  return { ...more, creation_time: (creation_time as string).replace('Z', ''), size: Number(size) };
}

function writing(message: (args: Args) => Args): DoorPair['message'] {
  return ({ ordering, ...args }) => sent({ ...message(args), ordering: maybe(ordering, orderingMessage) });
}

function orderingMessage(ordering: string): Json {
  return { type: ordering.charAt(0).toUpperCase() + ordering.slice(1) };
}

/** Each search of a batch names the collection again. */
function searches(field: string, message: (args: Members) => Args): DoorPair['message'] {
  return ({ searches: list, ...args }, collection_name) => ({
    ...readMessage(args),
    [field]: (list as Members[]).map((one) => ({ ...message(one), collection_name })),
  });
}

/** What an operation answered: its result, or how it failed. */
export type Outcome = { readonly result: unknown } | { readonly failed: number; readonly message: string };

const ROWS = new Map(ROUTES.map((row) => [row.name, row]));

export class Doors {
  readonly #rest: RestClient;
  readonly #grpc: proto.QdrantClient;
  /** Operations that were asked for through both doors. */
  readonly asked = new Set<string>();
  /** Requests that were sent through both doors. */
  count = 0;

  constructor(node: Pick<RunningNode, 'url' | 'grpcPort'>) {
    this.#rest = new RestClient({ url: node.url });
    this.#grpc = new proto.QdrantClient({ host: '127.0.0.1', port: node.grpcPort });
  }

  /** The result through REST. */
  async rest(operation: OperationName, collection: string, args: Args = {}): Promise<unknown> {
    return PAIRS[operation].rest(this.#rest, collection, args as never);
  }

  /** The result through gRPC, in the form of REST. */
  async grpc(operation: OperationName, collection: string, args: Args = {}): Promise<unknown> {
    const { request, message, result } = PAIRS[operation] as DoorPair;
    const [, service, method] = /^qdrant\.(\w+)\/(\w+)$/.exec(ROWS.get(operation)?.grpc ?? '') ?? [];
    const schema = schemaOf(request);
    const named = schema.fields.some((field) => field.name === 'collection_name') && collection !== '';
    const json = mapOf({ ...message(args, collection), collection_name: named ? collection : undefined }, (value) => value);
    const api = this.#grpc.api(service === 'Qdrant' ? 'service' : (service?.toLowerCase() as 'points')) as unknown as {
      [method: string]: (message: Message) => Promise<Message>;
    };
    const call = api[(method as string).charAt(0).toLowerCase() + (method as string).slice(1)];
    const answer = await call?.(fromJson(schema, json));
    const answerSchema = schemaOf((answer as Message).$typeName.replace('qdrant.', ''));
    return result(
      toJson(answerSchema, answer as Message, { useProtoFieldName: true, alwaysEmitImplicit: true }) as { [key: string]: Json },
    );
  }

  /**
   * Asks through both doors and gives back what both have answered: equal results, or failures that are the same row of
   * the catalogue of errors. A writing operation is asked for on two collections, `restCollection` and `collection`.
   */
  async both(operation: OperationName, collection: string, args: Args = {}, restCollection = collection): Promise<Outcome> {
    this.asked.add(operation);
    this.count++;
    const [rest, grpc] = [await outcome(this.rest(operation, restCollection, args)), await outcome(this.grpc(operation, collection, args))];
    const what = `${operation} ${JSON.stringify(args).slice(0, 500)}`;
    if ('failed' in rest || 'failed' in grpc) {
      assert.ok('failed' in rest && 'failed' in grpc, `${what}\nREST ${JSON.stringify(rest)}\ngRPC ${JSON.stringify(grpc)}`);
      const alike = Object.values(ERROR_KINDS).some(
        ({ restStatus, grpcStatus }) => restStatus === rest.failed && grpcStatus === grpc.failed,
      );
      assert.ok(alike && rest.failed < 500, `${what}\nREST ${JSON.stringify(rest)}\ngRPC ${JSON.stringify(grpc)}`);
      return rest;
    }
    assert.deepEqual(compared(grpc.result), compared(rest.result), what);
    return rest;
  }
}

/** What a request comes to. */
export async function outcome(asked: Promise<unknown>): Promise<Outcome> {
  try {
    return { result: await asked };
  } catch (error) {
    if (error instanceof proto.ConnectError) return { failed: error.code, message: error.rawMessage };
    const { status, data } = error as { status?: number; data?: { status?: { error?: string } } };
    if (status === undefined) throw error;
    return { failed: status, message: data?.status?.error ?? '' };
  }
}

function schemaOf(name: string): DescMessage {
  const schema = (proto as unknown as { [name: string]: DescMessage })[`${name}Schema`];
  assert.ok(schema !== undefined, `the client knows no message ${name}`);
  return schema;
}
