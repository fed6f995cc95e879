/**
 * Troupe within another program: `import { Troupe } from 'troupe'`. The operations of the REST API with the same bodies
 * and results, on the same files, without sockets.
 */

import type { DoorServices } from '../http/context/services.js';
import { type Call, callOperation } from '../http/embedded/in-process.js';
import { TroupeError } from '../protocols/errors.js';
import type { BodyOf, OperationName, ResultOf } from '../protocols/openapi/operations.js';
import { freeForStart } from '../storage/disk/disk-watch.js';
import { type Composition, compose } from './compose.js';
import { unavailableSettings } from './config/available.js';
import { readBackupPlans } from './config/backup-settings.js';
import { resolveSettings, SettingsError } from './config/resolve.js';
import { snapshotProblems } from './config/snapshot-settings.js';
import { nodeIdentity } from './identity.js';
import { lockStorage, type StorageLock } from './lock/storage-lock.js';
import { type LogOutput, moduleLog, parseLevels } from './log.js';
import { ownVersion } from './version.js';

export { TroupeError } from '../protocols/errors.js';
export type { BodyOf, OperationName, ResultOf } from '../protocols/openapi/operations.js';
export { SettingsError } from './config/resolve.js';
export { StorageInUse } from './lock/storage-lock.js';

export interface TroupeOptions {
  /** The storage folder; made when it is missing. A server and another `Troupe` on it are kept out. */
  readonly path: string;
  /** Settings as in a configuration file: `{ storage: { performance: { max_search_threads: 2 } } }`. */
  readonly settings?: Readonly<Record<string, unknown>>;
  /** Which log lines `logLine` gets, `WARN` by default. */
  readonly logLevel?: string;
  /** Takes log lines with their line ends. Default: standard error. */
  readonly logLine?: (line: string) => void;
}

export interface ReadOptions {
  /** Seconds after which the operation ends with `timeout`. */
  readonly timeout?: number;
}

export interface WriteOptions extends ReadOptions {
  /** Answer when the change is applied and visible; false: when it is safe on disk. Default true. */
  readonly wait?: boolean;
  readonly ordering?: 'weak' | 'medium' | 'strong';
}

type PointId = string | number | bigint;
type Result<Name extends OperationName> = Promise<ResultOf<Name>>;

/** One open storage folder. Every method rejects with a `TroupeError` where the REST API answers with an error. */
export class Troupe {
  /** Resolves when every collection is open. Errors: StorageInUse, SettingsError, TroupeError `storage`. */
  static async open(options: TroupeOptions): Promise<Troupe> {
    const { settings, warnings } = resolveSettings([
      { kind: 'tree', name: 'settings', tree: options.settings },
      { kind: 'tree', name: 'path', tree: { storage: { storage_path: options.path } } },
    ]);
    const levels = parseLevels(options.logLevel ?? 'WARN');
    const problems = [
      ...unavailableSettings(settings),
      ...snapshotProblems(settings),
      ...readBackupPlans(settings).problems,
      ...(settings.cluster.enabled
        ? ['cluster.enabled: a storage folder within another program is a node of its own; run the server']
        : []),
      ...(settings.audit.enabled
        ? ['audit.enabled: a storage folder within another program has no clients to record; run the server']
        : []),
      ...(levels === undefined ? ['logLevel: not a level'] : []),
    ];
    if (levels === undefined || problems.length > 0) throw new SettingsError(problems);
    const write = options.logLine ?? ((line: string) => process.stderr.write(line));
    const output: LogOutput = { format: 'text', filter: levels, write };
    const logOf = (module: string) => moduleLog(module, [output], Date.now);
    for (const warning of warnings) logOf('main').warn(warning);
    let lost = (): void => {};
    freeForStart(settings.storage.storage_path, settings.storage.disk_reserve_mb);
    const lock = await lockStorage(settings.storage.storage_path, 0, () => lost());
    try {
      const identity = nodeIdentity(ownVersion(), Date.now());
      const composition = await compose(settings, null, identity, logOf, () => {});
      const troupe = new Troupe(composition, lock);
      // Its threads end, and calls are refused from now on.
      lost = () => void troupe.close().catch(() => {});
      await Promise.all([composition.node.whenReady(), composition.started]).catch(async (error: unknown) => {
        await troupe.close();
        throw error;
      });
      return troupe;
    } catch (error) {
      lock.release();
      throw error;
    }
  }

