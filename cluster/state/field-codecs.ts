/** Codecs of structs as JSON. Each struct is declared once, as its fields in the order in which they are written and read. */

import { type PeerId, REPLICA_STATES, type ShardKey } from '../../protocols/model/cluster.js';
import type { CollectionConfig, FieldSchema } from '../../protocols/model/collection.js';
import type { JsonValue } from '../../protocols/model/payload.js';
import { isObject } from '../../protocols/rest/fields.js';
import type { StrictFields } from './strict-fields.js';

/** Codec of one field. */
export interface FieldCodec<Value> {
  /** Reads a field. Errors: `storage`, naming the field. */
  read(fields: StrictFields, name: string): Value;
  /** The value as it is written; undefined for a field that is left out. Absent if it is written as it is. */
  write?(value: Value): unknown;
  /** The field's name as it is written, if it is another one. */
  readonly writtenAs?: string;
}

/** Codec of an object. */
export interface StructCodec<Struct> {
  read(fields: StrictFields): Struct;
  write(struct: Struct): object;
}

/** The fields of a struct. The order of the keys is the order of the bytes. */
export type Shape<Struct> = { readonly [Name in keyof Struct]: FieldCodec<Struct[Name]> };

export function structOf<Struct>(shape: Shape<Struct>): StructCodec<Struct> {
  const names = Object.keys(shape) as (keyof Struct & string)[];
  const fields = names.map((name) => ({ name, codec: shape[name], key: shape[name].writtenAs ?? name }));
  return {
    read: (from) => Object.fromEntries(fields.map(({ codec, key, name }) => [name, codec.read(from, key)])) as Struct,
    write: (struct) => {
      const written: Record<string, unknown> = {};
      for (const { codec, key, name } of fields) {
        const value = codec.write === undefined ? struct[name] : codec.write(struct[name]);
        if (value !== undefined) written[key] = value;
      }
      return written;
    },
  };
}

interface Tagged<Kind extends string> {
  readonly kind: Kind;
}

/** Codec of a tagged union by the shapes of its structs. The tag is written first. */
export function unionOf<Union extends Tagged<string>>(
  shapes: {
    readonly [Kind in Union['kind']]: Shape<Omit<Extract<Union, Tagged<Kind>>, 'kind'>>;
  },
): StructCodec<Union> {
  const kinds = Object.keys(shapes) as Union['kind'][];
  const codecs = Object.fromEntries(kinds.map((kind) => [kind, structOf<object>(shapes[kind])])) as Record<string, StructCodec<object>>;
  const codecOf = (kind: string) => codecs[kind] as StructCodec<object>;
  const tag = wordOf(kinds);
  return {
    read: (fields) => {
      const kind = tag.read(fields, 'kind');
      return { kind, ...codecOf(kind).read(fields) } as Union;
    },
    write: (value) => ({ kind: value.kind, ...codecOf(value.kind).write(value) }),
  };
}

/** A field of JSON that `is` accepts. how: what is wrong with others. */
function plain<Value>(is: (value: JsonValue) => boolean, how: string): FieldCodec<Value> {
  return {
    read: (fields, name) => {
      const value = fields.value(name);
      if (!is(value)) throw fields.wrong(name, how);
      return value as Value;
    },
  };
}

const isInteger = (value: JsonValue) => Number.isSafeInteger(value);

