/** Operations on snapshots of a collection, a shard and the whole storage: from a request to an answer. Each throws errors of the catalogue. */

import type { ListedSnapshot, RestoreOptions, RestoreTarget } from '../../actors/snapshots/snapshot-api.js';
import { type ShardReach, shownTime, type TimedOperation } from '../../actors/snapshots/until.js';
import { TroupeError } from '../../protocols/errors.js';
import { checkNewCollectionName, flagParameter, type QueryParameters, textParameter } from '../../protocols/rest/parameters.js';
import { decodeRecovery, restoreParameters, shardIdFromText, snapshotWait } from '../../protocols/rest/snapshots.js';
import { isSnapshotName, type SnapshotPlace } from '../../storage/snapshot-store/snapshot-store.js';
import { ACCEPTED, type HttpAnswer, result } from '../context/answer.js';
import { type Handler, settingsOf } from '../context/node-request.js';
import type { DoorServices } from '../context/services.js';
import type { DownloadHandler, UploadHandler } from '../context/transfers.js';
import { checkCollectionLimit } from './collections.js';

type Path<Names extends string> = Readonly<Record<Names, string>>;
/** The list of snapshots that a path leads to. Errors: `wrongInput`. */
type PlaceOf<Names extends string> = (path: Path<Names>) => SnapshotPlace;

type OfCollection = 'collection_name';
type OfShard = OfCollection | 'shard_id';

export const full: PlaceOf<never> = () => ({ kind: 'full' });
export const ofCollection: PlaceOf<OfCollection> = ({ collection_name }) => ({ kind: 'collection', collection: collection_name });
export const ofShard: PlaceOf<OfShard> = ({ collection_name, shard_id }) => ({
  kind: 'shard',
  collection: collection_name,
  shardId: shardIdFromText(shard_id),
});

export function listAt<Names extends string>(placeOf: PlaceOf<Names>): Handler<Names> {
  return async ({ node: { snapshots } }, { path }) => {
    const place = checkedPlace(snapshots, placeOf(path));
    return result((await snapshots.list(place)).map(shown));
  };
}

export function createAt<Names extends string>(placeOf: PlaceOf<Names>): Handler<Names> {
  return (services, { path, query }) => {
    const { snapshots } = services.node;
    const wait = snapshotWait(query);
    const base = textParameter(query, 'base') ?? null;
    const place = checkedPlace(snapshots, placeOf(path));
    return answered(services, wait, 'create a snapshot', place, async () => shown(await snapshots.create(place, base)));
  };
}

export function removeAt<Names extends string>(placeOf: PlaceOf<Names>): Handler<Names | 'snapshot_name'> {
  return (services, { path, query }) => {
    const { snapshots } = services.node;
    const wait = snapshotWait(query);
    const force = flagParameter(query, 'force');
    const place = checkedPlace(snapshots, placeOf(path));
    const name = checkedName(path.snapshot_name);
    return answered(services, wait, `delete snapshot ${name}`, place, async () => {
      await snapshots.remove(place, name, force);
      return true;
    });
  };
}

export function downloadAt<Names extends string>(placeOf: PlaceOf<Names>): DownloadHandler<Names | 'snapshot_name'> {
  return async ({ node: { snapshots } }, { path }) => {
    const place = checkedPlace(snapshots, placeOf(path));
    const name = checkedName(path.snapshot_name);
    const { checksum, size } = await snapshots.describe(place, name);
    return { name, size, checksum, open: async (range) => (await snapshots.open(place, name, range)).stream };
  };
}

/** A snapshot of a shard that is stored nowhere. */
export const streamShard: DownloadHandler<OfShard> = ({ node: { snapshots } }, { path, signal }) => {
  const collection = path.collection_name;
  const shardId = shardIdFromText(path.shard_id);
  snapshots.check({ kind: 'shard', collection, shardId });
  const open = () => snapshots.stream(collection, shardId, signal);
  return { name: `${collection}-shard-${shardId}.snapshot`, size: null, checksum: null, open };
};

export const recoverCollection: Handler<OfCollection> = (services, request) => {
  const wait = snapshotWait(request.query);
  const { location, ...options } = decodeRecovery(settingsOf(request), false);
  return recover(services, collectionTarget(services, request.path), wait, location, options);
};

