/**
 * Random and hostile requests at both doors: the node lives on, never answers a client's mistake as its own fault, and a
 * request that is refused has changed nothing.
 *
 * Repeat a run with TROUPE_SEED=<seed>; `npm run fuzz` sends 100,000 requests to each door (TROUPE_CASES).
 */

import assert from 'node:assert/strict';
import { type ClientHttp2Session, connect } from 'node:http2';
import { test } from 'node:test';
import { type RandomNumbers, seededRandom } from '../../ops/random.js';
import type { RestAnswer } from '../../ops/rest-client.js';
import { testSeed } from '../seed.js';
import { clusterMessages, clusterRequest, KEYED, KEYED_COLLECTION } from './fuzz/cluster-requests.js';
import { grpcSamples } from './fuzz/grpc-samples.js';
import { bytesOf, mutated, scrambled } from './fuzz/mutations.js';
import { FUZZED_COLLECTION, FUZZED_FIELDS, fuzzedPoints, sampleRequest } from './fuzz/requests.js';
import { type NodeUnderTest, nodeFor, temporaryFolder } from './support.js';

const CASES = Number(process.env.TROUPE_CASES ?? 2000);
const NAME = 'fuzzed';
/** Requests after which the collection is made anew, so that writes that succeeded do not use it up. */
const LIFE = 400;
const TIMEOUT_MS = 120_000 + CASES * 40;

test('no request over REST is answered as a fault of the node, and none that is refused changes data', {
  timeout: TIMEOUT_MS,
}, async (t) => {
  const { random, node } = await start(t);
  let before = '';
  let refused = 0;
  for (let at = 0; at < CASES; at++) {
    if (at % LIFE === 0) before = await remake(node, random);
    const { method, path, body } = sampleRequest(random);
    const url = path.startsWith('//') ? path.slice(1) : `/collections/${NAME}${path === '' ? '' : `/${path}`}`;
    const bad = random.integer(6) === 0 ? body : mutated(body, random);
    const bytes = body === undefined ? undefined : bytesOf(random.integer(3) === 0 ? mutated(bad, random) : bad, random);
    const answer = await node.client.call(method, url, bytes);
    const what = `${method} ${url} ${bytes?.toString('utf8').slice(0, 2000)}\n${answer.status} ${answer.text.slice(0, 500)}`;
    assert.ok(answer.status < 500, what);
    if (answer.status >= 400) refused++;
    if (method !== 'GET' && !isRead(url)) {
      const now = await fingerprint(node);
      if (answer.status >= 400 && !mayStandInPart(url)) assert.equal(now, before, `a refused request has changed data: ${what}`);
      before = now;
    }
  }
  t.diagnostic(`${refused} of ${CASES} were refused`);
  assert.ok(refused > CASES / 10 && refused < CASES, `${refused} of ${CASES} were refused`);
  await lives(node);
});

/** Statuses that blame the node: UNKNOWN, INTERNAL, DATA_LOSS, UNAVAILABLE. */
const FAULTS = new Set(['2', '13', '14', '15']);

test('no message over gRPC is answered as a fault of the node, and none that is refused changes data', {
  timeout: TIMEOUT_MS,
}, async (t) => {
  const { random, node } = await start(t);
  let session = connect(`http://127.0.0.1:${node.grpcPort}`);
  session.on('error', () => {});
  const samples = grpcSamples(NAME);
  for (const { path, message } of samples) {
    await remake(node, random);
    const status = await call(session, path, Buffer.concat([headOf(message), message]));
    assert.equal(status.code, '0', `${path}: ${status.message}`);
  }
  let before = '';
  let refused = 0;
  for (let at = 0; at < CASES; at++) {
    if (at % LIFE === 0) before = await remake(node, random);
    const { path, message, writes } = samples[random.integer(samples.length)] as (typeof samples)[number];
    const sent = random.integer(6) === 0 ? message : scrambled(message, random);
    const frame = framed(sent, random);
    if (session.destroyed || session.closed) {
      session = connect(`http://127.0.0.1:${node.grpcPort}`);
      session.on('error', () => {});
    }
    const status = await call(session, path, frame);
    const what = `${path} ${frame.subarray(0, 500).toString('hex')}: status ${status.code} ${status.message}`;
    assert.ok(!FAULTS.has(status.code) || frame.length !== sent.length + 5, what);
    if (status.code !== '0') refused++;
    if (!writes) continue;
    // A changed byte may have taken the message's `wait`: what is applied in order is done when a later write is.
    if (status.code === '0') await node.client.result('POST', `/collections/${NAME}/points/payload/clear?wait=true`, NO_POINT);
    const now = await fingerprint(node);
    if (status.code !== '0' && !path.endsWith('/UpdateBatch')) assert.equal(now, before, `a refused message has changed data: ${what}`);
    before = now;
  }
  session.destroy();
  t.diagnostic(`${refused} of ${CASES} were refused`);
  assert.ok(refused > CASES / 20, `${refused} of ${CASES} were refused`);
  await lives(node);
});

