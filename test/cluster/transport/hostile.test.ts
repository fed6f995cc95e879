/** What must not bring the internal port down: garbage, silence, half-open connections, peers that are killed. */

import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { connect as connectHttp2 } from 'node:http2';
import { connect as connectSocket, createServer, type Socket } from 'node:net';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { encodeCallFrame } from '../../../cluster/transport/codec/calls.js';
import { encodeHello, encodeMessages } from '../../../cluster/transport/codec/frames.js';
import { PLAIN_PREFACE } from '../../../cluster/transport/plain-stream.js';
import { freePorts } from '../../../ops/ports.js';
import { seededRandom } from '../../../ops/random.js';
import { testSeed } from '../../seed.js';
import { applied, CLUSTER, closeAll, connect, isConnected, peer } from './support.js';

const CONNECT = '/troupe.peer.Peers/Connect';
const ASK = '/troupe.peer.Peers/Ask';
const CALLS = '/troupe.peer.Peers/Calls';

test('garbage on the port ends its connection, and peers talk on', async (t) => {
  const seed = testSeed();
  t.diagnostic(`TROUPE_SEED=${seed}`);
  const random = seededRandom(seed);
  const bytesOf = (length: number) => Buffer.from(Array.from({ length }, () => random.integer(256)));
  const [a, b] = await Promise.all([peer(1), peer(2)]);
  await connect(a, b);
  const preface = Buffer.from('PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n');
  for (let i = 0; i < 40; i++) {
    const kinds = [bytesOf(200), Buffer.from('GET / HTTP/1.1\r\nHost: x\r\n\r\n'), Buffer.concat([preface, bytesOf(100)]), preface];
    await sendRaw(a.transport.port, kinds[i % kinds.length] as Buffer);
  }
  const greeting = { versions: { min: 1, max: 1 }, clusterId: CLUSTER, from: 3, to: 1, session: 9, release: 'x' };
  const hello = encodeHello(greeting);
  const greeted = plainFrame(0, encodeCallFrame({ hello: greeting, items: [{ number: 1, bytes: bytesOf(20) }] }));
  const plainBodies = [
    bytesOf(50),
    plainFrame(0, bytesOf(30)),
    plainFrame(7, bytesOf(3)),
    plainFrame(0, encodeCallFrame({ hello: null, items: [] })),
    Buffer.from([0xff, 0xff, 0xff, 0xff, 0]),
    Buffer.concat([greeted, bytesOf(40)]),
    Buffer.concat([greeted, plainFrame(1, Buffer.from('refused'))]),
    greeted.subarray(0, 9),
  ];
  for (const body of plainBodies) await sendRaw(a.transport.port, Buffer.concat([PLAIN_PREFACE, body]));
  await sendRaw(a.transport.port, Buffer.concat([Buffer.from('TROUPE CALLS 9\n'), greeted]));
  const message = encodeMessages([applied(1)]);
  for (let i = 0; i < 120; i++) {
    const bodies = [
      [bytesOf(30)],
      [framed(bytesOf(30))],
      [framed(message)],
      [framed(hello), framed(bytesOf(30))],
      [framed(spoiled(hello, random.integer(hello.length), random.integer(256)))],
      [framed(hello), framed(spoiled(message, random.integer(message.length), random.integer(256)))],
      [framed(hello), Buffer.from([0, 0xff, 0xff, 0xff, 0xff])],
      [framed(hello), framed(hello), framed(Buffer.alloc(0))],
      [Buffer.from([1, 0, 0, 0, 4, 1, 2, 3, 4])],
    ];
    const path = [CONNECT, ASK, CALLS, '/troupe.peer.Peers/Other', '/'][i % 13 < 10 ? i % 3 : 3 + (i % 2)] as string;
    await sendStream(a.transport.port, path, bodies[i % bodies.length] as Buffer[]);
  }
  assert.ok(isConnected(a, 2) && isConnected(b, 1));
  b.transport.send(1, [applied(77)]);
  await a.heard.until('they talk on', () =>
    a.heard.messages.some(({ from, message: heard }) => from === 2 && heard.kind === 'applied' && heard.index === 77),
  );
  await closeAll(a, b);
});

test('calls without a hello are bounded, and do not keep a peer from calling', async () => {
  const a = await peer(1);
  const session = connectHttp2(`http://127.0.0.1:${a.transport.port}`);
  session.on('error', () => {});
  const streams = Array.from({ length: 60 }, () => session.request(headers(CONNECT)));
  for (const stream of streams) stream.on('error', () => {});
  const b = await peer(2);
  b.transport.setPeers(new Map([[1, a.uri]]));
  await b.heard.until('it is connected', () => isConnected(b, 1));
  session.destroy();
  await closeAll(a, b);
});

