import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Client, credentials, Server, ServerCredentials, status } from '@grpc/grpc-js';
import { NodeProxy } from '../../../ops/cluster/proxy.js';

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
