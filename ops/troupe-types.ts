/** Names for what the methods of `Troupe` take and answer. */

import type { Explanation } from '../protocols/model/explanation.js';
import type { BodyOf, OperationName, ResultOf } from '../protocols/openapi/operations.js';

/** An unsigned 64-bit integer, or a UUID as text. Integers beyond 2^53 - 1 are bigints. */
export type PointId = string | number | bigint;

/** A payload of which nothing is known: any JSON object. */
export type AnyPayload = Record<string, unknown>;

type PointsBody = Extract<BodyOf<'upsert_points'>, { readonly points: unknown }>;

/** The vectors of a point: the unnamed one, or vectors by name; `Float32Array`s do as well as lists of numbers. */
export type Vectors = PointsBody['points'][number]['vector'];

/** A point to write. */
export interface Point<Payload extends object = AnyPayload> {
  readonly id: PointId;
  readonly vector: Vectors;
  readonly payload?: Payload | null;
}

/** Which points to find, count or change: `must`, `should`, `must_not`, `min_should`. */
export type Filter = NonNullable<BodyOf<'count_points'>['filter']>;

/** What `upsert` takes: points, or columns of them. */
export type UpsertBody<Payload extends object = AnyPayload> =
  | (Omit<PointsBody, 'points'> & { readonly points: readonly Point<Payload>[] })
  | Extract<BodyOf<'upsert_points'>, { readonly batch: unknown }>;

type WithPayload<Shown, Payload extends object> = Omit<Shown, 'payload'> & { payload?: Payload | null | undefined };

/** A point as it is stored. */
export type StoredPoint<Payload extends object = AnyPayload> = WithPayload<ResultOf<'scroll_points'>['points'][number], Payload>;

/** A point and how well it fits. */
export type ScoredPoint<Payload extends object = AnyPayload> = WithPayload<ResultOf<'query_points'>['points'][number], Payload>;

/** What a query answers, best points first. */
export interface QueryAnswer<Payload extends object = AnyPayload> {
  points: ScoredPoint<Payload>[];
}

/** Points in the order of their ids, and where the next page begins; null: this was the last one. */
export type ScrollPage<Payload extends object = AnyPayload> = Omit<ResultOf<'scroll_points'>, 'points'> & {
  points: StoredPoint<Payload>[];
};

/** Which points `points` gives, and what it shows of them. */
export type PointsOptions = Omit<BodyOf<'scroll_points'>, 'limit' | 'order_by'> & {
  /** Points that are read at a time, 256 by default. */
  readonly batch?: number;
};

/** Settings of a collection that is created. */
export type CollectionSettings = BodyOf<'create_collection'>;

interface CommonOptions {
  /** Seconds after which the operation ends with `timeout`. */
  readonly timeout?: number;
}

/** Options of reads. */
export interface ReadOptions extends CommonOptions {
  /** Is told how the read was carried out (`explain: true` of the API), before its result is there. */
  readonly explained?: (explanation: Explanation) => void;
}

/** Options of writes. */
export interface WriteOptions extends CommonOptions {
  /** Answer when the change is applied and visible; false: when it is safe on disk. Default true. */
  readonly wait?: boolean;
  readonly ordering?: 'weak' | 'medium' | 'strong';
}

/** Where doors are opened. */
export interface ListenOptions {
  /** 127.0.0.1 by default: this machine alone. */
  readonly host?: string;
  /** Of REST; 0, the default: any free one. */
  readonly port?: number;
  /** Of gRPC; 0: any free one; null, the default: no gRPC. */
  readonly grpcPort?: number | null;
}

/** Doors that are open. */
export interface OpenDoors {
  /** Address of REST, with the dashboard at `/dashboard`: `http://127.0.0.1:6333`. */
  readonly url: string;
  readonly port: number;
  /** Null without gRPC. */
  readonly grpcPort: number | null;
  /** Takes no more connections, and resolves when requests that run are answered, 30 s at most. */
  close(): Promise<void>;
}

/** An operation with what it takes. */
export interface OperationCall<Name extends OperationName> {
  /** Parameters of its path. */
  readonly path?: Readonly<Record<string, string>>;
  readonly query?: Readonly<Record<string, string>>;
  readonly body?: BodyOf<Name>;
  readonly explained?: (explanation: Explanation) => void;
}
