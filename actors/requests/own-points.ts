/** Points of a node without a cluster, which has the only replica of each shard and leads its log. */

import type { ReplicationInput } from '../../cluster/replication/messages.js';
import { type ErrorFacts, errorFacts, errorFromFacts, reasonOf, TroupeError } from '../../protocols/errors.js';
import type { ShardId } from '../../protocols/model/cluster.js';
import type { PointId } from '../../protocols/model/point-id.js';
import type { ShardWrite, TimedWrite } from '../../protocols/model/shard-log.js';
import { addUnknown } from '../../protocols/model/unknown-fields.js';
import type { UndecodedUpdate, Written } from '../../protocols/model/update.js';
import { updateAnswer } from '../../storage/pool/pool.js';
import type { EncodedPart, RawRequest, ReadOperation, WriteOperation } from '../../storage/threads/messages.js';
import type { CollectionEntry, ReplicaEntry } from '../context/view.js';
import type { ReplyTo } from '../runtime/behaviour.js';
import type { Clock, EnginePort, Timers } from '../runtime/ports.js';
import { notedHop } from './noted-hop.js';
import { type ShardedWrite, type ShardWriter, writeSharded } from './sharded-write.js';

/** The shard's log ends a write at its deadline with a message that says more than the caller's timeout. */
const DEADLINE_GRACE_MS = 250;
/** Pause before a log that is about to take writes is asked again: its replica has just been opened. */
const AGAIN_MS = 5;

export class OwnPoints {
  constructor(
    private readonly engine: EnginePort,
    private readonly clock: Clock,
    private readonly timers: Timers,
  ) {}

  /**
   * Reads from all shards of the collection. Errors: those of the operation; `unavailable` if a shard does not serve, so that no answer
   * lacks points.
   */
  async read(entry: CollectionEntry, shards: readonly ShardId[], operation: ReadOperation, request: RawRequest): Promise<Uint8Array> {
    checkOpen(entry, shards);
    const keys = shards.map((shardId) => {
      const replica = replicaOf(entry, shardId);
      if (replica.state !== 'Serving') throw notServing(entry, replica.reason);
      return replica.key;
    });
    return this.engine.read(operation, keys, request);
  }

  /** Writes to the shards. Errors: as `writeSharded`. */
  async write(
    entry: CollectionEntry,
    shards: readonly ShardId[],
    operation: WriteOperation,
    wait: boolean,
    request: RawRequest,
  ): Promise<Uint8Array> {
    const params = checkOpen(entry, shards);
    const writer = new LocalShards(entry, { operation, request }, this.clock, this.timers);
    const [only] = shards;
    if (shards.length === 1 && only !== undefined) return writer.writeWhole(only, wait);
    return writeSharded(this.engine, { operation, wait, request, params, shards }, writer);
  }
}

/** Writes to the logs of shards whose only replicas are here. */
export class LocalShards implements ShardWriter {
  constructor(
    private readonly entry: Pick<CollectionEntry, 'error' | 'name' | 'replicas' | 'replications'>,
    private readonly asked: Pick<ShardedWrite, 'operation' | 'request'>,
    private readonly clock: Clock,
    private readonly timers: Timers,
  ) {}

  check(shardId: ShardId): void {
    const { reason, state } = replicaOf(this.entry, shardId);
    if (state !== 'Serving') throw takesNoWrites(shardId, reason ?? OPENING);
  }

  write({ operations, shardId }: EncodedPart, until: ShardWrite['until']): Promise<Written> {
    return this.#write(shardId, operations, until, {});
  }

  /** Writes a request to the only shard, whose replica decodes it. Returns the answer's bytes. Errors: as `writeSharded`. */
  async writeWhole(shardId: ShardId, wait: boolean): Promise<Uint8Array> {
    const { operation, request } = this.asked;
    const { body, grants, limits, message, path, timeoutSeconds, unknownFields } = request;
    this.check(shardId);
    const undecoded: UndecodedUpdate = {
      operation,
      path,
      ...(message === undefined ? {} : { message }),
      ...(unknownFields === undefined ? {} : { unknownFields }),
      ...(timeoutSeconds === undefined ? {} : { timeoutSeconds }),
      ...(limits === undefined ? {} : { limits }),
      ...(grants === undefined ? {} : { grants }),
    };
    const { numbers, status } = await this.#write(shardId, body === null ? [] : [body], wait ? 'shown' : 'logged', { undecoded });
    const { shape } = undecoded;
    if (shape === undefined) throw new Error('a write is answered that was not decoded');
    addUnknown(unknownFields, shape.unknownFields);
    if (shape.failure !== null) throw errorFromFacts(shape.failure);
    return updateAnswer(request, shape, numbers, status);
  }

