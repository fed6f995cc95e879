/**
 * Reads and writes points of a cluster's collections on any node: reads go to replicas of all shards, to this node's own if it has them
 * all; writes go to the shards' leaders.
 */

import { isSwitching } from '../../cluster/apply/migration.js';
import { hidingRing, servingShards } from '../../cluster/apply/resharding.js';
import type { CollectionRecord } from '../../cluster/state/state.js';
import { reasonOf, TroupeError } from '../../protocols/errors.js';
import { stringifyJson } from '../../protocols/json.js';
import type { ReadConsistency, ShardId } from '../../protocols/model/cluster.js';
import type { GatherAccess, GatherPlace } from '../../storage/gather/access.js';
import type { RawRequest, ReadOperation, WriteOperation } from '../../storage/threads/messages.js';
import { checkRead, type Readable, readable } from '../context/readable.js';
import type { Propose } from '../context/services.js';
import type { CollectionEntry } from '../context/view.js';
import type { EnginePort } from '../runtime/ports.js';
import { confirmSeen, isConfirmed, nothingSeen, type Seen, setFloors } from './consistency.js';
import { LeaderWriter } from './leaders.js';
import { readPortions } from './readers.js';
import type { Routes } from './routes.js';
import { keyedShards } from './shard-keys.js';
import { checkShardMapVersion, resharded } from './shard-map.js';
import { writeSharded } from './sharded-write.js';

/** A collection of the cluster. */
export interface Agreed {
  readonly name: string;
  /** Null while this node is making the collection. */
  readonly entry: CollectionEntry | null;
  readonly record: CollectionRecord;
}

export interface PointsParts {
  readonly routes: Routes;
  readonly engine: Pick<EnginePort, 'gather' | 'read' | 'split'>;
  /** Has a command agreed on. */
  readonly propose: Propose;
  /** Finds a collection by name or alias. Errors: `notFound`. */
  readonly find: (name: string) => Agreed;
}

interface Local {
  readonly entry: CollectionEntry;
  readonly shards: readonly ShardId[];
  readonly replicas: readonly Readable[];
}

/** Errors of this node's replicas that other replicas may not have. */
const FROM_ANOTHER: ReadonlySet<string> = new Set(['unavailable', 'storage', 'conflict']);

/** Pause before a read or write is tried again after a node with another shard map refused it. */
const AGAIN_MS = 10;

export class ClusterPoints {
  constructor(private readonly parts: PointsParts) {}

  /** Reads points; answers JSON. Errors: those of the operation; `unavailable`, `timeout`. */
  async read(found: Agreed, operation: ReadOperation, request: RawRequest): Promise<Uint8Array> {
    for (let now = found; ; now = this.parts.find(found.name)) {
      try {
        return await this.#read(now, operation, request);
      } catch (error) {
        const leftMs = request.deadlineMs - this.parts.routes.clock.nowMs();
        const isOver =
          reasonOf(error) === 'shardMapChanged' ||
          (error instanceof TroupeError && (this.#shardMapVersionOf(now) ?? now.record.shardMapVersion) !== now.record.shardMapVersion);
        if (!isOver) throw error;
        // The client did not name the shard that is gone, so `notFound` of a shard is not its answer.
        const isPassing = error instanceof TroupeError && (error.code === 'conflict' || error.code === 'notFound');
        if (leftMs <= AGAIN_MS) throw isPassing ? readAgain(found.name, error) : error;
        await this.parts.routes.pause(AGAIN_MS);
      }
    }
  }

  /** The shard map version that is agreed now; null if the collection is gone. */
  #shardMapVersionOf({ name, record }: Agreed): number | null {
    const now = this.parts.routes.assignments.agreed?.collections.get(name);
    return now?.uid === record.uid ? now.shardMapVersion : null;
  }

  /** Tries a read once. Errors: as `read`; `conflict` if shards are added or removed during the read. */
  async #read(found: Agreed, operation: ReadOperation, request: RawRequest): Promise<Uint8Array> {
    checkShards(found);
    const level = request.consistency ?? 1;
    const local = level === 1 ? this.#local(found) : null;
    if (local === null) return this.#gather(found, operation, request, level);
    const { entry, replicas, shards } = local;
    try {
      const ring = hidingRing(found.record);
      const keys = replicas.map(({ key }) => key);
      const answer = await this.parts.engine.read(operation, keys, { ...request, localOnly: true, ...(ring === null ? {} : { ring }) });
      // Points that were hidden may have been removed during the read.
      checkShardMapVersion(this.parts.find(found.name).record, found.name, found.record.shardMapVersion);
      checkRead(this.parts.routes, entry, found.record.uid, shards, replicas);
      return answer;
    } catch (error) {
      // The replica has just moved to another node, or has failed.
      const reason = reasonOf(error);
      const another = error instanceof TroupeError && FROM_ANOTHER.has(error.code) && reason !== 'shardMapChanged';
      if (reason !== 'otherCollection' && !another) throw error;
      return this.#gather(found, operation, request, level);
    }
  }

