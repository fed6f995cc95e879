/**
 * Finds the fields of a body that its schema does not have. Filters and expressions are passed over: their decoders refuse what they don't
 * know. Payloads and other maps may have any keys.
 */

import type { JsonValue } from '../model/payload.js';
import { addUnknown, UNKNOWN_FIELDS_MAX, UNKNOWN_NAME_LENGTH_MAX, type UnknownFields } from '../model/unknown-fields.js';
import type { JsonObject } from '../rest/fields.js';
import { nearestName, unknownName } from '../rest/known-names.js';
import { OPERATION_SCHEMAS, type OperationName, type OperationSchema } from './operations.js';
import type { SchemaObject } from './schema.js';
import { SCHEMAS } from './schemas.js';

/** What may be inside of a value. The parts of it that lead to no objects are null. */
interface Known {
  /** Of an object, by name. */
  readonly fields: ReadonlyMap<string, Part>;
  /** Values of an object by names that users choose; undefined: there are none. */
  readonly others: Part | undefined;
  readonly items: Part;
}

/** Filled in when it is first looked into, since schemas contain themselves. */
interface Lazy {
  readonly choices: readonly SchemaObject[];
  known: Known | undefined;
}

type Part = Lazy | null;

/** Other spellings that decoders take, by what the schemas have. */
const SPELLINGS: Readonly<Record<string, string>> = { with_vector: 'with_vectors', with_vectors: 'with_vector' };
/** Those of `limit`. */
const WITH_TOP: ReadonlySet<string> = new Set(['Search', 'Recommend', 'Discover']);
const withTop = new Map<string, SchemaObject>();

const PASSED_OVER: ReadonlySet<string> = new Set(['Filter', 'Condition', 'Expression', 'Payload']);

/** Decoders refuse what is nested deeper. */
const DEPTH_MAX = 200;

/** By schema, if it is the only choice. */
const parts = new WeakMap<SchemaObject, Lazy>();
const bodies = new Map<OperationName, Part>();

/** Adds the unknown fields of a body to `into`. Errors: `malformedBody` for the first one, if they are to be refused. */
export function findUnknownFields(operation: OperationName, body: JsonValue, into: UnknownFields): void {
  look(body, bodyOf(operation), '', into, DEPTH_MAX);
}

function bodyOf(operation: OperationName): Part {
  const known = bodies.get(operation);
  if (known !== undefined) return known;
  const schema: OperationSchema = OPERATION_SCHEMAS[operation];
  const part = schema.body === undefined ? null : partOf([schema.body]);
  bodies.set(operation, part);
  return part;
}

function look(value: JsonValue | undefined, part: Part, path: string, into: UnknownFields, depth: number): void {
  if (part === null || depth === 0 || typeof value !== 'object' || value === null) return;
  const known = knownOf(part);
  if (!Array.isArray(value)) lookInto(value, known, path, into, depth);
  else if (known.items !== null) for (const item of value) look(item, known.items, `${path}[]`, into, depth - 1);
}

function lookInto(object: JsonObject, known: Known, path: string, into: UnknownFields, depth: number): void {
  const { fields, others } = known;
  if (fields.size === 0 && others === undefined) return;
  for (const name in object) {
    const field = fields.get(name);
    const part = field === undefined ? others : field;
    if (part === null) continue;
    if (part === undefined) note(name, known, path, into);
    else if (typeof object[name] === 'object') look(object[name], part, pathOf(path, name), into, depth - 1);
  }
}

function note(name: string, { fields }: Known, path: string, into: UnknownFields): void {
  if (into.refuse) throw unknownName(shortened(name), [...fields.keys()], path === '' ? 'request body' : path);
  if (into.found.length === UNKNOWN_FIELDS_MAX) return;
  const full = pathOf(path, name);
  if (into.found.some((other) => other.name === full)) return;
  addUnknown(into, [{ name: full, meant: nearestName(name, [...fields.keys()]) }]);
}

function pathOf(path: string, name: string): string {
  return path === '' ? shortened(name) : shortened(`${path}.${shortened(name)}`);
}

function shortened(name: string): string {
  return name.length > UNKNOWN_NAME_LENGTH_MAX ? `${name.slice(0, UNKNOWN_NAME_LENGTH_MAX)}…` : name;
}

// ------------------------------------------------------------------ schemas

/** Null for schemas of plain values, so that no body is searched for what can't be in it. */
function partOf(choices: readonly SchemaObject[]): Part {
  const plain = choices.flatMap(withoutRefs);
  if (plain.includes(ANYTHING) || plain.every(isPlain)) return null;
  const [first, ...more] = choices as readonly [SchemaObject, ...SchemaObject[]];
  if (more.length > 0) return { choices, known: undefined };
  // A schema inside of itself is one part.
  const part = parts.get(first) ?? { choices, known: undefined };
  parts.set(first, part);
  return part;
}

function knownOf(part: Lazy): Known {
  part.known ??= knownOfAny(part.choices);
  return part.known;
}

function knownOfAny(choices: readonly SchemaObject[]): Known {
  const plain = choices.flatMap(withoutRefs);
  const fields = new Map<string, SchemaObject[]>();
  const others: SchemaObject[] = [];
  const items: SchemaObject[] = [];
  for (const { additionalProperties, items: item, properties = {} } of plain) {
    for (const [name, schema] of Object.entries(properties)) {
      for (const spelling of new Set([name, SPELLINGS[name] ?? name])) fields.set(spelling, [...(fields.get(spelling) ?? []), schema]);
    }
    if (typeof additionalProperties === 'object') others.push(additionalProperties);
    if (item !== undefined) items.push(item);
  }
  return {
    fields: new Map([...fields].map(([name, schemas]) => [name, partOf(schemas)])),
    others: others.length === 0 ? undefined : partOf(others),
    items: partOf(items),
  };
}

function isPlain({ additionalProperties, items, properties, type }: SchemaObject): boolean {
  if (properties !== undefined || typeof additionalProperties === 'object') return false;
  return type !== 'array' || items === undefined || withoutRefs(items).every(isPlain);
}

const ANYTHING: SchemaObject = {};

/** The schemas that one stands for: without references and choices. */
function withoutRefs(schema: SchemaObject): readonly SchemaObject[] {
  if (schema.anyOf !== undefined) return schema.anyOf.flatMap(withoutRefs);
  if (schema.$ref !== undefined) {
    const name = schema.$ref.slice(schema.$ref.lastIndexOf('/') + 1);
    return PASSED_OVER.has(name) ? [ANYTHING] : withoutRefs(schemaOf(name));
  }
  const isOpen = schema.type === undefined || (schema.type === 'object' && schema.properties === undefined && !isMap(schema));
  return isOpen ? [ANYTHING] : [schema];
}

function schemaOf(name: string): SchemaObject {
  const schema: SchemaObject = SCHEMAS[name as keyof typeof SCHEMAS];
  if (!WITH_TOP.has(name)) return schema;
  const made = withTop.get(name) ?? { ...schema, properties: { ...schema.properties, top: {} } };
  withTop.set(name, made);
  return made;
}

function isMap({ additionalProperties }: SchemaObject): boolean {
  return typeof additionalProperties === 'object';
}
