/** Random values that a schema describes, and whether it describes a value. */

import fc from 'fast-check';
import type { SchemaObject } from '../../../protocols/openapi/schema.js';
import { SCHEMAS } from '../../../protocols/openapi/schemas.js';

const NAMED: Readonly<Record<string, SchemaObject>> = SCHEMAS;
const DEPTH_MAX = 5;
const NAMES = ['a', 'b.c', 'list[]', 'words'];
const DATETIME = '2026-02-03T04:05:06Z';

/** What the shape of a schema leaves open: lists of one length, closed rings. */
const SPECIAL: Readonly<Record<string, fc.Arbitrary<unknown>>> = {
  PointId: fc.oneof(fc.nat(), fc.uuid()),
  SparseVector: fc.uniqueArray(fc.nat(1000), { maxLength: 4 }).map((indices) => ({ indices, values: indices.map((index) => index / 8) })),
  MultiVector: fc.nat(2).map((extra) => Array.from({ length: 1 + extra }, () => [1, 2, 0.5])),
  DenseVector: fc.constant([0.5, 1, 2]),
  // A point of an update has at least one vector; one of an insertion may have none.
  Vectors: fc.constantFrom<unknown>([0.5, 1, 2], { a: [1, 2, 3], 'b.c': [[1], [2]] }),
  // Keys of shards are for clusters.
  ShardKeySelector: fc.constant(null),
  GeoRing: fc.constant({
    points: [
      { lon: 0, lat: 0 },
      { lon: 1, lat: 0 },
      { lon: 1, lat: 1 },
      { lon: 0, lat: 0 },
    ],
  }),
  PointBatch: fc.nat(2).map((extra) => {
    const ids = Array.from({ length: 1 + extra }, (_, at) => at);
    return { ids, vectors: ids.map(() => [1, 2, 3]), payloads: ids.map((id) => (id === 1 ? null : { id })) };
  }),
  Document: fc.constant({ text: 'some words', model: 'bm25' }),
  // What these hold is up to models that are not here.
  Image: fc.constant({ image: 'a', model: 'm' }),
  InferenceObject: fc.constant({ object: { b: 1 }, model: 'm' }),
  IntegerIndexParams: fc.record({ type: fc.constant('integer'), lookup: fc.boolean(), on_disk: fc.boolean() }),
  Variable: fc.constantFrom('$score', 'a', 'b.c'),
  Payload: fc.dictionary(fc.constantFrom('a', '__proto__', 'é'), fc.jsonValue({ maxDepth: 2 }), { noNullPrototype: true }),
};

/** Values of a schema; what may be left out often is, the more so the deeper. */
export function bodyOf(schema: SchemaObject, depth = 0): fc.Arbitrary<unknown> {
  if (schema.$ref !== undefined) {
    const name = nameOf(schema.$ref);
    return SPECIAL[name] ?? later(() => bodyOf(NAMED[name] as SchemaObject, depth));
  }
  if (schema.anyOf !== undefined) {
    const choices = depth > DEPTH_MAX ? schema.anyOf.slice(0, 1) : schema.anyOf;
    return fc.oneof(...choices.map((choice) => later(() => bodyOf(choice, depth + 1))));
  }
  if (schema.enum !== undefined) return fc.constantFrom(...schema.enum);
  switch (schema.type) {
    case 'string':
      if (schema.format === 'date-time') return fc.constant(DATETIME);
      if (schema.format === 'uri') return fc.webUrl();
      if (schema.format === 'sha256') return fc.constant('0af'.padEnd(64, 'B'));
      if (schema.format === 'key') return fc.constantFrom(...NAMES);
      return schema.format === 'uuid' ? fc.uuid() : fc.string({ maxLength: 6 });
    case 'boolean':
      return fc.boolean();
    case 'integer':
      return fc.integer({ min: schema.minimum ?? -1000, max: Math.min(schema.maximum ?? 2 ** 31, (schema.minimum ?? 0) + 10_000) });
    case 'number':
      return fc.integer({ min: (schema.minimum ?? -100) * 8, max: (schema.maximum ?? 100) * 8 }).map((eighths) => eighths / 8);
    case 'array':
      return listOf(schema, depth);
    case 'object':
      return objectOf(schema, depth);
    default:
      return fc.jsonValue({ maxDepth: 2 });
  }
}

