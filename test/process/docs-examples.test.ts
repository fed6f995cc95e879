/** The examples of `GET /docs`, against a node. */

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { ROUTES } from '../../http/routes.js';
import { EXAMPLES } from '../../protocols/openapi/examples.js';
import type { OperationName } from '../../protocols/openapi/operations.js';
import { nodeFor, temporaryFolder } from './support.js';

/** Works of a cluster, of collections with shard keys, and with files that a client brings or asks for by name. */
const ELSEWHERE: ReadonlySet<string> = new Set<OperationName>([
  'remove_peer',
  'drain_peer',
  'cancel_drain',
  'rebalance_cluster',
  'recover_current_peer',
  'update_collection_cluster',
  'create_shard_key',
  'delete_shard_key',
  'put_cluster_metadata',
  'get_cluster_metadata',
  'list_cluster_metadata',
  'delete_cluster_metadata',
  'get_full_snapshot',
  'delete_full_snapshot',
  'get_snapshot',
  'delete_snapshot',
  'get_shard_snapshot',
  'delete_shard_snapshot',
  'recover_from_snapshot',
  'recover_from_uploaded_snapshot',
  'recover_shard_from_snapshot',
  'recover_shard_from_uploaded_snapshot',
]);

test('each example of the page of the API works as it stands, one after the other', async (t) => {
  const node = await nodeFor(t, { folder: await temporaryFolder(t) });
  const refused: string[] = [];
  for (const [name, { body, parameters = {} }] of Object.entries(EXAMPLES)) {
    if (ELSEWHERE.has(name)) continue;
    const route = ROUTES.find((each) => each.name === name);
    assert.ok(route !== undefined, name);
    const query = new URLSearchParams(parameters);
    const path = route.path.replace(/\{(\w+)\}/g, (_, key: string) => {
      query.delete(key);
      return encodeURIComponent(parameters[key] ?? assert.fail(`${name} has no example of ${key}`));
    });
    const { status, text } = await node.client.call(route.method, `${path}?${query}`, body);
    if (status !== 200) refused.push(`${name}: ${status} ${text}`);
  }
  assert.deepEqual(refused, []);
});
