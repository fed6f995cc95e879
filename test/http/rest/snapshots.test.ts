import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import { PassThrough, Readable } from 'node:stream';
import { type TestContext, test } from 'node:test';
import type { SnapshotPlace } from '../../../storage/snapshot-store/snapshot-store.js';
import { type Harness, type HarnessOptions, openDoor, until } from './fake-node.js';

const OF_C: SnapshotPlace = { kind: 'collection', collection: 'c' };
const OF_SHARD: SnapshotPlace = { kind: 'shard', collection: 'c', shardId: 0 };
const FULL: SnapshotPlace = { kind: 'full' };
const PLACES: readonly (readonly [string, SnapshotPlace])[] = [
  ['/collections/c/snapshots', OF_C],
  ['/collections/c/shards/0/snapshots', OF_SHARD],
  ['/snapshots', FULL],
];
const SHA = 'ab'.repeat(32);
const UPLOAD = '/collections/c/snapshots/upload';
const BOUNDARY = 'x-boundary-x';

const WAYS: Readonly<Record<string, HarnessOptions>> = {
  'the plain path': {},
  Fastify: { fastPath: false },
  'a reader': { readAlone: () => null },
};

interface Reply {
  readonly status: number;
  readonly headers: Headers;
  readonly text: string;
  // biome-ignore lint/suspicious/noExplicitAny: tests look into answers of many shapes
  readonly json: any;
}

async function openWithCollection(t: TestContext, options: HarnessOptions = {}): Promise<Harness> {
  const harness = await openDoor(options);
  t.after(() => harness.door.close(0));
  await fetch(`${harness.url}/collections/c`, { method: 'PUT', body: '{"vectors":{"size":4,"distance":"Dot"}}' });
  return harness;
}

async function call({ url }: Harness, method: string, path: string, init: RequestInit = {}): Promise<Reply> {
  const response = await fetch(url + path, { method, ...init });
  const text = await response.text();
  let json: unknown;
  try {
    json = JSON.parse(text);
  } catch {
    json = undefined;
  }
  return { status: response.status, headers: response.headers, text, json };
}

function formOf(parts: Readonly<Record<string, string>>): RequestInit {
  const form = new FormData();
  for (const [name, text] of Object.entries(parts)) form.append(name, new Blob([text]), 'x.snapshot');
  return { body: form };
}

/** Head and body of an upload as bytes. length: announced; default: that of the body. */
function rawUpload(
  body: string,
  { length = Buffer.byteLength(body), type = `multipart/form-data; boundary=${BOUNDARY}`, path = UPLOAD } = {},
): string {
  return `POST ${path} HTTP/1.1\r\nhost: x\r\ncontent-type: ${type}\r\ncontent-length: ${length}\r\n\r\n${body}`;
}

function rawPart(name: string, content: string, more = '; filename="f"'): string {
  return `--${BOUNDARY}\r\nContent-Disposition: form-data; name="${name}"${more}\r\n\r\n${content}\r\n`;
}

const RAW_END = `--${BOUNDARY}--\r\n`;

async function open({ door: { port } }: Harness, t: TestContext): Promise<Socket> {
  const socket = connect({ port, host: '127.0.0.1' });
  t.after(() => socket.destroy());
  socket.on('error', () => {});
  await once(socket, 'connect');
  return socket;
}

/** Sends bytes on a connection of their own; the answer up to its end or the end of the connection. */
async function exchange(harness: Harness, t: TestContext, bytes: string): Promise<string> {
  const socket = await open(harness, t);
  let text = '';
  socket.setEncoding('latin1').on('data', (chunk) => {
    text += chunk;
  });
  socket.write(bytes, 'latin1');
  await until(() => socket.closed || isWhole(text));
  return text;
}

function isWhole(text: string): boolean {
  const end = text.indexOf('\r\n\r\n');
  const length = /content-length: (\d+)/i.exec(text)?.[1];
  return end !== -1 && length !== undefined && text.length >= end + 4 + Number(length);
}

