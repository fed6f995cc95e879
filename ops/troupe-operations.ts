/** The operations of the REST API as methods, with the same bodies and results. */

import { TroupeError } from '../protocols/errors.js';
import type { BodyOf, OperationName, ResultOf } from '../protocols/openapi/operations.js';
import type {
  AnyPayload,
  OperationCall,
  PointId,
  PointsOptions,
  QueryAnswer,
  ReadOptions,
  ScoredPoint,
  ScrollPage,
  StoredPoint,
  UpsertBody,
  WriteOptions,
} from './troupe-types.js';

type Result<Name extends OperationName> = Promise<ResultOf<Name>>;

/** Points of a page of `points`. */
const PAGE = 256;

/** Every method rejects with a `TroupeError` where the REST API answers with an error. */
export abstract class TroupeOperations {
  protected abstract carryOut<Name extends OperationName>(name: Name, call: OperationCall<Name>): Result<Name>;

  // ---------------------------------------------------------------- collections

  /** Names of all collections. */
  getCollections(): Result<'get_collections'> {
    return this.carryOut('get_collections', {});
  }

  /** Settings and state of a collection. */
  getCollection(collection: string): Result<'get_collection'> {
    return this.carryOut('get_collection', { path: { collection_name: collection } });
  }

  /** Create a collection. */
  createCollection(collection: string, body: BodyOf<'create_collection'>): Result<'create_collection'> {
    return this.carryOut('create_collection', { path: { collection_name: collection }, body });
  }

  /** Creates the collection unless there is one of this name, which stays as it is. True: it was created. */
  async ensureCollection(collection: string, body: BodyOf<'create_collection'>): Promise<boolean> {
    const { exists } = await this.collectionExists(collection);
    if (exists) return false;
    try {
      return await this.createCollection(collection, body);
    } catch (error) {
      // Another call was faster.
      if (error instanceof TroupeError && error.code === 'conflict') return false;
      throw error;
    }
  }

  /** Change settings of a collection. */
  updateCollection(collection: string, body: BodyOf<'update_collection'>): Result<'update_collection'> {
    return this.carryOut('update_collection', { path: { collection_name: collection }, body });
  }

  /** False when there was none. */
  deleteCollection(collection: string): Result<'delete_collection'> {
    return this.carryOut('delete_collection', { path: { collection_name: collection } });
  }

  /** Whether a collection is there. */
  collectionExists(collection: string): Result<'collection_exists'> {
    return this.carryOut('collection_exists', { path: { collection_name: collection } });
  }

  /** What the optimizers of a collection do. */
  getOptimizations(collection: string): Result<'get_optimizations'> {
    const query = { with: 'queued,completed,idle_segments' };
    return this.carryOut('get_optimizations', { path: { collection_name: collection }, query });
  }

  /** All aliases. */
  getAliases(): Result<'get_collections_aliases'> {
    return this.carryOut('get_collections_aliases', {});
  }

  /** Aliases of a collection. */
  getCollectionAliases(collection: string): Result<'get_collection_aliases'> {
    return this.carryOut('get_collection_aliases', { path: { collection_name: collection } });
  }

  /** Create, delete and rename aliases. */
  updateAliases(body: BodyOf<'update_aliases'>): Result<'update_aliases'> {
    return this.carryOut('update_aliases', { body });
  }

  /** Index a payload key. */
  createFieldIndex(collection: string, body: BodyOf<'create_field_index'>, options?: WriteOptions): Result<'create_field_index'> {
    return this.#write('create_field_index', { collection_name: collection }, body, options);
  }

  /** Delete the index of a payload key. */
  deleteFieldIndex(collection: string, field: string, options?: WriteOptions): Result<'delete_field_index'> {
    return this.#write('delete_field_index', { collection_name: collection, field_name: field }, undefined, options);
  }

