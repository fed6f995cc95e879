/** Update operations from what a worker gets: a request of either door, or bytes that were encoded elsewhere. */

import { TroupeError } from '../../protocols/errors.js';
import { decodeUpdateMessage } from '../../protocols/grpc/update-message.js';
import type { CollectionParams } from '../../protocols/model/collection.js';
import type { BatchColumn, WriteOperation } from '../../protocols/model/update.js';
import { unknownVector, type VectorTarget, vectorTarget } from '../../protocols/rest/point-vectors.js';
import { type BodyWatch, decodeUpdateBody } from '../../protocols/rest/update-body.js';
import type { DecodedUpdate } from '../../protocols/rest/updates.js';
import { decodeUpdate, type LoggedOperation } from '../../protocols/update-codec.js';
import { restrictUpdate } from '../grants/restrict-update.js';
import { checkUpdateLimits } from '../limits/check-update.js';
import { upsertBytes } from '../limits/upsert-bytes.js';
import type { RawRequest } from '../threads/messages.js';
import { checkValues } from './body-values.js';
import { embedStored } from './embed.js';
import { normalizeUpdates } from './normalize-updates.js';
import { findUnknownIn } from './unknown-fields.js';

export type WriteSource = Pick<RawRequest, 'body' | 'grants' | 'limits' | 'message' | 'path' | 'timeoutSeconds' | 'unknownFields'>;

const NO_BODY = new Uint8Array(0);

/**
 * The operations of a request, as they are stored. Unknown fields of the body are added to the request's. Errors: those of decoding;
 * `badRequest` for what goes beyond the request's limits; `forbidden` for what its grants do not allow.
 */
export function decodeWriteRequest(
  kind: WriteOperation,
  { body, grants, limits, message, path, timeoutSeconds, unknownFields }: WriteSource,
  params: CollectionParams,
): DecodedUpdate {
  const watch: BodyWatch = {
    json: (json) => checkValues('write', json),
    value: (value) => unknownFields && findUnknownIn(kind, value, unknownFields),
  };
  const asked =
    message === undefined
      ? decodeUpdateBody(kind, body ?? NO_BODY, path, params, embedStored, watch)
      : decodeUpdateMessage(kind, body ?? NO_BODY, message, path, params, embedStored);
  if (limits !== undefined) {
    const { operations } = asked;
    const bytes = limits.strict.upsert_max_batchsize === undefined ? 0 : upsertBytes(kind, body ?? NO_BODY, message !== undefined);
    checkUpdateLimits({ operations, timeoutSeconds, upsertBytes: bytes }, limits);
  }
  const update = grants === undefined ? asked : restrictUpdate(asked, grants, path.collection_name);
  normalizeUpdates(update.operations, params.vectors);
  return update;
}

/**
 * Operations that `encodeOperation` made bytes of for a collection with the same vectors. Each but the first hangs on the one before it.
 * Errors: `storage` for other bytes; `wrongInput` when the collection's vectors have become others since.
 */
export function decodeEncoded(encoded: readonly Uint8Array[], params: CollectionParams): LoggedOperation[] {
  const target = vectorTarget(params, null, embedStored);
  return encoded.map((bytes, index) => {
    const logged = decodeChecked(bytes, target);
    if (logged.chained !== index > 0) throw new TroupeError('storage', 'encoded operations are not in the order of their request');
    return logged;
  });
}

/**
 * The same of operations that a shard's leader has logged, which may begin and end anywhere in a request. Errors: `unavailable` where the
 * collection does not have their vectors here yet.
 */
export function decodeShared(encoded: readonly Uint8Array[], params: CollectionParams): LoggedOperation[] {
  const target = vectorTarget(params, null, embedStored);
  try {
    return encoded.map((bytes) => decodeChecked(bytes, target));
  } catch (error) {
    if (!(error instanceof TroupeError) || error.code !== 'wrongInput') throw error;
    const options = { cause: error, retryAfterMs: 100 };
    throw new TroupeError('unavailable', `this node does not know the collection's vectors yet: ${error.detail}`, options);
  }
}

function decodeChecked(bytes: Uint8Array, target: VectorTarget): LoggedOperation {
  const { chained, operation } = decodeUpdate(bytes);
  if ('batch' in operation) for (const column of operation.batch.vectors) checkColumn(column, operation.batch.ids.length, target);
  return { operation, chained, encoded: bytes };
}

function checkColumn(column: BatchColumn, points: number, { names }: VectorTarget): void {
  const known = names.get(column.name);
  const dim = column.kind === 'sparse' ? undefined : column.dim;
  if (known?.kind !== column.kind || (known.kind !== 'sparse' && known.dim !== dim)) throw unknownVector(column.name);
  const rows = column.kind === 'dense' ? column.values.length / column.dim : column.counts.length;
  const listed = column.points?.length ?? points;
  if (rows !== listed || column.points?.some((point) => point >= points)) {
    throw new TroupeError('storage', `the vectors ${column.name} of an encoded operation are not those of its points`);
  }
}