for (const [way, options] of Object.entries(WAYS)) {
  test(`${way}: snapshots of a collection, a shard and the whole storage are made, listed, downloaded and deleted`, async (t) => {
    const harness = await openWithCollection(t, options);
    for (const [path] of PLACES) {
      assert.deepEqual((await call(harness, 'GET', path)).json.result, []);
      const { json, status } = await call(harness, 'POST', path);
      const { name } = json.result;
      assert.equal(status, 200);
      assert.deepEqual(Object.keys(json.result), ['name', 'creation_time', 'size', 'checksum']);
      assert.equal(json.result.creation_time, '2026-11-21T01:04:22');
      assert.deepEqual((await call(harness, 'GET', path)).json.result, [json.result]);
      const file = await call(harness, 'GET', `${path}/${name}`);
      assert.match(file.text, /^archive \d$/);
      assert.equal(createHash('sha256').update(file.text).digest('hex'), json.result.checksum);
      assert.deepEqual(
        ['content-type', 'content-length', 'content-disposition', 'accept-ranges', 'etag'].map((header) => file.headers.get(header)),
        ['application/octet-stream', '9', `attachment; filename="${name}"`, 'bytes', `"${json.result.checksum}"`],
      );
      assert.equal((await call(harness, 'DELETE', `${path}/${name}`)).json.result, true);
      const again = await call(harness, 'DELETE', `${path}/${name}`);
      assert.deepEqual([again.status, again.json.status.error], [404, `Not found: Snapshot ${name} not found`]);
      assert.deepEqual((await call(harness, 'GET', path)).json.result, []);
    }
  });

  test(`${way}: what is not there is told in the form that clients of each operation read`, async (t) => {
    const harness = await openWithCollection(t, options);
    const asText: [string, string][] = [
      ['/collections/c/snapshots/nope.snapshot', 'Not found: Snapshot nope.snapshot not found'],
      ['/collections/c/snapshots/..%2F..%2Fconfig.json', 'Not found: Snapshot ../../config.json not found'],
      ['/snapshots/..%2fraft_state.json', 'Not found: Snapshot ../raft_state.json not found'],
      ['/collections/c/shards/7/snapshot', 'Not found: shard 7 not found'],
      ['/collections/c/shards/0/snapshots/nope.snapshot', 'Not found: Snapshot nope.snapshot not found'],
      ['/collections/no/snapshots/nope.snapshot', "Not found: Collection `no` doesn't exist!"],
    ];
    for (const [path, text] of asText) {
      const reply = await call(harness, 'GET', path);
      assert.deepEqual([reply.status, reply.headers.get('content-type'), reply.text], [404, 'text/plain; charset=utf-8', text]);
    }
    for (const [method, path] of [
      ['GET', '/collections/no/snapshots'],
      ['POST', '/collections/no/snapshots'],
      ['POST', '/collections/no/snapshots?wait=false'],
      ['DELETE', '/collections/no/snapshots/a.snapshot'],
      ['GET', '/collections/c/shards/7/snapshots'],
      ['POST', '/collections/c/shards/7/snapshots'],
      ['POST', '/collections/c/shards/7/snapshots/upload'],
    ] as const) {
      const reply = await call(harness, method, path, path.endsWith('upload') ? formOf({ snapshot: 'a' }) : {});
      assert.equal(reply.status, 404, `${method} ${path}`);
      assert.match(reply.json.status.error, /^Not found: /);
    }
    assert.equal((await call(harness, 'GET', '/collections/c/shards/abc/snapshots')).status, 400);
  });

  test(`${way}: names that climb out of the folder, or are none, find nothing`, async (t) => {
    const harness = await openWithCollection(t, options);
    const names = [
      '..%2f..%2fa.snapshot',
      '%2e%2e%2fa.snapshot',
      '..%5ca.snapshot',
      '%00a.snapshot',
      'a%00.snapshot',
      '.snapshot',
      '%2Fetc%2Fpasswd',
    ];
    for (const name of [...names, `${'a'.repeat(8000)}.snapshot`, 'a%2fb.snapshot', '%0d%0ax%3a%20y.snapshot']) {
      for (const [path] of PLACES) {
        const got = await call(harness, 'GET', `${path}/${name}`);
        assert.deepEqual([got.status, got.headers.get('content-type')], [404, 'text/plain; charset=utf-8'], name);
        assert.equal((await call(harness, 'DELETE', `${path}/${name}`)).status, 404, name);
      }
    }
    // The path itself is read as it was sent: nothing of it is resolved.
    const climbing = await exchange(
      harness,
      t,
      'GET /collections/c/snapshots/../../../etc/passwd HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n',
    );
    assert.match(climbing, /^HTTP\/1\.1 404 /);
    // None of them comes as far as the store.
    assert.deepEqual(harness.node.snapshots.named, []);
  });

  test(`${way}: a part of an archive can be downloaded`, async (t) => {
    const harness = await openWithCollection(t, options);
    const bytes = Buffer.from('0123456789');
    const { checksum } = harness.node.snapshots.keep(OF_C, 'a.snapshot', bytes);
    const get = (headers: Record<string, string>) => call(harness, 'GET', '/collections/c/snapshots/a.snapshot', { headers });
    for (const [range, text, contentRange] of [
      ['bytes=0-3', '0123', 'bytes 0-3/10'],
      ['bytes=7-', '789', 'bytes 7-9/10'],
      ['bytes=7-100', '789', 'bytes 7-9/10'],
      ['bytes=-2', '89', 'bytes 8-9/10'],
      ['bytes=-100', '0123456789', 'bytes 0-9/10'],
    ] as const) {
      const reply = await get({ range });
      assert.deepEqual(
        [reply.status, reply.text, reply.headers.get('content-range'), reply.headers.get('content-length')],
        [206, text, contentRange, String(text.length)],
        range,
      );
    }
    for (const range of ['bytes=10-', 'bytes=-0', 'bytes=99-100']) {
      const reply = await get({ range });
      assert.deepEqual([reply.status, reply.headers.get('content-range')], [416, 'bytes */10'], range);
    }
    for (const range of ['bytes=3-1', 'bytes=0-1,4-5', 'lines=1-2', 'bytes=', 'bytes=a-b'])
      assert.equal((await get({ range })).text.length, 10, range);
    assert.equal((await get({ range: 'bytes=0-3', 'if-range': `"${checksum}"` })).status, 206);
    assert.equal((await get({ range: 'bytes=0-3', 'if-range': '"another"' })).status, 200);
  });

  test(`${way}: HEAD tells of an archive without reading it`, async (t) => {
    const harness = await openWithCollection(t, options);
    const { checksum } = harness.node.snapshots.keep(OF_C, 'a.snapshot', Buffer.from('0123456789'));
    const headOf = async (path: string, headers: Record<string, string> = {}) => {
      const reply = await call(harness, 'HEAD', path, { headers });
      return [reply.status, reply.text, ...['content-length', 'etag'].map((name) => reply.headers.get(name))];
    };
    const path = '/collections/c/snapshots/a.snapshot';
    assert.deepEqual(await headOf(path), [200, '', '10', `"${checksum}"`]);
    assert.deepEqual(await headOf(path, { range: 'bytes=0-3' }), [206, '', '4', `"${checksum}"`]);
    assert.deepEqual(await headOf('/collections/c/shards/1/snapshot'), [200, '', null, null]);
    assert.equal((await headOf('/collections/c/snapshots/nope.snapshot'))[0], 404);
    assert.deepEqual(harness.node.snapshots.opened, []);
  });

  test(`${way}: a shard is streamed without a length`, async (t) => {
    const harness = await openWithCollection(t, options);
    const reply = await call(harness, 'GET', '/collections/c/shards/1/snapshot', { headers: { range: 'bytes=0-1' } });
    assert.deepEqual([reply.status, reply.text], [200, 'shard 1 of c']);
    assert.equal(reply.headers.get('content-length'), null);
    assert.equal(reply.headers.get('content-type'), 'application/octet-stream');
    assert.equal(reply.headers.get('content-disposition'), 'attachment; filename="c-shard-1.snapshot"');
  });

  test(`${way}: an upload restores a collection or a shard with the parameters that were sent`, async (t) => {
    const harness = await openWithCollection(t, options);
    const { snapshots } = harness.node;
    const upload = (path: string) => call(harness, 'POST', path, formOf({ other: 'x', snapshot: 'the archive' }));
    assert.equal((await upload(`/collections/new/snapshots/upload?priority=snapshot&checksum=${SHA.toUpperCase()}`)).json.result, true);
    assert.equal((await upload(`${UPLOAD}?wait=true`)).json.result, true);
    assert.equal((await upload('/collections/c/shards/1/snapshots/upload?priority=no_sync')).json.result, null);
    const common = { from: 'the archive', bytes: 11 };
    assert.deepEqual(snapshots.restored, [
      { ...common, target: { collection: 'new', shardId: null }, options: { priority: 'snapshot', checksum: SHA, until: null } },
      { ...common, target: { collection: 'c', shardId: null }, options: { priority: 'replica', checksum: null, until: null } },
      { ...common, target: { collection: 'c', shardId: 1 }, options: { priority: 'no_sync', checksum: null, until: null } },
    ]);
    assert.deepEqual(snapshots.uploads(), []);
  });

  test(`${way}: an upload that cannot be taken is refused with the reason, and leaves no file`, async (t) => {
    const harness = await openWithCollection(t, options);
    const { snapshots } = harness.node;
    const archive = formOf({ snapshot: 'the archive' });
    const send = (query: string, init: RequestInit) => call(harness, 'POST', UPLOAD + query, init);
    for (const [query, init, status, text] of [
      [
        '?priority=urgent',
        archive,
        400,
        'Deserialize error in query parameters: unknown variant `urgent`, expected one of `no_sync`, `snapshot`, `replica`',
      ],
      ['?wait=perhaps', archive, 400, 'Deserialize error in query parameters: wait: provided string was not `true` or `false`'],
      [
        '?checksum=abc',
        archive,
        422,
        'Validation error in query parameters: [checksum: Validation error: invalid_sha256_hash [{"length": Number(3), "expected_length": Number(64), "value": String("abc")}]]',
      ],
      ['', formOf({ snapshot: 'garbage' }), 400, 'Wrong input: this is no archive'],
    ] as const) {
      const reply = await send(query, init);
      assert.deepEqual([reply.status, reply.json?.status.error], [status, text]);
    }
    for (const [init, status, text] of [
      [formOf({ other: 'x' }), 400, 'Required field is missing: snapshot'],
      [{ body: '{}', headers: { 'content-type': 'application/json' } }, 415, 'ContentTypeIncompatible'],
      [{ body: 'a', headers: { 'content-type': 'multipart/mixed; boundary=a' } }, 415, 'ContentTypeIncompatible'],
      [{ body: 'a', headers: { 'content-type': 'multipart/form-data' } }, 400, 'the content type of the form has no boundary'],
      [
        { body: '', headers: { 'content-type': 'multipart/form-data; boundary=a' } },
        400,
        'the form is broken: Unexpected end of multipart data',
      ],
    ] as const) {
      const reply = await send('', init);
      assert.deepEqual([reply.status, reply.headers.get('content-type'), reply.text], [status, 'text/plain; charset=utf-8', text]);
    }
    const twice = new FormData();
    for (const text of ['one', 'two']) twice.append('snapshot', new Blob([text]), 'x');
    assert.equal((await send('', { body: twice })).text, 'Duplicate field: snapshot');
    assert.equal((await call(harness, 'POST', `/collections/${encodeURIComponent('a/b')}/snapshots/upload`, archive)).status, 422);
    assert.deepEqual(snapshots.restored, []);
    assert.deepEqual(snapshots.uploads(), []);
    assert.equal((await call(harness, 'GET', '/healthz')).status, 200);
  });

  test(`${way}: a restore makes no more collections than there may be`, async (t) => {
    const harness = await openWithCollection(t, { ...options, maxCollections: 1 });
    const body = { body: JSON.stringify({ location: 'http://h/a' }) };
    const refused = await call(harness, 'PUT', '/collections/d/snapshots/recover', body);
    assert.equal(refused.status, 400);
    assert.match(refused.text, /Max collections limit reached: 1/);
    assert.equal((await call(harness, 'PUT', '/collections/c/snapshots/recover', body)).status, 200);
    assert.equal(harness.node.snapshots.restored.length, 1);
  });

  test(`${way}: a collection or a shard is restored from a place that the request names`, async (t) => {
    const harness = await openWithCollection(t, options);
    const put = (path: string, body: object) => call(harness, 'PUT', path, { body: JSON.stringify(body) });
    const toC = '/collections/c/snapshots/recover';
    const toShard = '/collections/c/shards/0/snapshots/recover';
    assert.equal((await put(toC, { location: 'http://h/a', priority: 'snapshot', checksum: SHA, api_key: 'key' })).json.result, true);
    assert.equal((await put(toShard, { location: 'a.snapshot' })).json.result, true);
    assert.deepEqual(
      harness.node.snapshots.restored.map(({ from, options: given, target }) => [target.shardId, from, given]),
      [
        [null, 'http://h/a', { priority: 'snapshot', checksum: SHA, until: null, apiKey: 'key' }],
        [0, 'a.snapshot', { priority: 'replica', checksum: null, until: null, apiKey: null }],
      ],
    );
    for (const [path, body, status, error] of [
      [toC, {}, 400, 'Format error in JSON body: missing field `location`'],
      [toC, { location: 'abc' }, 400, 'Format error in JSON body: `location`: relative URL without a base: "abc"'],
      [
        toC,
        { location: 'http://h/a', priority: 'urgent' },
        400,
        'Format error in JSON body: `priority`: unknown variant `urgent`, expected one of `no_sync`, `snapshot`, `replica`',
      ],
      [toC, { location: 'http://h/nope' }, 400, 'Wrong input: nothing is at http://h/nope'],
      ['/collections/c/shards/7/snapshots/recover', { location: 'a' }, 404, 'Not found: shard 7 not found'],
    ] as const) {
      const reply = await put(path, body);
      assert.deepEqual([reply.status, reply.json.status.error], [status, error]);
    }
    assert.equal((await put(toC, { location: 'http://h/a', checksum: 'abc' })).status, 422);
    const unknown = await put(toC, { location: 'http://h/a', prioritty: 'snapshot' });
    assert.deepEqual([unknown.status, unknown.headers.get('troupe-unknown-fields')], [200, 'prioritty']);
  });

  test(`${way}: with wait=false the work goes on after the answer, and its error is logged`, async (t) => {
    const harness = await openWithCollection(t, options);
    const { snapshots } = harness.node;
    let goOn: () => void = () => {};
    snapshots.before = () =>
      new Promise((resolve) => {
        goOn = resolve;
      });
    const made = await call(harness, 'POST', '/collections/c/snapshots?wait=false');
    assert.equal(made.status, 202);
    assert.deepEqual(Object.keys(made.json), ['status', 'time']);
    assert.equal(made.json.status, 'accepted');
    assert.deepEqual((await call(harness, 'GET', '/collections/c/snapshots')).json.result, []);
    goOn();
    const { name } = (await call(harness, 'GET', '/collections/c/snapshots')).json.result[0];
    snapshots.before = () => Promise.resolve();
    assert.equal((await call(harness, 'DELETE', `/collections/c/snapshots/${name}?wait=false`)).status, 202);
    assert.deepEqual((await call(harness, 'GET', '/collections/c/snapshots')).json.result, []);
    assert.equal((await call(harness, 'POST', `${UPLOAD}?wait=false`, formOf({ snapshot: 'garbage' }))).status, 202);
    const body = JSON.stringify({ location: 'http://h/nope' });
    assert.equal((await call(harness, 'PUT', '/collections/c/snapshots/recover?wait=false', { body })).status, 202);
    await until(() => harness.errors.length === 2);
    assert.deepEqual(harness.errors.sort(), [
      'TroupeError: Wrong input: nothing is at http://h/nope',
      'TroupeError: Wrong input: this is no archive',
    ]);
    assert.deepEqual(snapshots.uploads(), []);
  });

  test(`${way}: a download that its client gives up ends the reading of the archive`, async (t) => {
    const harness = await openWithCollection(t, options);
    const { made, record } = endless(harness);
    const socket = await open(harness, t);
    socket.write(`GET /collections/c/snapshots/${record} HTTP/1.1\r\nhost: x\r\n\r\n`);
    await once(socket, 'data');
    socket.destroy();
    await until(() => harness.node.snapshots.opened[0]?.destroyed === true);
    assert.ok(made.bytes > 0);
    assert.deepEqual(harness.errors, []);
  });

  test(`${way}: a client that does not read is read for no further than some buffers, and is cut after its silence`, async (t) => {
    const harness = await openWithCollection(t, { ...options, silenceMs: 300 });
    const { made, record } = endless(harness);
    const socket = await open(harness, t);
    socket.pause();
    socket.write(`GET /collections/c/snapshots/${record} HTTP/1.1\r\nhost: x\r\n\r\n`);
    await until(() => harness.node.snapshots.opened[0]?.destroyed === true);
    assert.ok(made.bytes < 32 << 20, `${made.bytes} bytes were read`);
  });

  test(`${way}: an archive that breaks while it is sent ends the connection, so that nobody takes the part for the whole`, async (t) => {
    const harness = await openWithCollection(t, options);
    const body = new PassThrough();
    harness.node.snapshots.keepMade(OF_C, 'a.snapshot', { size: 100, checksum: null }, () => body);
    body.write('some');
    const answer = fetch(`${harness.url}/collections/c/snapshots/a.snapshot`);
    const response = await answer;
    assert.equal(response.headers.get('etag'), null);
    body.destroy(new Error('the disk is gone'));
    await assert.rejects(response.arrayBuffer());
    await until(() => harness.errors.length === 1);
    assert.equal(harness.errors[0], 'Error: the disk is gone');
  });

  test(`${way}: an upload whose client goes away leaves no file`, async (t) => {
    const harness = await openWithCollection(t, options);
    const { snapshots } = harness.node;
    const socket = await open(harness, t);
    socket.write(rawUpload(rawPart('snapshot', 'x'.repeat(3_000_000)), { length: 10_000_000 }));
    await until(() => snapshots.uploadedBytes() > 1_000_000);
    socket.destroy();
    await until(() => snapshots.uploads().length === 0);
    assert.deepEqual(snapshots.restored, []);
    assert.deepEqual(harness.errors, []);
  });

  test(`${way}: an upload that is silent for too long is cut, and leaves no file`, async (t) => {
    const harness = await openWithCollection(t, { ...options, silenceMs: 300 });
    const socket = await open(harness, t);
    socket.write(rawUpload(rawPart('snapshot', 'some bytes'), { length: 10_000_000 }));
    await once(socket.resume(), 'close');
    await until(() => harness.node.snapshots.uploads().length === 0);
    assert.deepEqual(harness.node.snapshots.restored, []);
  });

  test(`${way}: a restore that takes longer than a client may be silent is answered`, async (t) => {
    const harness = await openWithCollection(t, { ...options, silenceMs: 100 });
    let letGo = (): void => {};
    const held = new Promise<void>((resolve) => {
      letGo = resolve;
    });
    let isHeld = false;
    harness.node.snapshots.before = () => {
      isHeld = true;
      return held;
    };
    const answer = exchange(harness, t, rawUpload(rawPart('snapshot', 'some bytes') + RAW_END));
    await until(() => isHeld);
    // This one falls silent later, so when it is cut the silence of the first is over, too.
    const silent = await open(harness, t);
    silent.write(rawUpload(rawPart('snapshot', 'some bytes'), { length: 10_000_000 }));
    await once(silent.resume(), 'close');
    letGo();
    assert.match(await answer, /^HTTP\/1\.1 200 /);
  });

  test(`${way}: an upload without room on the disk is refused while it comes`, async (t) => {
    const harness = await openWithCollection(t, options);
    const { snapshots } = harness.node;
    snapshots.roomBytes = 1_000_000;
    const announced = await exchange(harness, t, rawUpload(rawPart('snapshot', 'some'), { length: 2_000_000 }));
    assert.match(announced, /^HTTP\/1\.1 507 .*troupe-outcome: none.*Out of disk space: there is no room/is);
    snapshots.roomBytes = 10;
    const chunk = rawPart('snapshot', 'x'.repeat(100));
    const unannounced = `POST ${UPLOAD} HTTP/1.1\r\nhost: x\r\ncontent-type: multipart/form-data; boundary=${BOUNDARY}\r\ntransfer-encoding: chunked\r\n\r\n`;
    const refused = await exchange(harness, t, `${unannounced}${chunk.length.toString(16)}\r\n${chunk}\r\n`);
    assert.match(refused, /^HTTP\/1\.1 507 /);
    await until(() => snapshots.uploads().length === 0);
  });
}

