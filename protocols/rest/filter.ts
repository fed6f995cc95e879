/**
 * Decodes the filters of request bodies to the model. Whatever the API's types refuse is refused here, so that
 * evaluation never meets a key it cannot parse or a value of the wrong type.
 * Source: schemas Filter, Condition and FieldCondition of the API; where they leave room, the contract's scenarios.
 */

import { parseDatetime } from '../datetime.js';
import { TroupeError } from '../errors.js';
import { writtenAsFloat } from '../json.js';
import type { Condition, FieldCondition, Filter, Match, MatchValue, Range } from '../model/filter.js';
import { parsePath, printPath } from '../model/json-path.js';
import type { JsonValue } from '../model/payload.js';
import { type PointId, pointIdFrom } from '../model/point-id.js';
import { isObject, type JsonObject, wrongType } from './fields.js';
import { geoAreasOf } from './geo.js';
import { refuseUnknown } from './known-names.js';

const CLAUSES = ['should', 'min_should', 'must', 'must_not'] as const;
/** Fields that make an object a condition of their own kind. */
const KINDS = ['is_empty', 'is_null', 'has_id', 'has_vector', 'nested'] as const;
/** Full-text matches by their name in the API. */
const TEXT_MATCHES = { text: 'text', text_any: 'textAny', phrase: 'phrase' } as const;
const MATCHES = ['value', 'text', 'text_any', 'phrase', 'any', 'except'] as const;
const BOUNDS = ['lt', 'lte', 'gt', 'gte'] as const;
/** Fields of conditions on a field alone. */
const OF_FIELDS = ['key', 'match', 'range', 'geo_bounding_box', 'geo_radius', 'geo_polygon', 'values_count'] as const;
/** All fields that a condition of any kind has. */
const CONDITION = [...OF_FIELDS, ...KINDS, ...CLAUSES];
/** What goes with a `key`. */
const BESIDE_KEY: ReadonlySet<string> = new Set([...OF_FIELDS, 'is_empty', 'is_null']);
const MIN_SHOULD = ['conditions', 'min_count'] as const;
/** Deepest nesting of filters: each level is a call of the reading, planning and evaluating code. */
const DEPTH_MAX = 64;
/** Longest payload path, in steps: each is a level of the payload that is made or read. */
const PATH_STEPS_MAX = 128;

const INT64_MIN = -0x8000_0000_0000_0000n;
const INT64_MAX = 0x7fff_ffff_ffff_ffffn;

/**
 * The filter of a decoded JSON value; null when the value is null or absent (no filter).
 * path: how messages name the value: `filter`. Keys come out in canonical spelling.
 * Errors: `malformedBody`, `invalidValue` for a condition without any test.
 */
export function decodeFilter(value: unknown, path: string): Filter | null {
  if (value === undefined || value === null) return null;
  return filterOf(value as JsonValue, path, DEPTH_MAX);
}

/** The canonical text of a payload path given as `value`. Errors: `malformedBody`. */
export function decodeKey(value: unknown, path: string): string {
  if (typeof value !== 'string') throw wrongType(path, value as JsonValue | undefined, 'a string');
  const steps = parsePath(value);
  if (steps !== undefined && steps.length > PATH_STEPS_MAX) {
    throw new TroupeError('malformedBody', `\`${path}\`: the payload path has ${steps.length} steps: use at most ${PATH_STEPS_MAX}`);
  }
  if (steps === undefined) {
    throw new TroupeError(
      'malformedBody',
      `\`${path}\`: Invalid json path: '${value}', expected keys like \`a.b\`, \`a[].b\`, \`a[0]\` or \`"a.b"\``,
    );
  }
  // A single step without quotes is as it is printed.
  return steps.length === 1 && !value.startsWith('"') ? value : printPath(steps);
}

