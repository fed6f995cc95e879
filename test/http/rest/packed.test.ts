/** Packed answers and packed bodies of requests, over each way of the REST server. */

import assert from 'node:assert/strict';
import { once } from 'node:events';
import { connect } from 'node:net';
import { type TestContext, test } from 'node:test';
import zlib from 'node:zlib';
import { packingCodings, packNow, unpacking } from '../../../http/context/codings.js';
import { fakeMemory, type Harness, type HarnessOptions, held, openDoor } from './fake-node.js';

const COUNT = '/collections/c/points/count';
const LIMIT = 1 << 20;
const CODINGS = [...packingCodings(), 'deflate'];

const WAYS = {
  'the plain path': {},
  'a reader': { readAlone: () => null },
  Fastify: { fastPath: false },
} as const satisfies Record<string, HarnessOptions>;

interface Answer {
  readonly status: number;
  readonly headers: ReadonlyMap<string, string>;
  readonly body: Buffer;
}

async function openWith(t: TestContext, options: HarnessOptions): Promise<Harness> {
  const harness = await openDoor(options);
  t.after(() => harness.door.close(0));
  await harness.node.createCollection('c', { params: {} } as never);
  return harness;
}

/** As it comes over the wire: `fetch` would unpack it. */
async function ask({ door }: Harness, lines: readonly string[], body: Uint8Array = Buffer.alloc(0)): Promise<Answer> {
  const socket = connect({ port: door.port, host: '127.0.0.1' });
  const chunks: Buffer[] = [];
  socket.on('data', (chunk) => chunks.push(chunk));
  socket.write([...lines, 'host: x', 'connection: close', `content-length: ${body.length}`, '', ''].join('\r\n'));
  socket.write(body);
  await once(socket, 'close');
  const bytes = Buffer.concat(chunks);
  const end = bytes.indexOf('\r\n\r\n');
  const [status = '', ...fields] = bytes.toString('latin1', 0, end).split('\r\n');
  const headers = new Map(fields.map((field) => [field.split(': ')[0]?.toLowerCase() ?? '', field.slice(field.indexOf(': ') + 2)]));
  return { status: Number(status.split(' ')[1]), headers, body: bytes.subarray(end + 4) };
}

const asking = (more: readonly string[] = []) => [`POST ${COUNT} HTTP/1.1`, ...more];

async function unpacked(coding: string, body: Uint8Array): Promise<string> {
  const { stream } = unpacking(coding) ?? assert.fail(coding);
  stream.end(body);
  return Buffer.concat(await stream.toArray()).toString();
}

function packed(coding: string, bytes: Buffer): Buffer {
  return coding === 'deflate' ? zlib.deflateSync(bytes) : packNow(bytes, coding as 'gzip');
}

