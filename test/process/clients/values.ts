/** Ids, payloads, vectors and enum words of REST as messages of gRPC in the JSON form of Protocol Buffers, and back. */

import type { JsonValue } from '@bufbuild/protobuf';

export type Json = JsonValue;
export type Members = { readonly [key: string]: Json | undefined };

/** An object without the members that are undefined: they are not sent. */
export function sent(members: { readonly [key: string]: Json | undefined }): { [key: string]: Json } {
  return Object.fromEntries(Object.entries(members).filter((entry): entry is [string, Json] => entry[1] !== undefined));
}

/** `f` of a member that was given. */
export function maybe<T extends Json>(value: Json | undefined, f: (value: never) => T): T | undefined {
  return value === undefined || value === null ? undefined : f(value as never);
}

/** The name of an enum's value: `average_vector` is `AverageVector`. */
export function word(text: Json): string {
  return String(text)
    .split(/_(?!\d)/)
    .map((part) => part.charAt(0).toUpperCase() + part.slice(1))
    .join('');
}

/** The text of REST for an enum's value: `AverageVector` is `average_vector`. */
export function text(name: Json): string {
  return String(name)
    .replace(/(?<=[a-z])(?=[A-Z])/g, '_')
    .toLowerCase();
}

// ------------------------------------------------------------------ ids and payloads

export function idMessage(id: Json): Json {
  return typeof id === 'string' ? { uuid: id } : { num: id };
}

export function idOf(message: Json): Json {
  const { num, uuid } = message as { num?: string; uuid?: string };
  return uuid ?? Number(num);
}

export function valueMessage(value: Json): Json {
  if (value === null) return { null_value: 'NULL_VALUE' };
  if (typeof value === 'string') return { string_value: value };
  if (typeof value === 'boolean') return { bool_value: value };
  if (typeof value === 'number') return Number.isInteger(value) ? { integer_value: value } : { double_value: value };
  if (Array.isArray(value)) return { list_value: { values: value.map(valueMessage) } };
  return { struct_value: { fields: valueMap(value) } };
}

export function valueMap(members: Members): Json {
  return mapOf(members, valueMessage);
}

export function payloadValueOf(message: Json): Json {
  const [[kind, value]] = Object.entries(message as object) as [[string, Json]];
  switch (kind) {
    case 'null_value':
      return null;
    case 'integer_value':
      return Number(value);
    case 'list_value':
      return (value as { values: Json[] }).values.map(payloadValueOf);
    case 'struct_value':
      return membersOf((value as { fields: Members }).fields);
    default:
      return value;
  }
}

export function membersOf(map: Members): { [key: string]: Json } {
  return mapOf(map, payloadValueOf);
}

/** An object with the same keys, also those such as `__proto__`. */
export function mapOf(members: Members, f: (value: Json) => Json): { [key: string]: Json } {
  return Object.fromEntries(Object.entries(sent(members)).map(([key, value]) => [key, f(value)]));
}

// ------------------------------------------------------------------ vectors

/** A vector, sparse vector, multivector or something to be made one by a model. */
export function vectorMessage(vector: Json): { [key: string]: Json } {
  if (Array.isArray(vector)) {
    if (Array.isArray(vector[0])) return { multi_dense: { vectors: vector.map((data) => ({ data })) } };
    return { dense: { data: vector } };
  }
  const { options, ...members } = vector as Members;
  if (members.indices !== undefined) return { sparse: members as Json };
  const model = sent({ ...members, options: maybe(options, valueMap) });
  if (members.text !== undefined) return { document: model };
  if (members.image !== undefined) return { image: { ...model, image: valueMessage(members.image) } };
  return { object: { ...model, object: valueMessage(members.object as Json) } };
}

/** Vectors of a point: one, or several by name. */
export function vectorsMessage(vectors: Json): Json {
  if (isVector(vectors)) return { vector: vectorMessage(vectors) };
  return { vectors: { vectors: mapOf(vectors as Members, vectorMessage) } };
}

function isVector(vectors: Json): boolean {
  if (typeof vectors !== 'object' || vectors === null || Array.isArray(vectors)) return true;
  return ['indices', 'text', 'image', 'object'].some((name) => Object.hasOwn(vectors, name));
}

/** Where a query takes a vector or the id of a point that has it. */
export function inputMessage(input: Json): Json {
  return typeof input === 'number' || typeof input === 'string' ? { id: idMessage(input) } : vectorMessage(input);
}

export function vectorsOf(message: Json): Json {
  const { vector, vectors } = message as { vector?: Json; vectors?: { vectors: Members } };
  return vector !== undefined ? vectorOf(vector) : mapOf((vectors as { vectors: Members }).vectors, vectorOf);
}

function vectorOf(message: Json): Json {
  const { dense, sparse, multi_dense } = message as {
    dense?: { data: Json };
    sparse?: { indices: Json; values: Json };
    multi_dense?: { vectors: { data: Json }[] };
  };
  if (dense !== undefined) return dense.data;
  if (sparse !== undefined) return { indices: sparse.indices, values: sparse.values };
  return (multi_dense as { vectors: { data: Json }[] }).vectors.map(({ data }) => data);
}

/** `shard_key` of a request: a key, a list of keys, or a target with a fallback. */
export function shardKeysMessage(selector: Json): Json {
  if (Array.isArray(selector)) return { shard_keys: selector.map(shardKeyMessage) };
  if (typeof selector !== 'object' || selector === null) return { shard_keys: [shardKeyMessage(selector)] };
  const { fallback, target } = selector as Members;
  return { shard_keys: [shardKeyMessage(target as Json)], fallback: shardKeyMessage(fallback as Json) };
}

export function shardKeyMessage(key: Json): Json {
  return typeof key === 'number' ? { number: key } : { keyword: key };
}

/** `{"keyword":"a"}` or `{"number":"7"}` as REST has it. */
export function shardKeyOf(key: Json): Json {
  const { keyword, number } = key as { keyword?: string; number?: string };
  return keyword ?? Number(number);
}
