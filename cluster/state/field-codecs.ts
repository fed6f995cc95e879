/** Codecs of structs in the log as JSON. Each struct is declared once, as its fields in the order in which they are written and read. */

import type { PeerId, ReplicaState, ShardKey } from '../../protocols/model/cluster.js';
import type { CollectionConfig } from '../../protocols/model/collection.js';
import type { StrictFields } from './strict-fields.js';

export interface FieldCodec<Value> {
  /** Reads a field. version: the version of the bytes. Errors: `storage`, naming the field. */
  read(fields: StrictFields, name: string, version: number): Value;
  /** The value with its own fields in order. Absent if the value has no fields. */
  inOrder?(value: Value): Value;
}

/** The fields of a struct. The order of the keys is the order of the bytes. */
export type Shape<Struct> = { readonly [Name in keyof Struct]: FieldCodec<Struct[Name]> };

export function readStruct<Struct>(shape: Shape<Struct>, fields: StrictFields, version: number): Struct {
  const names = Object.keys(shape) as (keyof Struct & string)[];
  return Object.fromEntries(names.map((name) => [name, shape[name].read(fields, name, version)])) as Struct;
}

/** The struct with exactly the fields of its shape, in the shape's order. */
export function structInOrder<Struct>(shape: Shape<Struct>, struct: Struct): Struct {
  const names = Object.keys(shape) as (keyof Struct & string)[];
  return Object.fromEntries(names.map((name) => [name, shape[name].inOrder?.(struct[name]) ?? struct[name]])) as Struct;
}

export const TEXT_FIELD: FieldCodec<string> = { read: (fields, name) => fields.string(name) };
export const TEXT_OR_NULL: FieldCodec<string | null> = { read: (fields, name) => fields.stringOrNull(name) };
export const INTEGER: FieldCodec<number> = { read: (fields, name) => fields.integer(name) };
export const INTEGER_OR_NULL: FieldCodec<number | null> = { read: (fields, name) => fields.integerOrNull(name) };
export const FLAG_FIELD: FieldCodec<boolean> = { read: (fields, name) => fields.boolean(name) };
export const CONFIG: FieldCodec<CollectionConfig> = { read: (fields, name) => fields.config(name) };
export const PLACEMENT: FieldCodec<readonly (readonly PeerId[])[]> = { read: (fields, name) => fields.placement(name) };
export const SHARD_KEY: FieldCodec<ShardKey> = { read: (fields, name) => fields.shardKey(name) };
export const REPLICA_STATE: FieldCodec<ReplicaState> = { read: (fields, name) => fields.replicaState(name) };

export function wordOf<Word extends string>(words: readonly Word[]): FieldCodec<Word> {
  return { read: (fields, name) => fields.word(name, words) };
}

export function nullable<Value>(field: FieldCodec<Value>): FieldCodec<Value | null> {
  return { read: (fields, name, version) => (fields.value(name) === null ? null : field.read(fields, name, version)) };
}

/** A field that was added by version `from`. before: its value for older bytes. */
export function since<Value>(from: number, field: FieldCodec<Value>, before: Value): FieldCodec<Value> {
  return { read: (fields, name, version) => (version >= from ? field.read(fields, name, version) : before) };
}

export function structOf<Struct>(shape: Shape<Struct>): FieldCodec<Struct> {
  return {
    read: (fields, name, version) => fields.nested(name, (nested) => readStruct(shape, nested, version)),
    inOrder: (struct) => structInOrder(shape, struct),
  };
}

export function structListOf<Struct>(shape: Shape<Struct>): Required<FieldCodec<readonly Struct[]>> {
  return {
    read: (fields, name, version) => fields.list(name, (item) => readStruct(shape, item, version)),
    inOrder: (items) => items.map((item) => structInOrder(shape, item)),
  };
}

interface Tagged<Kind extends string> {
  readonly kind: Kind;
}

/** The structs of a tagged union by their tag, which is written first. */
export type Shapes<Union extends Tagged<string>> = {
  readonly [Kind in Union['kind']]: Shape<Omit<Extract<Union, Tagged<Kind>>, 'kind'>>;
};

export function readTagged<Union extends Tagged<string>>(shapes: Shapes<Union>, fields: StrictFields, version: number): Union {
  const kind = fields.word('kind', Object.keys(shapes) as Union['kind'][]);
  return { kind, ...readStruct<object>(shapes[kind], fields, version) } as Union;
}

export function taggedInOrder<Union extends Tagged<string>>(shapes: Shapes<Union>, value: Union): Union {
  return { kind: value.kind, ...structInOrder<object>(shapes[value.kind as Union['kind']], value) } as Union;
}

export function taggedListOf<Union extends Tagged<string>>(shapes: Shapes<Union>): FieldCodec<readonly Union[]> {
  return {
    read: (fields, name, version) => fields.list(name, (item) => readTagged(shapes, item, version)),
    inOrder: (items) => items.map((item) => taggedInOrder(shapes, item)),
  };
}