/** A snapshot whose bytes are made as they are read. */
function endless({ node: { snapshots } }: Harness): { readonly made: { bytes: number }; readonly record: string } {
  const made = { bytes: 0 };
  const chunk = Buffer.alloc(65_536);
  const { name } = snapshots.keepMade(OF_C, 'endless.snapshot', { size: 2 ** 40, checksum: null }, () => {
    return new Readable({
      read() {
        made.bytes += chunk.length;
        this.push(chunk);
      },
    });
  });
  return { made, record: name };
}

test('an upload of 300 MB passes the limit of bodies, and is in memory in small parts only', { timeout: 120_000 }, async (t) => {
  const harness = await openWithCollection(t, { maxBodyBytes: 1 << 20 });
  const { snapshots } = harness.node;
  const chunk = 'x'.repeat(1 << 20);
  const chunks = 300;
  const head = rawPart('snapshot', '');
  const start = head.slice(0, -2);
  const end = `\r\n${RAW_END}`;
  const socket = await open(harness, t);
  let text = '';
  socket.on('data', (bytes) => {
    text += bytes;
  });
  const length = start.length + chunks * chunk.length + end.length;
  socket.write(rawUpload(start, { length }));
  // Room is asked for all of it at once, and then for what comes.
  await until(() => snapshots.askedBytes === length);
  let behindMax = 0;
  for (let at = 1; at <= chunks; at++) {
    if (!socket.write(chunk)) await once(socket, 'drain');
    behindMax = Math.max(behindMax, at * chunk.length - (snapshots.askedBytes - length));
  }
  socket.write(end);
  await until(() => isWhole(text));
  assert.match(text, /^HTTP\/1\.1 200 /);
  assert.deepEqual(
    snapshots.restored.map(({ bytes }) => bytes),
    [chunks * chunk.length],
  );
  // What the client has handed to the system and the node has not written: buffers of sockets and streams.
  assert.ok(behindMax > 0 && behindMax < 24 << 20, `${behindMax} bytes were under way`);
});