test('a connection that has gone silent is noticed by both sides within 5 s, and a new one is made once the network is back', async () => {
  const [a, b] = await Promise.all([peer(1), peer(2)]);
  const cable = await Cable.to(b.transport.port);
  a.transport.setPeers(new Map([[2, cable.uri]]));
  await a.heard.until('they are connected', () => isConnected(a, 2));
  await b.heard.until('they are connected', () => isConnected(b, 1));
  cable.cut();
  const started = performance.now();
  a.transport.send(2, [applied(1)]);
  await a.heard.until('one side notices', () => !isConnected(a, 2));
  await b.heard.until('the other one notices', () => !isConnected(b, 1));
  const milliseconds = performance.now() - started;
  assert.ok(milliseconds > 2500 && milliseconds < 6000, `${milliseconds} ms`);
  assert.match(a.transport.connections().get(2)?.lastError ?? '', /nothing was heard of it for 4 s/);
  assert.deepEqual(a.heard.lost, [2]);
  cable.mend();
  await a.heard.until('they are connected again', () => isConnected(a, 2));
  await closeAll(a, b);
  await cable.close();
});

test('streams that stand still for a while without a word are kept by empty frames', async () => {
  const [a, b] = await Promise.all([peer(1), peer(2)]);
  await connect(a, b);
  await new Promise((resolve) => setTimeout(resolve, 5000));
  assert.deepEqual([a.heard.changes, b.heard.changes], [['+2'], ['+1']]);
  assert.deepEqual([a.heard.messages, b.heard.messages], [[], []]);
  await closeAll(a, b);
});

test('a process that is killed is noticed at once, and talked to again as soon as it is back', async () => {
  const a = await peer(1);
  for (const id of [2, 3]) {
    const [port] = (await freePorts(1)) as [number];
    a.transport.setPeers(new Map([[id, `http://127.0.0.1:${port}`]]));
    for (let round = 0; round < 3; round++) {
      const child = spawn(process.execPath, [fileURLToPath(new URL('./echo-peer.js', import.meta.url)), String(id), String(port), a.uri], {
        stdio: ['ignore', 'inherit', 'inherit'],
      });
      await a.heard.until('the process has connected', () => isConnected(a, id));
      const answered = () =>
        a.heard.messages.some(({ from, message }) => from === id && message.kind === 'awaitApplied' && message.index === round);
      // Again and again: when both have called, what is sent on the stream that goes is lost.
      await a.heard.until('it answers', () => {
        if (!answered()) a.transport.send(id, [applied(round)]);
        return answered();
      });
      const closed = once(child, 'close');
      child.kill('SIGKILL');
      const started = performance.now();
      await a.heard.until('its end is noticed', () => !isConnected(a, id));
      assert.ok(performance.now() - started < 1000);
      await closed;
    }
  }
  await closeAll(a);
});

/** A gRPC message on the wire. */
function framed(bytes: Uint8Array): Buffer {
  const head = Buffer.alloc(5);
  head.writeUInt32BE(bytes.length, 1);
  return Buffer.concat([head, bytes]);
}

function spoiled(bytes: Uint8Array, at: number, value: number): Uint8Array {
  const copy = Uint8Array.from(bytes);
  copy[at] = value;
  return copy;
}

function headers(path: string): Record<string, string> {
  return { ':method': 'POST', ':path': path, 'content-type': 'application/grpc', te: 'trailers' };
}

function sendRaw(port: number, bytes: Buffer): Promise<void> {
  return new Promise((resolve) => {
    const socket = connectSocket(port, '127.0.0.1', () => socket.write(bytes));
    socket.on('error', () => {});
    socket.on('close', () => resolve());
    socket.on('data', () => socket.destroy());
    setTimeout(() => socket.destroy(), 30);
  });
}

function sendStream(port: number, path: string, parts: readonly Buffer[]): Promise<void> {
  return new Promise((resolve) => {
    const session = connectHttp2(`http://127.0.0.1:${port}`);
    session.on('error', () => {});
    session.on('close', () => resolve());
    const stream = session.request(headers(path));
    stream.on('error', () => {});
    stream.resume();
    stream.on('close', () => session.destroy());
    for (const part of parts) stream.write(part);
    setTimeout(() => session.destroy(), 30);
  });
}

/** A way to a port that can be cut without either end being told. */
class Cable {
  private readonly ends = new Set<Socket>();
  private isCut = false;

  private constructor(
    readonly uri: string,
    private readonly server: ReturnType<typeof createServer>,
  ) {}

  static async to(port: number): Promise<Cable> {
    const server = createServer();
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    const cable = new Cable(`http://127.0.0.1:${(server.address() as { port: number }).port}`, server);
    server.on('connection', (socket) => cable.carry(socket, port));
    return cable;
  }

  cut(): void {
    this.isCut = true;
  }

  /** For new connections; what was cut stays so. */
  mend(): void {
    this.isCut = false;
  }

  close(): Promise<void> {
    for (const end of this.ends) end.destroy();
    return new Promise((resolve) => {
      this.server.close(() => resolve());
    });
  }

  private carry(socket: Socket, port: number): void {
    const other = connectSocket(port, '127.0.0.1');
    let dead = this.isCut;
    for (const [from, to] of [
      [socket, other],
      [other, socket],
    ] as const) {
      this.ends.add(from);
      from.on('error', () => {});
      from.on('data', (bytes) => {
        dead ||= this.isCut;
        if (!dead) to.write(bytes);
      });
      from.on('close', () => {
        if (!dead) to.destroy();
      });
    }
  }
}

/** A frame on a plain connection. */
function plainFrame(kind: number, body: Uint8Array): Buffer {
  const head = Buffer.alloc(5);
  head.writeUInt32LE(body.length);
  head[4] = kind;
  return Buffer.concat([head, body]);
}
