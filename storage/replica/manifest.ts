/** The manifest of a replica: its segments and fields. It changes only when these do. */

import { parseStored, stringifyJson } from '../../protocols/json.js';
import type { FieldSchema } from '../../protocols/model/collection.js';
import type { VectorPlan } from '../segment/layout.js';
import { sealBody, unseal } from '../wal/records.js';

export interface ManifestSegment {
  readonly id: number;
  readonly kind: 'appendable' | 'sealed';
  /** Rows: the capacity of an appendable segment, the count of a sealed one. */
  readonly capacity: number;
  /** Vectors that an appendable segment was made with, in the order of its chunks. Absent for a sealed segment. */
  readonly vectors?: readonly VectorPlan[];
  /**
   * Vectors that the segment was made with and that count no more: the collection has dropped them, and may have other vectors with these
   * names.
   */
  readonly dropped?: readonly string[];
  /** Set for an appendable segment whose rows no read sees (`deferral.ts`). */
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
  /** Segments that are no longer part of the replica; some of their records may still exist. */
  readonly dropped: readonly number[];
}

const FORMAT = 1;

export function encodeManifest(manifest: Manifest): Uint8Array {
  return sealBody(Buffer.from(stringifyJson({ format: FORMAT, ...manifest }), 'utf8'));
}

/** Decodes a manifest. Errors: `storage`. */
export function decodeManifest(record: Uint8Array): Manifest {
  const manifest = parseStored(unseal(record, 'meta/manifest')) as unknown as Manifest & { format: number };
  if (manifest.format !== FORMAT) throw new Error(`manifest of format ${manifest.format}, this release reads ${FORMAT}`);
  const { segments, fields, nextSegment, nextField, dropped } = manifest;
  return { segments, fields, nextSegment, nextField, dropped };
}