export const recoverShard: Handler<OfShard> = (services, request) => {
  const wait = snapshotWait(request.query);
  const target = shardTarget(services, request.path);
  const { location, ...options } = decodeRecovery(settingsOf(request), true);
  return recover(services, target, wait, location, options);
};

export const uploadCollection: UploadHandler<OfCollection> = (services, { path, query }) =>
  restoring(services, collectionTarget(services, path), query, true);

/** Source of the result: contract, scenario `snapshots-shards`. */
export const uploadShard: UploadHandler<OfShard> = (services, { path, query }) =>
  restoring(services, shardTarget(services, path), query, null);

function recover(
  services: DoorServices,
  target: RestoreTarget,
  wait: boolean,
  location: string,
  options: Omit<ReturnType<typeof decodeRecovery>, 'location'>,
): Promise<HttpAnswer> {
  return answered(services, wait, 'restore a snapshot', placeOfTarget(target), async () => {
    return restored(options, await services.node.snapshots.recover(target, location, options), true);
  });
}

function restoring(services: DoorServices, target: RestoreTarget, query: QueryParameters, done: true | null): ReturnType<UploadHandler> {
  const wait = snapshotWait(query);
  const options = restoreParameters(query);
  return {
    wait,
    use: async (file) => {
      return restored(options, await services.node.snapshots.restoreUploaded(target, file, options), done);
    },
  };
}

/** What a restore comes to; how far it went is Troupe's own, of a restore to a point in time. done: without one. */
function restored({ until }: RestoreOptions, reaches: readonly ShardReach[], done: true | null): true | null | object {
  if (until === null) return done;
  return {
    until: shownTime(until.timeMs),
    dry_run: until.dryRun,
    shards: reaches.map(({ bytes, from, nextMs, operations, shardId, to }) => ({
      shard_id: shardId,
      snapshot: shownOperation(from),
      restored: shownOperation(to),
      operations,
      bytes,
      left_out_from: nextMs === null ? null : shownTime(nextMs),
    })),
  };
}

function shownOperation({ tag, timeMs }: TimedOperation): object {
  return { operation: tag.index, time: shownTime(timeMs) };
}

/** A collection that is there, or can be made under this name. Errors: `invalidPath`. */
function collectionTarget(services: DoorServices, { collection_name: collection }: Path<OfCollection>): RestoreTarget {
  if (!services.node.exists(collection)) checkNewCollectionName(collection);
  checkCollectionLimit(services, collection);
  return { collection, shardId: null };
}

/** Errors: `notFound`, `wrongInput`. */
function shardTarget({ node }: DoorServices, path: Path<OfShard>): RestoreTarget {
  const place = ofShard(path);
  node.snapshots.check(place);
  return { collection: path.collection_name, shardId: shardIdFromText(path.shard_id) };
}

function placeOfTarget({ collection, shardId }: RestoreTarget): SnapshotPlace {
  return shardId === null ? { kind: 'collection', collection } : { kind: 'shard', collection, shardId };
}

/** The answer of an operation, or at once that it is accepted: then nobody waits for it, and its errors are only logged. */
async function answered(
  { log }: DoorServices,
  wait: boolean,
  what: string,
  place: SnapshotPlace,
  work: () => Promise<unknown>,
): Promise<HttpAnswer> {
  const working = work();
  if (wait) return result(await working);
  working.catch((error: unknown) => logUnawaited(log, what, place, error));
  return ACCEPTED;
}

/** place: which snapshots or data it was about. */
export function logUnawaited(log: DoorServices['log'], what: string, place: object, error: unknown): void {
  log.error('an operation on snapshots that no client waits for has failed', { operation: what, ...place, error: String(error) });
}

function checkedPlace(snapshots: DoorServices['node']['snapshots'], place: SnapshotPlace): SnapshotPlace {
  snapshots.check(place);
  return place;
}

/** Errors: `notFound` for what cannot be the name of a snapshot, such as a path. */
function checkedName(name: string): string {
  if (isSnapshotName(name)) return name;
  throw new TroupeError('notFound', `Snapshot ${name} not found`);
}

/** `base` is Troupe's own, and only there where a snapshot has one. */
function shown({ base, checksum, creationTime, name, size }: ListedSnapshot): object {
  return { name, creation_time: creationTime, size, checksum, ...(base === null ? {} : { base }) };
}
