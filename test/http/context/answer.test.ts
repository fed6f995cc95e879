import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { clientFacts } from '../../../http/context/answer.js';
import { callOperation } from '../../../http/embedded/in-process.js';
import { type GrpcDoor, startGrpcDoor } from '../../../http/grpc/server.js';
import { type ErrorOptions, TroupeError } from '../../../protocols/errors.js';
import { failure, GrpcClient } from '../grpc/client.js';
import { type Harness, openDoor } from '../rest/fake-node.js';

const PHRASE = 'the operation may still be carried out';

let harness: Harness;
let grpc: GrpcDoor;
let client: GrpcClient;

before(async () => {
  harness = await openDoor();
  grpc = await startGrpcDoor(harness.services, { host: '127.0.0.1', port: 0, maxMessageBytes: 1 << 20, logRequests: false });
  client = new GrpcClient(grpc.port);
  await harness.node.createCollection('c', {} as never);
});
after(async () => {
  client.close();
  await grpc.close(1000);
  await harness.door.close(1000);
});

function failsWith(options: ErrorOptions): void {
  harness.node.answer = () => Promise.reject(new TroupeError('unavailable', 'the leader is gone', options));
}

interface Told {
  readonly text: string;
  readonly outcome: string | null;
}

async function overRest(method: string, path: string): Promise<Told> {
  const reply = await fetch(harness.url + path, { method, body: '{}' });
  const { status } = (await reply.json()) as { status: { error: string } };
  return { text: status.error, outcome: reply.headers.get('troupe-outcome') };
}

async function overGrpc(method: string): Promise<Told> {
  const { details, metadata } = await failure(client.call(method, { collection_name: 'c' }));
  return { text: details, outcome: metadata.get('troupe-outcome')[0]?.toString() ?? null };
}

test('both doors say of a write that it may still be carried out, in words and for programs', async () => {
  failsWith({ outcome: 'unknown' });
  const open = { text: `Service unavailable: the leader is gone; ${PHRASE}`, outcome: 'unknown' };
  assert.deepEqual(await overRest('PUT', '/collections/c/points'), open);
  assert.deepEqual(await overGrpc('Points/Upsert'), open);
});

test('both doors say of a write that was refused that nothing was carried out', async () => {
  failsWith({});
  const refused = { text: 'Service unavailable: the leader is gone', outcome: 'none' };
  assert.deepEqual(await overRest('PUT', '/collections/c/points'), refused);
  assert.deepEqual(await overGrpc('Points/Upsert'), refused);
});

test('of a read, which changes nothing, neither door says anything of the kind', async () => {
  failsWith({ outcome: 'unknown' });
  const read = { text: 'Service unavailable: the leader is gone', outcome: null };
  assert.deepEqual(await overRest('POST', '/collections/c/points/query'), read);
  assert.deepEqual(await overGrpc('Points/Query'), read);
});

test('within a program the error has its outcome, and no phrase', async () => {
  failsWith({ outcome: 'unknown' });
  const written = callOperation(harness.services, 'upsert_points', { path: { collection_name: 'c' }, body: { points: [] } });
  await assert.rejects(written, { code: 'unavailable', outcome: 'unknown', message: 'Service unavailable: the leader is gone' });
});

test('what manages collections is told as a write is; a question about them is not', () => {
  const error = new TroupeError('timeout', 'late');
  assert.deepEqual(clientFacts(error, { access: 'm', method: 'PUT' }), { code: 'timeout', detail: `late; ${PHRASE}`, outcome: 'unknown' });
  assert.deepEqual(clientFacts(error, { access: 'm', method: 'GET' }), { code: 'timeout', detail: 'late' });
  assert.deepEqual(clientFacts(error, { access: 'r', method: 'POST' }), { code: 'timeout', detail: 'late' });
  assert.deepEqual(clientFacts(new Error('a bug'), { access: 'w', method: 'POST' }), {
    code: 'internal',
    detail: `a bug; ${PHRASE}`,
    outcome: 'unknown',
  });
});
