/** Points of a node without a cluster, which has the only replica of each shard. */

import { type ErrorFacts, errorFromFacts, TroupeError } from '../../protocols/errors.js';
import type { ShardId } from '../../protocols/model/cluster.js';
import type { RawRequest, ReadOperation, WriteOperation } from '../../storage/threads/messages.js';
import type { CollectionEntry, ReplicaEntry } from '../context/view.js';
import type { Clock, EnginePort } from '../runtime/ports.js';
import { LocalShards, writeSharded } from './sharded-write.js';

/** The engine ends a write at its deadline with a message that says more than the caller's timeout. */
const DEADLINE_GRACE_MS = 250;

export class OwnPoints {
  constructor(
    private readonly engine: EnginePort,
    private readonly clock: Clock,
  ) {}

  /**
   * Reads from all shards of the collection. Errors: those of the operation; `unavailable` if a shard does not serve, so that no answer
   * lacks points.
   */
  async read(entry: CollectionEntry, shards: readonly ShardId[], operation: ReadOperation, request: RawRequest): Promise<Uint8Array> {
    const keys = [...replicasOf(entry, shards).values()].map((replica) => {
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
    const replicas = replicasOf(entry, shards);
    const timeoutMs = () => Math.max(1, request.deadlineMs - this.clock.nowMs()) + DEADLINE_GRACE_MS;
    const [only] = replicas.values();
    if (replicas.size === 1 && only !== undefined)
      return only.actor.ask<Uint8Array>((replyTo) => ({ kind: 'write', operation, wait, request, replyTo }), timeoutMs());
    const writer = new LocalShards(this.engine, replicas, { operation, request }, timeoutMs);
    return writeSharded(this.engine, { operation, wait, request, params: paramsOf(entry), shards }, writer);
  }
}

/** The replica of each of these shards. Errors: `unavailable` if one has no replica yet. */
function replicasOf(entry: CollectionEntry, shards: readonly ShardId[]): Map<ShardId, ReplicaEntry> {
  paramsOf(entry);
  const replicas = new Map<ShardId, ReplicaEntry>();
  for (const shardId of shards) {
    const replica = entry.replicas.get(shardId);
    if (replica === undefined) throw notServing(entry, entry.error);
    replicas.set(shardId, replica);
  }
  if (replicas.size === 0) throw notServing(entry, entry.error);
  return replicas;
}

function paramsOf({ config, error, name }: CollectionEntry) {
  if (config !== null) return config.params;
  throw errorFromFacts(error ?? { code: 'unavailable', detail: `collection ${name} has no configuration` });
}

function notServing(entry: CollectionEntry, reason: ErrorFacts | null): TroupeError {
  if (reason === null) return new TroupeError('unavailable', `collection ${entry.name} is being opened`, { retryAfterMs: 1000 });
  return new TroupeError('unavailable', `collection ${entry.name}: ${reason.detail}`, { retryAfterMs: reason.retryAfterMs ?? 1000 });
}