test('no request about its cluster is answered as a fault of the node, which stays a member', { timeout: TIMEOUT_MS }, async (t) => {
  const { random, node } = await start(t, {
    SERVICE__CLUSTER__ENABLED: 'true',
    SERVICE__CLUSTER__P2P__PORT: '0',
    SERVICE_URI: 'http://127.0.0.1:6335',
  });
  await node.client.result('PUT', `/collections/${KEYED}`, KEYED_COLLECTION);
  const { peer_id: peerId } = await node.client.result<{ peer_id: number }>('GET', '/cluster');
  const messages = clusterMessages(peerId);
  const session = connect(`http://127.0.0.1:${node.grpcPort}`);
  session.on('error', () => {});
  const count = Math.ceil(CASES / 4);
  let refused = 0;
  for (let at = 0; at < count; at++) {
    const { method, path, body } = clusterRequest(random, peerId);
    const bytes = body === undefined ? undefined : bytesOf(random.integer(3) === 0 ? body : mutated(body, random), random);
    const answer = await node.client.call(method, path.slice(1), bytes);
    const what = `${method} ${path} ${bytes?.toString('utf8').slice(0, 2000)}\n${answer.status} ${answer.text.slice(0, 500)}`;
    assert.ok(answer.status < 500 && answer.status !== 408, what);
    if (answer.status >= 400) refused++;
    const called = messages[random.integer(messages.length)] as (typeof messages)[number];
    const sent = random.integer(4) === 0 ? called.message : scrambled(called.message, random);
    const status = await call(session, called.path, Buffer.concat([headOf(sent), sent]));
    assert.ok(!FAULTS.has(status.code), `${called.path} ${sent.toString('hex')}: status ${status.code} ${status.message}`);
  }
  session.destroy();
  t.diagnostic(`${refused} of ${count} were refused`);
  assert.ok(refused > count / 10 && refused < count, `${refused} of ${count} were refused`);
  const { peers } = await node.client.result<{ peers: object }>('GET', '/cluster');
  assert.deepEqual(Object.keys(peers), [String(peerId)]);
  await lives(node);
});

const NO_POINT = { filter: { must: [{ has_id: [1_000_000] }] } };

async function start(
  t: Parameters<typeof nodeFor>[0],
  environment: Readonly<Record<string, string>> = {},
): Promise<{ random: RandomNumbers; node: NodeUnderTest }> {
  const seed = testSeed();
  t.diagnostic(`TROUPE_SEED=${seed}`);
  return { random: seededRandom(seed), node: await nodeFor(t, { folder: await temporaryFolder(t), environment }) };
}

async function remake(node: NodeUnderTest, random: RandomNumbers): Promise<string> {
  for (const name of [NAME, 'other']) {
    await node.client.result('DELETE', `/collections/${name}`);
    await node.client.result('PUT', `/collections/${name}`, FUZZED_COLLECTION);
    for (const [field, type] of Object.entries(FUZZED_FIELDS)) {
      await node.client.result('PUT', `/collections/${name}/index?wait=true`, { field_name: field, field_schema: type });
    }
    await node.client.result('PUT', `/collections/${name}/points?wait=true`, { points: fuzzedPoints(random) });
  }
  return fingerprint(node);
}

/** All points with everything they have, and the indexed fields. */
async function fingerprint(node: NodeUnderTest): Promise<string> {
  const page = await node.client.call('POST', `/collections/${NAME}/points/scroll`, { limit: 1000, with_payload: true, with_vector: true });
  const info = await node.client.call('GET', `/collections/${NAME}`);
  return `${untimed(page)} ${JSON.stringify(schemaOf(info))}`;
}

function schemaOf(info: RestAnswer): unknown {
  const { result } = info.body as { result: { payload_schema: unknown; config: { params: unknown } } };
  return [result.payload_schema, result.config.params];
}

function untimed({ text }: RestAnswer): string {
  return text.replace(/,"time":[^,}]*\}$/, '');
}

function isRead(url: string): boolean {
  return (
    /\/(points|scroll|count|query|batch|groups|search|recommend|discover|facet|pairs|offsets)$/.test(url) && !/\/points\/batch$/.test(url)
  );
}

/** Operations of a batch before one that does not fit stand: `points/batch` is several requests in one. */
function mayStandInPart(url: string): boolean {
  return url.includes('/points/batch');
}

async function lives(node: NodeUnderTest): Promise<void> {
  const answer = await node.client.call('GET', '/readyz');
  assert.equal(answer.status, 200);
  assert.doesNotMatch(node.log(), /unexpected error|TroupeReader|uncaught/i);
}

/** A gRPC frame, now and then with a wrong length, a compression flag that is not true, or cut. */
function framed(message: Buffer, random: RandomNumbers): Buffer {
  const head = headOf(message);
  if (random.integer(60) === 0) head.writeUInt32BE(message.length + 3, 1);
  if (random.integer(60) === 0) head[0] = 1;
  const frame = Buffer.concat([head, message]);
  return random.integer(60) === 0 ? frame.subarray(0, random.integer(frame.length)) : frame;
}

function headOf(message: Buffer): Buffer {
  const head = Buffer.alloc(5);
  head.writeUInt32BE(message.length, 1);
  return head;
}

function call(session: ClientHttp2Session, path: string, frame: Buffer): Promise<{ code: string; message: string }> {
  return new Promise((done) => {
    const stream = session.request({ ':method': 'POST', ':path': path, 'content-type': 'application/grpc', te: 'trailers' });
    let code = '';
    let message = '';
    const take = (headers: { readonly [name: string]: unknown }): void => {
      code = String(headers['grpc-status'] ?? code);
      message = String(headers['grpc-message'] ?? message);
    };
    stream.on('response', take);
    stream.on('trailers', take);
    stream.on('error', (error) => {
      message = String(error);
    });
    stream.on('close', () => done({ code, message }));
    stream.resume();
    stream.end(frame);
  });
}
