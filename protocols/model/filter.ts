/** The filter model: what the doors decode every wire filter to. See `protocols/rest/filter.ts` for the decoder. */

import type { JsonValue } from './payload.js';
import type { PointId } from './point-id.js';

/** All `must` hold, no `mustNot` holds, one of `should` holds (when there are any), `minShould.minCount` of its conditions hold. */
export interface Filter {
  readonly must: readonly Condition[];
  readonly should: readonly Condition[];
  readonly mustNot: readonly Condition[];
  readonly minShould: { readonly conditions: readonly Condition[]; readonly minCount: number } | null;
}

export type Condition =
  | FieldCondition
  | { readonly kind: 'isEmpty'; readonly key: string }
  | { readonly kind: 'isNull'; readonly key: string }
  | { readonly kind: 'hasId'; readonly ids: readonly PointId[] }
  | { readonly kind: 'hasVector'; readonly name: string }
  | { readonly kind: 'nested'; readonly key: string; readonly filter: Filter }
  | { readonly kind: 'filter'; readonly filter: Filter };

/** A condition on the values at one payload key. */
export type FieldCondition =
  | { readonly kind: 'match'; readonly key: string; readonly match: Match }
  | { readonly kind: 'range'; readonly key: string; readonly range: Range }
  | { readonly kind: 'datetimeRange'; readonly key: string; readonly range: DatetimeRange }
  | { readonly kind: 'geo'; readonly key: string; readonly area: GeoArea }
  | { readonly kind: 'valuesCount'; readonly key: string; readonly range: Range }
  | { readonly kind: 'fieldIsEmpty'; readonly key: string; readonly isEmpty: boolean }
  | { readonly kind: 'fieldIsNull'; readonly key: string; readonly isNull: boolean };

export type MatchValue = string | number | bigint | boolean;

export type Match =
  | { readonly kind: 'value'; readonly value: MatchValue }
  | { readonly kind: 'any'; readonly values: readonly (string | number | bigint)[] }
  | { readonly kind: 'except'; readonly values: readonly (string | number | bigint)[] }
  /** Full text: every word, some word, or the words one after the other. */
  | { readonly kind: 'text' | 'textAny' | 'phrase'; readonly text: string };

/** Degrees: longitude -180..180, latitude -90..90. */
export interface GeoPoint {
  readonly lon: number;
  readonly lat: number;
}

/** A part of the earth's surface. */
export type GeoArea =
  /** West of the antimeridian to east of it when `topLeft.lon > bottomRight.lon`. */
  | { readonly kind: 'box'; readonly topLeft: GeoPoint; readonly bottomRight: GeoPoint }
  /** radius: metres. */
  | { readonly kind: 'circle'; readonly center: GeoPoint; readonly radius: number }
  /** Closed rings (first point = last point); what lies in an interior is outside. */
  | { readonly kind: 'polygon'; readonly exterior: readonly GeoPoint[]; readonly interiors: readonly (readonly GeoPoint[])[] };

/** Bounds that are undefined do not bound. */
export interface Range {
  readonly lt?: number;
  readonly lte?: number;
  readonly gt?: number;
  readonly gte?: number;
}

/** As `Range`, in microseconds since the epoch. */
export type DatetimeRange = Range;

/** Which part of a payload an answer carries. */
export type PayloadSelector =
  | { readonly kind: 'all' }
  | { readonly kind: 'none' }
  | { readonly kind: 'include'; readonly keys: readonly string[] }
  | { readonly kind: 'exclude'; readonly keys: readonly string[] };

/** Which vectors an answer carries. */
export type VectorSelector =
  | { readonly kind: 'all' }
  | { readonly kind: 'none' }
  | { readonly kind: 'names'; readonly names: readonly string[] };

export type { JsonValue };
