/** Update operations: what a write request is decoded to, what the WAL stores and a replica applies. */

import type { ErrorFacts } from '../errors.js';
import type { ShardId } from './cluster.js';
import type { FieldSchema } from './collection.js';
import type { Filter } from './filter.js';
import type { RequestLimits } from './limits.js';
import type { Payload } from './payload.js';
import type { PointId } from './point-id.js';
import type { Grants } from './scope.js';
import type { UnknownField, UnknownFields } from './unknown-fields.js';

/** Points an operation works on. */
export type PointsSelector =
  | { readonly kind: 'ids'; readonly ids: readonly PointId[] }
  | { readonly kind: 'filter'; readonly filter: Filter; readonly of?: PartOfRing };

/** Only the points that a ring of shards gives to this one: copies of others' points may lie beside them, and follow those. */
export interface PartOfRing {
  readonly ring: readonly ShardId[];
  readonly shardId: ShardId;
}

/** One vector name's column of a batch. */
export type BatchColumn = DenseColumn | MultiColumn | SparseColumn;

interface Column {
  readonly name: string;
  /** Indexes into the batch's points that have this vector, ascending; null: all of them. */
  readonly points: Uint32Array | null;
}

export interface DenseColumn extends Column {
  readonly kind: 'dense';
  readonly dim: number;
  /** Float32Array [points, dim], row after row; cosine vectors already normalized. */
  readonly values: Float32Array;
}

export interface MultiColumn extends Column {
  readonly kind: 'multi';
  readonly dim: number;
  /** Uint32Array [points]: how many vectors each point has, at least 1. */
  readonly counts: Uint32Array;
  /** Float32Array [sum of counts, dim]; cosine vectors already normalized. */
  readonly values: Float32Array;
}

export interface SparseColumn extends Column {
  readonly kind: 'sparse';
  /** Uint32Array [points]: how many components each point has. */
  readonly counts: Uint32Array;
  /** Uint32Array [sum of counts]: ascending within a point. */
  readonly indices: Uint32Array;
  /** Float32Array [sum of counts]. */
  readonly values: Float32Array;
}

/** Columns of an upsert. `payloads[i]` belongs to `ids[i]`; undefined is an empty payload. Ids are distinct: the last one given wins. */
export interface PointBatch {
  readonly ids: readonly PointId[];
  readonly vectors: readonly BatchColumn[];
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

/**
 * Whether an operation may take memory or disk for good. Those that take points or values away go on where these are short, since they are
 * what helps.
 */
export const TAKES_ROOM: Readonly<Record<WriteOperation | UpdateOperation['kind'], boolean>> = {
  upsert: true,
  upsertPoints: true,
  updateVectors: true,
  setPayload: true,
  overwritePayload: true,
  batchUpdate: true,
  createFieldIndex: true,
  deletePoints: false,
  deleteVectors: false,
  deletePayload: false,
  clearPayload: false,
  deleteFieldIndex: false,
};

/** A write request in a form that its replica decodes: its body is elsewhere. */
export interface UndecodedUpdate {
  readonly operation: WriteOperation;
  /** As in `RawRequest`. */
  readonly path: Readonly<Record<string, string>>;
  readonly message?: string;
  /** As in `RawRequest`. */
  readonly unknownFields?: UnknownFields;
  readonly timeoutSeconds?: number;
  readonly limits?: RequestLimits;
  readonly grants?: Grants;
  /** What the request asks for, written here when the replica has decoded it. */
  shape?: UpdateShape;
}

/** What a write request asks for, besides its operations. */
export interface UpdateShape {
  /** How many operations answer together, one number for each answer: 1 for all but batches. */
  readonly parts: readonly number[];
  /** The answer is a list, one element for each part. */
  readonly listed: boolean;
  /** Why the request fails once its operations are applied: one behind them does not fit the collection. */
  readonly failure: ErrorFacts | null;
  /** Fields of its body that the API does not have; absent if there are none. */
  readonly unknownFields?: readonly UnknownField[];
}

/** What became of a write. */
export interface Written {
  /** Of each operation: its index in the shard's log. */
  readonly numbers: readonly number[];
  readonly status: UpdateStatus;
}

/**
 * `acknowledged`: it is on disk. `completed`: it is applied, and reads see it. `wait_timeout`: it is applied, but reads did not see all of its
 * points before the request's time was up (`prevent_unoptimized`). Source: API reference, `UpdateStatus`.
 */
export type UpdateStatus = 'acknowledged' | 'completed' | 'wait_timeout';