for (const [way, options] of Object.entries(WAYS)) {
  test(`${way} packs answers of 1,024 bytes and more as their client asks, long and short`, async (t) => {
    const harness = await openWith(t, options);
    for (const length of [1024, 20_000, 300_000]) {
      harness.node.answer = async () => Buffer.from(JSON.stringify('abcdefghi '.repeat(length / 10)));
      const plain = await ask(harness, asking());
      assert.equal(plain.headers.get('content-encoding'), undefined);
      const result = plain.body.toString().replace(/"time":.*/, '');
      for (const coding of packingCodings()) {
        const { body, headers, status } = await ask(harness, asking([`accept-encoding: ${coding}`]));
        assert.deepEqual([status, headers.get('content-encoding'), headers.get('vary')], [200, coding, 'accept-encoding']);
        assert.equal(headers.get('content-length'), String(body.length));
        assert.ok(body.length < length / 3, `${body.length} bytes`);
        assert.equal((await unpacked(coding, body)).replace(/"time":.*/, ''), result);
      }
      const refused = await ask(harness, asking(['accept-encoding: deflate, *;q=0']));
      assert.deepEqual([refused.headers.get('content-encoding'), refused.headers.get('vary')], [undefined, 'accept-encoding']);
      assert.equal(refused.body.toString().replace(/"time":.*/, ''), result);
    }
    harness.node.answer = async () => Buffer.from('"short"');
    const short = await ask(harness, asking(['accept-encoding: gzip']));
    assert.deepEqual([short.headers.get('content-encoding'), short.headers.get('vary')], [undefined, undefined]);
    assert.deepEqual([held(harness.services, 'answers'), harness.errors], [0, []]);
  });

  test(`${way} packs nothing where it is switched off`, async (t) => {
    const harness = await openWith(t, { ...options, packFromBytes: null });
    const { headers } = await ask(harness, ['GET /openapi.json HTTP/1.1', 'accept-encoding: gzip, br, zstd']);
    assert.deepEqual([headers.get('content-encoding'), headers.get('vary')], [undefined, undefined]);
  });

  test(`${way} takes packed bodies, and refuses those that are broken or packed otherwise`, async (t) => {
    const harness = await openWith(t, options);
    const text = Buffer.from(`{"a":"${'x'.repeat(100_000)}"}`);
    for (const coding of [...CODINGS, 'X-GZIP']) {
      const name = coding === 'X-GZIP' ? 'gzip' : coding;
      assert.equal((await ask(harness, asking([`content-encoding: ${coding}`]), packed(name, text))).status, 200, coding);
      assert.equal(Buffer.from(harness.node.asked.at(-1)?.request.body as Uint8Array).toString(), text.toString());
      const cut = await ask(harness, asking([`content-encoding: ${coding}`]), packed(name, text).subarray(0, -4));
      const wrong = await ask(harness, asking([`content-encoding: ${coding}`]), text);
      for (const { body, status } of [cut, wrong]) {
        assert.equal(status, 400, coding);
        assert.match(body.toString(), /Format error in JSON body: the body cannot be unpacked as /);
      }
    }
    assert.equal((await ask(harness, asking(['content-encoding: identity']), text)).status, 200);
    for (const coding of ['compress', 'gzip, gzip', 'aes128gcm']) {
      const { body, headers, status } = await ask(harness, asking([`content-encoding: ${coding}`]), packed('gzip', text));
      assert.equal(status, 415, coding);
      assert.match(body.toString(), /cannot be read: it may be one of .*gzip, deflate/);
      assert.equal(headers.get('accept-encoding'), CODINGS.join(', '));
      assert.equal(headers.get('troupe-outcome'), undefined);
    }
    const upload = [
      'POST /collections/c/snapshots/upload HTTP/1.1',
      'content-encoding: gzip',
      'content-type: multipart/form-data; boundary=x',
    ];
    assert.equal((await ask(harness, upload, packed('gzip', text))).status, 415);
    assert.equal(harness.node.asked.length, CODINGS.length + 2);
    assert.deepEqual([held(harness.services, 'bodies'), harness.errors], [0, []]);
  });

  test(`${way} unpacks no further than the limit of a body: a bomb is refused and costs what it may hold`, async (t) => {
    const harness = await openWith(t, { ...options, maxBodyBytes: LIMIT });
    const bomb = Buffer.alloc(64 << 20);
    for (const coding of CODINGS) {
      const { body, status } = await ask(harness, asking([`content-encoding: ${coding}`]), packed(coding, bomb));
      assert.equal(status, 400, coding);
      assert.match(body.toString(), /JSON payload is larger than allowed when it is unpacked \(limit: 1048576 bytes\)/);
      const fits = packed(coding, bomb.subarray(0, LIMIT));
      assert.equal((await ask(harness, asking([`content-encoding: ${coding}`]), fits)).status, 200, coding);
    }
    assert.equal(held(harness.services, 'bodies'), 0);
  });
}

test('a bomb finds no more memory than there is for requests, and leaves none taken', async (t) => {
  const memory = fakeMemory(64 << 20);
  const harness = await openWith(t, { maxBodyBytes: 256 << 20, memory });
  const { body, headers, status } = await ask(harness, asking(['content-encoding: gzip']), zlib.gzipSync(Buffer.alloc(128 << 20)));
  assert.equal(status, 429, body.toString());
  assert.equal(headers.get('retry-after'), '1');
  assert.equal(held(harness.services, 'bodies'), 0);
});

test('answers of which too many are packed at once go as they are', async (t) => {
  const harness = await openWith(t, {});
  harness.node.answer = async () => Buffer.from(JSON.stringify('abcdefghi '.repeat(300_000)));
  const answers = await Promise.all(Array.from({ length: 12 }, () => ask(harness, asking(['accept-encoding: gzip']))));
  assert.deepEqual([...new Set(answers.map(({ status }) => status))], [200]);
  const codings = new Set(answers.map(({ headers }) => headers.get('content-encoding')));
  assert.ok(codings.has('gzip'));
  assert.equal(held(harness.services, 'answers'), 0);
});
