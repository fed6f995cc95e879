/** Ordering points by a payload value: which values count, and which comes first. */

import { TroupeError } from '../protocols/errors.js';
import type { FieldSchema, FieldType } from '../protocols/model/collection.js';
import type { FieldCondition } from '../protocols/model/filter.js';
import { pathOf } from '../protocols/model/json-path.js';
import type { Payload } from '../protocols/model/payload.js';
import { compareIds, type PointId } from '../protocols/model/point-id.js';
import type { OrderBy } from '../protocols/model/query.js';
import { scalarTerms } from './filter/lookup.js';

/** Value a point is ordered by: an integer, a number, or microseconds since the epoch. */
export type OrderValue = number | bigint;

export interface OrderedPoint {
  readonly id: PointId;
  readonly value: OrderValue;
}

/** Type of the index that orders the points. Errors: `wrongInput` when the key has no index of numbers or times. */
export function orderType(key: string, schema: FieldSchema | undefined): FieldType {
  if (schema?.type === 'float' || schema?.type === 'datetime') return schema.type;
  if (schema?.type === 'integer' && schema.params?.range !== false) return schema.type;
  throw new TroupeError(
    'wrongInput',
    `No range index for \`order_by\` key: \`${key}\`. Please create one (integer, float or datetime) to use \`order_by\``,
  );
}

/** The condition that points with a value within the order pass. */
export function orderCondition({ key, direction, startFrom }: OrderBy, type: FieldType): FieldCondition {
  const range = startFrom === null ? {} : direction === 'asc' ? { gte: startFrom.value } : { lte: startFrom.value };
  return { kind: type === 'datetime' ? 'datetimeRange' : 'range', key, range };
}

/** The distinct values within the order that an index of this type holds of a payload. */
export function orderValues({ key, direction, startFrom }: OrderBy, type: FieldType, payload: Payload): OrderValue[] {
  const terms = scalarTerms(type, payload, pathOf(key)) as OrderValue[];
  // An index of floats holds doubles, whatever the payload holds.
  const values = type === 'float' ? terms.map(Number) : terms;
  if (startFrom === null) return values;
  return values.filter((value) => (direction === 'asc' ? value >= startFrom.value : value <= startFrom.value));
}

/** Sort order of values, ties by id; the other way round for `desc`. */
export function compareOrdered(direction: OrderBy['direction']): (a: OrderedPoint, b: OrderedPoint) => number {
  const sign = direction === 'asc' ? 1 : -1;
  return (a, b) => {
    if (a.value < b.value) return -sign;
    if (a.value > b.value) return sign;
    return sign * compareIds(a.id, b.id);
  };
}

/** Keeps the first `count` of all points it is given. */
export class FirstInOrder<T extends OrderedPoint> {
  private points: T[] = [];
  private readonly compare: (a: OrderedPoint, b: OrderedPoint) => number;

  constructor(
    direction: OrderBy['direction'],
    private readonly count: number,
  ) {
    this.compare = compareOrdered(direction);
  }

  add(point: T): void {
    this.points.push(point);
    // Now and then what cannot stay is dropped, at the cost of one sort for as many points as are kept.
    if (this.points.length >= 2 * this.count + 1024) this.points = this.inOrder();
  }

  inOrder(): T[] {
    return this.points.sort(this.compare).slice(0, this.count);
  }
}
