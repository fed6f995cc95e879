/**
 * Values of a payload at a path, and the tests of the API on them. These rules decide every answer; an index may only
 * be quicker at the same (exceptions: `lookup.ts`). Keys are own keys: `__proto__` is data like any other.
 *
 * A path yields values; a value that is an array counts element by element, one level deep (`values_count` and the
 * presence tests look at the array as it is). Source: scenarios filter-match, filter-range, filter-presence, filter-nested,
 * filter-geo, filter-text (without an index `text` and `phrase` are parts of the value, to the letter; `text_any` is one of the words).
 */

import { parseDatetime } from '../../protocols/datetime.js';
import type { FieldCondition, GeoArea, Match, Range } from '../../protocols/model/filter.js';
import { type JsonPath, pathOf } from '../../protocols/model/json-path.js';
import type { JsonValue } from '../../protocols/model/payload.js';
import { areaTest, geoPointOf } from '../geo/area.js';

const NOT_SPACE = /\P{White_Space}+/gu;

export type ValueTest = (value: JsonValue) => boolean;

/** Whether some value at the path passes. `depth`: steps of the path that lead to `value`. */
export function someValue(value: JsonValue, path: JsonPath, test: ValueTest, depth = 0): boolean {
  const step = path[depth];
  if (step === undefined) return test(value);
  if (step.kind === 'key') {
    if (typeof value !== 'object' || value === null || Array.isArray(value) || !Object.hasOwn(value, step.key)) return false;
    return someValue(value[step.key] as JsonValue, path, test, depth + 1);
  }
  if (!Array.isArray(value)) return false;
  if (step.kind === 'each') return value.some((element) => someValue(element, path, test, depth + 1));
  return step.index < value.length && someValue(value[step.index] as JsonValue, path, test, depth + 1);
}

/** The test that passes when the value, or one element of it, passes. */
export function anyElement(test: ValueTest): ValueTest {
  return (value) => (Array.isArray(value) ? value.some(test) : test(value));
}

/** Whether a payload (or an element of a nested condition) passes a field condition. */
export function fieldTest(condition: FieldCondition): (payload: JsonValue) => boolean {
  const path = pathOf(condition.key);
  switch (condition.kind) {
    case 'match':
      return somewhere(path, anyElement(matchTest(condition.match)));
    case 'range':
      return somewhere(path, anyElement(numberTest(condition.range)));
    case 'datetimeRange':
      return somewhere(path, anyElement(timeTest(condition.range)));
    case 'geo':
      return somewhere(path, anyElement(placeTest(condition.area)));
    case 'valuesCount': {
      const { range } = condition;
      return somewhere(path, (value) => inRange(countOf(value), range));
    }
    case 'fieldIsEmpty': {
      const present = somewhere(path, isPresent);
      return condition.isEmpty ? (payload) => !present(payload) : present;
    }
    case 'fieldIsNull': {
      const isNull = somewhere(path, holdsNull);
      return condition.isNull ? isNull : (payload) => !isNull(payload);
    }
    default:
      return unreachable(condition);
  }
}

/** The `is_null` condition (not the field form): a bare null, not one in an array. */
export function bareNullTest(key: string): (payload: JsonValue) => boolean {
  return somewhere(pathOf(key), (value) => value === null);
}

/** Neither null nor an empty array. */
export function isPresent(value: JsonValue): boolean {
  return value !== null && !(Array.isArray(value) && value.length === 0);
}

/** Null, or an array with a null in it. */
export function holdsNull(value: JsonValue): boolean {
  return value === null || (Array.isArray(value) && value.includes(null));
}

export function inRange(value: number | bigint, range: Range): boolean {
  if (range.lt !== undefined && !(value < range.lt)) return false;
  if (range.lte !== undefined && !(value <= range.lte)) return false;
  if (range.gt !== undefined && !(value > range.gt)) return false;
  return range.gte === undefined || value >= range.gte;
}

/** Whether two numbers are the same, however each is held. */
export function sameNumber(a: number | bigint, b: number | bigint): boolean {
  if (typeof a === typeof b) return a === b;
  return Number(a) === Number(b) && BigInt(a) === BigInt(b);
}

/** The test of membership in a list. */
export function listTest(values: readonly (string | number | bigint | boolean)[]): ValueTest {
  const exact = new Set<JsonValue>(values);
  // Only a bigint can be the same number as a value of another type.
  const large = values.filter((value): value is bigint => typeof value === 'bigint');
  return (value) => {
    if (exact.has(value)) return true;
    if (typeof value === 'bigint') return values.some((one) => typeof one === 'number' && sameNumber(one, value));
    return large.length > 0 && typeof value === 'number' && Number.isInteger(value) && large.some((one) => sameNumber(one, value));
  };
}

function somewhere(path: JsonPath, test: ValueTest): (payload: JsonValue) => boolean {
  return (payload) => someValue(payload, path, test);
}

function matchTest(match: Match): ValueTest {
  switch (match.kind) {
    case 'value':
      return listTest([match.value]);
    case 'any':
      return listTest(match.values);
    case 'except': {
      const listed = listTest(match.values);
      return (value) => value !== null && !listed(value);
    }
    case 'text':
    case 'phrase':
      return (value) => typeof value === 'string' && value.includes(match.text);
    case 'textAny': {
      const words = match.text.match(NOT_SPACE) ?? [];
      return (value) => typeof value === 'string' && words.some((word) => value.includes(word));
    }
    default:
      return unreachable(match);
  }
}

function placeTest(area: GeoArea): ValueTest {
  const isWithin = areaTest(area);
  return (value) => {
    const point = geoPointOf(value);
    return point !== undefined && isWithin(point.lon, point.lat);
  };
}

function numberTest(range: Range): ValueTest {
  return (value) => (typeof value === 'number' || typeof value === 'bigint') && inRange(value, range);
}

function timeTest(range: Range): ValueTest {
  return (value) => {
    if (typeof value !== 'string') return false;
    const micros = parseDatetime(value);
    return micros !== undefined && inRange(micros, range);
  };
}

function countOf(value: JsonValue): number {
  if (value === null) return 0;
  return Array.isArray(value) ? value.length : 1;
}

function unreachable(value: never): never {
  throw new Error(`unknown kind: ${JSON.stringify(value)}`);
}
