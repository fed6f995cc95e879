/** Decodes write requests from gRPC messages: the counterpart of `decodeUpdateBody`. */

import type { WriteOperation } from '../model/update.js';
import type { Embed, VectorNames } from '../rest/point-vectors.js';
import { type DecodedUpdate, decodeUpdateValue } from '../rest/updates.js';
import { decodeMessage } from './decode.js';
import { schema } from './schema.js';

/** Floats of the request that is decoded: fresh memory for each batch would cost more than reading it. */
const room = new Float32Array(1 << 20);

/**
 * The operations of a write request. message: the full name of what the body is; the rest as `decodeUpdate` takes it.
 * Errors: those of `decodeMessage` and `decodeUpdate`.
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
  return decodeUpdateValue(kind, request.value, path, vectors, request.vectors, embed);
}
