/**
 * Decodes the schema of a payload index: a bare type name, or an object with parameters, which `payload_schema` shows
 * again as they were understood. Source: schema PayloadFieldSchema of the API, scenario payload-indexes.
 */

import { TroupeError } from '../errors.js';
import type { FieldSchema, FieldType } from '../model/collection.js';
import type { JsonValue } from '../model/payload.js';
import { isObject, type JsonObject, wrongType } from './fields.js';

const FIELD_TYPES: readonly FieldType[] = ['keyword', 'integer', 'float', 'bool', 'datetime', 'uuid'];
const LATER_TYPES: readonly string[] = ['text', 'geo'];

/** Boolean parameters of each type, in the order they are shown. Others are ignored. */
const PARAMETERS: Record<FieldType, readonly string[]> = {
  keyword: ['is_tenant', 'on_disk', 'enable_hnsw'],
  integer: ['lookup', 'range', 'is_principal', 'on_disk', 'enable_hnsw'],
  float: ['is_principal', 'on_disk', 'enable_hnsw'],
  bool: ['on_disk', 'enable_hnsw'],
  datetime: ['is_principal', 'on_disk', 'enable_hnsw'],
  uuid: ['is_tenant', 'on_disk', 'enable_hnsw'],
  text: [],
  geo: ['on_disk', 'enable_hnsw'],
};
/** Shown as null when they were not given. */
const SHOWN_ALWAYS: Partial<Record<FieldType, readonly string[]>> = { integer: ['lookup', 'range', 'is_principal'] };

/**
 * The schema of `field_schema`. Errors: `malformedBody`; `invalidValue` for an integer index that can nothing;
 * `unsupported` for text and geo; `wrongInput` when it is absent, since types are not guessed.
 */
export function decodeFieldSchema(value: unknown, path = 'field_schema'): FieldSchema {
  if (value === undefined || value === null) {
    throw new TroupeError('wrongInput', `Can't auto-detect field type, please specify \`${path}\` in the request`);
  }
  if (typeof value === 'string') return { type: fieldTypeOf(value, path) };
  if (!isObject(value as JsonValue)) throw wrongType(path, value as JsonValue, 'a type name or an object with a `type`');
  const object = value as JsonObject;
  const type = fieldTypeOf(Object.hasOwn(object, 'type') ? object.type : undefined, `${path}.type`);
  const params: { [key: string]: unknown } = { type };
  for (const name of PARAMETERS[type]) {
    const given = Object.hasOwn(object, name) ? object[name] : undefined;
    if (given === undefined || given === null) {
      if (SHOWN_ALWAYS[type]?.includes(name)) params[name] = null;
      continue;
    }
    if (typeof given !== 'boolean') throw wrongType(`${path}.${name}`, given, 'a boolean');
    params[name] = given;
  }
  if (type === 'integer' && params.lookup === false && params.range === false) {
    throw new TroupeError('invalidValue', `[${path}.lookup: the 'lookup' and 'range' capabilities can't be both disabled]`);
  }
  return { type, params };
}

function fieldTypeOf(value: JsonValue | undefined, path: string): FieldType {
  if (typeof value === 'string') {
    if ((FIELD_TYPES as readonly string[]).includes(value)) return value as FieldType;
    if (LATER_TYPES.includes(value)) throw new TroupeError('unsupported', `\`${path}\`: ${value} indexes are not part of this release`);
  }
  throw wrongType(path, value, `one of ${[...FIELD_TYPES, ...LATER_TYPES].map((type) => `\`${type}\``).join(', ')}`);
}
