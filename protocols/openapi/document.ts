/** The OpenAPI document of a list of operations. */

import { type OperationSchema, operationSchema } from './operations.js';
import type { SchemaObject } from './schema.js';
import { SCHEMAS } from './schemas.js';

/** A row of the operations table, as far as it is described. */
export interface DescribedRow {
  readonly method: string;
  readonly path: string;
  readonly name: string;
  readonly kind: string;
  readonly access: string;
}

interface Parameter {
  readonly name: string;
  readonly in: 'path' | 'query';
  readonly required: boolean;
  readonly description?: string;
  readonly schema: SchemaObject;
}

const SECONDS: SchemaObject = { type: 'integer', minimum: 1 };
const TEXT: SchemaObject = { type: 'string' };
const TIMEOUT = query('timeout', SECONDS, 'Seconds after which the operation is given up.');

/** Of reads of settings. */
const LATEST = [
  query(
    'consistency',
    TEXT,
    '`majority`, `quorum` or `all`: with everything that the cluster had agreed on before. Else it may be a little old.',
  ),
  TIMEOUT,
];

/** Query parameters by what carries an operation out. */
const QUERY_PARAMETERS: Readonly<Record<string, readonly Parameter[]>> = {
  read: [query('consistency', TEXT, '`majority`, `quorum`, `all` or a number of replicas.'), TIMEOUT],
  write: [
    query('wait', { type: 'boolean' }, 'Answer when the change is applied, not only safe on disk.'),
    query('ordering', { type: 'string', enum: ['weak', 'medium', 'strong'] }),
    TIMEOUT,
  ],
};

const NODES_LEVELS = '0: which peers answer; 1 (without it): how they are, and states of replicas; 2: what each replica holds, too.';

const DRY_RUN = query('dry_run', { type: 'boolean' }, 'Only say what would be done.');

/** Query parameters of operations on collections and the node, by name. */
const NODE_PARAMETERS: Readonly<Record<string, readonly Parameter[]>> = {
  get_collections: LATEST,
  get_collection: LATEST,
  collection_exists: LATEST,
  get_collection_aliases: LATEST,
  get_collections_aliases: LATEST,
  collection_cluster_info: LATEST,
  list_shard_keys: LATEST,
  create_collection: [TIMEOUT],
  update_collection: [TIMEOUT],
  delete_collection: [TIMEOUT],
  update_aliases: [TIMEOUT],
  update_collection_cluster: [TIMEOUT],
  create_shard_key: [TIMEOUT],
  delete_shard_key: [TIMEOUT],
  recover_current_peer: [TIMEOUT],
  cluster_telemetry: [query('details_level', { type: 'integer', minimum: 0 }, NODES_LEVELS), TIMEOUT],
  drain_peer: [DRY_RUN, TIMEOUT],
  keep_peer: [TIMEOUT],
  rebalance_cluster: [DRY_RUN, TIMEOUT],
  remove_peer: [query('force', { type: 'boolean' }, 'Even while it holds shards, whose points may be lost.'), TIMEOUT],
  telemetry: [query('details_level', { type: 'integer', minimum: 0 }), query('anonymize', { type: 'boolean' })],
  metrics: [query('anonymize', { type: 'boolean' })],
  get_optimizations: [
    query('with', TEXT, 'Parts to show: `queued`, `completed`, `idle_segments`, with commas between them.'),
    query('completed_limit', { type: 'integer', minimum: 0 }),
  ],
};

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

/** OpenAPI 3.0. Rows without a description and those of later releases are left out. */
export function openApiDocument(rows: readonly DescribedRow[], version: string): object {
  const paths: Record<string, Record<string, object>> = {};
  for (const row of rows) {
    const schema = operationSchema(row.name);
    if (schema === undefined || row.kind === 'later') continue;
    paths[row.path] ??= {};
    (paths[row.path] as Record<string, object>)[row.method.toLowerCase()] = operationObject(row, schema);
  }
  return {
    openapi: '3.0.3',
    info: {
      title: 'Troupe',
      version,
      description: 'A vector database. Fields that are not listed are ignored; null stands for a field that is left out.',
    },
    paths,
    components: { schemas: { ...SCHEMAS, Error: ERROR } },
  };
}

function operationObject(row: DescribedRow, schema: OperationSchema): object {
  return {
    operationId: row.name,
    summary: schema.summary,
    tags: [tagOf(row.path)],
    parameters: [...pathParameters(row.path), ...(QUERY_PARAMETERS[row.kind] ?? NODE_PARAMETERS[row.name] ?? [])],
    ...(schema.body === undefined ? {} : { requestBody: { required: true, content: { 'application/json': { schema: schema.body } } } }),
    responses: {
      200: { description: 'Done', content: answerContent(schema, row.kind === 'read' || row.kind === 'write') },
      default: { description: 'Refused', content: { 'application/json': { schema: { $ref: '#/components/schemas/Error' } } } },
    },
  };
}

/** measured: the answer may say what it cost. */
function answerContent(schema: OperationSchema, measured: boolean): object {
  if (schema.bare !== undefined) return { [schema.bare]: { schema: schema.result } };
  const envelope = {
    type: 'object',
    required: ['result', 'status', 'time'],
    properties: {
      result: schema.result,
      status: { type: 'string', enum: ['ok'] },
      time: { type: 'number', description: 'Seconds.' },
      ...(measured ? { usage: USAGE } : {}),
    },
  };
  return { 'application/json': { schema: envelope } };
}

function pathParameters(path: string): Parameter[] {
  return [...path.matchAll(/\{(\w+)\}/g)].map(([, name]) => ({ name: name as string, in: 'path', required: true, schema: TEXT }));
}

function query(name: string, schema: SchemaObject, description?: string): Parameter {
  return { name, in: 'query', required: false, schema, ...(description === undefined ? {} : { description }) };
}

/** Groups of operations on the page. */
function tagOf(path: string): string {
  if (/\/points|\/facet/.test(path)) return 'Points';
  if (/cluster|shards/.test(path)) return 'Cluster';
  return /collections|aliases/.test(path) ? 'Collections' : 'Service';
}
