/**
 * The gRPC server against grpc-js: random calls, many of them unusual or broken, get the same answers from both, and reach the engine as
 * the same requests.
 *
 * Repeat a run with TROUPE_SEED=<seed>; `npm run fuzz` sends 100,000 calls (TROUPE_CASES).
 */

import assert from 'node:assert/strict';
import { type ClientHttp2Session, type ClientHttp2Stream, connect, type IncomingHttpHeaders } from 'node:http2';
import { test } from 'node:test';
import { deflateSync, gzipSync } from 'node:zlib';
import { type GrpcDoor, startGrpcDoor } from '../../../http/grpc/server.js';
import { type RandomNumbers, seededRandom } from '../../../ops/random.js';
import { type ErrorCode, TroupeError } from '../../../protocols/errors.js';
import { bytesOf } from '../../protocols/grpc/protos.js';
import { testSeed } from '../../seed.js';
import { type Harness, openDoor } from '../rest/fake-node.js';
import { message } from './frames.js';
import { startLibraryDoor } from './library-door.js';

const CASES = Number(process.env.TROUPE_CASES ?? 3000);
const SEED = testSeed();
const AT_ONCE = 32;
const MESSAGE_BYTES_MAX = 100_000;

interface Call {
  readonly headers: Readonly<Record<string, string>>;
  readonly body: Buffer;
  /** Where the body is cut into frames. */
  readonly cuts: readonly number[];
}

interface Side {
  readonly harness: Harness;
  readonly door: GrpcDoor;
  readonly client: ClientHttp2Session;
}

test('random calls get the same answers as from grpc-js', { timeout: 60_000 + CASES * 20 }, async (t) => {
  t.diagnostic(`TROUPE_SEED=${SEED}`);
  const random = seededRandom(SEED);
  const sides = [await openSide(startOwn), await openSide(startLibrary)] as const;
  t.after(() => Promise.all(sides.map(closeSide)));
  const kinds = new Map<string, number>();
  for (let done = 0; done < CASES; done += AT_ONCE) {
    const calls = Array.from({ length: AT_ONCE }, () => sample(random));
    const [own, library] = (await Promise.all(sides.map(({ client }) => Promise.all(calls.map((call) => send(client, call)))))) as [
      object[],
      object[],
    ];
    calls.forEach((call, at) => {
      assert.deepEqual(own[at], library[at], `${JSON.stringify(call.headers)} ${call.body.subarray(0, 200).toString('hex')}`);
      const kind = String((own[at] as { status: unknown }).status);
      kinds.set(kind, (kinds.get(kind) ?? 0) + 1);
    });
    const [asked, expected] = sides.map(({ harness }) => harness.node.asked.splice(0).map(comparable).sort());
    assert.deepEqual(asked, expected);
  }
  t.diagnostic(JSON.stringify(Object.fromEntries(kinds)));
  assert.ok(kinds.size >= 6 && (kinds.get('0') ?? 0) > CASES / 5);
});

function startOwn(harness: Harness): Promise<GrpcDoor> {
  return startGrpcDoor(harness.services, { host: '127.0.0.1', port: 0, maxMessageBytes: MESSAGE_BYTES_MAX, logRequests: false });
}

function startLibrary(harness: Harness): Promise<GrpcDoor> {
  return startLibraryDoor(harness.services, MESSAGE_BYTES_MAX);
}

async function openSide(start: (harness: Harness) => Promise<GrpcDoor>): Promise<Side> {
  const harness = await openDoor({ monotonicMs: () => 0, nowMs: () => 0 });
  for (const name of ['ok', 'busy', 'large', 'internal']) await harness.node.createCollection(name, {} as never);
  const { node } = harness;
  node.answer = () => answerFor(node.asked.at(-1)?.collection ?? '');
  const door = await start(harness);
  return { harness, door, client: connect(`http://127.0.0.1:${door.port}`) };
}

function answerFor(collection: string): Promise<Uint8Array> {
  const codes: Readonly<Record<string, ErrorCode>> = { busy: 'busy', internal: 'internal' };
  const code = codes[collection];
  if (code !== undefined) return Promise.reject(new TroupeError(code, 'of the test: 100 % – «é» \n', { retryAfterMs: 2500 }));
  return Promise.resolve(Buffer.alloc(collection === 'large' ? 300_000 : 7, 'answer'));
}

async function closeSide({ harness, door, client }: Side): Promise<void> {
  client.destroy();
  await door.close(0);
  await harness.door.close(0);
}

/** Without the time, which the two may take differently. */
function comparable({ operation, collection, wait, request }: Harness['node']['asked'][number]): string {
  const { body, deadlineMs: _, ...rest } = request;
  return JSON.stringify({ operation, collection, wait, rest, body: Buffer.from(body ?? []).toString('hex') });
}

// ---------------------------------------------------------------- calls