/** depth: how many levels of filters may be at and below this one. */
function filterOf(value: JsonValue | undefined, path: string, depth: number): Filter {
  if (depth === 0) throw new TroupeError('malformedBody', `filters are nested deeper than ${DEPTH_MAX} levels: use fewer levels`);
  if (!isObject(value)) throw wrongType(path, value, 'a filter object');
  refuseUnknown(value, CLAUSES, path);
  const below = depth - 1;
  return {
    must: conditionsOf(value.must, `${path}.must`, below),
    should: conditionsOf(value.should, `${path}.should`, below),
    mustNot: conditionsOf(value.must_not, `${path}.must_not`, below),
    minShould: minShouldOf(value.min_should, `${path}.min_should`, below),
  };
}

/** A clause: nothing, one condition or a list of them. */
function conditionsOf(value: JsonValue | undefined, path: string, depth: number): Condition[] {
  if (value === undefined || value === null) return [];
  if (Array.isArray(value)) return value.map((one, index) => conditionOf(one, `${path}[${index}]`, depth));
  if (isObject(value)) return [conditionOf(value, path, depth)];
  throw wrongType(path, value, 'null, array or map');
}

function minShouldOf(value: JsonValue | undefined, path: string, depth: number): Filter['minShould'] {
  if (value === undefined || value === null) return null;
  if (!isObject(value)) throw wrongType(path, value, 'an object with `conditions` and `min_count`');
  refuseUnknown(value, MIN_SHOULD, path);
  if (!Array.isArray(value.conditions)) throw wrongType(`${path}.conditions`, value.conditions, 'a list of conditions');
  const conditions = conditionsOf(value.conditions, `${path}.conditions`, depth);
  if (value.min_count === undefined) throw new TroupeError('malformedBody', `\`${path}\`: missing field \`min_count\``);
  const minCount = unsignedOf(value, 'min_count', path);
  // Without conditions there is nothing to count: the reference lets everything through, whatever the count.
  return conditions.length === 0 ? null : { conditions, minCount };
}

function conditionOf(value: JsonValue, path: string, depth: number): Condition {
  if (!isObject(value)) throw wrongType(path, value, 'a condition object');
  if (Object.hasOwn(value, 'key')) return fieldConditionOf(value, path);
  const kind = KINDS.find((name) => Object.hasOwn(value, name));
  if (kind === undefined) {
    if (Object.hasOwn(value, 'match') || Object.hasOwn(value, 'range')) {
      throw new TroupeError('malformedBody', `\`${path}\`: missing field \`key\`, expected a condition like {"key": …, "match": …}`);
    }
    refuseUnknown(value, CONDITION, path);
    return { kind: 'filter', filter: filterOf(value, path, depth) };
  }
  refuseMixture(value, [...CLAUSES, ...KINDS.filter((name) => name !== kind)], path);
  refuseUnknown(value, CONDITION, path);
  const body = value[kind];
  switch (kind) {
    case 'is_empty':
      return { kind: 'isEmpty', key: fieldKeyOf(body, `${path}.is_empty`) };
    case 'is_null':
      return { kind: 'isNull', key: fieldKeyOf(body, `${path}.is_null`) };
    case 'has_id':
      return { kind: 'hasId', ids: idsOf(body, `${path}.has_id`) };
    case 'has_vector':
      if (typeof body !== 'string') throw wrongType(`${path}.has_vector`, body, 'the name of a vector');
      return { kind: 'hasVector', name: body };
    case 'nested':
      return nestedOf(body, `${path}.nested`, depth);
  }
}

/** An ignored clause would let through more points than the client asked for, in a deletion too. */
function refuseMixture(value: JsonObject, names: readonly string[], path: string): void {
  const other = names.find((name) => Object.hasOwn(value, name) && value[name] !== null);
  if (other === undefined) return;
  throw new TroupeError(
    'malformedBody',
    `\`${path}\`: \`${other}\` cannot be combined with other keys in one condition: put it into a condition of its own`,
  );
}

