/** Decodes write requests from gRPC messages: the counterpart of `decodeUpdateBody`. */

import type { WriteOperation } from '../model/update.js';
import type { Embed, VectorNames } from '../rest/point-vectors.js';
import { type DecodedUpdate, decodeUpdate } from '../rest/updates.js';
import { decodeMessage } from './decode.js';
import { schema } from './schema.js';

/** The operations of a write request. message: the full name of what the body is. Errors: those of `decodeMessage` and `decodeUpdate`. */
export function decodeUpdateMessage(
  kind: WriteOperation,
  body: Uint8Array,
  message: string,
  path: Readonly<Record<string, string>>,
  vectors: VectorNames,
  embed?: Embed,
): DecodedUpdate {
  const request = decodeMessage(schema().message(message), body);
  return decodeUpdate(kind, request.value, path, vectors, request.vectors, embed);
}
