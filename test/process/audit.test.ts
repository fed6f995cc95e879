/** The audit log of a node whose readers have the connections: what every way of a request leaves in it. */

import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { Metadata } from '@grpc/grpc-js';
import type { AuditRecord } from '../../http/audit/record.js';
import { LAUNCHER } from '../../ops/node-process.js';
import { failure, GrpcClient } from '../http/grpc/client.js';
import { nodeFor, temporaryFolder } from './support.js';

const KEY = 'key-of-the-test-which-nobody-may-log';
const READ_KEY = 'read-key-of-the-test-which-nobody-may-log';

/** What a program prints. */
function troupe(args: readonly string[], environment: Record<string, string> = {}): string {
  return execFileSync(LAUNCHER, args, { env: { ...process.env, ...environment }, encoding: 'utf8', stdio: ['ignore', 'pipe', 'ignore'] });
}

test('every operation that needs access has one record, over each way of a request, and no record has a secret', async (t) => {
  const folder = await temporaryFolder(t);
  const audit = join(folder, 'audit');
  const environment = {
    SERVICE__SERVICE__API_KEY: KEY,
    SERVICE__SERVICE__READ_ONLY_API_KEY: READ_KEY,
    SERVICE__SERVICE__JWT_RBAC: 'true',
    SERVICE__AUDIT__ENABLED: 'true',
    SERVICE__AUDIT__DIR: audit,
  };
  const node = await nodeFor(t, { folder, environment });
  const keyVariable = { THE_KEY: KEY };
  const sign = (...args: string[]) => troupe(['token', '--key-env', 'THE_KEY', '--expires', '1h', ...args], keyVariable).trim();
  const token = sign('--collection', 'c:r', '--subject', 'reports');
  const call = async (method: string, path: string, headers: Record<string, string>, body?: unknown): Promise<number> => {
    const answer = await fetch(`${node.url}${path}`, { method, headers, ...(body === undefined ? {} : { body: JSON.stringify(body) }) });
    await answer.arrayBuffer();
    return answer.status;
  };
  const withKey = { 'api-key': KEY };
  const bearer = { authorization: `Bearer ${token}` };

  assert.equal(
    await call('PUT', '/collections/c', { ...withKey, 'x-request-id': 'made-by-the-client' }, { vectors: { size: 2, distance: 'Dot' } }),
    200,
  );
  assert.equal(await call('PUT', '/collections/c/points?wait=true', withKey, { points: [{ id: 1, vector: [1, 2] }] }), 200);
  // A reader answers.
  assert.equal(await call('POST', '/collections/c/points/count', { 'api-key': READ_KEY }, {}), 200);
  assert.equal(await call('POST', '/collections/c/points/count', bearer, {}), 200);
  // A path that is not plain, and an archive, are for the main thread's HTTP server.
  assert.equal(await call('GET', '//collections//c', withKey), 200);
  assert.equal(await call('GET', '/collections/c/snapshots/none', withKey), 404);
  // Refused.
  assert.equal(await call('POST', '/collections/c/points/count', {}, {}), 401);
  assert.equal(await call('POST', `/collections/c/points/count?api-key=${KEY}`, { 'api-key': 'a-wrong-key' }, {}), 401);
  assert.equal(await call('DELETE', '/collections/c', { 'api-key': READ_KEY }), 403);
  assert.equal(await call('POST', '/collections/other/points/count', bearer, {}), 403);
  assert.equal(await call('GET', '/no/such/path', {}), 401);
  // Open to all.
  assert.equal(await call('GET', '/healthz', {}), 200);

  const grpc = new GrpcClient(node.grpcPort);
  t.after(() => grpc.close());
  const metadata = (headers: Record<string, string>): Metadata => {
    const made = new Metadata();
    for (const [name, value] of Object.entries(headers)) made.set(name, value);
    return made;
  };
  const count = (headers: Record<string, string>) =>
    grpc.call('Points/Count', { collection_name: 'c', exact: true }, {}, metadata(headers));
  await count({ 'api-key': KEY, 'x-request-id': 'over-grpc' });
  assert.equal((await failure(count({}))).code, 16);
  assert.equal((await failure(grpc.call('Collections/Delete', { collection_name: 'c' }, {}, metadata({ 'api-key': READ_KEY })))).code, 7);

  assert.deepEqual(await node.end('SIGTERM'), { code: 0, signal: null });

  const files = readdirSync(audit).map((name) => readFileSync(join(audit, name), 'utf8'));
  const text = files.join('');
  for (const secret of [KEY, READ_KEY, token, 'a-wrong-key']) assert.ok(!text.includes(secret), 'no secret');
  const records = text
    .trimEnd()
    .split('\n')
    .map((line) => JSON.parse(line) as AuditRecord);
  const shown = ({ access, collection, operation, protocol, status, who }: AuditRecord): string =>
    [protocol, operation, collection ?? '-', Object.values(who).slice(0, 2).join(' '), access, status].join(', ');
  assert.deepEqual(records.map(shown).sort(), [
    'grpc, count_points, -, stranger missing, denied, 16',
    'grpc, count_points, c, key service.api_key, allowed, 0',
    'grpc, delete_collection, c, key service.read_only_api_key, denied, 7',
    'rest, count_points, c, key service.read_only_api_key, allowed, 200',
    'rest, count_points, c, stranger missing, denied, 401',
    'rest, count_points, c, stranger unknown, denied, 401',
    'rest, count_points, c, token reports, allowed, 200',
    'rest, count_points, other, token reports, denied, 403',
    'rest, create_collection, c, key service.api_key, allowed, 200',
    'rest, delete_collection, c, key service.read_only_api_key, denied, 403',
    'rest, get_collection, c, key service.api_key, allowed, 200',
    'rest, get_snapshot, c, key service.api_key, allowed, 404',
    'rest, unknown, -, stranger missing, denied, 401',
    'rest, upsert_points, c, key service.api_key, allowed, 200',
  ]);
  assert.deepEqual([...new Set(records.map(({ from }) => from))], ['127.0.0.1'], 'of connections that were handed on, too');
  assert.ok(records.every(({ access, reason }) => (access === 'denied') === (reason !== undefined)));
  const ids = records.map(({ request_id: id }) => id);
  assert.equal(new Set(ids).size, ids.length);
  assert.ok(ids.includes('made-by-the-client') && ids.includes('over-grpc'));

  const denied = troupe(['audit', '--denied', '--json', '--who', 'reports', '--since', '1h', audit]);
  assert.deepEqual(
    denied
      .trimEnd()
      .split('\n')
      .map((line) => (JSON.parse(line) as AuditRecord).collection),
    ['other'],
  );
  const table = troupe(['audit', '--operation', 'delete_collection', audit]).trimEnd().split('\n');
  assert.equal(table.length, 3);
  assert.match(table[0] as string, /^time +who +from +operation +collection +status +ms$/);
  assert.match(table[1] as string, /key read_only_api_key +127\.0\.0\.1 +delete_collection +c +\d+ +\d+\.\d{3} +denied: /);
});
