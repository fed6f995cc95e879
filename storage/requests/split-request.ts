/** A write request as its shards get it: decoded once, split, and encoded for each. */

import { errorFacts } from '../../protocols/errors.js';
import { foundUnknown } from '../../protocols/model/unknown-fields.js';
import type { UpdateOperation } from '../../protocols/model/update.js';
import { encodeUpdate } from '../../protocols/update-codec.js';
import { ringsOf } from '../sharding/keys.js';
import { type ShardPart, stagesOf } from '../sharding/stages.js';
import type { EncodedPart, SplitJob, SplitWrite } from '../threads/messages.js';
import { decodeWriteRequest } from './decode-update.js';

/** Errors: those of decoding; nothing of the request is to be carried out then. */
export function splitRequest({ keyed, operation, params, request, shards, wait }: SplitJob): SplitWrite {
  const { failure, listed, operations, parts, shardKeys } = decodeWriteRequest(operation, request, params);
  const known = keyed ?? shards.map((id) => ({ id, key: null }));
  const custom = params.sharding_method === 'custom';
  const rings = operations.map((one, at) => ringsOf(known, custom, one, shardKeys[at] ?? null));
  const stages = stagesOf(operations, rings, wait);
  const index = indexOf(operations);
  return {
    ...(index === null ? {} : { index }),
    stages: stages.map(({ needed, parts: shares }) => ({ needed, parts: shares.map(encodePart) })),
    parts,
    listed,
    failure: failure === null ? null : errorFacts(failure),
    ...foundUnknown(request.unknownFields),
  };
}

function indexOf(operations: readonly UpdateOperation[]): SplitWrite['index'] | null {
  const [first] = operations;
  if (first?.kind === 'createFieldIndex') return { field: first.field, schema: first.schema };
  return first?.kind === 'deleteFieldIndex' ? { field: first.field, schema: null } : null;
}

/** The memory of all operations of a write, to be given away. */
export function memoryOf({ stages }: SplitWrite): ArrayBuffer[] {
  return stages.flatMap(({ parts }) => parts.flatMap(({ operations }) => operations.map((bytes) => bytes.buffer as ArrayBuffer)));
}

function encodePart({ operations, shardId }: ShardPart): EncodedPart {
  return {
    shardId,
    at: operations.map(({ at }) => at),
    operations: operations.map(({ operation }, index) => encodeUpdate({ operation, chained: index > 0 })),
  };
}
