/** What requests need of memory is bounded over all connections, on each of the ways that a request may take. */

import assert from 'node:assert/strict';
import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import { type TestContext, test } from 'node:test';
import { sampleConfig } from '../../actors/samples.js';
import { fakeMemory, type Harness, type HarnessOptions, held, openDoor, sendRaw, until } from './fake-node.js';

const MB = 1 << 20;
/** A quarter of 80 % of it is 2 MB. */
const BUDGET = 10 * MB;
const REQUEST_BYTES = 2 * MB;
const BODY_BYTES = 0.75 * MB;

const WAYS = {
  'the plain path': {},
  'the plain path of a reader': { readAlone: () => null },
  Fastify: { fastPath: false },
} as const satisfies Record<string, HarnessOptions>;

const COUNT = 'POST /collections/c/points/count HTTP/1.1\r\nhost: x\r\n';
const UPSERT = 'PUT /collections/c/points HTTP/1.1\r\nhost: x\r\n';
const SMALL = `${COUNT}content-length: 2\r\nconnection: close\r\n\r\n{}`;

for (const [name, options] of Object.entries(WAYS)) {
  test(`${name}: what a client only announces takes nearly no memory`, async (t) => {
    const { door, services } = await openCollection(t, options);
    const sockets: Socket[] = [];
    for (let at = 0; at < 50; at++) sockets.push(await connected(t, door.port, `${UPSERT}content-length: ${MB}\r\n\r\n{`));
    assert.match(await sendRaw(door.port, SMALL), /^HTTP\/1\.1 200/);
    assert.ok(held(services, 'bodies') <= 50 * 16_384, `${held(services, 'bodies')}`);
    for (const socket of sockets) socket.destroy();
    await until(() => held(services, 'bodies') === 0);
  });

  test(`${name}: bodies beyond the budget of all connections are refused, reads with 429 and changes with 507`, async (t) => {
    const { door, node, services } = await openCollection(t, options);
    const open = [await connected(t, door.port, unfinished(UPSERT)), await connected(t, door.port, unfinished(COUNT))];
    await until(() => held(services, 'bodies') >= 2 * BODY_BYTES);
    const read = await sendRaw(door.port, whole(COUNT));
    assert.match(read, /^HTTP\/1\.1 429 .*\r\nretry-after: 1\r\n.*Too many requests: .*retry later/is);
    const write = await sendRaw(door.port, whole(UPSERT));
    assert.match(write, /^HTTP\/1\.1 507 .*troupe-outcome: none.*Out of memory: .*retry later/is);
    assert.equal(node.asked.length, 0);
    assert.ok(held(services, 'bodies') <= REQUEST_BYTES);
    assert.match(await sendRaw(door.port, SMALL), /^HTTP\/1\.1 200/, 'a small request finds room');

    for (const socket of open) socket.destroy();
    await until(() => held(services, 'bodies') === 0);
    assert.match(await sendRaw(door.port, whole(UPSERT)), /^HTTP\/1\.1 200/, 'and so does every other one once there is room again');
    await until(() => held(services, 'bodies') === 0);
  });

  test(`${name}: answers that clients do not take are counted, and end their connections beyond the budget`, async (t) => {
    const { door, node, services } = await openCollection(t, { ...options, memory: fakeMemory(400 * MB) });
    const answer = Buffer.alloc(48 * MB, '1');
    node.answer = () => Promise.resolve(answer);
    const sockets: Socket[] = [];
    for (let at = 0; at < 4; at++) sockets.push(await connected(t, door.port, `${COUNT}content-length: 2\r\n\r\n{}`));
    await until(() => held(services, 'answers') > 0 && node.asked.length === 4);
    // The budget of 80 MB has room for one of them.
    const lengths = await Promise.all(sockets.map(lengthTaken));
    const wholeAnswers = lengths.filter((length) => length > answer.length).length;
    assert.ok(wholeAnswers >= 1 && wholeAnswers < 4, `${lengths}`);
    await until(() => held(services, 'answers') === 0);
  });
}

function whole(head: string): string {
  return `${head}content-length: ${BODY_BYTES}\r\nconnection: close\r\n\r\n${' '.repeat(BODY_BYTES)}`;
}

/** All but the last byte. */
function unfinished(head: string): string {
  return whole(head).slice(0, -1);
}

async function openCollection(t: TestContext, options: HarnessOptions): Promise<Harness> {
  const harness = await openDoor({ memory: fakeMemory(BUDGET), ...options });
  t.after(() => harness.door.close(0));
  await harness.node.createCollection('c', { params: {} } as never);
  return harness;
}

async function connected(t: TestContext, port: number, text: string): Promise<Socket> {
  const socket = connect({ port, host: '127.0.0.1' });
  t.after(() => socket.destroy());
  socket.on('error', () => {});
  await once(socket, 'connect');
  socket.write(text);
  return socket;
}

/** How much of its answer a client gets that begins to read; it has all of it when nothing comes any more. */
async function lengthTaken(socket: Socket): Promise<number> {
  let length = 0;
  await new Promise<void>((resolve) => {
    socket.on('data', (chunk: Buffer) => {
      length += chunk.length;
      if (length > 48 * MB) resolve();
    });
    socket.on('close', () => resolve());
  });
  return length;
}

test('a request that is refused for memory counts as answered at the date, as others do', async (t) => {
  const dateMs = 86_400_000;
  const { door, services } = await openCollection(t, { dateMs: () => dateMs });
  for (const head of [UPSERT, COUNT]) await connected(t, door.port, unfinished(head));
  await until(() => held(services, 'bodies') >= 2 * BODY_BYTES);
  await sendRaw(door.port, whole(COUNT));
  await sendRaw(door.port, SMALL);
  const counts = services.stats.counts().map(({ durations, status }) => [status, durations.lastMs]);
  assert.deepEqual(counts, [
    [200, dateMs],
    [429, dateMs],
  ]);
});

test('in recovery mode collections are listed, changed and deleted, and all else is refused with its text', async (t) => {
  const { door, node } = await openDoor({ recoveryMode: 'too many points' });
  t.after(() => door.close(0));
  await node.createCollection('c', sampleConfig());
  const ask = async (method: string, path: string, body?: string) => {
    const answer = await fetch(`http://127.0.0.1:${door.port}${path}`, { method, ...(body === undefined ? {} : { body }) });
    return { status: answer.status, text: await answer.text() };
  };
  const refused = [
    ['POST', '/collections/c/points/count', '{}'],
    ['PUT', '/collections/c/points', '{"points":[]}'],
    ['GET', '/collections/c'],
    ['PUT', '/collections/d', '{"vectors":{"size":1,"distance":"Dot"}}'],
  ] as const;
  for (const [method, path, body] of refused) {
    const { status, text } = await ask(method, path, body);
    assert.equal(status, 503, path);
    assert.match(text, /recovery mode, where collections are only listed, changed and deleted: too many points/);
  }
  assert.equal(node.asked.length, 0);
  for (const path of ['/collections', '/collections/c/exists', '/readyz', '/metrics', '/'])
    assert.equal((await ask('GET', path)).status, 200, path);
  assert.match((await ask('GET', '/metrics')).text, /^app_status_recovery_mode 1$/m);
  assert.equal((await ask('PATCH', '/collections/c', '{}')).status, 200);
  assert.equal((await ask('DELETE', '/collections/c')).status, 200);
});
