/** Update operations: what a write request is decoded to, what the WAL stores and a replica applies. */

import type { FieldSchema } from './collection.js';
import type { Filter } from './filter.js';
import type { Payload } from './payload.js';
import type { PointId } from './point-id.js';

/** Points an operation works on. */
export type PointsSelector =
  | { readonly kind: 'ids'; readonly ids: readonly PointId[] }
  | { readonly kind: 'filter'; readonly filter: Filter };

/** One vector name's column of a batch. */
export interface VectorColumn {
  readonly name: string;
  readonly dim: number;
  /** Indexes into the batch's points that have this vector, ascending; null: all of them. */
  readonly points: Uint32Array | null;
  /** Float32Array [points, dim], row after row; cosine vectors already normalized. */
  readonly values: Float32Array;
}

/** Columns of an upsert. `payloads[i]` belongs to `ids[i]`; undefined is an empty payload. Ids are distinct: the last one given wins. */
export interface PointBatch {
  readonly ids: readonly PointId[];
  readonly vectors: readonly VectorColumn[];
  readonly payloads: readonly (Payload | undefined)[];
}

/** Which points of an upsert are written: all, those that are not there yet, or those that are. */
export type UpsertMode = 'upsert' | 'insertOnly' | 'updateOnly';

export type UpdateOperation =
  /** filter: points that are there already are written only when they match. */
  | { readonly kind: 'upsert'; readonly batch: PointBatch; readonly mode?: UpsertMode; readonly filter?: Filter | null }
  /** Replaces the named vectors of points, which must be there; ids may repeat. */
  | { readonly kind: 'updateVectors'; readonly batch: PointBatch; readonly filter?: Filter | null }
  | { readonly kind: 'deleteVectors'; readonly selector: PointsSelector; readonly names: readonly string[] }
  | { readonly kind: 'deletePoints'; readonly selector: PointsSelector }
  | { readonly kind: 'setPayload'; readonly selector: PointsSelector; readonly payload: Payload; readonly key: string | null }
  | { readonly kind: 'overwritePayload'; readonly selector: PointsSelector; readonly payload: Payload; readonly key: string | null }
  | { readonly kind: 'deletePayload'; readonly selector: PointsSelector; readonly keys: readonly string[] }
  | { readonly kind: 'clearPayload'; readonly selector: PointsSelector }
  | { readonly kind: 'createFieldIndex'; readonly field: string; readonly schema: FieldSchema }
  | { readonly kind: 'deleteFieldIndex'; readonly field: string };

/** Write requests by the name of their operation. */
export type WriteOperation =
  | 'upsertPoints'
  | 'deletePoints'
  | 'updateVectors'
  | 'deleteVectors'
  | 'setPayload'
  | 'overwritePayload'
  | 'deletePayload'
  | 'clearPayload'
  | 'batchUpdate'
  | 'createFieldIndex'
  | 'deleteFieldIndex';
