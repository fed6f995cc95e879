/** Decodes write requests from gRPC messages: the counterpart of `decodeUpdateBody`. */

import { TroupeError } from '../errors.js';
import type { WriteOperation } from '../model/update.js';
import type { Embed, VectorNames } from '../rest/point-vectors.js';
import { type DecodedUpdate, decodeUpdateValue } from '../rest/updates.js';
import { decodeMessage } from './decode.js';
import { schema } from './schema.js';

/** Floats of the request that is decoded: fresh memory for each batch would cost more than reading it. */
const room = new Float32Array(1 << 20);

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
  // Decoding copies the vectors to their columns, so the room is free again when it ends.
  const request = decodeMessage(schema().message(message), body, { room });
  request.vectors?.forEach(checkFinite);
  return decodeUpdateValue(kind, request.value, path, vectors, request.vectors, embed);
}

/** One sum instead of a test per value: infinities and NaN survive it, and finite float32 values cannot overflow a double. */
function checkFinite(values: Float32Array): void {
  // Four sums side by side: each addition waits for the one before it.
  let a = 0;
  let b = 0;
  let c = 0;
  let d = 0;
  const { length } = values;
  let i = 0;
  for (; i + 3 < length; i += 4) {
    a += values[i] as number;
    b += values[i + 1] as number;
    c += values[i + 2] as number;
    d += values[i + 3] as number;
  }
  for (; i < length; i++) a += values[i] as number;
  if (!Number.isFinite(a + b + c + d)) throw new TroupeError('wrongInput', 'the vector has a value that is not a finite 32-bit number');
}
