/**
 * Decodes write requests from their bytes. Most of an upload is the text of numbers, so the vectors of points are read
 * from the bytes as they stand, and only what is left goes through the JSON parser. That is done for bodies with nothing
 * odd or wrong about them; all others are parsed whole, so it is only there that errors are worded.
 */

import { parseJson } from '../json.js';
import type { JsonValue } from '../model/payload.js';
import type { WriteOperation } from '../model/update.js';
import { scanPoints } from './point-scan.js';
import type { Embed, VectorNames } from './point-vectors.js';
import { type DecodedUpdate, decodeUpdateValue } from './updates.js';

const KINDS_WITH_VECTORS: ReadonlySet<WriteOperation> = new Set<WriteOperation>(['upsertPoints', 'updateVectors', 'batchUpdate']);

/** The operations of a write request. path: parameters of the route; embed: as `decodeUpdate` takes it; see: gets the body before it is decoded. Errors: those of `parseJson`, `see` and `decodeUpdate`. */
export function decodeUpdateBody(
  kind: WriteOperation,
  body: Uint8Array,
  path: Readonly<Record<string, string>>,
  vectors: VectorNames,
  embed?: Embed,
  see?: (body: JsonValue) => void,
): DecodedUpdate {
  if (kind === 'deleteFieldIndex') return decodeUpdateValue(kind, undefined, path, vectors);
  const scanned = KINDS_WITH_VECTORS.has(kind) ? decodeScanned(kind, body, path, vectors, embed, see) : null;
  return scanned ?? decodeUpdateValue(kind, seen(parseJson(body), see), path, vectors, null, embed);
}

/** Null: parse the whole body. */
function decodeScanned(
  kind: WriteOperation,
  bytes: Uint8Array,
  path: Readonly<Record<string, string>>,
  vectors: VectorNames,
  embed: Embed | undefined,
  see: ((body: JsonValue) => void) | undefined,
): DecodedUpdate | null {
  const scanned = scanPoints(bytes, kind === 'batchUpdate');
  if (scanned === null) return null;
  try {
    const body = seen(parseJson(scanned.text, scanned.characters), see);
    const update = decodeUpdateValue(kind, body, path, vectors, scanned.vectors, embed);
    return update.failure === null ? update : null;
  } catch {
    // The whole body fails as well, with the error that its sender is to see.
    return null;
  }
}

function seen(body: JsonValue, see: ((body: JsonValue) => void) | undefined): JsonValue {
  see?.(body);
  return body;
}