function fieldKeyOf(value: JsonValue | undefined, path: string): string {
  if (!isObject(value)) throw wrongType(path, value, 'an object with a `key`');
  refuseUnknown(value, ['key'], path);
  return decodeKey(value.key, `${path}.key`);
}

function idsOf(value: JsonValue | undefined, path: string): PointId[] {
  if (!Array.isArray(value)) throw wrongType(path, value, 'a list of point ids');
  return value.map((one, index) => {
    const id = pointIdFrom(one);
    if (id !== undefined) return id;
    throw new TroupeError(
      'malformedBody',
      `\`${path}[${index}]\`: value ${typeof one === 'string' ? one : JSON.stringify(one)} is not a valid point ID, valid values are either an unsigned integer or a UUID`,
    );
  });
}

function nestedOf(value: JsonValue | undefined, path: string, depth: number): Condition {
  if (!isObject(value)) throw wrongType(path, value, 'an object with `key` and `filter`');
  refuseUnknown(value, ['key', 'filter'], path);
  return { kind: 'nested', key: decodeKey(value.key, `${path}.key`), filter: filterOf(value.filter, `${path}.filter`, depth) };
}

// ------------------------------------------------------------------ conditions on a field

function fieldConditionOf(value: JsonObject, path: string): Condition {
  if (Object.keys(value).some((name) => !BESIDE_KEY.has(name))) {
    refuseMixture(value, [...CLAUSES, 'has_id', 'has_vector', 'nested'], path);
    refuseUnknown(value, CONDITION, path);
  }
  const key = decodeKey(value.key, `${path}.key`);
  const tests: FieldCondition[] = [];
  if (given(value, 'match')) tests.push({ kind: 'match', key, match: matchOf(value.match, `${path}.match`) });
  if (given(value, 'range')) tests.push(rangeConditionOf(key, value.range, `${path}.range`));
  for (const area of geoAreasOf(value, path)) tests.push({ kind: 'geo', key, area });
  if (given(value, 'values_count'))
    tests.push({ kind: 'valuesCount', key, range: countRangeOf(value.values_count, `${path}.values_count`) });
  const isEmpty = flagOf(value, 'is_empty', path);
  if (isEmpty !== undefined) tests.push({ kind: 'fieldIsEmpty', key, isEmpty });
  const isNull = flagOf(value, 'is_null', path);
  if (isNull !== undefined) tests.push({ kind: 'fieldIsNull', key, isNull });
  const first = tests[0];
  if (first === undefined) {
    throw new TroupeError('invalidValue', `[${path}: At least one field condition must be specified, like \`match\` or \`range\`]`);
  }
  if (tests.length === 1) return first;
  return { kind: 'filter', filter: { must: tests, should: [], mustNot: [], minShould: null } };
}

const MATCH_NAMES = MATCHES.map((name) => `\`${name}\``).join(', ');

function given(value: JsonObject, name: string): boolean {
  return Object.hasOwn(value, name) && value[name] !== null;
}

function flagOf(value: JsonObject, name: string, path: string): boolean | undefined {
  if (!given(value, name)) return undefined;
  const flag = value[name];
  if (typeof flag !== 'boolean') throw wrongType(`${path}.${name}`, flag, 'a boolean (or leave out `key` beside it)');
  return flag;
}

function matchOf(value: JsonValue | undefined, path: string): Match {
  if (!isObject(value)) throw wrongType(path, value, `an object with one of ${MATCH_NAMES}`);
  refuseUnknown(value, MATCHES, path);
  if (Object.hasOwn(value, 'value')) return { kind: 'value', value: matchValueOf(value, path) };
  for (const [name, kind] of Object.entries(TEXT_MATCHES)) {
    if (!Object.hasOwn(value, name)) continue;
    const text = value[name];
    if (typeof text !== 'string') throw wrongType(`${path}.${name}`, text, 'a string');
    return { kind, text };
  }
  if (Object.hasOwn(value, 'any')) return { kind: 'any', values: matchListOf(value.any, `${path}.any`) };
  if (Object.hasOwn(value, 'except')) return { kind: 'except', values: matchListOf(value.except, `${path}.except`) };
  throw new TroupeError('malformedBody', `\`${path}\`: expected one of ${MATCH_NAMES}`);
}

