/** A client that is still sending a body, in one go or a few bytes at a time, gets the answer to a request that is refused before all of it has come. */

import assert from 'node:assert/strict';
import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import { type TestContext, test } from 'node:test';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { fakeMemory, type Harness, type HarnessOptions, held, openDoor, until } from './fake-node.js';

const MB = 1 << 20;
/** More than the buffers of two connections take. */
const BODY_BYTES = 24 * MB;
/** A quarter of 80 % of it is 2 MB. */
const BUDGET = 10 * MB;
/** Of slow clients: what is left has room for the beginning of one body. */
const TAKEN_BYTES = 2 * MB - 20_000;

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

/** Less than the first memory of a body. With the head in one packet, so that a connection that is handed on is so in the middle of its body. */
const BEGUN = Buffer.alloc(16_380, ' ');
const BITE = Buffer.alloc(7, ' ');
const BITES = 60;
const SLOW_BYTES = 65_536;
const SLOW_LENGTH = `content-length: ${SLOW_BYTES}\r\n`;
const PLAIN = 'POST /collections/c/points/count HTTP/1.1\r\nhost: x\r\ncontent-length: 2\r\n\r\n{}';

/** What a slow client sends first; then come bites of one byte after the other, and it is refused in the middle of them. */
const SLOW_REQUESTS: Readonly<
  Record<string, { readonly begun: (odd: string) => string; readonly bite?: string; readonly answer: RegExp; readonly limit?: number }>
> = {
  'a body for which there is no memory': { begun: (odd) => `${UPSERT}${odd}${SLOW_LENGTH}\r\n${BEGUN}`, answer: /^HTTP\/1\.1 507 / },
  'one behind a request that is answered': {
    begun: (odd) => `${PLAIN}${UPSERT}${odd}${SLOW_LENGTH}\r\n${BEGUN}`,
    answer: /^HTTP\/1\.1 200 .*HTTP\/1\.1 507 /s,
  },
  'one far above the limit': {
    begun: (odd) => `${UPSERT}${odd}${SLOW_LENGTH}\r\n${BEGUN}`,
    answer: /^HTTP\/1\.1 400 .*larger than allowed/s,
    limit: 1024,
  },
  'one with a chunk of no length': {
    begun: (odd) => `${UPSERT}${odd}transfer-encoding: chunked\r\n\r\n5\r\n     \r\n`,
    bite: '5\r\n     \r\n?',
    answer: /^HTTP\/1\.1 400 /,
  },
};

for (const [way, { odd, options }] of Object.entries(WAYS))
  for (const reads of ['as it sends', 'after it has sent'] as const)
    test(`${way}: a client that sends slowly, and reads ${reads}, gets the whole early answer, and the connection ends with it`, {
      timeout: 30_000,
    }, async (t) => {
      for (const [what, { answer, begun, bite, limit }] of Object.entries(SLOW_REQUESTS)) {
        const { door, node, services } = await openCollection(t, { ...options, maxBodyBytes: limit ?? 2 * SLOW_BYTES });
        const { ledger } = services.memory;
        assert.ok(ledger.reserve('bodies', TAKEN_BYTES));
        const client = new SlowClient(t, door.port);
        if (reads === 'after it has sent') client.socket.pause();
        try {
          await client.send(begun(odd));
          for (let bites = 0; bites < BITES; bites++) await client.send(bite ?? BITE);
          if (reads === 'as it sends') {
            await until(() => client.hasEnded);
            for (let bites = 0; bites < BITES; bites++) await client.send(bite ?? BITE);
          }
          await client.end();
        } catch (error) {
          assert.fail(`${what}: ${String(error)}, after ${JSON.stringify(client.text.slice(-200))}`);
        }
        assert.match(client.text, answer, what);
        const [head, body] = client.text.split('\r\n\r\n').slice(-2) as [string, string];
        assert.match(head, new RegExp(`^content-length: ${body.length}\\r$`, 'im'), what);
        assert.equal(node.asked.filter(({ operation }) => operation !== 'count').length, 0, what);
        ledger.release('bodies', TAKEN_BYTES);
        await until(() => held(services, 'bodies') === 0);
        // It would wait for a connection that is open yet, and not cut it before the end of this test.
        await door.close(60_000);
      }
    });

/** Sends parts in turns of their own, so that the server takes each by itself. */
class SlowClient {
  readonly socket: Socket;
  text = '';
  hasEnded = false;

  constructor(t: TestContext, port: number) {
    this.socket = connect({ port, host: '127.0.0.1', allowHalfOpen: true, noDelay: true });
    t.after(() => this.socket.destroy());
    this.socket
      .on('data', (chunk: Buffer) => {
        this.text += chunk.toString('latin1');
      })
      .on('end', () => {
        this.hasEnded = true;
      });
  }

  /** Rejects if the server has cut the connection. */
  async send(part: string | Buffer): Promise<void> {
    await new Promise<void>((done, failed) => this.socket.write(part, (error) => (error ? failed(error) : done())));
    await nextTurn();
  }

  /** Ends its half. Resolves when all that the server said is there; rejects where the connection broke. */
  async end(): Promise<void> {
    const closed = once(this.socket, 'close');
    this.socket.end();
    this.socket.resume();
    await closed;
    assert.ok(this.hasEnded, 'the server has ended its half');
  }
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