  /** Add a vector name to a collection. */
  createVectorName(
    collection: string,
    vector: string,
    body: BodyOf<'create_vector_name'>,
    options?: WriteOptions,
  ): Result<'create_vector_name'> {
    return this.#write('create_vector_name', { collection_name: collection, vector_name: vector }, body, options);
  }

  /** Take a vector name from a collection with its vectors. */
  deleteVectorName(collection: string, vector: string, options?: WriteOptions): Result<'delete_vector_name'> {
    return this.#write('delete_vector_name', { collection_name: collection, vector_name: vector }, undefined, options);
  }

  // ---------------------------------------------------------------- snapshots

  /** Snapshots of a collection. */
  listSnapshots(collection: string): Result<'list_snapshots'> {
    return this.carryOut('list_snapshots', { path: { collection_name: collection } });
  }

  /** Make a snapshot of this node’s part of a collection. */
  createSnapshot(collection: string): Result<'create_snapshot'> {
    return this.carryOut('create_snapshot', { path: { collection_name: collection } });
  }

  /** Delete a snapshot of a collection. */
  deleteSnapshot(collection: string, snapshot: string): Result<'delete_snapshot'> {
    return this.carryOut('delete_snapshot', { path: { collection_name: collection, snapshot_name: snapshot } });
  }

  /** Makes the collection what it was in the snapshot; it is created if it does not exist. */
  recoverSnapshot(collection: string, body: BodyOf<'recover_from_snapshot'>): Result<'recover_from_snapshot'> {
    return this.carryOut('recover_from_snapshot', { path: { collection_name: collection }, body });
  }

  /** Snapshots of the whole storage. */
  listFullSnapshots(): Result<'list_full_snapshots'> {
    return this.carryOut('list_full_snapshots', {});
  }

  /** Make a snapshot of the whole storage. */
  createFullSnapshot(): Result<'create_full_snapshot'> {
    return this.carryOut('create_full_snapshot', {});
  }

  /** Delete a snapshot of the whole storage. */
  deleteFullSnapshot(snapshot: string): Result<'delete_full_snapshot'> {
    return this.carryOut('delete_full_snapshot', { path: { snapshot_name: snapshot } });
  }

  // ---------------------------------------------------------------- writes to points

  /** Inserts points, or replaces those of the same ids. Vectors may be `Float32Array`s; payloads any objects, also of an interface. */
  upsert<Payload extends object>(collection: string, body: UpsertBody<Payload>, options?: WriteOptions): Result<'upsert_points'> {
    return this.#write('upsert_points', { collection_name: collection }, body as BodyOf<'upsert_points'>, options);
  }

  /** Delete points. */
  delete(collection: string, body: BodyOf<'delete_points'>, options?: WriteOptions): Result<'delete_points'> {
    return this.#write('delete_points', { collection_name: collection }, body, options);
  }

  /** Set payload keys of points. */
  setPayload(collection: string, body: BodyOf<'set_payload'>, options?: WriteOptions): Result<'set_payload'> {
    return this.#write('set_payload', { collection_name: collection }, body, options);
  }

  /** Replace the payload of points. */
  overwritePayload(collection: string, body: BodyOf<'overwrite_payload'>, options?: WriteOptions): Result<'overwrite_payload'> {
    return this.#write('overwrite_payload', { collection_name: collection }, body, options);
  }

  /** Delete payload keys of points. */
  deletePayload(collection: string, body: BodyOf<'delete_payload'>, options?: WriteOptions): Result<'delete_payload'> {
    return this.#write('delete_payload', { collection_name: collection }, body, options);
  }

  /** Delete the payload of points. */
  clearPayload(collection: string, body: BodyOf<'clear_payload'>, options?: WriteOptions): Result<'clear_payload'> {
    return this.#write('clear_payload', { collection_name: collection }, body, options);
  }

  /** Several writes in their order. */
  batchUpdate(collection: string, body: BodyOf<'batch_update'>, options?: WriteOptions): Result<'batch_update'> {
    return this.#write('batch_update', { collection_name: collection }, body, options);
  }

