/** Reads the fields of read requests by name and type; null counts as absent. Errors: `malformedBody`, `invalidValue`. */

import { TroupeError } from '../errors.js';
import { writtenAsFloat } from '../json.js';
import type { ShardKey, ShardKeySelector } from '../model/cluster.js';
import type { Filter, VectorSelector } from '../model/filter.js';
import type { JsonValue } from '../model/payload.js';
import { type PointId, pointIdFrom } from '../model/point-id.js';
import { isObject, type JsonObject, wrongType } from './fields.js';
import { decodeFilter } from './filter.js';
import { decodeVectorSelector, NONE } from './selectors.js';

const UINT64_MAX = 0xffff_ffff_ffff_ffffn;

export function isGiven(value: JsonValue | undefined): boolean {
  return value !== undefined && value !== null;
}

/** A request, which any of them may ask to explain. */
export function objectOf(value: JsonValue, type: string): JsonObject {
  if (!isObject(value)) throw wrongType('', value, `struct ${type}`);
  const { explain } = value;
  if (isGiven(explain) && typeof explain !== 'boolean') throw wrongType('explain', explain, 'a boolean');
  return value;
}

/** The requests of a batch. */
export function searchesOf(value: JsonValue, type: string): JsonValue[] {
  const { searches } = objectOf(value, type);
  if (searches === undefined) throw missingField('searches');
  if (!Array.isArray(searches)) throw wrongType('searches', searches, 'a sequence');
  return searches;
}

export function filterOf(object: JsonObject): Filter | null {
  return isGiven(object.filter) ? decodeFilter(object.filter, 'filter') : null;
}

/** `with_vectors` is another spelling. nullable: null counts as absent. */
export function vectorSelector(object: JsonObject, nullable: boolean): VectorSelector {
  const value = object.with_vector !== undefined ? object.with_vector : object.with_vectors;
  return nullable && value === null ? NONE : decodeVectorSelector(value, NONE);
}

/** `limit`, 1 or larger. path: how messages name the object. */
export function readLimit(object: JsonObject, path: string): number | undefined {
  return positive(object, 'limit', path);
}

/** The limit of a search of old, which must be there; `top` is another spelling where no groups are made. */
export function searchLimit(object: JsonObject, path: string): number {
  const { group_by, limit, top } = object;
  if (top !== undefined && limit !== undefined && group_by === undefined)
    throw new TroupeError('malformedBody', 'duplicate field `limit`: `top` is another spelling of it');
  const found = top !== undefined && group_by === undefined ? positive(object, 'top', path) : readLimit(object, path);
  if (found === undefined) throw missingField('limit');
  return found;
}

/** An unsigned 64-bit integer that is not 0. */
export function positive(object: JsonObject, key: string, path: string): number | undefined {
  const value = unsignedField(object, key, path);
  if (value === 0) throw outOfRange(`${path}.${key}`, 0, '1 or larger');
  return value;
}

/** An unsigned 64-bit integer; beyond 2^53 it comes as the next double, which is as good for a limit. */
export function unsignedField(object: JsonObject, key: string, path: string): number | undefined {
  const value = object[key];
  if (!isGiven(value)) return undefined;
  if (typeof value === 'bigint' && value >= 0n && value <= UINT64_MAX) return Number(value);
  if (typeof value !== 'number' || !Number.isSafeInteger(value) || writtenAsFloat(object, key))
    throw wrongType(`${path}.${key}`, value, 'an integer, 0 or larger');
  if (value < 0) throw new TroupeError('malformedBody', `\`${path}.${key}\`: invalid value: integer \`${value}\`, expected 0 or larger`);
  return value;
}

export function readFlag(object: JsonObject, key: string, whenAbsent: boolean): boolean {
  const value = object[key];
  if (value === undefined) return whenAbsent;
  if (typeof value !== 'boolean') throw wrongType(key, value, 'a boolean');
  return value;
}

export function thresholdOf(object: JsonObject): number | null {
  return isGiven(object.score_threshold) ? numberOf(object.score_threshold, 'score_threshold') : null;
}

export function numberOf(value: JsonValue | undefined, name: string): number {
  if (typeof value !== 'number' && typeof value !== 'bigint') throw wrongType(name, value, 'a number');
  return Number(value);
}

export function pointIdOf(value: JsonValue): PointId {
  const id = pointIdFrom(value);
  if (id !== undefined) return id;
  const shown = typeof value === 'string' ? value : typeof value === 'bigint' ? value.toString() : JSON.stringify(value);
  throw new TroupeError('malformedBody', `value ${shown} is not a valid point ID, valid values are either an unsigned integer or a UUID`);
}

/** Which shards the request is for, as a member; none: all of them. Errors: `malformedBody` for what is no selector of shards. */
export function shardKeyIn({ shard_key: value }: JsonObject): { shardKey?: ShardKeySelector } {
  if (!isGiven(value) || (Array.isArray(value) && value.length === 0)) return NO_SHARD_KEY;
  const keys = Array.isArray(value) ? value : isObject(value) ? [value.target, value.fallback] : [value];
  if (!keys.every(isShardKey))
    throw wrongType('shard_key', value, 'a shard key (a string or a whole number), a list of them, or a target with a fallback');
  if (!isObject(value)) return { shardKey: { kind: 'keys', keys } };
  return { shardKey: { kind: 'fallback', target: keys[0] as ShardKey, fallback: keys[1] as ShardKey } };
}

const NO_SHARD_KEY = {};

function isShardKey(key: JsonValue | undefined): key is ShardKey {
  return (
    typeof key === 'string' || (typeof key === 'number' && Number.isInteger(key) && key >= 0) || (typeof key === 'bigint' && key >= 0n)
  );
}

export function missingField(name: string): TroupeError {
  return new TroupeError('malformedBody', `missing field \`${name}\``);
}

export function outOfRange(path: string, value: number, wanted: string): TroupeError {
  return new TroupeError('invalidValue', `[${path}: value ${value} invalid, must be ${wanted}]`);
}
