/** Decodes write requests from gRPC messages: the counterpart of `decodeUpdateBody`. */

import { TroupeError } from '../errors.js';
import type { WriteOperation } from '../model/update.js';
import type { Embed, VectorNames } from '../rest/point-vectors.js';
import { type DecodedUpdate, decodeUpdate } from '../rest/updates.js';
import { decodeMessage } from './decode.js';
import { schema } from './schema.js';

/**
 * The operations of a write request. message: the full name of what the body is; the rest as `decodeUpdate` takes it.
 * Errors: those of `decodeMessage` and `decodeUpdate`; `wrongInput` for NaN and infinities in vectors, which JSON cannot hold.
 */
export function decodeUpdateMessage(
  kind: WriteOperation,
  body: Uint8Array,
  message: string,
  path: Readonly<Record<string, string>>,
  vectors: VectorNames,
  embed?: Embed,
): DecodedUpdate {
  const request = decodeMessage(schema().message(message), body);
  request.vectors?.forEach(checkFinite);
  return decodeUpdate(kind, request.value, path, vectors, request.vectors, embed);
}

/** One sum instead of a test per value: infinities and NaN survive it, and finite float32 values cannot overflow a double. */
function checkFinite(values: Float32Array): void {
  let sum = 0;
  for (let i = 0; i < values.length; i++) sum += values[i] as number;
  if (!Number.isFinite(sum)) throw new TroupeError('wrongInput', 'a vector must hold finite 32-bit numbers');
}