  /** Replace named vectors of points. */
  updateVectors(collection: string, body: BodyOf<'update_vectors'>, options?: WriteOptions): Result<'update_vectors'> {
    return this.#write('update_vectors', { collection_name: collection }, body, options);
  }

  /** Delete named vectors of points. */
  deleteVectors(collection: string, body: BodyOf<'delete_vectors'>, options?: WriteOptions): Result<'delete_vectors'> {
    return this.#write('delete_vectors', { collection_name: collection }, body, options);
  }

  // ---------------------------------------------------------------- reads of points

  /** One point. */
  getPoint<Payload extends object = AnyPayload>(collection: string, id: PointId, options?: ReadOptions): Promise<StoredPoint<Payload>> {
    const path = { collection_name: collection, id: String(id) };
    return this.carryOut('get_point', { path, ...readCall(options) }) as Promise<StoredPoint<Payload>>;
  }

  /** Points by id. */
  retrieve<Payload extends object = AnyPayload>(
    collection: string,
    body: BodyOf<'get_points'>,
    options?: ReadOptions,
  ): Promise<StoredPoint<Payload>[]> {
    return this.#read('get_points', collection, body, options) as Promise<StoredPoint<Payload>[]>;
  }

  /** Points in the order of their ids or of a payload key. */
  scroll<Payload extends object = AnyPayload>(
    collection: string,
    body: BodyOf<'scroll_points'> = {},
    options?: ReadOptions,
  ): Promise<ScrollPage<Payload>> {
    return this.#read('scroll_points', collection, body, options) as Promise<ScrollPage<Payload>>;
  }

  /** All points that pass, one after the other in the order of their ids, read page by page: `for await (const point of troupe.points('c'))`. */
  async *points<Payload extends object = AnyPayload>(
    collection: string,
    { batch = PAGE, ...body }: PointsOptions = {},
  ): AsyncGenerator<StoredPoint<Payload>, void, undefined> {
    let page: ScrollPage<Payload>;
    let offset = body.offset ?? null;
    do {
      page = await this.scroll<Payload>(collection, { ...body, limit: batch, ...(offset === null ? {} : { offset }) });
      yield* page.points;
      offset = page.next_page_offset ?? null;
    } while (offset !== null);
  }

  /** How many points fit a filter. */
  count(collection: string, body: BodyOf<'count_points'> = {}, options?: ReadOptions): Result<'count_points'> {
    return this.#read('count_points', collection, body, options);
  }

  /** Values of a payload key with their counts. */
  facet(collection: string, body: BodyOf<'facet'>, options?: ReadOptions): Result<'facet'> {
    return this.#read('facet', collection, body, options);
  }

  /** Find points. */
  query<Payload extends object = AnyPayload>(
    collection: string,
    body: BodyOf<'query_points'>,
    options?: ReadOptions,
  ): Promise<QueryAnswer<Payload>> {
    return this.#read('query_points', collection, body, options) as Promise<QueryAnswer<Payload>>;
  }

  /** Several queries at once. */
  queryBatch<Payload extends object = AnyPayload>(
    collection: string,
    body: BodyOf<'query_batch_points'>,
    options?: ReadOptions,
  ): Promise<QueryAnswer<Payload>[]> {
    return this.#read('query_batch_points', collection, body, options) as Promise<QueryAnswer<Payload>[]>;
  }

  /** Find points in groups by a payload key. */
  queryGroups(collection: string, body: BodyOf<'query_points_groups'>, options?: ReadOptions): Result<'query_points_groups'> {
    return this.#read('query_points_groups', collection, body, options);
  }

  /** Points nearest to a vector. */
  search<Payload extends object = AnyPayload>(
    collection: string,
    body: BodyOf<'search_points'>,
    options?: ReadOptions,
  ): Promise<ScoredPoint<Payload>[]> {
    return this.#read('search_points', collection, body, options) as Promise<ScoredPoint<Payload>[]>;
  }

