/**
 * Decodes write requests from their bytes. Most of an upload is the text of numbers, so the vectors of points are read
 * from the bytes as they stand, and only what is left goes through the JSON parser. That is done for bodies with nothing
 * odd or wrong about them; all others are parsed whole, so it is only there that errors are worded.
 */

import { parseJson } from '../json.js';
import type { JsonValue } from '../model/payload.js';
import type { WriteOperation } from '../model/update.js';
import type { ScannedBody } from './byte-scan.js';
import { scanPoints } from './point-scan.js';
import type { Embed, VectorNames } from './point-vectors.js';
import { type DecodedUpdate, decodeUpdateValue } from './updates.js';

const KINDS_WITH_VECTORS: ReadonlySet<WriteOperation> = new Set<WriteOperation>(['upsertPoints', 'updateVectors', 'batchUpdate']);

/** Looks at a body on its way; what it throws is the error of the request. */
export interface BodyWatch {
  /** Gets what is left for the parser, before it runs. */
  readonly json: (json: Uint8Array | string) => void;
  /** Gets the value before it is decoded. */
  readonly value: (body: JsonValue) => void;
}

/** The operations of a write request. path: parameters of the route; embed: as `decodeUpdate` takes it. Errors: those of `parseJson`, `watch` and `decodeUpdate`. */
export function decodeUpdateBody(
  kind: WriteOperation,
  body: Uint8Array,
  path: Readonly<Record<string, string>>,
  vectors: VectorNames,
  embed?: Embed,
  watch: BodyWatch = NO_WATCH,
): DecodedUpdate {
  if (kind === 'deleteFieldIndex') return decodeUpdateValue(kind, undefined, path, vectors);
  const scanned = KINDS_WITH_VECTORS.has(kind) ? scanPoints(body, kind === 'batchUpdate') : null;
  watch.json(scanned?.text ?? body);
  const update = scanned && decodeScanned(kind, scanned, path, vectors, embed, watch);
  return update ?? decodeUpdateValue(kind, parsed(body, watch), path, vectors, null, embed);
}

/** Null: parse the whole body. */
function decodeScanned(
  kind: WriteOperation,
  { characters, text, vectors: taken }: ScannedBody,
  path: Readonly<Record<string, string>>,
  vectors: VectorNames,
  embed: Embed | undefined,
  watch: BodyWatch,
): DecodedUpdate | null {
  try {
    const update = decodeUpdateValue(kind, parsed(text, watch, characters), path, vectors, taken, embed);
    return update.failure === null ? update : null;
  } catch {
    // The whole body fails as well, with the error that its sender is to see.
    return null;
  }
}

function parsed(json: Uint8Array | string, watch: BodyWatch, characters?: number): JsonValue {
  const body = parseJson(json, characters);
  watch.value(body);
  return body;
}

const NO_WATCH: BodyWatch = { json: () => {}, value: () => {} };
