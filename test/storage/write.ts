/** Writes to a replica of a pool, as a node without a cluster makes them. */

import { errorFromFacts } from '../../protocols/errors.js';
import type { LeaderTag } from '../../protocols/model/shard-log.js';
import type { UndecodedUpdate, WriteOperation } from '../../protocols/model/update.js';
import { type EnginePool, updateAnswer } from '../../storage/pool/pool.js';
import type { RawRequest, ReplicaKey } from '../../storage/threads/messages.js';

export const ALONE: LeaderTag = { peer: 0, term: 0, indexAfter: 0 };

/** Writes a request. Returns the answer's bytes. */
export async function writeTo(
  pool: Pick<EnginePool, 'write'>,
  operation: WriteOperation,
  key: ReplicaKey,
  wait: boolean,
  { body, deadlineMs, message, path }: RawRequest,
): Promise<{ body: Uint8Array }> {
  const undecoded: UndecodedUpdate = { operation, path, ...(message === undefined ? {} : { message }) };
  const write = { operations: body === null ? [] : [body], until: wait ? 'applied' : 'logged', deadlineMs, undecoded } as const;
  const { entries, failure } = await pool.write(key, ALONE, write);
  const { shape } = undecoded;
  const error = failure ?? shape?.failure ?? null;
  if (error !== null) throw errorFromFacts(error);
  const numbers = entries.map(({ tag }) => tag.index);
  return { body: updateAnswer({ message }, shape ?? { parts: [], listed: true }, numbers, wait ? 'completed' : 'acknowledged') };
}

/** Writes operations that `split` made. Returns their numbers. */
export async function writePart(pool: Pick<EnginePool, 'write'>, key: ReplicaKey, operations: readonly Uint8Array[]): Promise<number[]> {
  const { entries, failure } = await pool.write(key, ALONE, { operations, until: 'applied', deadlineMs: Date.now() + 10_000 });
  if (failure !== null) throw errorFromFacts(failure);
  return entries.map(({ tag }) => tag.index);
}