  /** Several searches at once. */
  searchBatch(collection: string, body: BodyOf<'search_batch_points'>, options?: ReadOptions): Result<'search_batch_points'> {
    return this.#read('search_batch_points', collection, body, options);
  }

  /** Nearest points in groups by a payload key. */
  searchGroups(collection: string, body: BodyOf<'search_point_groups'>, options?: ReadOptions): Result<'search_point_groups'> {
    return this.#read('search_point_groups', collection, body, options);
  }

  /** Nearest neighbours among a sample, as pairs. */
  searchMatrixPairs(collection: string, body: BodyOf<'search_matrix_pairs'> = {}, options?: ReadOptions): Result<'search_matrix_pairs'> {
    return this.#read('search_matrix_pairs', collection, body, options);
  }

  /** Nearest neighbours among a sample, as a sparse matrix. */
  searchMatrixOffsets(
    collection: string,
    body: BodyOf<'search_matrix_offsets'> = {},
    options?: ReadOptions,
  ): Result<'search_matrix_offsets'> {
    return this.#read('search_matrix_offsets', collection, body, options);
  }

  /** Points like some and unlike others. */
  recommend<Payload extends object = AnyPayload>(
    collection: string,
    body: BodyOf<'recommend_points'>,
    options?: ReadOptions,
  ): Promise<ScoredPoint<Payload>[]> {
    return this.#read('recommend_points', collection, body, options) as Promise<ScoredPoint<Payload>[]>;
  }

  /** Several recommendations at once. */
  recommendBatch(collection: string, body: BodyOf<'recommend_batch_points'>, options?: ReadOptions): Result<'recommend_batch_points'> {
    return this.#read('recommend_batch_points', collection, body, options);
  }

  /** Recommended points in groups by a payload key. */
  recommendGroups(collection: string, body: BodyOf<'recommend_point_groups'>, options?: ReadOptions): Result<'recommend_point_groups'> {
    return this.#read('recommend_point_groups', collection, body, options);
  }

  /** Points near a target on the side of positive examples. */
  discover<Payload extends object = AnyPayload>(
    collection: string,
    body: BodyOf<'discover_points'>,
    options?: ReadOptions,
  ): Promise<ScoredPoint<Payload>[]> {
    return this.#read('discover_points', collection, body, options) as Promise<ScoredPoint<Payload>[]>;
  }

  /** Several discoveries at once. */
  discoverBatch(collection: string, body: BodyOf<'discover_batch_points'>, options?: ReadOptions): Result<'discover_batch_points'> {
    return this.#read('discover_batch_points', collection, body, options);
  }

  /** The tree of actors, collections and memory. */
  telemetry(detailsLevel = 0): Result<'telemetry'> {
    return this.carryOut('telemetry', { query: { details_level: String(detailsLevel) } });
  }

  #read<Name extends OperationName>(name: Name, collection: string, body: BodyOf<Name>, options: ReadOptions | undefined): Result<Name> {
    return this.carryOut(name, { path: { collection_name: collection }, body, ...readCall(options) });
  }

  #write<Name extends OperationName>(
    name: Name,
    path: Readonly<Record<string, string>>,
    body: BodyOf<Name> | undefined,
    options: WriteOptions | undefined,
  ): Result<Name> {
    const query = parameters({ wait: true, ...options });
    return this.carryOut(name, body === undefined ? { path, query } : { path, query, body });
  }
}

/** Whoever hears how a read was carried out has asked for it. */
function readCall({ explained, ...options }: ReadOptions = {}): Pick<OperationCall<OperationName>, 'explained' | 'query'> {
  return explained === undefined ? { query: parameters(options) } : { query: parameters({ ...options, explain: true }), explained };
}

/** Options as query parameters. */
function parameters(options: object | undefined): Record<string, string> {
  const given = Object.entries(options ?? {}).filter(([, value]) => value !== undefined);
  return Object.fromEntries(given.map(([name, value]) => [name, String(value)]));
}
