/** What an attacker may send to a node that has keys: bodies nested very deep, paths that lead around its pages, places of archives within its network. */

import assert from 'node:assert/strict';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { connect } from 'node:net';
import { test } from 'node:test';
import { Metadata } from '@grpc/grpc-js';
import { RestClient } from '../../ops/rest-client.js';
import { API_KEY } from '../http/access/tokens.js';
import { GrpcClient } from '../http/grpc/client.js';
import { nodeFor, temporaryFolder } from './support.js';

const INVALID_ARGUMENT = 3;
/** Far beyond what a stack holds, and little more than what JSON may have. */
const DEPTHS = [100_000, 600];
/** Linux gives a machine all of 127.0.0.0/8. */
const LISTED = '127.0.0.2';

const nested = (depth: number, open: string, close: string, inner: string): string => open.repeat(depth) + inner + close.repeat(depth);

/** Bodies by the operation that parses them, in the thread that does. */
function deepBodies(depth: number): readonly (readonly [thread: string, method: string, path: string, body: string])[] {
  const filter = nested(depth, '{"must":[', ']}', '{"key":"a","match":{"value":1}}');
  const list = nested(depth, '[', ']', '1');
  const object = nested(depth, '{"a":', '}', '1');
  const prefetch = nested(depth, '{"prefetch":', '}', '{"query":[1,0]}');
  const formula = nested(depth, '{"neg":', '}', '1');
  const points = '/collections/c/points';
  return [
    ['reader', 'POST', `${points}/count`, `{"filter":${filter}}`],
    ['reader', 'POST', `${points}/scroll`, `{"filter":{"must":${list}}}`],
    ['reader', 'POST', `${points}/scroll`, '['.repeat(depth)],
    ['reader', 'POST', `${points}/query`, `{"query":${list}}`],
    ['reader', 'POST', `${points}/query`, prefetch],
    ['reader', 'POST', `${points}/query`, `{"prefetch":{"query":[1,0]},"query":{"formula":${formula}}}`],
    ['reader', 'POST', `${points}/search`, `{"vector":[1,0],"limit":1,"filter":${filter}}`],
    ['reader', 'POST', '/collections/c/facet', `{"key":"a","filter":${filter}}`],
    ['writer', 'PUT', `${points}?wait=true`, `{"points":[{"id":1,"vector":[1,0],"payload":${object}}]}`],
    ['writer', 'PUT', `${points}?wait=true`, `{"points":[{"id":1,"vector":${list}}]}`],
    ['writer', 'POST', `${points}/payload?wait=true`, `{"points":[1],"payload":{"a":${list}}}`],
    ['writer', 'POST', `${points}/delete?wait=true`, `{"filter":${filter}}`],
    ['writer', 'POST', `${points}/batch?wait=true`, `{"operations":[{"delete":{"filter":${filter}}}]}`],
    ['main thread', 'PUT', '/collections/d', `{"vectors":${object}}`],
    ['main thread', 'PUT', '/collections/d', `{"vectors":{"size":2,"distance":"Dot"},"metadata":${object}}`],
    ['main thread', 'PATCH', '/collections/c', list],
    ['main thread', 'POST', '/collections/aliases', `{"actions":${list}}`],
    ['main thread', 'PUT', '/collections/c/index', `{"field_name":"a","field_schema":${object}}`],
  ];
}

/** A message of protobuf that is its own member so many times. fields: numbers of the members on the way, outermost first. */
function nestedMessage(depth: number, fields: readonly number[], inner: Buffer): Buffer {
  // From within, written to the end of one buffer.
  const out = Buffer.alloc(inner.length + depth * fields.length * 6);
  let at = out.length - inner.length;
  inner.copy(out, at);
  for (let level = 0; level < depth; level++) {
    for (const field of [...fields].reverse()) {
      const length = varint(out.length - at);
      at -= length.length;
      length.copy(out, at);
      out[--at] = (field << 3) | 2;
    }
  }
  return out.subarray(at);
}

function varint(value: number): Buffer {
  const bytes: number[] = [];
  let rest = value;
  for (; rest >= 128; rest = Math.floor(rest / 128)) bytes.push((rest & 127) | 128);
  bytes.push(rest);
  return Buffer.from(bytes);
}

const member = (field: number, bytes: Buffer): Buffer => Buffer.concat([Buffer.of((field << 3) | 2), varint(bytes.length), bytes]);

