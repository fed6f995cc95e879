/** Records of the servers of the main thread, where readers take no connections. */

import assert from 'node:assert/strict';
import { mkdtemp, readdir, readFile, rm, stat, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { AUDIT_MEMORY_BYTES, AuditLog } from '../../../http/audit/audit-log.js';
import type { AuditRecord } from '../../../http/audit/record.js';
import { startGrpcDoor } from '../../../http/grpc/server.js';
import { appReport } from '../../../http/reports/app-telemetry.js';
import { GrpcClient } from '../grpc/client.js';
import { openDoor } from '../rest/fake-node.js';

test('the plain path, Fastify and gRPC of the main thread record the same, and believe a proxy where they are told to', async (t) => {
  const folder = await mkdtemp(join(tmpdir(), 'troupe-audit-'));
  t.after(() => rm(folder, { recursive: true, force: true }));
  const memory = new SharedArrayBuffer(AUDIT_MEMORY_BYTES);
  const audit = new AuditLog({ folder, rotation: 'hourly', filesMax: 1, trustForwarded: true, memory });
  let report: () => unknown = () => null;
  for (const fastPath of [true, false]) {
    const { door, services, url } = await openDoor({ audit, fastPath });
    const grpcDoor = await startGrpcDoor(services, { host: '127.0.0.1', port: 0, maxMessageBytes: 1 << 20, logRequests: false });
    t.after(() => Promise.all([door.close(0), grpcDoor.close(0)]));
    const headers = { 'x-forwarded-for': '192.0.2.7', 'x-request-id': `id-${fastPath}` };
    await (await fetch(`${url}/collections/c/points/count`, { method: 'POST', headers, body: '{}' })).arrayBuffer();
    await (await fetch(`${url}/readyz`)).arrayBuffer();
    const client = new GrpcClient(grpcDoor.port);
    // What comes of it does not matter.
    await client.call('Points/Count', { collection_name: 'c' }).catch(() => {});
    client.close();
    report = () => appReport(services, { anonymize: false, detailed: true }).audit;
  }
  await audit.close();
  const [file = ''] = await readdir(folder);
  await writeFile(join(folder, 'of-somebody-else'), 'not counted');
  const { dir_size_bytes: bytes } = report() as { dir_size_bytes: number };
  assert.equal(bytes, (await stat(join(folder, file))).size);
  const records = (await readFile(join(folder, file), 'utf8'))
    .trimEnd()
    .split('\n')
    .map((line) => JSON.parse(line) as AuditRecord);
  const shown = records.map(({ collection, from, operation, protocol, via, who }) =>
    [protocol, operation, collection, who.kind, from, via].join(' '),
  );
  const rest = 'rest count_points c anyone 192.0.2.7 127.0.0.1';
  const grpc = 'grpc count_points c anyone 127.0.0.1 ';
  assert.deepEqual(shown.sort(), [grpc, grpc, rest, rest]);
  const given = records.filter(({ protocol }) => protocol === 'rest').map(({ request_id: id }) => id);
  assert.deepEqual(given.sort(), ['id-false', 'id-true']);
});