  missing(shardId: ShardId, ids: readonly PointId[]): Promise<PointId | null> {
    const { deadlineMs } = this.asked.request;
    return this.#ask<PointId | null>(shardId, (caller) => ({ kind: 'missing', caller, ids, deadlineMs }));
  }

  #write(
    shardId: ShardId,
    operations: readonly Uint8Array[],
    until: ShardWrite['until'],
    how: Pick<TimedWrite, 'undecoded'>,
  ): Promise<Written> {
    const { operation, request } = this.asked;
    const { deadlineMs, explain, usage } = request;
    const write = { ...how, operation, operations, until, deadlineMs, ...(usage === undefined ? {} : { usage }) };
    return notedHop(explain?.trace?.hops, `shard ${shardId}`, { 'troupe.shard_id': shardId }, (hops) => {
      const noted = hops === undefined ? write : { ...write, hops };
      return this.#ask<Written>(shardId, (caller) => ({ kind: 'write', caller, ...noted }));
    });
  }

  /** Whether the writer got the body's memory before the log was lost: there is nothing to send again. */
  #isGivenAway(): boolean {
    const { body } = this.asked.request;
    return body !== null && body.byteLength === 0;
  }

  /** Asks the log of a shard, again while it is about to take writes. */
  async #ask<Answer>(shardId: ShardId, make: (caller: ReplyTo<Answer>) => ReplicationInput): Promise<Answer> {
    for (;;) {
      const leftMs = this.asked.request.deadlineMs - this.clock.nowMs();
      const log = this.entry.replications.get(shardId);
      try {
        if (log !== undefined) return await log.actor.ask(make, Math.max(1, leftMs) + DEADLINE_GRACE_MS);
      } catch (error) {
        if (reasonOf(error) !== 'notLeader') throw error;
        if (leftMs <= AGAIN_MS || this.#isGivenAway()) throw takesNoWrites(shardId, errorFacts(error));
      }
      this.check(shardId);
      if (leftMs <= AGAIN_MS) throw takesNoWrites(shardId, OPENING);
      await new Promise<void>((resolve) => void this.timers.after(AGAIN_MS, resolve));
    }
  }
}

const OPENING: ErrorFacts = { code: 'unavailable', detail: 'it is being opened' };

function takesNoWrites(shardId: ShardId, { detail, retryAfterMs }: ErrorFacts): TroupeError {
  return new TroupeError('unavailable', `shard ${shardId} takes no writes: ${detail}`, { retryAfterMs: retryAfterMs ?? 1000 });
}

/** The configuration of a collection that has shards. Errors: `unavailable` if it has none yet. */
function checkOpen({ config, error, name }: CollectionEntry, shards: readonly ShardId[]) {
  if (config === null) throw errorFromFacts(error ?? { code: 'unavailable', detail: `collection ${name} has no configuration` });
  if (shards.length === 0) throw notServing({ name }, error);
  return config.params;
}

/** Errors: `unavailable` if the shard has no replica yet. */
function replicaOf(entry: Pick<CollectionEntry, 'error' | 'name' | 'replicas'>, shardId: ShardId): ReplicaEntry {
  const replica = entry.replicas.get(shardId);
  if (replica === undefined) throw notServing(entry, entry.error);
  return replica;
}

function notServing({ name }: Pick<CollectionEntry, 'name'>, reason: ErrorFacts | null): TroupeError {
  if (reason === null) return new TroupeError('unavailable', `collection ${name} is being opened`, { retryAfterMs: 1000 });
  return new TroupeError('unavailable', `collection ${name}: ${reason.detail}`, { retryAfterMs: reason.retryAfterMs ?? 1000 });
}
