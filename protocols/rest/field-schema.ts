/**
 * Decodes the schema of a payload index: a bare type name, or an object with parameters, which `payload_schema` shows
 * again as they were understood. Source: schema PayloadFieldSchema of the API, scenario payload-indexes.
 */

import { TroupeError } from '../errors.js';
import type { FieldSchema, FieldType } from '../model/collection.js';
import type { JsonValue } from '../model/payload.js';
import { Fields, isObject, wrongType } from './fields.js';
import { decodeTextParams } from './text-params.js';

const FIELD_TYPES: readonly FieldType[] = ['keyword', 'integer', 'float', 'geo', 'text', 'bool', 'datetime', 'uuid'];

/** Boolean parameters of each type, in the order they are shown. Others are ignored. */
const PARAMETERS: Record<FieldType, readonly string[]> = {
  keyword: ['is_tenant', 'on_disk', 'enable_hnsw'],
  integer: ['lookup', 'range', 'is_principal', 'on_disk', 'enable_hnsw'],
  float: ['is_principal', 'on_disk', 'enable_hnsw'],
  bool: ['on_disk', 'enable_hnsw'],
  datetime: ['is_principal', 'on_disk', 'enable_hnsw'],
  uuid: ['is_tenant', 'on_disk', 'enable_hnsw'],
  text: ['on_disk', 'enable_hnsw'],
  geo: ['on_disk', 'enable_hnsw'],
};
/** Shown as null when they were not given. */
const SHOWN_ALWAYS: Partial<Record<FieldType, readonly string[]>> = { integer: ['lookup', 'range', 'is_principal'] };

/**
 * The schema of `field_schema`. Errors: `malformedBody`; `invalidValue` for an integer index that can nothing;
 * `wrongInput` when it is absent, since types are not guessed.
 */
export function decodeFieldSchema(value: unknown, path = 'field_schema'): FieldSchema {
  if (value === undefined || value === null) {
    throw new TroupeError('badRequest', `Can't auto-detect field type, please specify \`${path}\` in the request`);
  }
  if (typeof value === 'string') return { type: fieldTypeOf(value, path) };
  if (!isObject(value as JsonValue)) throw wrongType(path, value as JsonValue, 'a type name or an object with a `type`');
  const fields = Fields.of(value as JsonValue, path);
  const type = fieldTypeOf(fields.value('type'), `${path}.type`);
  const params: { [key: string]: unknown } = { type, ...(type === 'text' ? decodeTextParams(fields) : {}) };
  for (const name of PARAMETERS[type]) {
    const given = fields.boolean(name);
    if (given !== undefined) params[name] = given;
    else if (SHOWN_ALWAYS[type]?.includes(name)) params[name] = null;
  }
  if (type === 'integer' && params.lookup === false && params.range === false) {
    throw new TroupeError('invalidValue', `[${path}.lookup: the 'lookup' and 'range' capabilities can't be both disabled]`);
  }
  return { type, params };
}

function fieldTypeOf(value: JsonValue | undefined, path: string): FieldType {
  const type = FIELD_TYPES.find((known) => known === value);
  if (type === undefined) throw wrongType(path, value, `one of ${FIELD_TYPES.map((known) => `\`${known}\``).join(', ')}`);
  return type;
}