test('forms with tricks are refused or read as what they are, and the node goes on', async (t) => {
  const harness = await openWithCollection(t);
  const { snapshots } = harness.node;
  const good = rawPart('snapshot', 'good');
  const quick = { restored: 0 };
  for (const [what, body, status] of [
    ['a path for a file name', rawPart('snapshot', 'good', '; filename="../../../etc/passwd"') + RAW_END, 200],
    ['no file name', rawPart('snapshot', 'good', '') + RAW_END, 200],
    ['bytes before the first part', `preamble\r\n${good}${RAW_END}`, 200],
    ['bytes after the last part', `${good}${RAW_END}epilogue`, 200],
    ['a part that is empty', rawPart('other', '') + good + RAW_END, 200],
    ['a part of another name that is never ended', `${good}--${BOUNDARY}\r\nContent-Disposition: form-data; name="a"\r\n\r\nabc`, 400],
    ['no end', good, 400],
    ['no name', `--${BOUNDARY}\r\nContent-Disposition: form-data\r\n\r\ngood\r\n${RAW_END}`, 400],
    ['a header without an end', `--${BOUNDARY}\r\nContent-Disposition: ${'x'.repeat(60_000)}${RAW_END}`, 400],
    ['a name in two lines', `--${BOUNDARY}\r\nContent-Disposition: form-data; name="snap\r\n shot"\r\n\r\ngood\r\n${RAW_END}`, 400],
    ['many parts', rawPart('other', 'a').repeat(1000) + good + RAW_END, 400],
    ['much beside the file', rawPart('other', 'a'.repeat(3 << 20)) + good + RAW_END, 400],
    ['two files', good + good + RAW_END, 400],
    ['nothing but the end', RAW_END, 400],
  ] as const) {
    const answer = await exchange(harness, t, rawUpload(body));
    assert.match(answer, new RegExp(`^HTTP/1\\.1 ${status} `), `${what}: ${answer.slice(0, 300)}`);
    if (status === 200) quick.restored++;
  }
  assert.deepEqual([snapshots.restored.length, ...new Set(snapshots.restored.map(({ from }) => from))], [quick.restored, 'good']);
  await until(() => snapshots.uploads().length === 0);
  assert.deepEqual(harness.errors, []);
});

