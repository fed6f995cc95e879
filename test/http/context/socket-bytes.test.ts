import assert from 'node:assert/strict';
import { once } from 'node:events';
import { type AddressInfo, connect, createServer, type Socket } from 'node:net';
import { type TestContext, test } from 'node:test';
import { takeBytes } from '../../../http/context/socket-bytes.js';

/** Both ends of a connection. */
async function connection(t: TestContext): Promise<{ client: Socket; served: Socket }> {
  const server = createServer({ allowHalfOpen: true });
  t.after(() => server.close());
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const client = connect((server.address() as AddressInfo).port, '127.0.0.1');
  const [served] = (await once(server, 'connection')) as [Socket];
  t.after(() => {
    client.destroy();
    served.destroy();
  });
  return { client, served };
}

const bytesOf = (length: number): Buffer => Buffer.from(Array.from({ length }, (_, at) => (at * 7) % 251));

test('all reads of a thread go into one memory, and nothing is lost when a socket pauses', async (t) => {
  const memories = new Set<ArrayBufferLike>();
  const sent = bytesOf(3_000_000);
  for (let round = 0; round < 2; round++) {
    const { client, served } = await connection(t);
    const parts: Buffer[] = [];
    takeBytes(served, {
      take: (bytes) => {
        memories.add(bytes.buffer);
        parts.push(Buffer.from(bytes));
        served.pause();
        setImmediate(() => served.resume());
      },
      place: () => null,
    });
    const ended = once(served, 'end');
    client.end(sent);
    await ended;
    assert.ok(Buffer.concat(parts).equals(sent));
  }
  assert.equal(memories.size, 1);
});

test('bytes that belong somewhere are read straight into their place', async (t) => {
  const { client, served } = await connection(t);
  const body = Buffer.allocUnsafeSlow(2_000_000);
  let filled = 0;
  let copied = 0;
  const whole = new Promise<void>((done) => {
    takeBytes(served, {
      take: (bytes) => {
        if (bytes.buffer !== body.buffer) {
          bytes.copy(body, filled);
          copied += bytes.length;
        }
        filled += bytes.length;
        if (filled === body.length) done();
      },
      place: () => (filled < body.length ? body.subarray(filled) : null),
    });
  });
  const sent = bytesOf(body.length);
  client.write(sent);
  await whole;
  assert.ok(body.equals(sent));
  // The first read had no place yet.
  assert.ok(copied <= 1 << 18, `${copied} bytes were copied`);
});

test('a socket that is let go has its further bytes as data events, in memory of their own', async (t) => {
  const { client, served } = await connection(t);
  const taken = new Promise<string>((done) => {
    const letGo = takeBytes(served, {
      take: (bytes) => {
        letGo();
        done(bytes.toString());
      },
      place: () => null,
    });
  });
  client.write('first');
  assert.equal(await taken, 'first');
  served.unshift(Buffer.from('again '));
  const parts: Buffer[] = [];
  served.on('data', (bytes: Buffer) => parts.push(bytes));
  const ended = once(served, 'end');
  client.write('second ');
  await once(served, 'data');
  client.end('third');
  await ended;
  assert.equal(Buffer.concat(parts).toString(), 'again second third');
});
