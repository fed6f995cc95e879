/**
 * A node in this process, with real doors, that answers each read of a collection with several shards as if these were on other nodes:
 * the shards stand in groups of three, two and one, each of which answers portions by itself.
 */

import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { TestContext } from 'node:test';
import type { NodeApi } from '../../../actors/requests/node-api.js';
import { startGrpcDoor } from '../../../http/grpc/server.js';
import { startRestDoor } from '../../../http/rest/start.js';
import { compose } from '../../../ops/compose.js';
import { loadSettings } from '../../../ops/config/load.js';
import { moduleLog } from '../../../ops/log.js';
import { TroupeError } from '../../../protocols/errors.js';
import type { GatherAccess, GatherPlace } from '../../../storage/gather/access.js';
import { unlimitedLedger } from '../../../storage/memory/shared-ledger.js';
import { DeadlineTimer } from '../../../storage/pool/deadline-timer.js';
import { GatherPool } from '../../../storage/pool/gather-pool.js';
import type { EnginePool } from '../../../storage/pool/pool.js';
import { watchLimits } from '../../../storage/pool/thread-watch.js';
import type { RawRequest, ReadOperation, ReplicaKey } from '../../../storage/threads/messages.js';
import { Doors } from '../clients/doors.js';

const BODY_BYTES_MAX = 64 << 20;
const GROUPS = [3, 2, 1];

export interface GatheringNode {
  readonly doors: Doors;
  /** Of the door for REST. */
  readonly port: number;
  /** Reads that were gathered, and questions that these have asked. */
  readonly counts: { reads: number; asks: number };
}

/** shards: of each collection; with one of them reads go the usual way. */
export async function gatheringNode(context: TestContext, shards: number): Promise<GatheringNode> {
  const folder = await mkdtemp(join(tmpdir(), 'troupe-gather-'));
  const environment = {
    SERVICE__STORAGE__STORAGE_PATH: folder,
    SERVICE__STORAGE__COLLECTION__SHARD_NUMBER_PER_NODE: String(shards),
  };
  const { settings } = loadSettings({
    folder,
    configPath: undefined,
    environment: { ...environment, TROUPE__STORAGE__STORAGE_PATH: folder },
  });
  const identity = { id: 'gather', peerId: 1, version: '0', startedMs: Date.now() };
  const { node, pool, services } = await compose(
    settings,
    null,
    identity,
    () => moduleLog('test', [], Date.now),
    () => {},
  );
  const counts = { reads: 0, asks: 0 };
  const closing = new AbortController();
  const gathering: GatherPool = new GatherPool(
    { entry: undefined, closing: closing.signal, watch: watchLimits(60_000), ledger: unlimitedLedger() },
    { watchDeadline: (deadlineMs) => deadlines.watch(deadlineMs), tellWorker: () => {} },
  );
  const deadlines = new DeadlineTimer((nowMs) => gathering.expire(nowMs));
  await gathering.startAll();
  gatherReads(node, pool, gathering, counts);
  await node.whenReady();
  const rest = await startRestDoor(services, {
    host: '127.0.0.1',
    port: 0,
    maxBodyBytes: BODY_BYTES_MAX,
    cors: false,
    packFromBytes: null,
    logRequests: false,
  });
  const grpc = await startGrpcDoor(services, { host: '127.0.0.1', port: 0, maxMessageBytes: BODY_BYTES_MAX, logRequests: false });
  context.after(async () => {
    closing.abort();
    deadlines.stop();
    await Promise.all([rest.close(0), grpc.close(0)]);
    await gathering.close();
    await node.close();
    await pool.close();
    await rm(folder, { recursive: true, force: true, maxRetries: 5 });
  });
  const url = `http://127.0.0.1:${rest.port}`;
  return { doors: new Doors({ url, grpcPort: grpc.port }), port: rest.port, counts };
}

function gatherReads(node: NodeApi, pool: EnginePool, gathering: GatherPool, counts: GatheringNode['counts']): void {
  const alone = pool.read.bind(pool);
  const gathered = (operation: ReadOperation, keys: readonly ReplicaKey[], request: RawRequest): Promise<Uint8Array> => {
    if (keys.length < 2) return alone(operation, keys, request);
    counts.reads++;
    return gathering.gather(operation, request, accessFor(node, pool, keys, request, counts));
  };
  Object.assign(pool, { read: gathered });
}

function accessFor(
  node: NodeApi,
  pool: EnginePool,
  keys: readonly ReplicaKey[],
  request: RawRequest,
  counts: GatheringNode['counts'],
): GatherAccess {
  const own = collectionOf(keys[0] as ReplicaKey);
  return {
    place: placeOf(node, own),
    locate: (name) => placeOf(node, nameOf(node, name)),
    scatter: async ({ collection, shards, body }) => {
      counts.asks++;
      const name = collection === null ? own : nameOf(node, collection);
      const asked = shards ?? placeOf(node, name).shards.map(({ id }) => id);
      const groups = groupsOf(asked);
      const answers = groups.map((group) =>
        pool.portion(
          group.map((shard) => `${name}/${shard}`),
          body,
          request.deadlineMs,
          request.usage && { usage: request.usage },
        ),
      );
      return (await Promise.all(answers)).map((answer) => answer.body);
    },
  };
}

/** The shards by the node that has them. */
function groupsOf(shards: readonly number[]): number[][] {
  const ends = GROUPS.map((_, at) => GROUPS.slice(0, at + 1).reduce((sum, count) => sum + count, 0));
  return ends
    .map((end, at) => shards.filter((shard) => shard < end && shard >= end - (GROUPS[at] as number)))
    .filter((group) => group.length > 0);
}

function collectionOf(key: ReplicaKey): string {
  return key.slice(0, key.lastIndexOf('/'));
}

function nameOf(node: NodeApi, name: string): string {
  if (!node.exists(name)) throw new TroupeError('notFound', `Collection \`${name}\` doesn't exist!`);
  return node.aliases(null).find(({ alias_name }) => alias_name === name)?.collection_name ?? name;
}

function placeOf(node: NodeApi, name: string): GatherPlace {
  const { params } = node.info(name).config;
  const uid = node.listCollections().indexOf(name);
  return { uid, params, shards: [...node.localShards(name).keys()].map((id) => ({ id, key: null })) };
}
