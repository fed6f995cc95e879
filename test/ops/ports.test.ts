import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { createServer } from 'node:net';
import { join } from 'node:path';
import { test } from 'node:test';
import { freePorts, outside } from '../../ops/ports.js';
import { nodeFor, temporaryFolder } from '../process/support.js';

test('programs that choose ports at the same time choose different ones, and one program never chooses one twice', async () => {
  const program = `
    const { freePorts } = await import(${JSON.stringify(new URL('../../ops/ports.js', import.meta.url).href)});
    const ports = [...(await freePorts(100)), ...(await freePorts(100))];
    console.log(JSON.stringify(ports));
    process.stdin.resume();`;
  const programs = Array.from({ length: 4 }, () =>
    spawn(process.execPath, ['--input-type=module', '-e', program], { stdio: ['pipe', 'pipe', 'inherit'] }),
  );
  const printed = programs.map(async ({ stdout }) => JSON.parse(String((await once(stdout, 'data'))[0])) as number[]);
  const chosen = [...(await Promise.all(printed)).flat(), ...(await freePorts(200))];
  for (const { stdin } of programs) stdin.end();
  assert.equal(chosen.length, 1000);
  assert.equal(new Set(chosen).size, 1000);
});

test('ports lie outside those that the system gives to connections, on the side where more are left', () => {
  assert.deepEqual(outside({ first: 32_768, last: 60_999 }), { first: 12_000, last: 32_767 });
  assert.deepEqual(outside({ first: 16_000, last: 65_535 }), { first: 12_000, last: 15_999 });
  assert.deepEqual(outside({ first: 1024, last: 49_151 }), { first: 49_152, last: 65_535 });
  assert.deepEqual(outside({ first: 1024, last: 65_535 }), { first: 12_000, last: 65_535 });
});

test('a node whose port is taken in the moment before it listens is started again with others', async (t) => {
  const folder = await temporaryFolder(t);
  const blocker = createServer().listen(0, '127.0.0.1');
  t.after(() => blocker.close());
  await once(blocker, 'listening');
  const { port } = blocker.address() as { port: number };
  // The first process gets the taken port.
  const script = `[ -e "$0" ] || { touch "$0"; SERVICE__SERVICE__GRPC_PORT=${port}; export SERVICE__SERVICE__GRPC_PORT; }; exec "$@"`;
  const spawned: unknown[] = [];
  const node = await nodeFor(t, {
    folder,
    wrapper: ['sh', '-c', script, join(folder, 'marker')],
    onSpawn: (kill) => spawned.push(kill),
  });
  assert.equal(spawned.length, 2);
  assert.notEqual(node.grpcPort, port);
  assert.deepEqual(await node.client.result('GET', '/collections'), { collections: [] });
});
