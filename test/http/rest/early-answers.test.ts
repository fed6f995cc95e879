/** A client that sends a body in one go, and reads only then, gets the answer to a request that is refused before all of it has come. */

import assert from 'node:assert/strict';
import { once } from 'node:events';
import { connect } from 'node:net';
import { type TestContext, test } from 'node:test';
import { fakeMemory, type Harness, type HarnessOptions, held, openDoor, until } from './fake-node.js';

const MB = 1 << 20;
/** More than the buffers of two connections take. */
const BODY_BYTES = 24 * MB;
/** A quarter of 80 % of it is 2 MB. */
const BUDGET = 10 * MB;

/** odd: what has the connection handed on to Node's HTTP server. */
const WAYS: Readonly<Record<string, { readonly options: HarnessOptions; readonly odd: string }>> = {
  'the plain path': { options: {}, odd: '' },
  'a connection that the plain path hands on': { options: {}, odd: 'te: trailers\r\n' },
  'the plain path of a reader': { options: { readAlone: () => null }, odd: '' },
  'a connection that a reader hands on': { options: { readAlone: () => null }, odd: 'te: trailers\r\n' },
  'a server without a plain path': { options: { fastPath: false }, odd: '' },
};

const UPSERT = 'PUT /collections/c/points HTTP/1.1\r\nhost: x\r\n';
const LENGTH = `content-length: ${BODY_BYTES}\r\n`;
const BODY = Buffer.alloc(BODY_BYTES, ' ');
const CHUNK = Buffer.concat([Buffer.from(`${BODY_BYTES.toString(16)}\r\n`), BODY, Buffer.from('\r\n')]);
const BEHIND = Buffer.from(`${UPSERT}content-length: 2\r\n\r\n{}`);

/** What a client sends, and what it is told first. */
const REQUESTS: Readonly<
  Record<string, { readonly parts: (odd: string) => readonly (string | Buffer)[]; readonly answer: RegExp; readonly limit?: number }>
> = {
  'a body for which there is no memory': { parts: (odd) => [`${UPSERT}${odd}${LENGTH}\r\n`, BODY], answer: /507 / },
  'one of a connection that is to end': {
    parts: (odd) => [`${UPSERT}${odd}${LENGTH}connection: close\r\n\r\n`, BODY],
    answer: /507 .*\r\nconnection: close\r\n/is,
  },
  'one that waits for leave to be sent': {
    parts: (odd) => [`${UPSERT}${odd}expect: 100-continue\r\n${LENGTH}\r\n`, BODY],
    answer: /100 Continue\r\n\r\nHTTP\/1\.1 507 /,
  },
  'one in chunks': { parts: (odd) => [`${UPSERT}${odd}transfer-encoding: chunked\r\n\r\n`, CHUNK, '0\r\n\r\n'], answer: /507 / },
  'one that is followed by another request': {
    parts: (odd) => [`${UPSERT}${odd}${LENGTH}\r\n`, BODY, BEHIND],
    answer: /507 .*\r\nconnection: close\r\n/is,
  },
  'one with a chunk of no length': {
    parts: (odd) => [`${UPSERT}${odd}transfer-encoding: chunked\r\n\r\n`, '?\r\n', CHUNK],
    answer: /400 /,
  },
  'one far above the limit': { parts: (odd) => [`${UPSERT}${odd}${LENGTH}\r\n`, BODY], answer: /400 .*larger than allowed/s, limit: MB },
  'one with a wrong parameter': {
    parts: (odd) => [`${UPSERT.replace('points', 'points?wait=1')}${odd}${LENGTH}connection: close\r\n\r\n`, BODY],
    answer: /400 /,
  },
};

for (const [way, { odd, options }] of Object.entries(WAYS)) {
  test(`${way}: a client that sends all before it reads gets the early answer, and nothing behind it is carried out`, async (t) => {
    for (const [what, { answer, limit, parts }] of Object.entries(REQUESTS)) {
      const { door, node, services } = await openCollection(t, { ...options, maxBodyBytes: limit ?? 2 * BODY_BYTES });
      const told = await answersTo(t, door.port, parts(odd)).catch((error: unknown) => assert.fail(`${what}: ${String(error)}`));
      assert.match(told, new RegExp(`^HTTP/1\\.1 ${answer.source}`, answer.flags), what);
      assert.equal(node.asked.length, 0, what);
      await until(() => held(services, 'bodies') === 0);
    }
  });
}

async function openCollection(t: TestContext, options: HarnessOptions): Promise<Harness> {
  const harness = await openDoor({ memory: fakeMemory(BUDGET), ...options });
  t.after(() => harness.door.close(0));
  await harness.node.createCollection('c', { params: {} } as never);
  return harness;
}

/** All that the server says until it is silent or ends. Rejects if not all can be sent. */
async function answersTo(t: TestContext, port: number, parts: readonly (string | Buffer)[]): Promise<string> {
  const socket = connect({ port, host: '127.0.0.1', allowHalfOpen: true });
  t.after(() => socket.destroy());
  for (const part of parts) await new Promise<void>((done, failed) => socket.write(part, (error) => (error ? failed(error) : done())));
  socket.end();
  const chunks: Buffer[] = [];
  socket.on('data', (chunk) => chunks.push(chunk));
  await once(socket, 'end');
  return Buffer.concat(chunks).toString('latin1');
}