/** Calls by method. Numbers of fields: `Filter.must` 2, `Condition.filter` 4, `Value.struct_value` 6 and so on. */
function deepMessages(depth: number): readonly (readonly [method: string, message: Buffer])[] {
  const name = member(1, Buffer.from('c'));
  const filter = nestedMessage(depth, [2, 4], Buffer.alloc(0));
  const list = nestedMessage(depth, [7, 1], Buffer.alloc(0));
  return [
    ['Points/Count', Buffer.concat([name, member(2, filter)])],
    ['Points/Scroll', Buffer.concat([name, member(2, filter)])],
    ['Points/Query', Buffer.concat([name, nestedMessage(depth, [2], Buffer.alloc(0))])],
    ['Points/Delete', Buffer.concat([name, member(3, member(2, filter))])],
    // Points: payload of the first one: an entry of its map with a list in a list.
    ['Points/Upsert', Buffer.concat([name, member(3, member(3, Buffer.concat([member(1, Buffer.from('a')), member(2, list)])))])],
  ];
}

test('attacks', async (t) => {
  const environment = { SERVICE__SERVICE__API_KEY: API_KEY, SERVICE__SERVICE__SNAPSHOT_URL_ALLOW: LISTED };
  const node = await nodeFor(t, { folder: await temporaryFolder(t), environment });
  const withHeaders = (headers: Record<string, string>): RestClient => {
    const client = new RestClient({ host: '127.0.0.1', port: node.port, prefix: '', headers, tls: null, silenceMs: 0 });
    t.after(() => client.close());
    return client;
  };
  const client = withHeaders({ 'api-key': API_KEY });
  await client.result('PUT', '/collections/c', { vectors: { size: 2, distance: 'Dot' } });
  await client.result('PUT', '/collections/c/points?wait=true', { points: [{ id: 1, vector: [1, 0], payload: { a: 1 } }] });

  for (const [door, asked] of [
    ['the plain path', client],
    // A field that the plain path leaves to Node's HTTP server.
    ['Fastify', withHeaders({ 'api-key': API_KEY, origin: 'http://localhost' })],
  ] as const)
    await t.test(`bodies nested very deep are refused over ${door}, in each thread that parses them`, async () => {
      for (const depth of DEPTHS)
        for (const [thread, method, path, body] of deepBodies(depth)) {
          const { status, text } = await asked.call(method, path, body);
          assert.ok(status === 400 || status === 422, `${thread}, ${depth}: ${method} ${path}: ${status} ${text.slice(0, 300)}`);
        }
    });

  await t.test('messages nested very deep are refused over gRPC', async () => {
    const grpc = new GrpcClient(node.grpcPort);
    t.after(() => grpc.close());
    const metadata = new Metadata();
    metadata.set('api-key', API_KEY);
    for (const depth of [100_000, 2000])
      for (const [method, message] of deepMessages(depth)) {
        const outcome = await grpc.raw(`/qdrant.${method}`, message, {}, metadata).then(
          () => ({ code: 0, details: '' }),
          (error: { code: number; details: string }) => error,
        );
        assert.equal(outcome.code, INVALID_ARGUMENT, `${method}, ${depth}: ${outcome.details}`);
      }
  });

  await t.test('after all of them each thread is there, and nothing was changed', async () => {
    assert.doesNotMatch(node.log(), /was lost|does not answer|unexpected error/);
    assert.deepEqual(await client.result('POST', '/collections/c/points/count', { exact: true }), { count: 1 });
    assert.deepEqual(await client.result('GET', '/collections'), { collections: [{ name: 'c' }] });
  });

  await t.test('no path leads around the pages to files or to operations', async () => {
    for (const target of pathTricks()) {
      const answer = await rawAnswer(node.port, target);
      const status = Number(answer.slice('HTTP/1.1 '.length, 'HTTP/1.1 200'.length));
      assert.ok(status >= 400 && status < 500, `${JSON.stringify(target)}: ${answer.slice(0, 300)}`);
      assert.doesNotMatch(answer, /root:|"dependencies"|"collections":\[/, JSON.stringify(target));
    }
  });

  await t.test('archives are fetched from no place within the network, however it is written', async () => {
    const asked: string[] = [];
    const servers = ['127.0.0.1', LISTED].map((host) => {
      const server = createServer((request, response) => {
        const { url: path = '' } = request;
        asked.push(`${host}${path}`);
        response.writeHead(302, { location: Buffer.from(path.slice(1), 'base64url').toString() }).end();
      });
      t.after(() => server.close());
      return new Promise<number>((resolve) => server.listen(0, host, () => resolve((server.address() as AddressInfo).port)));
    });
    const [port, listedPort] = (await Promise.all(servers)) as [number, number];
    const recover = (location: string) => client.call('PUT', '/collections/c/snapshots/recover?wait=true', { location });
    const refused = async (location: string): Promise<void> => {
      const { status, text } = await recover(location);
      assert.equal(status, 403, `${location}: ${status} ${text.slice(0, 300)}`);
      assert.match(text, /not public/, location);
    };
    for (const host of HOSTS) await refused(`http://${host}:${port}/a.snapshot`);
    assert.equal(asked.length, 0, asked.join('\n'));
    // A listed host may be asked, and may not lead to one that is not.
    for (const host of HOSTS) {
      // A header has no other characters.
      const target = `http://${host}:${port}/a.snapshot`.replace(/[^ -~]+/g, encodeURIComponent);
      const location = Buffer.from(target).toString('base64url');
      await refused(`http://${LISTED}:${listedPort}/${location}`);
    }
    assert.ok(asked.length === HOSTS.length && asked.every((request) => request.startsWith(LISTED)), asked.join('\n'));
  });
});

/** This machine, its network, and what clouds tell their machines, as URLs may have them. */
const HOSTS = [
  '127.0.0.1',
  '127.1',
  '127.0.1',
  '2130706433',
  '0x7f000001',
  '0x7f.0.0.1',
  '0177.0.0.1',
  '017700000001',
  '0x7F.0X0.1',
  '0',
  '0.0.0.0',
  '0x0',
  '[::]',
  '[::1]',
  '[0:0:0:0:0:0:0:1]',
  '[::ffff:127.0.0.1]',
  '[::ffff:7f00:1]',
  '[::127.0.0.1]',
  '[64:ff9b::127.0.0.1]',
  'localhost',
  'LOCALHOST',
  'LocalHost.',
  '127.0.0.1.',
  'user@127.0.0.1',
  'example.com@127.0.0.1',
  'example.com:80@localhost',
  '①②⑦.⓪.⓪.①',
  '１２７.0.0.1',
  '%31%32%37.0.0.1',
  '127。0。0。1',
  '169.254.169.254',
  '0xa9fea9fe',
  '[fe80::1]',
  '[fd00:ec2::254]',
  '10.0.0.1',
  '192.168.0.1',
  '100.64.0.1',
];

/** Targets of requests, as they go over the wire. */
function pathTricks(): string[] {
  const tricks: string[] = [];
  const ups = ['..', '%2e%2e', '%2E.', '.%2e', '%252e%252e', '..;', '..%00', '%c0%ae%c0%ae', '%uff0e%uff0e'];
  const slashes = ['/', '//', '%2f', '%2F', '%5c', '\\', '%252f', '%c0%af'];
  for (const base of ['/dashboard', '/docs', '/dashboard/assets', '//docs/.'])
    for (const up of ups)
      for (const slash of slashes)
        for (const file of ['etc/passwd', 'collections']) tricks.push(base + (slash + up).repeat(4) + slash + file);
  const roots = ['/dashboard', '/docs'].flatMap((base) => [
    `${base}%00`,
    `${base}%00.html`,
    `${base}/%00`,
    `${base}%2findex.html%00`,
    `${base}\\index.html\\..\\..\\package.json`,
    `${base}/C:\\Windows\\win.ini`,
    `${base}/file:///etc/passwd`,
    `${base}/etc/passwd`,
    `${base}//etc/passwd`,
    `${base}/~root/.profile`,
    `${base}/%`,
    `${base}/%zz`,
    `${base}/;/collections`,
    `http://127.0.0.1${base}/../collections`,
    `http://elsewhere.test${base}/../../etc/passwd`,
    `file://${base}/../../etc/passwd`,
    `${base}/../collections`,
    `${base}/../../collections`,
    `${base}/%2e%2e/collections`,
    `${base} /collections`,
  ]);
  return [...tricks, ...roots, '/..', '/../etc/passwd', '/.', 'collections', '\\collections', '/\\collections'];
}

/** The first answer to a request without credentials. */
function rawAnswer(port: number, target: string): Promise<string> {
  return new Promise((resolve) => {
    const socket = connect(port, '127.0.0.1', () =>
      socket.write(`GET ${target} HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n`, 'latin1'),
    );
    let answer = '';
    socket.setEncoding('latin1').on('data', (part: string) => {
      answer += part;
    });
    socket.on('error', () => {}).on('close', () => resolve(answer));
  });
}
