/** The OpenAPI document of a list of operations. */

import { EXAMPLES } from './examples.js';
import { FIELD_NOTES } from './field-notes.js';
import { OPERATION_SCHEMAS, type OperationName, type OperationSchema } from './operations.js';
import { type Parameter, READ_PARAMETERS, WAIT_SNAPSHOT, WRITE_PARAMETERS } from './parameters.js';
import type { SchemaObject } from './schema.js';
import { SCHEMAS } from './schemas.js';

/** An operation that is served, as far as its description needs it. */
export interface DescribedRoute {
  readonly method: string;
  readonly path: string;
  readonly name: OperationName;
  readonly kind: 'read' | 'write' | 'node' | 'upload' | 'download';
}

const TEXT: SchemaObject = { type: 'string' };

/** Query parameters of all reads and all writes of points. */
const POINT_PARAMETERS = { read: READ_PARAMETERS, write: WRITE_PARAMETERS, node: [], upload: [], download: [] };

const ERROR: SchemaObject = {
  type: 'object',
  required: ['status', 'time'],
  properties: {
    status: { type: 'object', required: ['error'], properties: { error: { type: 'string' } } },
    time: { type: 'number', description: 'Seconds.' },
  },
};

const USAGE = {
  type: 'object',
  description: 'What the answer cost, in bytes; only with `service.hardware_reporting`.',
  properties: {
    hardware: { type: 'object', additionalProperties: { type: 'integer' } },
    inference: { type: 'object', nullable: true },
  },
};

const EXPLAINED = {
  type: 'object',
  description:
    'How the answer came about, to requests with `explain: true`: shards, segments, plans and their reasons, times. See the guide on tuning.',
};

const ACCEPTED: SchemaObject = {
  type: 'object',
  required: ['status', 'time'],
  properties: { status: { type: 'string', enum: ['accepted'] }, time: { type: 'number', description: 'Seconds.' } },
};

/** OpenAPI 3.0. */
export function openApiDocument(routes: readonly DescribedRoute[], version: string): object {
  const paths: Record<string, Record<string, object>> = {};
  for (const route of routes) {
    const methods = paths[route.path] ?? {};
    paths[route.path] = methods;
    methods[route.method.toLowerCase()] = operationObject(route, OPERATION_SCHEMAS[route.name]);
  }
  return {
    openapi: '3.0.3',
    info: {
      title: 'Troupe',
      version,
      description: 'A vector database. Fields that are not listed are ignored; null stands for a field that is left out.',
    },
    paths,
    components: { schemas: { ...notedSchemas(), Error: ERROR } },
  };
}

/** The schemas with what `FIELD_NOTES` says of fields that have no description of their own. */
function notedSchemas(): Record<string, SchemaObject> {
  return Object.fromEntries(Object.entries(SCHEMAS).map(([name, schema]) => [name, noted(schema, name)]));
}

function noted(schema: SchemaObject, within: string): SchemaObject {
  const { additionalProperties, anyOf, items, properties } = schema;
  const fields = Object.entries(properties ?? {}).map(([name, field]): [string, SchemaObject] => [name, notedField(name, field, within)]);
  return {
    ...schema,
    ...(properties === undefined ? {} : { properties: Object.fromEntries(fields) }),
    ...(items === undefined ? {} : { items: noted(items, within) }),
    ...(anyOf === undefined ? {} : { anyOf: anyOf.map((choice) => noted(choice, within)) }),
    ...(typeof additionalProperties === 'object' ? { additionalProperties: noted(additionalProperties, within) } : {}),
  };
}

function notedField(name: string, field: SchemaObject, within: string): SchemaObject {
  const inner = noted(field, within);
  const note = FIELD_NOTES[noteKey(name, within)];
  if (field.description !== undefined || note === undefined) return inner;
  const told = { description: note.text, ...(note.default === undefined ? {} : { default: note.default }) };
  // Beside a `$ref` OpenAPI 3.0 reads nothing.
  return inner.$ref === undefined ? { ...inner, ...told } : { anyOf: [inner], ...told };
}

/** Where `FIELD_NOTES` has what it says of a field. within: the named schema that it is part of. */
export function noteKey(name: string, within: string): string {
  const own = `${within}.${name}`;
  return own in FIELD_NOTES ? own : name;
}

function operationObject(route: DescribedRoute, schema: OperationSchema): object {
  return {
    operationId: route.name,
    summary: schema.summary,
    tags: [tagOf(route.path)],
    parameters: [...pathParameters(route.path), ...POINT_PARAMETERS[route.kind], ...(schema.query ?? [])].map((parameter) => {
      const example = EXAMPLES[route.name].parameters?.[parameter.name];
      return example === undefined ? parameter : { ...parameter, example };
    }),
    ...requestBody(schema, EXAMPLES[route.name].body),
    responses: {
      200: { description: 'Done', content: answerContent(schema, route.kind) },
      ...(schema.query?.includes(WAIT_SNAPSHOT)
        ? { 202: { description: 'Begun', content: { 'application/json': { schema: ACCEPTED } } } }
        : {}),
      default: { description: 'Refused', content: { 'application/json': { schema: { $ref: '#/components/schemas/Error' } } } },
    },
  };
}

function requestBody({ body, file }: OperationSchema, example: unknown): object {
  if (file !== undefined) {
    const form = { type: 'object', required: [file], properties: { [file]: { type: 'string', format: 'binary' } } };
    return { requestBody: { required: true, content: { 'multipart/form-data': { schema: form } } } };
  }
  return body === undefined ? {} : { requestBody: { required: true, content: { 'application/json': { schema: body, example } } } };
}

/** Answers of reads and writes may say what they cost, those of reads how they came about. */
function answerContent(schema: OperationSchema, kind: DescribedRoute['kind']): object {
  if (schema.bare !== undefined) return { [schema.bare]: { schema: schema.result } };
  const envelope = {
    type: 'object',
    required: ['result', 'status', 'time'],
    properties: {
      result: schema.result,
      status: { type: 'string', enum: ['ok'] },
      time: { type: 'number', description: 'Seconds.' },
      ...(kind === 'read' || kind === 'write' ? { usage: USAGE } : {}),
      ...(kind === 'read' ? { explain: EXPLAINED } : {}),
    },
  };
  return { 'application/json': { schema: envelope } };
}

function pathParameters(path: string): Parameter[] {
  return [...path.matchAll(/\{(\w+)\}/g)].map(([, name]) => ({ name: name as string, in: 'path', required: true, schema: TEXT }));
}

/** Groups of operations on the page. */
function tagOf(path: string): string {
  if (path.includes('/snapshot')) return 'Snapshots';
  if (/\/points|\/facet/.test(path)) return 'Points';
  if (/cluster|shards/.test(path)) return 'Cluster';
  return /collections|aliases/.test(path) ? 'Collections' : 'Service';
}
