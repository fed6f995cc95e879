/** Query parameters of operations, as OpenAPI describes them. */

import type { SchemaObject } from './schema.js';

export interface Parameter {
  readonly name: string;
  readonly in: 'path' | 'query';
  readonly required: boolean;
  readonly description?: string;
  readonly schema: SchemaObject;
}

const SECONDS: SchemaObject = { type: 'integer', minimum: 1 };
const TEXT: SchemaObject = { type: 'string' };
export const TIMEOUT = query('timeout', SECONDS, 'Seconds after which the operation is given up.');

/** Of reads of settings. */
export const LATEST = [
  query(
    'consistency',
    TEXT,
    '`majority`, `quorum` or `all`: with everything that the cluster had agreed on before. Else it may be a little old.',
  ),
  TIMEOUT,
];

const EXPLAIN_PARAMETER = query('explain', { type: 'boolean' }, 'Say how the answer came about, in `explain` beside `result`.');

export const READ_PARAMETERS = [
  query('consistency', TEXT, '`majority`, `quorum`, `all` or a number of replicas.'),
  EXPLAIN_PARAMETER,
  TIMEOUT,
];

export const WRITE_PARAMETERS = [
  query('wait', { type: 'boolean' }, 'Answer when the change is applied, not only safe on disk.'),
  query('ordering', { type: 'string', enum: ['weak', 'medium', 'strong'] }),
  TIMEOUT,
];

/** Of operations that make, delete or restore snapshots. */
export const WAIT_SNAPSHOT = query('wait', { type: 'boolean' }, 'false: answer at once with 202 and go on; errors are then only logged.');

/** Troupe's own. */
export const MADE_SNAPSHOT = [
  WAIT_SNAPSHOT,
  query('base', { type: 'string' }, 'A snapshot of the same list: files that it has as well are left out, and restoring needs it.'),
];
export const DELETED_SNAPSHOT = [
  WAIT_SNAPSHOT,
  query('force', { type: 'boolean' }, 'Delete it also if it is the base of other snapshots, which cannot be restored then.'),
];

/** Of uploads of snapshots. */
export const RESTORE_PARAMETERS = [
  WAIT_SNAPSHOT,
  query('priority', { $ref: '#/components/schemas/SnapshotPriority' }),
  query('checksum', { type: 'string', format: 'sha256' }, 'SHA-256 that the archive must have: 64 hexadecimal digits.'),
  query('until', { type: 'string', format: 'date-time' }, 'The operations of the collection’s log up to this time follow the snapshot.'),
  query('dry_run', { type: 'boolean' }, 'With `until`: only tell up to which operation and time the restore would go.'),
];

export const NODES_LEVELS = '0: which peers answer; 1 (without it): how they are, and states of replicas; 2: what each replica holds, too.';

export const DRY_RUN = query('dry_run', { type: 'boolean' }, 'Only say what would be done.');

export function query(name: string, schema: SchemaObject, description?: string): Parameter {
  return { name, in: 'query', required: false, schema, ...(description === undefined ? {} : { description }) };
}
