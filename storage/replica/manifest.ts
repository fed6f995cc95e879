/** The manifest of a replica: what it consists of. Changes with the set of segments, with fields and with nothing else. */

import { parseJson, stringifyJson } from '../../protocols/json.js';
import type { FieldSchema } from '../../protocols/model/collection.js';
import type { VectorPlan } from '../segment/layout.js';
import { SEAL_BYTES, seal, unseal } from '../wal/records.js';

export interface ManifestSegment {
  readonly id: number;
  readonly kind: 'appendable' | 'sealed';
  /** Rows there is room for (appendable) or that there are (sealed). */
  readonly capacity: number;
  /** Vectors an appendable segment was made with, in the order of its chunks. Missing in replicas of format 2: those of the collection. */
  readonly vectors?: readonly VectorPlan[];
  /** Vectors that it was made with and that count no more: the collection has lost them, and may have others of these names. */
  readonly dropped?: readonly string[];
  /** Appendable: no read sees its rows (`deferral.ts`). */
  readonly deferred?: boolean;
}

export interface ManifestField {
  readonly name: string;
  /** Stands for the name in keys of `index`; never used again. */
  readonly number: number;
  readonly schema: FieldSchema;
}

export interface Manifest {
  readonly segments: readonly ManifestSegment[];
  readonly fields: readonly ManifestField[];
  readonly nextSegment: number;
  readonly nextField: number;
  /** Segments that are no longer part of the replica and whose records may still be there. */
  readonly dropped: readonly number[];
}

const FORMAT = 1;

export function encodeManifest(manifest: Manifest): Uint8Array {
  const text = Buffer.from(stringifyJson({ format: FORMAT, ...manifest }), 'utf8');
  const record = new Uint8Array(SEAL_BYTES + text.length);
  record.set(text, SEAL_BYTES);
  return seal(record);
}

/** Errors: `storage`. */
export function decodeManifest(record: Uint8Array): Manifest {
  const manifest = parseJson(unseal(record, 'meta/manifest')) as unknown as Manifest & { format: number };
  if (manifest.format !== FORMAT) throw new Error(`manifest of format ${manifest.format}, this release reads ${FORMAT}`);
  const { segments, fields, nextSegment, nextField, dropped } = manifest;
  return { segments, fields, nextSegment, nextField, dropped };
}
