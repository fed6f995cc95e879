/** Decodes `order_by` of queries and of scroll. Errors: `malformedBody`. */

import { parseDatetime } from '../datetime.js';
import { TroupeError } from '../errors.js';
import type { JsonValue } from '../model/payload.js';
import type { OrderBy } from '../model/query.js';
import { isObject } from './fields.js';
import { decodeKey } from './filter.js';
import { isGiven } from './request-fields.js';

const DIRECTIONS = ['asc', 'desc'] as const;

/** A payload key, or an object with a key. */
export function orderByOf(value: JsonValue | undefined): OrderBy {
  if (typeof value === 'string') return { key: decodeKey(value, 'order_by'), direction: 'asc', startFrom: null };
  if (!isObject(value) || typeof value.key !== 'string') throw noOrder();
  const direction = isGiven(value.direction) ? DIRECTIONS.find((word) => word === value.direction) : 'asc';
  if (direction === undefined) throw noOrder();
  return { key: decodeKey(value.key, 'order_by.key'), direction, startFrom: startFromOf(value.start_from) };
}

function startFromOf(value: JsonValue | undefined): OrderBy['startFrom'] {
  if (!isGiven(value)) return null;
  if (typeof value === 'number' || typeof value === 'bigint') return { kind: 'number', value: Number(value) };
  const micros = typeof value === 'string' ? parseDatetime(value) : undefined;
  if (micros === undefined) throw noOrder();
  return { kind: 'datetime', value: micros };
}

function noOrder(): TroupeError {
  return new TroupeError('malformedBody', '`order_by`: Expected a string, or an object with a key, direction and/or start_from');
}
