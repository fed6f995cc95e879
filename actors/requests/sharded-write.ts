/**
 * A write to a collection of several shards: a reader splits the request, each shard gets its part, and the answer comes when
 * all have answered. On errors of the request, and of points that are not there, no shard has changed anything.
 */

import { errorFromFacts, TroupeError } from '../../protocols/errors.js';
import type { KeyedShard, ShardId } from '../../protocols/model/cluster.js';
import type { CollectionParams } from '../../protocols/model/collection.js';
import type { PointId } from '../../protocols/model/point-id.js';
import type { ShardWrite } from '../../protocols/model/shard-log.js';
import { addUnknown } from '../../protocols/model/unknown-fields.js';
import type { Written } from '../../protocols/model/update.js';
import { updateAnswer } from '../../storage/pool/pool.js';
import type { EncodedPart, RawRequest, WriteOperation, WriteStage } from '../../storage/threads/messages.js';
import type { EnginePort } from '../runtime/ports.js';
import { notedHop } from './noted-hop.js';

export interface ShardedWrite {
  readonly operation: WriteOperation;
  readonly wait: boolean;
  readonly request: RawRequest;
  readonly params: CollectionParams;
  /** All shards of the collection. */
  readonly shards: readonly ShardId[];
  /** The same shards with their keys; absent if there are no keys. */
  readonly keyed?: readonly KeyedShard[];
}

/** Takes the writes of shards: local replicas, or leaders in a cluster. */
export interface ShardWriter {
  /** Checks that the shard takes writes, as far as this node knows. Errors: `unavailable`. */
  check(shardId: ShardId): void;
  /** Writes one part. The caller must not use its memory any more. */
  write(part: EncodedPart, until: ShardWrite['until']): Promise<Written>;
  /** The first of these points that does not exist after all earlier writes; null if all exist. */
  missing(shardId: ShardId, ids: readonly PointId[]): Promise<PointId | null>;
}

/**
 * Writes to several shards; the result is the answer's bytes. The operation's number is the largest that a shard gave. Errors: those of the
 * request, and `unavailable` of a shard. After another error of a shard, other shards may have taken their parts.
 */
export async function writeSharded(engine: Pick<EnginePort, 'split'>, write: ShardedWrite, writer: ShardWriter): Promise<Uint8Array> {
  const { keyed, operation, params, request, shards, wait } = write;
  const job = { operation, params, request, shards, wait, ...(keyed === undefined ? {} : { keyed }) };
  const split = () => engine.split(job);
  const { failure, listed, parts, stages, unknownFields } = await notedHop(request.explain?.trace?.hops, 'split', {}, split);
  addUnknown(request.unknownFields, unknownFields);
  // Check all shards before anything is written.
  for (const stage of stages) for (const { shardId } of stage.parts) writer.check(shardId);
  const numbers: number[] = new Array(parts.reduce((sum, count) => sum + count, 0)).fill(0);
  // Source: contract, scenario `cluster-one-node`: an index before the first shard key.
  let status: Written['status'] = wait && stages.some((stage) => stage.parts.length > 0) ? 'completed' : 'acknowledged';
  for (const [index, stage] of stages.entries()) {
    await checkNeeded(stage, writer);
    // A waiting client gets its answer when reads see the write; until then the next stage needs the write applied.
    const until = !wait ? 'logged' : index === stages.length - 1 ? 'shown' : 'applied';
    const written = await Promise.all(stage.parts.map((part) => writer.write(part, until)));
    for (const [at, { numbers: own, status: its }] of written.entries()) {
      if (its === 'wait_timeout' || (its === 'acknowledged' && status === 'completed')) status = its;
      noteNumbers(numbers, stage.parts[at] as EncodedPart, own);
    }
  }
  if (failure !== null) throw errorFromFacts(failure);
  return updateAnswer(request, { parts, listed }, numbers, status);
}

/** Checks points that must exist. Errors: `notFound` for the first one that does not. */
async function checkNeeded({ needed }: WriteStage, writer: ShardWriter): Promise<void> {
  const asked = needed.map(({ ids, shardId }) => writer.missing(shardId, ids));
  const missing = (await Promise.all(asked)).find((id) => id !== null);
  if (missing !== undefined) throw new TroupeError('notFound', `No point with id ${missing} found`);
}

function noteNumbers(numbers: number[], { at }: EncodedPart, own: readonly number[]): void {
  own.forEach((number, index) => {
    const operation = at[index] as number;
    numbers[operation] = Math.max(numbers[operation] as number, number);
  });
}
