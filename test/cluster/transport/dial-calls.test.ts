/** Streams of calls on plain connections, and on gRPC with peers that take no other. */

import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer, type Server as NetServer, type Socket } from 'node:net';
import { test } from 'node:test';
import { Server, ServerCredentials, type ServerDuplexStream } from '@grpc/grpc-js';
import { LostAnswer, NotReached } from '../../../cluster/data-messages.js';
import { CallStream, CallsServer, greetingOf } from '../../../cluster/transport/call-stream.js';
import { packCall, packReply } from '../../../cluster/transport/codec/calls.js';
import { OPEN_ENTRANCE, silentWay } from '../../../cluster/transport/entrance.js';
import { PLAIN_PREFACE, plainStream } from '../../../cluster/transport/plain-stream.js';
import { acceptedStream, asIs, CALLS_PATH } from '../../../cluster/transport/streams.js';

const HELLO = { versions: { min: 1, max: 1 }, clusterId: 'c', from: 1, to: 2, session: 5, release: 'x' };
const CALL = packCall({ kind: 'reached', collection: 'c', uid: 7, shards: [1] });
const REPLY = packReply({ kind: 'missing', id: 3 });
const OPTIONS = { bytesMax: 1 << 20, preface: PLAIN_PREFACE };

/** A peer's internal port that takes plain connections only. */
async function plainPort(taken: (socket: Socket) => void): Promise<{ target: string; close: () => Promise<void> }> {
  const sockets = new Set<Socket>();
  const server: NetServer = createServer((socket) => {
    sockets.add(socket);
    socket.on('error', () => {});
    taken(socket);
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as { port: number };
  const close = async (): Promise<void> => {
    for (const socket of sockets) socket.destroy();
    server.close();
    await once(server, 'close');
  };
  return { target: `127.0.0.1:${port}`, close };
}

test('a peer of a release without plain connections is called on gRPC, and gets each call once', async () => {
  let served = 0;
  const calls = new CallsServer(async (hello) => {
    served++;
    assert.equal(hello.from, 1);
    return REPLY;
  });
  const server = new Server();
  server.addService(
    {
      Calls: {
        path: CALLS_PATH,
        requestStream: true,
        responseStream: true,
        requestSerialize: asIs,
        requestDeserialize: asIs,
        responseSerialize: asIs,
        responseDeserialize: asIs,
      },
    },
    { Calls: (call: ServerDuplexStream<Buffer, Buffer>) => calls.accept((events) => acceptedStream(call, events)) },
  );
  const port = await new Promise<number>((resolve, reject) =>
    server.bindAsync('127.0.0.1:0', ServerCredentials.createInsecure(), (error, bound) => (error ? reject(error) : resolve(bound))),
  );
  const stream = new CallStream(2, `127.0.0.1:${port}`, greetingOf(HELLO), silentWay(OPEN_ENTRANCE));
  const replies = await Promise.all([stream.call(CALL, 5000), stream.call(CALL, 5000)]);
  assert.deepEqual(replies, [
    { kind: 'missing', id: 3 },
    { kind: 'missing', id: 3 },
  ]);
  assert.equal(served, 2);
  stream.close();
  server.forceShutdown();
});

test('frames that come in single bytes, and many at once, are read as they were sent', async () => {
  const port = await plainPort((socket) => {
    const slow: Buffer[] = [];
    const calls = new CallsServer(async () => REPLY);
    calls.accept((events) => {
      const stream = plainStream(socket, OPTIONS, { ...events, refused: events.ended });
      return {
        close: stream.close,
        write: (bytes, done) => {
          const head = Buffer.alloc(5);
          head.writeUInt32LE(bytes.length);
          slow.push(...[...head, ...bytes].map((byte) => Buffer.from([byte])));
          for (const byte of slow.splice(0)) socket.write(byte);
          done();
        },
      };
    });
  });
  const stream = new CallStream(2, port.target, greetingOf(HELLO), silentWay(OPEN_ENTRANCE));
  const replies = await Promise.all(Array.from({ length: 50 }, () => stream.call(CALL, 5000)));
  assert.ok(replies.every((reply) => reply.kind === 'missing'));
  stream.close();
  await port.close();
});

test('a call is lost when its connection breaks after the hello was answered, and was not sent before that', async () => {
  const port = await plainPort((socket) => {
    const calls = new CallsServer(() => {
      socket.resetAndDestroy();
      return new Promise(() => {});
    });
    calls.accept((events) => plainStream(socket, OPTIONS, { ...events, refused: events.ended }));
  });
  const stream = new CallStream(2, port.target, greetingOf(HELLO), silentWay(OPEN_ENTRANCE));
  await assert.rejects(stream.call(CALL, 5000), (error) => error instanceof LostAnswer && error.code === 'unavailable');
  assert.ok(stream.isOver);
  await port.close();
  const nobody = new CallStream(2, port.target, greetingOf(HELLO), silentWay(OPEN_ENTRANCE));
  await assert.rejects(nobody.call(CALL, 5000), (error) => error instanceof NotReached && /ECONNREFUSED/.test(error.message));
});

test('a call that is under way when the other side stops is answered, and the caller ends the stream then', async (t) => {
  let served = 0;
  const calls = new CallsServer(async () => {
    served++;
    return REPLY;
  });
  const port = await plainPort((socket) => {
    calls.accept((events) => plainStream(socket, OPTIONS, { ...events, refused: events.ended }));
  });
  t.after(port.close);
  const stream = new CallStream(2, port.target, greetingOf(HELLO), silentWay(OPEN_ENTRANCE));
  await stream.call(CALL, 5000);
  const late = stream.call(CALL, 5000);
  // It leaves at the end of this turn; its bytes are read in a later one.
  await Promise.resolve();
  const closed = calls.close();
  assert.deepEqual([served, calls.size], [1, 1]);
  assert.equal((await late).kind, 'missing');
  await closed;
  assert.deepEqual([served, calls.size, stream.isOver], [2, 0, true]);
});

test('a refusal of a stream tells its reason, and is not tried on gRPC', async () => {
  let connections = 0;
  const port = await plainPort((socket) => {
    connections++;
    const stream = plainStream(socket, OPTIONS, {
      frame: () => stream.close('too many streams of calls'),
      ended: () => {},
      refused: () => {},
    });
  });
  const stream = new CallStream(2, port.target, greetingOf(HELLO), silentWay(OPEN_ENTRANCE));
  await assert.rejects(stream.call(CALL, 5000), (error) => error instanceof NotReached && /refused: too many streams/.test(error.message));
  assert.equal(connections, 1);
  await port.close();
});

test('an answer that is no frame ends the stream, and its calls are lost or not sent', async () => {
  for (const garbage of [Buffer.from([9, 0, 0, 0, 4, 1]), Buffer.from([0xff, 0xff, 0xff, 0xff, 0])]) {
    const port = await plainPort((socket) => {
      const calls = new CallsServer(async () => {
        socket.write(garbage);
        return new Promise<Uint8Array>(() => {});
      });
      calls.accept((events) => plainStream(socket, OPTIONS, { ...events, refused: events.ended }));
    });
    const stream = new CallStream(2, port.target, greetingOf(HELLO), silentWay(OPEN_ENTRANCE));
    await assert.rejects(stream.call(CALL, 5000), (error) => error instanceof LostAnswer && /frame of/.test(error.message));
    await port.close();
  }
});