function listOf(schema: SchemaObject, depth: number): fc.Arbitrary<unknown> {
  const minLength = schema.minItems ?? 0;
  return fc.array(
    later(() => bodyOf(schema.items ?? {}, depth + 1)),
    { minLength, maxLength: depth > DEPTH_MAX ? minLength : minLength + 2 },
  );
}

function objectOf(schema: SchemaObject, depth: number): fc.Arbitrary<unknown> {
  const { additionalProperties, properties = {}, required = [] } = schema;
  if (typeof additionalProperties === 'object') {
    const inner = later(() => bodyOf(additionalProperties, depth + 1));
    return fc.dictionary(fc.constantFrom(...NAMES), inner, { maxKeys: depth > DEPTH_MAX ? 0 : 2, noNullPrototype: true });
  }
  const names = Object.keys(properties).filter((name) => required.includes(name) || depth <= DEPTH_MAX);
  const kept = names.map((name) => (required.includes(name) ? fc.constant(true) : fc.nat(depth + 2).map((dice) => dice === 0)));
  return fc.tuple(...kept).chain((keep) => {
    const chosen = names.filter((_, at) => keep[at]);
    const values = chosen.map((name) => later(() => bodyOf(properties[name] as SchemaObject, depth + 1)));
    return fc.tuple(...values).map((all) => Object.fromEntries(chosen.map((name, at) => [name, all[at]])));
  });
}

/** Schemas refer to themselves: what is inside is made when it is asked for. */
function later(make: () => fc.Arbitrary<unknown>): fc.Arbitrary<unknown> {
  return fc.constant(null).chain(make);
}

/** Whether a schema describes a value. Fields that it does not name may be there. */
export function describes(schema: SchemaObject, value: unknown): boolean {
  if (value === null && schema.nullable === true) return true;
  if (schema.$ref !== undefined) return describes(NAMED[nameOf(schema.$ref)] as SchemaObject, value);
  if (schema.anyOf !== undefined) return schema.anyOf.some((choice) => describes(choice, value));
  if (schema.enum !== undefined) return schema.enum.includes(value as string);
  switch (schema.type) {
    case 'string':
      return typeof value === 'string' && (schema.format !== 'uri' || URL.canParse(value));
    case 'boolean':
      return typeof value === 'boolean';
    case 'integer':
      return Number.isInteger(value) && within(schema, value as number);
    case 'number':
      return typeof value === 'number' && within(schema, value);
    case 'array':
      return Array.isArray(value) && value.length >= (schema.minItems ?? 0) && value.every((item) => describes(schema.items ?? {}, item));
    case 'object':
      return describesObject(schema, value);
    default:
      return true;
  }
}

function describesObject(schema: SchemaObject, value: unknown): boolean {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return false;
  const { additionalProperties, properties = {}, required = [] } = schema;
  if (!required.every((name) => Object.hasOwn(value, name))) return false;
  return Object.entries(value).every(([name, inner]) => {
    if (Object.hasOwn(properties, name)) return describes(properties[name] as SchemaObject, inner);
    return typeof additionalProperties !== 'object' || describes(additionalProperties, inner);
  });
}

function within(schema: SchemaObject, value: number): boolean {
  return value >= (schema.minimum ?? Number.NEGATIVE_INFINITY) && value <= (schema.maximum ?? Number.POSITIVE_INFINITY);
}

function nameOf(reference: string): string {
  return reference.slice(reference.lastIndexOf('/') + 1);
}