for (const [when, query, start] of [
  ['for its parameter', '?priority=urgent', `--${BOUNDARY}`],
  ['while it comes', '', rawPart('snapshot', 'one') + rawPart('snapshot', 'two')],
] as const) {
  test(`a connection whose upload was refused ${when} takes further requests once the rest of it has come`, async (t) => {
    const harness = await openWithCollection(t);
    const socket = await open(harness, t);
    let text = '';
    socket.on('data', (bytes) => {
      text += bytes;
    });
    const rest = 'x'.repeat(500_000);
    socket.write(rawUpload(start, { length: start.length + rest.length, path: UPLOAD + query }));
    await until(() => isWhole(text));
    assert.match(text, /^HTTP\/1\.1 400 /);
    text = '';
    socket.write(`${rest}GET /healthz HTTP/1.1\r\nhost: x\r\n\r\n`);
    await until(() => isWhole(text));
    assert.match(text, /^HTTP\/1\.1 200 /);
  });
}

test('a name with other letters has a form for each client', async (t) => {
  const harness = await openWithCollection(t);
  harness.node.snapshots.keep(OF_C, 'é"1.snapshot', Buffer.from('a'));
  const reply = await call(harness, 'GET', `/collections/c/snapshots/${encodeURIComponent('é"1.snapshot')}`);
  assert.equal(reply.headers.get('content-disposition'), `attachment; filename="__1.snapshot"; filename*=UTF-8''%C3%A9%221.snapshot`);
});

