import assert from 'node:assert/strict';
import { once } from 'node:events';
import { type AddressInfo, connect, createServer, type Socket } from 'node:net';
import { test } from 'node:test';
import { Client, credentials, Server, ServerCredentials, status } from '@grpc/grpc-js';
import { dialPlain } from '../../../cluster/transport/dial-calls.js';
import { OPEN_ENTRANCE, silentWay } from '../../../cluster/transport/entrance.js';
import { NodeProxy } from '../../../ops/cluster/proxy.js';
import { peer } from '../../cluster/transport/support.js';
import { until } from '../../process/support.js';

const bytesAsTheyAre = (bytes: Buffer): Buffer => bytes;
const METHOD = {
  path: '/test.Echo/Echo',
  requestStream: false,
  responseStream: false,
  requestSerialize: bytesAsTheyAre,
  requestDeserialize: bytesAsTheyAre,
  responseSerialize: bytesAsTheyAre,
  responseDeserialize: bytesAsTheyAre,
} as const;

test('gRPC channels of a process whose grpc_proxy leads to a proxy go through it, and stand still while it is cut', async (t) => {
  const server = new Server();
  server.addService(
    { echo: METHOD },
    { echo: (call: { request: Buffer }, callback: (error: null, bytes: Buffer) => void) => callback(null, call.request) },
  );
  const port = await new Promise<number>((resolve, reject) => {
    server.bindAsync('127.0.0.1:0', ServerCredentials.createInsecure(), (error, bound) =>
      error === null ? resolve(bound) : reject(error),
    );
  });
  const SOURCE = 1;
  let open = true;
  const proxy = await NodeProxy.start(SOURCE, () => open);
  process.env.grpc_proxy = proxy.url;
  const client = new Client(`127.0.0.1:${port}`, credentials.createInsecure());
  t.after(async () => {
    client.close();
    server.forceShutdown();
    await proxy.close();
  });
  const echo = (text: string, timeoutMs: number): Promise<string> =>
    new Promise((resolve, reject) => {
      const deadline = Date.now() + timeoutMs;
      client.makeUnaryRequest(METHOD.path, bytesAsTheyAre, bytesAsTheyAre, Buffer.from(text), { deadline }, (error, bytes) =>
        error === null ? resolve(String(bytes)) : reject(error),
      );
    });

  assert.equal(await echo('one', 10_000), 'one');
  assert.deepEqual(proxy.targets(), [port]);
  open = false;
  proxy.apply();
  await assert.rejects(echo('two', 200), { code: status.DEADLINE_EXCEEDED });
  open = true;
  proxy.apply();
  assert.equal(await echo('three', 10_000), 'three');
});

test('plain connections between nodes go through that proxy, too, and fail where it cannot reach the other side', async (t) => {
  const { transport } = await peer(2);
  const proxy = await NodeProxy.start(1, () => true);
  process.env.grpc_proxy = proxy.url;
  t.after(() => Promise.all([transport.close(), proxy.close()]));
  const dial = () => dialPlain(`127.0.0.1:${transport.port}`, silentWay(OPEN_ENTRANCE));
  const socket = await dial();
  assert.deepEqual(proxy.targets(), [transport.port]);
  socket.destroy();
  await transport.close();
  await assert.rejects(dial(), /the proxy answers: HTTP\/1\.1 502/);
});

test('what has gone during a cut is told when it is mended, and keeps the proxy from closing no longer', { timeout: 30_000 }, async (t) => {
  const target = createServer({ allowHalfOpen: true }).listen(0, '127.0.0.1');
  await once(target, 'listening');
  const { port } = target.address() as AddressInfo;
  t.after(() => target.close());
  const SOURCE = 1;
  let answers = true;
  const proxy = await NodeProxy.start(SOURCE, (source) => source === SOURCE || answers);
  /** A connection whose far end has gone, which the near end has not heard. */
  const halfDead = async (): Promise<Socket> => {
    answers = true;
    proxy.apply();
    const accepted = once(target, 'connection') as Promise<[Socket]>;
    const near = connect(Number(new URL(proxy.url).port), '127.0.0.1');
    near.write(`CONNECT 127.0.0.1:${port} HTTP/1.1\r\nHost: x\r\n\r\n`);
    const [[far]] = await Promise.all([accepted, once(near, 'data')]);
    answers = false;
    proxy.apply();
    far.resetAndDestroy();
    await until(
      async () => near.write('x') && proxy.targets(),
      (targets) => Array.isArray(targets) && targets.length === 0,
    );
    assert.equal(near.readyState, 'open');
    return near;
  };
  const told = await halfDead();
  answers = true;
  proxy.apply();
  told.resume();
  await once(told, 'close');
  const near = await halfDead();
  near.end();
  await proxy.close();
  near.destroy();
});