function matchValueOf(match: JsonObject, path: string): MatchValue {
  const value = match.value;
  if (typeof value === 'string' || typeof value === 'boolean') return value;
  if (isInt64(value) && !writtenAsFloat(match, 'value')) return value;
  throw wrongType(`${path}.value`, value, 'a string, an integer or a boolean (use `range` for floats)');
}

function matchListOf(value: JsonValue | undefined, path: string): (string | number | bigint)[] {
  if (Array.isArray(value)) {
    if (value.every((one) => typeof one === 'string')) return value as string[];
    if (value.every(isInt64)) return value as (number | bigint)[];
  }
  throw wrongType(path, value, 'a list of strings or a list of integers');
}

function isInt64(value: JsonValue | undefined): value is number | bigint {
  if (typeof value === 'number') return Number.isSafeInteger(value);
  return typeof value === 'bigint' && value >= INT64_MIN && value <= INT64_MAX;
}

/** A range whose bounds are strings is one of times. One without bounds would let through every point that has the key, in a deletion too. */
function rangeConditionOf(key: string, value: JsonValue | undefined, path: string): FieldCondition {
  if (!isObject(value)) throw wrongType(path, value, 'an object with `lt`, `lte`, `gt`, `gte`');
  refuseUnknown(value, BOUNDS, path);
  const bounds = BOUNDS.filter((name) => given(value, name));
  if (bounds.length === 0) {
    const help =
      'give at least one of `lt`, `lte`, `gt`, `gte`, or use {"is_empty": {"key": …}} in `must_not` for points that have the key';
    throw new TroupeError('malformedBody', `\`${path}\`: the range has no bound: ${help}`);
  }
  const times = bounds.some((name) => typeof value[name] === 'string');
  const range: { -readonly [bound in keyof Range]: Range[bound] } = {};
  for (const name of bounds) {
    range[name] = times ? timeOf(value[name], `${path}.${name}`) : numberOf(value[name], `${path}.${name}`);
  }
  return times ? { kind: 'datetimeRange', key, range } : { kind: 'range', key, range };
}

function timeOf(value: JsonValue | undefined, path: string): number {
  if (typeof value !== 'string') throw wrongType(path, value, 'a time as string, like the other bound');
  const micros = parseDatetime(value);
  if (micros !== undefined) return micros;
  throw new TroupeError(
    'malformedBody',
    `\`${path}\`: '${value}' does not match accepted datetime format (RFC3339). Example: 2014-01-01T00:00:00Z`,
  );
}

function numberOf(value: JsonValue | undefined, path: string): number {
  if (typeof value === 'bigint') return Number(value);
  if (typeof value === 'number') return value;
  throw wrongType(path, value, 'a number or a time as string');
}

function countRangeOf(value: JsonValue | undefined, path: string): Range {
  if (!isObject(value)) throw wrongType(path, value, 'an object with `lt`, `lte`, `gt`, `gte`');
  refuseUnknown(value, BOUNDS, path);
  const range: { -readonly [bound in keyof Range]: Range[bound] } = {};
  for (const name of BOUNDS) if (given(value, name)) range[name] = unsignedOf(value, name, path);
  return range;
}

function unsignedOf(object: JsonObject, name: string, path: string): number {
  const value = object[name];
  const number = typeof value === 'bigint' ? Number(value) : value;
  if (typeof number === 'number' && Number.isInteger(number) && number >= 0 && !writtenAsFloat(object, name)) return number;
  throw wrongType(`${path}.${name}`, value, 'an unsigned integer');
}
