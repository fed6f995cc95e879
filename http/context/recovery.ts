/** What a node takes in recovery mode: what shows how it is, and what can lead out of it. */

import { TroupeError } from '../../protocols/errors.js';
import type { OperationName } from '../../protocols/openapi/operations.js';
import type { Route } from '../routes.js';

/** The rest of what is open to all or reads nothing of a collection. */
const TAKEN: ReadonlySet<string> = new Set<OperationName>([
  'get_collections',
  'get_collections_aliases',
  'get_collection_aliases',
  'collection_exists',
  'update_collection',
  'delete_collection',
  'telemetry',
  'telemetry_events',
  'metrics',
]);

/** mode: the text of recovery mode; null: not in it. Errors: `unavailable` with the text. */
export function checkMode(mode: string | null, { access, name, path }: Pick<Route, 'access' | 'name' | 'path'>): void {
  if (mode === null || access === 'open' || TAKEN.has(name) || path.startsWith('/cluster')) return;
  throw new TroupeError('unavailable', `this node is in recovery mode, where collections are only listed, changed and deleted: ${mode}`);
}