function sample(random: RandomNumbers): Call {
  const one = <T>(...values: readonly T[]): T => values[random.integer(values.length)] as T;
  const collection_name = one('ok', 'ok', 'ok', 'ok', 'busy', 'large', 'internal', 'none', '', 'x'.repeat(300));
  const [path, type, more] = one<readonly [string, string, object]>(
    ['/qdrant.Points/Count', 'CountPoints', { exact: true, timeout: String(random.integer(3)) }],
    ['/qdrant.Points/Get', 'GetPoints', { ids: [{ num: '1' }] }],
    ['/qdrant.Points/Delete', 'DeletePoints', { wait: random.integer(2) === 0 }],
    [
      '/qdrant.Points/Upsert',
      'UpsertPoints',
      { points: [{ id: { num: '7' }, payload: { a: { string_value: 'x'.repeat(random.integer(40_000)) } } }] },
    ],
    ['/qdrant.Collections/CollectionExists', 'CollectionExistsRequest', {}],
    ['/qdrant.Snapshots/List', 'ListSnapshotsRequest', {}],
    ['/qdrant.Qdrant/HealthCheck', 'HealthCheckRequest', {}],
  );
  const plain = Buffer.from(bytesOf(type, { ...(type === 'HealthCheckRequest' ? {} : { collection_name }), ...more }));
  const [encoding, body] = bodyOf(random, plain);
  const headers: Record<string, string> = {
    ':method': 'POST',
    ':path':
      random.integer(30) === 0 ? one('/qdrant.Points/No', '/', '/x/é'.normalize('NFD').slice(0, 3), '/grpc.health.v1.Health/Watch') : path,
    'content-type': one(
      'application/grpc',
      'application/grpc+proto',
      'application/grpc',
      random.integer(10) === 0 ? 'application/json' : 'application/grpc',
    ),
    te: 'trailers',
    ...(encoding === null ? {} : { 'grpc-encoding': encoding }),
    ...(random.integer(4) === 0
      ? { 'grpc-timeout': one('10S', '1H', '99999999m', '20000000u', random.integer(5) === 0 ? one('x', '5') : '9M') }
      : {}),
    ...(random.integer(5) === 0 ? { 'content-length': String(body.length) } : {}),
    ...(random.integer(5) === 0 ? { 'some-key': 'v'.repeat(random.integer(2000)) } : {}),
  };
  if (random.integer(50) === 0) delete headers['content-type'];
  const call = { headers, body, cuts: cutsOf(random, body) };
  return random.integer(20) === 0 ? withWrongLength(call, path, message(plain), one(1, -1, 1000)) : call;
}

function cutsOf(random: RandomNumbers, body: Buffer): number[] {
  return Array.from({ length: random.integer(4) }, () => random.integer(body.length + 1)).sort((a, b) => a - b);
}

/** Nothing else is wrong with the call: what is wrong with its header is answered before its body has come, though not by grpc-js. */
function withWrongLength({ cuts }: Call, path: string, body: Buffer, off: number): Call {
  const headers = { ':method': 'POST', ':path': path, 'content-type': 'application/grpc', te: 'trailers' };
  return { headers: { ...headers, 'content-length': String(body.length + off) }, body, cuts: cuts.filter((at) => at <= body.length) };
}

function bodyOf(random: RandomNumbers, plain: Buffer): [encoding: string | null, body: Buffer] {
  switch (random.integer(24)) {
    case 0:
      return ['gzip', message(gzipSync(plain), 1)];
    case 1:
      return ['deflate', message(deflateSync(plain), 1)];
    case 2:
      return ['gzip', message(plain, 1)];
    case 3:
      return ['snappy', message(plain, 1)];
    case 4:
      return ['gzip', message(plain)];
    case 5:
      return [null, message(plain, random.integer(3))];
    case 6:
      return [null, Buffer.concat([message(plain), message(plain)])];
    case 7:
      return [null, message(plain).subarray(0, random.integer(plain.length + 5))];
    case 8:
      return [null, message(Buffer.alloc(MESSAGE_BYTES_MAX + random.integer(3)))];
    case 9:
      return ['gzip', message(gzipSync(Buffer.alloc(MESSAGE_BYTES_MAX + 1 + random.integer(100_000))), 1)];
    case 10:
      return [null, Buffer.alloc(0)];
    case 11: {
      const damaged = Buffer.from(plain);
      if (damaged.length > 0) damaged[random.integer(damaged.length)] = random.integer(256);
      return [null, message(damaged)];
    }
    default:
      return [null, message(plain)];
  }
}

/** The answer: its status, what it says and its bytes; or why there is none. */
function send(client: ClientHttp2Session, { headers, body, cuts }: Call): Promise<object> {
  return new Promise((resolve) => {
    const stream: ClientHttp2Stream = client.request(headers, { endStream: body.length === 0 });
    const parts: Buffer[] = [];
    let head: IncomingHttpHeaders = {};
    let last: IncomingHttpHeaders = {};
    stream.on('response', (fields) => {
      head = fields;
    });
    stream.on('trailers', (fields) => {
      last = fields;
    });
    stream.on('data', (part: Buffer) => parts.push(part));
    stream.on('error', () => resolve({ status: `reset ${stream.rstCode}` }));
    stream.on('close', () => {
      const all = { ...head, ...last } as Record<string, unknown>;
      const text = all['grpc-message'];
      resolve({
        http: all[':status'],
        type: all['content-type'],
        status: all['grpc-status'],
        text: typeof text === 'string' ? decodeURIComponent(text) : text,
        outcome: all['troupe-outcome'],
        retryAfter: all['retry-after'],
        message: Buffer.concat(parts).toString('hex'),
      });
    });
    if (body.length === 0) return;
    let from = 0;
    for (const to of [...cuts, body.length]) {
      stream.write(body.subarray(from, to));
      from = to;
    }
    stream.end();
  });
}