  readonly #services: DoorServices;
  readonly #end: () => Promise<void>;
  #closing: Promise<void> | null = null;

  private constructor({ end, node, pool, services }: Composition, lock: StorageLock) {
    this.#services = services;
    this.#end = async () => {
      services.disk.stop();
      try {
        await node.close();
      } finally {
        await pool
          .close()
          .then(end)
          .finally(() => lock.release());
      }
    };
  }

  /** Ends all threads; writes that were begun are done. The folder is free when it resolves. */
  close(): Promise<void> {
    this.#closing ??= this.#end();
    return this.#closing;
  }

  // ---------------------------------------------------------------- collections

  getCollections(): Result<'get_collections'> {
    return this.#call('get_collections', {});
  }

  getCollection(collection: string): Result<'get_collection'> {
    return this.#call('get_collection', { path: { collection_name: collection } });
  }

  createCollection(collection: string, body: BodyOf<'create_collection'>): Result<'create_collection'> {
    return this.#call('create_collection', { path: { collection_name: collection }, body });
  }

  updateCollection(collection: string, body: BodyOf<'update_collection'>): Result<'update_collection'> {
    return this.#call('update_collection', { path: { collection_name: collection }, body });
  }

  /** False when there was none. */
  deleteCollection(collection: string): Result<'delete_collection'> {
    return this.#call('delete_collection', { path: { collection_name: collection } });
  }

  collectionExists(collection: string): Result<'collection_exists'> {
    return this.#call('collection_exists', { path: { collection_name: collection } });
  }

  getOptimizations(collection: string): Result<'get_optimizations'> {
    const query = { with: 'queued,completed,idle_segments' };
    return this.#call('get_optimizations', { path: { collection_name: collection }, query });
  }

  getAliases(): Result<'get_collections_aliases'> {
    return this.#call('get_collections_aliases', {});
  }

  getCollectionAliases(collection: string): Result<'get_collection_aliases'> {
    return this.#call('get_collection_aliases', { path: { collection_name: collection } });
  }

  updateAliases(body: BodyOf<'update_aliases'>): Result<'update_aliases'> {
    return this.#call('update_aliases', { body });
  }

  createFieldIndex(collection: string, body: BodyOf<'create_field_index'>, options?: WriteOptions): Result<'create_field_index'> {
    return this.#write('create_field_index', { collection_name: collection }, body, options);
  }

  deleteFieldIndex(collection: string, field: string, options?: WriteOptions): Result<'delete_field_index'> {
    return this.#write('delete_field_index', { collection_name: collection, field_name: field }, undefined, options);
  }

  createVectorName(
    collection: string,
    vector: string,
    body: BodyOf<'create_vector_name'>,
    options?: WriteOptions,
  ): Result<'create_vector_name'> {
    return this.#write('create_vector_name', { collection_name: collection, vector_name: vector }, body, options);
  }

  deleteVectorName(collection: string, vector: string, options?: WriteOptions): Result<'delete_vector_name'> {
    return this.#write('delete_vector_name', { collection_name: collection, vector_name: vector }, undefined, options);
  }

  // ---------------------------------------------------------------- snapshots

  listSnapshots(collection: string): Result<'list_snapshots'> {
    return this.#call('list_snapshots', { path: { collection_name: collection } });
  }

  createSnapshot(collection: string): Result<'create_snapshot'> {
    return this.#call('create_snapshot', { path: { collection_name: collection } });
  }

  deleteSnapshot(collection: string, snapshot: string): Result<'delete_snapshot'> {
    return this.#call('delete_snapshot', { path: { collection_name: collection, snapshot_name: snapshot } });
  }

  /** Makes the collection what it was in the snapshot; it is created if it does not exist. */
  recoverSnapshot(collection: string, body: BodyOf<'recover_from_snapshot'>): Result<'recover_from_snapshot'> {
    return this.#call('recover_from_snapshot', { path: { collection_name: collection }, body });
  }

  listFullSnapshots(): Result<'list_full_snapshots'> {
    return this.#call('list_full_snapshots', {});
  }

  createFullSnapshot(): Result<'create_full_snapshot'> {
    return this.#call('create_full_snapshot', {});
  }

  deleteFullSnapshot(snapshot: string): Result<'delete_full_snapshot'> {
    return this.#call('delete_full_snapshot', { path: { snapshot_name: snapshot } });
  }

  // ---------------------------------------------------------------- writes to points

  upsert(collection: string, body: BodyOf<'upsert_points'>, options?: WriteOptions): Result<'upsert_points'> {
    return this.#write('upsert_points', { collection_name: collection }, body, options);
  }

  delete(collection: string, body: BodyOf<'delete_points'>, options?: WriteOptions): Result<'delete_points'> {
    return this.#write('delete_points', { collection_name: collection }, body, options);
  }

  setPayload(collection: string, body: BodyOf<'set_payload'>, options?: WriteOptions): Result<'set_payload'> {
    return this.#write('set_payload', { collection_name: collection }, body, options);
  }

  overwritePayload(collection: string, body: BodyOf<'overwrite_payload'>, options?: WriteOptions): Result<'overwrite_payload'> {
    return this.#write('overwrite_payload', { collection_name: collection }, body, options);
  }

  deletePayload(collection: string, body: BodyOf<'delete_payload'>, options?: WriteOptions): Result<'delete_payload'> {
    return this.#write('delete_payload', { collection_name: collection }, body, options);
  }

  clearPayload(collection: string, body: BodyOf<'clear_payload'>, options?: WriteOptions): Result<'clear_payload'> {
    return this.#write('clear_payload', { collection_name: collection }, body, options);
  }

  batchUpdate(collection: string, body: BodyOf<'batch_update'>, options?: WriteOptions): Result<'batch_update'> {
    return this.#write('batch_update', { collection_name: collection }, body, options);
  }

  updateVectors(collection: string, body: BodyOf<'update_vectors'>, options?: WriteOptions): Result<'update_vectors'> {
    return this.#write('update_vectors', { collection_name: collection }, body, options);
  }

  deleteVectors(collection: string, body: BodyOf<'delete_vectors'>, options?: WriteOptions): Result<'delete_vectors'> {
    return this.#write('delete_vectors', { collection_name: collection }, body, options);
  }

  // ---------------------------------------------------------------- reads of points

  getPoint(collection: string, id: PointId, options?: ReadOptions): Result<'get_point'> {
    return this.#call('get_point', { path: { collection_name: collection, id: String(id) }, query: parameters(options) });
  }

  retrieve(collection: string, body: BodyOf<'get_points'>, options?: ReadOptions): Result<'get_points'> {
    return this.#read('get_points', collection, body, options);
  }

  scroll(collection: string, body: BodyOf<'scroll_points'> = {}, options?: ReadOptions): Result<'scroll_points'> {
    return this.#read('scroll_points', collection, body, options);
  }

  count(collection: string, body: BodyOf<'count_points'> = {}, options?: ReadOptions): Result<'count_points'> {
    return this.#read('count_points', collection, body, options);
  }

  facet(collection: string, body: BodyOf<'facet'>, options?: ReadOptions): Result<'facet'> {
    return this.#read('facet', collection, body, options);
  }

  query(collection: string, body: BodyOf<'query_points'>, options?: ReadOptions): Result<'query_points'> {
    return this.#read('query_points', collection, body, options);
  }

  queryBatch(collection: string, body: BodyOf<'query_batch_points'>, options?: ReadOptions): Result<'query_batch_points'> {
    return this.#read('query_batch_points', collection, body, options);
  }

  queryGroups(collection: string, body: BodyOf<'query_points_groups'>, options?: ReadOptions): Result<'query_points_groups'> {
    return this.#read('query_points_groups', collection, body, options);
  }

  search(collection: string, body: BodyOf<'search_points'>, options?: ReadOptions): Result<'search_points'> {
    return this.#read('search_points', collection, body, options);
  }

  searchBatch(collection: string, body: BodyOf<'search_batch_points'>, options?: ReadOptions): Result<'search_batch_points'> {
    return this.#read('search_batch_points', collection, body, options);
  }

  searchGroups(collection: string, body: BodyOf<'search_point_groups'>, options?: ReadOptions): Result<'search_point_groups'> {
    return this.#read('search_point_groups', collection, body, options);
  }

  searchMatrixPairs(collection: string, body: BodyOf<'search_matrix_pairs'> = {}, options?: ReadOptions): Result<'search_matrix_pairs'> {
    return this.#read('search_matrix_pairs', collection, body, options);
  }

  searchMatrixOffsets(
    collection: string,
    body: BodyOf<'search_matrix_offsets'> = {},
    options?: ReadOptions,
  ): Result<'search_matrix_offsets'> {
    return this.#read('search_matrix_offsets', collection, body, options);
  }

  recommend(collection: string, body: BodyOf<'recommend_points'>, options?: ReadOptions): Result<'recommend_points'> {
    return this.#read('recommend_points', collection, body, options);
  }

  recommendBatch(collection: string, body: BodyOf<'recommend_batch_points'>, options?: ReadOptions): Result<'recommend_batch_points'> {
    return this.#read('recommend_batch_points', collection, body, options);
  }

  recommendGroups(collection: string, body: BodyOf<'recommend_point_groups'>, options?: ReadOptions): Result<'recommend_point_groups'> {
    return this.#read('recommend_point_groups', collection, body, options);
  }

  discover(collection: string, body: BodyOf<'discover_points'>, options?: ReadOptions): Result<'discover_points'> {
    return this.#read('discover_points', collection, body, options);
  }

  discoverBatch(collection: string, body: BodyOf<'discover_batch_points'>, options?: ReadOptions): Result<'discover_batch_points'> {
    return this.#read('discover_batch_points', collection, body, options);
  }

  /** The tree of actors, collections and memory. */
  telemetry(detailsLevel = 0): Result<'telemetry'> {
    return this.#call('telemetry', { query: { details_level: String(detailsLevel) } });
  }

  #read<Name extends OperationName>(name: Name, collection: string, body: BodyOf<Name>, options: ReadOptions | undefined): Result<Name> {
    return this.#call(name, { path: { collection_name: collection }, query: parameters(options), body });
  }

  #write<Name extends OperationName>(
    name: Name,
    path: Readonly<Record<string, string>>,
    body: BodyOf<Name> | undefined,
    options: WriteOptions | undefined,
  ): Result<Name> {
    const query = parameters({ wait: true, ...options });
    return this.#call(name, body === undefined ? { path, query } : { path, query, body });
  }

  async #call<Name extends OperationName>(name: Name, call: Call<Name>): Result<Name> {
    if (this.#closing !== null) throw new TroupeError('unavailable', 'the storage folder was closed');
    return callOperation(this.#services, name, call);
  }
}

/** Options as query parameters. */
function parameters(options: WriteOptions | undefined): Record<string, string> {
  const given = Object.entries(options ?? {}).filter(([, value]) => value !== undefined);
  return Object.fromEntries(given.map(([name, value]) => [name, String(value)]));
}