export const TEXT_FIELD = plain<string>((value) => typeof value === 'string', 'is not a string');
export const INTEGER = plain<number>((value) => isInteger(value) && (value as number) >= 0, 'is not an unsigned integer');
export const FLAG_FIELD = plain<boolean>((value) => typeof value === 'boolean', 'is neither true nor false');
export const SHARD_KEY = plain<ShardKey>((value) => ['string', 'bigint'].includes(typeof value) || isInteger(value), 'is no shard key');
/** A collection's configuration; only the fields that the cluster uses are checked. */
export const CONFIG = plain<CollectionConfig>((value) => isObject(value) && isObject(value.params), 'is not an object with `params`');
export const FIELD_SCHEMA = plain<FieldSchema>((value) => isObject(value) && typeof value.type === 'string', 'is no schema of an index');
/** Lists of peers, one per shard. */
export const PLACEMENT = plain<readonly (readonly PeerId[])[]>(
  (value) => Array.isArray(value) && value.every((peers) => Array.isArray(peers) && peers.every(isInteger)),
  'is no placement',
);
export const REPLICA_STATE = wordOf(REPLICA_STATES);
export const INTEGER_OR_NULL = nullable(INTEGER);
export const TEXT_OR_NULL = nullable(TEXT_FIELD);

export function wordOf<Word extends string>(words: readonly Word[]): FieldCodec<Word> {
  return plain((value) => (words as readonly JsonValue[]).includes(value), 'is unknown to this release');
}

export function nullable<Value>(field: FieldCodec<Value>): FieldCodec<Value | null> {
  return {
    read: (fields, name) => (fields.value(name) === null ? null : field.read(fields, name)),
    write: (value) => (value === null || field.write === undefined ? value : field.write(value)),
  };
}

/** A field that may be absent from what was written before the field existed; it is null then. */
export function nullableOrAbsent<Value>(field: FieldCodec<Value>): FieldCodec<Value | null> {
  const inner = nullable(field);
  return { ...inner, read: (fields, name) => (fields.has(name) ? inner.read(fields, name) : null) };
}

/** A field that is written under another name than the code has. */
export function writtenAs<Value>(key: string, field: FieldCodec<Value>): FieldCodec<Value> {
  return { ...field, writtenAs: key };
}

export function nested<Struct>(struct: StructCodec<Struct>): FieldCodec<Struct> {
  return { read: (fields, name) => fields.nested(name, struct.read), write: struct.write };
}

export function structListOf<Struct>(struct: StructCodec<Struct>): FieldCodec<readonly Struct[]> {
  return { read: (fields, name) => fields.list(name, struct.read), write: (items) => items.map(struct.write) };
}

/** A list of objects with one field each. */
export function listOfField<Value>(key: string, field: FieldCodec<Value>): FieldCodec<readonly Value[]> {
  return {
    read: (fields, name) => fields.list(name, (item) => field.read(item, key)),
    write: (items) => items.map((item) => ({ [key]: item })),
  };
}

/** A map as a list of its structs by ascending key; each has its key first. */
export function mapOf<Key extends string | number, Struct>(
  key: string,
  keys: FieldCodec<Key>,
  struct: StructCodec<Struct>,
): Required<Pick<FieldCodec<ReadonlyMap<Key, Struct>>, 'read' | 'write'>> {
  return {
    read: (fields, name) => new Map(fields.list(name, (item) => [keys.read(item, key), struct.read(item)])),
    write: (map) => sortedByKey(map).map(([id, value]) => ({ [key]: id, ...struct.write(value) })),
  };
}

/** A map that is left out while it is empty, and that what was written before the field existed does not have. */
export function mapOrAbsent<Key extends string | number, Struct>(
  key: string,
  keys: FieldCodec<Key>,
  struct: StructCodec<Struct>,
): FieldCodec<ReadonlyMap<Key, Struct>> {
  const inner = mapOf(key, keys, struct);
  return {
    read: (fields, name) => (fields.has(name) ? inner.read(fields, name) : new Map()),
    write: (map) => (map.size === 0 ? undefined : inner.write(map)),
  };
}

/** A struct of one field, as that field's value. */
export function fieldAs<Value>(name: string, field: FieldCodec<Value>): StructCodec<Value> {
  return {
    read: (fields) => field.read(fields, name),
    write: (value) => ({ [name]: field.write === undefined ? value : field.write(value) }),
  };
}

export function sortedByKey<Key extends string | number, Value>(map: ReadonlyMap<Key, Value>): [Key, Value][] {
  return [...map].sort(([one], [other]) => (one < other ? -1 : 1));
}