  /** Writes points. An index of a collection with shard keys is agreed on first. Errors: as `writeSharded`; those of an agreement. */
  async write(found: Agreed, operation: WriteOperation, wait: boolean, request: RawRequest): Promise<Uint8Array> {
    const agreed = await this.#agreeOnIndex(found, operation, wait, request);
    return this.writeShards(agreed, operation, wait, request);
  }

  /**
   * Notes the index for keys that come, where it is another one than before. Returns the collection with the keys that were there by then:
   * later ones get the index as they are made.
   */
  async #agreeOnIndex(found: Agreed, operation: WriteOperation, wait: boolean, request: RawRequest): Promise<Agreed> {
    if (operation !== 'createFieldIndex' && operation !== 'deleteFieldIndex') return found;
    const { name, record } = found;
    const { params } = record.config;
    if (params.sharding_method !== 'custom') return found;
    const { engine, propose, routes } = this.parts;
    const { index } = await engine.split({ operation, params, request, shards: [], keyed: [], wait });
    if (index === undefined) return found;
    const { field, schema } = index;
    const known = record.payloadIndexes.get(field) ?? null;
    if (stringifyJson(known) === stringifyJson(schema)) return found;
    const command = { kind: 'setPayloadIndex', collection: name, uid: record.uid, field, schema } as const;
    await propose(command, Math.max(1, request.deadlineMs - routes.clock.nowMs()));
    return this.parts.find(name);
  }

  /** Writes to the shards that are there. Errors: as `writeSharded`. */
  async writeShards(found: Agreed, operation: WriteOperation, wait: boolean, request: RawRequest): Promise<Uint8Array> {
    const { engine, routes } = this.parts;
    for (let now = found; ; now = this.parts.find(found.name)) {
      const { name, record } = now;
      const isLate = request.deadlineMs - routes.clock.nowMs() <= AGAIN_MS;
      // A write that waits here has not been split yet.
      if (isSwitching(record) && !isLate) {
        await routes.pause(AGAIN_MS);
        continue;
      }
      checkShards(now);
      const writer = new LeaderWriter(routes, {
        collection: name,
        uid: record.uid,
        shardMapVersion: record.shardMapVersion,
        operation,
        request,
      });
      const { params } = record.config;
      const keyed = params.sharding_method === 'custom' ? { keyed: keyedShards(record) } : {};
      const shards = [...servingShards(record).keys()];
      try {
        return await writeSharded(engine, { operation, wait, request, params, shards, ...keyed }, writer);
      } catch (error) {
        if (reasonOf(error) !== 'shardMapChanged') throw error;
        const mayBeWritten = await writer.mayHaveWritten();
        if (isLate || mayBeWritten) throw resharded(name, mayBeWritten);
      }
    }
  }

  /** This node's replicas of all shards; null if it lacks one. */
  #local({ entry, record }: Agreed): Local | null {
    if (entry === null) return null;
    const shards = [...servingShards(record).keys()];
    const replicas: Readable[] = [];
    for (const shardId of shards) {
      const found = readable(this.parts.routes, entry, record.uid, shardId);
      if (found === null) return null;
      replicas.push(found);
    }
    return shards.length === 0 ? null : { entry, shards, replicas };
  }

  async #gather(found: Agreed, operation: ReadOperation, request: RawRequest, level: ReadConsistency): Promise<Uint8Array> {
    const { engine, routes } = this.parts;
    for (;;) {
      if (level !== 1) await routes.barrier(Math.max(1, request.deadlineMs - routes.clock.nowMs()));
      // The agreed state may be newer by now.
      const access = new ReadAccess(this.parts, level === 1 ? found : this.parts.find(found.name), request, level);
      const answer = await engine.gather(operation, request, access);
      if (await access.confirm()) return answer;
    }
  }
}