test('in recovery mode snapshots are refused with its text, and no upload is begun', async (t) => {
  const harness = await openDoor({ recoveryMode: 'out of memory, maybe' });
  t.after(() => harness.door.close(0));
  for (const [method, path] of [
    ['POST', '/collections/c/snapshots'],
    ['GET', '/snapshots/a.snapshot'],
    ['POST', UPLOAD],
  ] as const) {
    const reply = await call(harness, method, path, path === UPLOAD ? formOf({ snapshot: 'a' }) : {});
    assert.equal(reply.status, 503, path);
    assert.match(reply.text, /out of memory, maybe/);
  }
  assert.equal(harness.node.snapshots.askedBytes, 0);
});

test('uploads and downloads are counted by their routes', async (t) => {
  const harness = await openWithCollection(t);
  await call(harness, 'POST', UPLOAD, formOf({ snapshot: 'a' }));
  await call(harness, 'GET', '/collections/c/snapshots/nope.snapshot');
  const metrics = await (await fetch(`${harness.url}/metrics`)).text();
  for (const line of [
    'rest_responses_total{method="POST",endpoint="/collections/{collection_name}/snapshots/upload",status="200"} 1',
    'rest_responses_total{method="GET",endpoint="/collections/{collection_name}/snapshots/{snapshot_name}",status="404"} 1',
  ])
    assert.ok(metrics.includes(line), line);
});
