/**
 * A write to a collection of several shards: a reader splits the request, each shard gets its part, and the answer comes when
 * all have answered. On errors of the request, and of points that are not there, no shard has changed anything.
 */

import { errorFromFacts, TroupeError } from '../../protocols/errors.js';
import type { ShardId } from '../../protocols/model/cluster.js';
import type { CollectionParams } from '../../protocols/model/collection.js';
import type { EncodedPart, EncodedWrite, RawRequest, WriteOperation, WriteStage, Written } from '../../storage/engine/messages.js';
import { updateAnswer } from '../../storage/engine/pool.js';
import type { EnginePort } from '../runtime/ports.js';
import type { ReplicaEntry } from './view.js';

export interface ShardedWrite {
  readonly operation: WriteOperation;
  readonly wait: boolean;
  readonly request: RawRequest;
  readonly params: CollectionParams;
  /** The replica of each shard of the collection. */
  readonly replicas: ReadonlyMap<ShardId, ReplicaEntry>;
}

type Engine = Pick<EnginePort, 'split' | 'missing'>;

/**
 * The answer's bytes. An operation's number is the largest that a shard gave it. timeoutMs: how long to wait for a shard, now.
 * Errors: those of the request; `unavailable` of a shard. Whatever else a shard answers, others may have taken their parts.
 */
export async function writeSharded(engine: Engine, write: ShardedWrite, timeoutMs: () => number): Promise<Uint8Array> {
  const { operation, params, replicas, request, wait } = write;
  const { failure, listed, parts, stages } = await engine.split({ operation, params, request, shards: [...replicas.keys()], wait });
  checkWritable(stages, replicas);
  const numbers: number[] = new Array(parts.reduce((sum, count) => sum + count, 0)).fill(0);
  let status: Written['status'] = wait ? 'completed' : 'acknowledged';
  for (const [index, stage] of stages.entries()) {
    await checkNeeded(engine, stage, write);
    // Whoever waits has its answer when reads see it; until then the next stage needs it applied.
    const until = !wait ? 'logged' : index === stages.length - 1 ? 'shown' : 'applied';
    const written = await Promise.all(stage.parts.map((part) => writePart(part, until, write, timeoutMs())));
    for (const [at, { numbers: own, status: its }] of written.entries()) {
      if (its === 'acknowledged') status = 'acknowledged';
      noteNumbers(numbers, stage.parts[at] as EncodedPart, own);
    }
  }
  if (failure !== null) throw errorFromFacts(failure);
  return updateAnswer(request, { parts, listed }, numbers, status);
}

/** Before anything is written. */
function checkWritable(stages: readonly WriteStage[], replicas: ReadonlyMap<ShardId, ReplicaEntry>): void {
  for (const { parts } of stages) {
    for (const { shardId } of parts) {
      const { reason, state } = replicaOf(replicas, shardId);
      if (state === 'Active' || state === 'Partial' || state === 'Listener') continue;
      const detail = `shard ${shardId} takes no writes: ${reason?.detail ?? 'it is being opened'}`;
      throw new TroupeError('unavailable', detail, { retryAfterMs: reason?.retryAfterMs ?? 1000 });
    }
  }
}

/** Errors: `notFound` for the first point that has to be there and is not. */
async function checkNeeded(engine: Engine, { needed }: WriteStage, { replicas, request }: ShardedWrite): Promise<void> {
  const asked = needed.map(({ ids, shardId }) => engine.missing(replicaOf(replicas, shardId).key, ids, request.deadlineMs));
  const missing = (await Promise.all(asked)).find((id) => id !== null);
  if (missing !== undefined) throw new TroupeError('notFound', `No point with id ${missing} found`);
}

function writePart(
  { operations, shardId }: EncodedPart,
  until: EncodedWrite['until'],
  { operation, replicas, request }: ShardedWrite,
  timeoutMs: number,
): Promise<Written> {
  const { deadlineMs, usage } = request;
  const part: EncodedWrite = { operations, until, deadlineMs, ...(usage === undefined ? {} : { usage }) };
  return replicaOf(replicas, shardId).actor.ask<Written>((replyTo) => ({ kind: 'writePart', operation, part, replyTo }), timeoutMs);
}

function noteNumbers(numbers: number[], { at }: EncodedPart, own: readonly number[]): void {
  own.forEach((number, index) => {
    const operation = at[index] as number;
    numbers[operation] = Math.max(numbers[operation] as number, number);
  });
}

function replicaOf(replicas: ReadonlyMap<ShardId, ReplicaEntry>, shardId: ShardId): ReplicaEntry {
  const replica = replicas.get(shardId);
  if (replica === undefined) throw new TroupeError('internal', `a part of a request is for shard ${shardId}, which is not here`);
  return replica;
}