function readAgain(collection: string, cause: unknown): TroupeError {
  return new TroupeError('unavailable', `collection ${collection} is being resharded: retry the read`, { cause, retryAfterMs: 100 });
}

/** Gives the gather thread access to the points of one read. */
class ReadAccess implements GatherAccess {
  readonly place: GatherPlace;
  readonly #seen = new Map<number, Promise<Seen>>();
  /** All rounds of a read use one shard map version. */
  readonly #others = new Map<string, Agreed>();

  constructor(
    private readonly parts: PointsParts,
    private readonly found: Agreed,
    private readonly request: RawRequest,
    private readonly level: ReadConsistency,
  ) {
    this.place = placeOf(found);
  }

  // Properties, not methods: both functions may be passed on without the object.
  readonly locate: GatherAccess['locate'] = (collection) => placeOf(this.#other(collection));

  readonly scatter: GatherAccess['scatter'] = async ({ body, collection, shards }) => {
    const found = collection === null ? this.found : this.#other(collection);
    const asked = shards ?? [...servingShards(found.record).keys()];
    const { deadlineMs, usage } = this.request;
    const seen = await this.#seenOf(found, asked);
    const { params } = found.record.config;
    return readPortions(this.parts.routes, {
      seen,
      shards: asked,
      body,
      params,
      shardMapVersion: found.record.shardMapVersion,
      deadlineMs,
      usage,
    });
  };

  /** Confirms that all Active replicas have what was read. Returns false if it has to be read again. Errors: `timeout`. */
  async confirm(): Promise<boolean> {
    if (!isConfirmed(this.level)) return true;
    for (const seen of this.#seen.values()) {
      if (!(await confirmSeen(this.parts.routes, await seen, this.request.deadlineMs))) return false;
    }
    return true;
  }

  #other(collection: string): Agreed {
    const known = this.#others.get(collection) ?? this.parts.find(collection);
    this.#others.set(collection, known);
    return known;
  }

  async #seenOf({ name, record: { uid } }: Agreed, shards: readonly ShardId[]): Promise<Seen> {
    const { routes } = this.parts;
    const before = this.#seen.get(uid) ?? Promise.resolve(nothingSeen(name, uid, routes.random.next()));
    const seen = before.then(async (known) => {
      if (this.level !== 1) await setFloors(routes, known, shards, this.level, this.request.deadlineMs);
      return known;
    });
    this.#seen.set(uid, seen);
    return seen;
  }
}

function placeOf({ record }: Agreed): GatherPlace {
  return { uid: record.uid, params: record.config.params, shards: keyedShards(record) };
}

/** Checks that every shard has a replica. Errors: `unavailable` if the collection has lost a shard with its peers. */
function checkShards({ name, record }: Agreed): void {
  const lost = [...servingShards(record)].flatMap(([shardId, { replicas }]) => (replicas.size === 0 ? [shardId] : []));
  if (lost.length === 0) return;
  const which = lost.length === 1 ? `shard ${lost[0]} is` : `shards ${lost.join(', ')} are`;
  throw new TroupeError(
    'unavailable',
    `collection ${name} is not whole: its ${which} on no peer of the cluster. Delete it and upload its points again, or have them begin empty on a peer (\`activate_replica\`)`,
  );
}
