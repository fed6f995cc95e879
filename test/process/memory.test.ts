/** Whatever clients send, and however many do, a node keeps within its memory and goes on. */

import assert from 'node:assert/strict';
import { once } from 'node:events';
import { existsSync, mkdirSync, readFileSync, rmdirSync, writeFileSync } from 'node:fs';
import { connect, type Socket } from 'node:net';
import { join } from 'node:path';
import { test } from 'node:test';
import { statusBytes } from '../machine.js';
import { type CollectionInfo, type NodeUnderTest, nodeFor, temporaryFolder, until, untilIndexed } from './support.js';

const MB = 1 << 20;

test('bodies under way are bounded over all connections, and what they took is free once they are gone', { timeout: 60_000 }, async (t) => {
  const node = await nodeFor(t, {
    folder: await temporaryFolder(t),
    environment: { SERVICE__STORAGE__PERFORMANCE__MEMORY_BUDGET_MB: '256' },
  });
  await node.client.result('PUT', '/collections/c', { vectors: { size: 4, distance: 'Dot' } });
  const before = statusBytes('RssAnon', node.pid);
  const part = Buffer.alloc(6 * MB, ' ');
  const sockets: Socket[] = [];
  const answers: string[] = [];
  for (let at = 0; at < 60; at++) {
    const socket = connect({ port: node.port, host: '127.0.0.1' });
    t.after(() => socket.destroy());
    socket.on('error', () => {});
    socket.once('data', (bytes) => answers.push(String(bytes)));
    await once(socket, 'connect');
    socket.write(`PUT /collections/c/points HTTP/1.1\r\nhost: x\r\ncontent-length: ${32 * MB}\r\n\r\n`);
    socket.write(part);
    sockets.push(socket);
  }
  // Which of them have the memory is not said; at most ten can have 6 MB of 64.
  await until(
    async () => answers.length,
    (count) => count >= 50,
  );
  for (const answer of answers) assert.match(answer, /^HTTP\/1\.1 507 /);
  const { bodies, budget } = await ledgerOf(node);
  assert.ok(bodies <= budget, `${bodies} of ${budget}`);
  const grown = statusBytes('RssAnon', node.pid) - before;
  assert.ok(grown < 200 * MB, `360 MB were sent, and the node has grown by ${Math.round(grown / MB)} MB`);
  await node.client.result('POST', '/collections/c/points/count', {});

  for (const socket of sockets) socket.destroy();
  await until(
    () => ledgerOf(node),
    ({ bodies: left }) => left === 0,
  );
});

test('a body of millions of empty objects is refused with their number, where it would have ended the node', {
  timeout: 120_000,
}, async (t) => {
  const node = await nodeFor(t, { folder: await temporaryFolder(t), nodeArguments: ['--max-old-space-size=96'] });
  await node.client.result('PUT', '/collections/c', { vectors: { size: 1, distance: 'Dot' } });
  const objects = `${'{},'.repeat(6_000_000 - 1)}{}`;
  const requests = [
    ['POST', '/collections/c/points/query', `{"query":[1],"filter":{"must":[${objects}]}}`],
    ['PUT', '/collections/c/points', `{"points":[{"id":1,"vector":[1],"payload":{"a":[${objects}]}}]}`],
  ] as const;
  for (const [method, path, body] of requests) {
    const answer = await fetch(node.url + path, { method, body });
    assert.equal(answer.status, 400, path);
    assert.match(await answer.text(), /has 120000\d\d commas and brackets .* may have \d+ here/);
  }
  await node.client.result('PUT', '/collections/c/points?wait=true', { points: [{ id: 1, vector: [1] }] });
  const { workers } = (await telemetry(node)).app.engine;
  assert.ok(workers.every(({ restarts }) => restarts === 0));
});

test('a query with a hundred thousand pairs of examples is answered, or ends in its time, and takes no thread with it', {
  timeout: 120_000,
}, async (t) => {
  const node = await nodeFor(t, {
    folder: await temporaryFolder(t),
    environment: { SERVICE__STORAGE__PERFORMANCE__MEMORY_BUDGET_MB: '400' },
  });
  await node.client.result('PUT', '/collections/c', { vectors: { size: 256, distance: 'Dot' } });
  await node.client.result('PUT', '/collections/c/points?wait=true', { points: POINTS });
  const pairs = Array.from({ length: 100_000 }, () => ({ positive: 1, negative: 2 }));
  const rated = Array.from({ length: 2048 }, (_, at) => ({ example: at % POINTS.length, score: at }));
  const queries = [
    { context: pairs },
    { discover: { target: 3, context: pairs } },
    { relevance_feedback: { target: 1, feedback: rated, strategy: { naive: { a: 1, b: 1, c: 1 } } } },
  ];
  for (const query of queries) {
    const { body, status } = await node.client.call('POST', '/collections/c/points/query?timeout=2', { query });
    assert.ok([200, 408, 429, 503].includes(status), `${status} ${JSON.stringify(body)}`);
  }
  const { workers } = (await telemetry(node)).app.engine;
  assert.ok(workers.every(({ restarts }) => restarts === 0));
});

/** The least budget that can be set: a node with anything in it uses more. */
const LEAST_BUDGET = { SERVICE__STORAGE__PERFORMANCE__MEMORY_BUDGET_MB: '16' };
const POINTS = Array.from({ length: 2000 }, (_, id) => ({ id, vector: Array.from({ length: 256 }, (_value, at) => (id * 7 + at) % 10) }));

test('a node without room refuses writes, tells why builds wait, and takes deletions and changes of settings', {
  timeout: 120_000,
}, async (t) => {
  const folder = await temporaryFolder(t);
  const first = await nodeFor(t, { folder });
  const unindexed = { vectors: { size: 256, distance: 'Dot' }, optimizers_config: { indexing_threshold: 0 } };
  await first.client.result('PUT', '/collections/c', unindexed);
  await first.client.result('PUT', '/collections/c/points?wait=true', { points: POINTS });
  assert.ok(existsSync(join(folder, 'storage', '.memory.json')), 'a running node has its mark');
  await first.end('SIGTERM');
  assert.ok(!existsSync(join(folder, 'storage', '.memory.json')), 'an orderly end takes it away');

  const { client, log } = await nodeFor(t, { folder, environment: LEAST_BUDGET });
  assert.doesNotMatch(log(), /ended for memory/);
  const refused = await client.call('PUT', '/collections/c/points?wait=true', { points: POINTS.slice(0, 1) });
  assert.equal(refused.status, 507);
  assert.match(
    JSON.stringify(refused.body),
    /Out of memory: this node uses or plans with \d+ MB of memory, and takes writes up to 14 MB: delete points/,
  );
  await client.result('PATCH', '/collections/c', { optimizers_config: { indexing_threshold: 100 } });
  const waiting = await until(
    () => client.result<CollectionInfo>('GET', '/collections/c'),
    ({ optimizer_status }) => optimizer_status !== 'ok',
  );
  assert.equal(waiting.status, 'yellow');
  assert.match(
    JSON.stringify(waiting.optimizer_status),
    /indexing waits: it may need \d+ MB of memory, and 0 MB of this node's budget are left/,
  );
  await client.result('POST', '/collections/c/points/delete?wait=true', { points: [1, 2] });
  const { count } = await client.result<{ count: number }>('POST', '/collections/c/points/count', {});
  assert.equal(count, POINTS.length - 2);
});

test('a node that was killed for memory loads what fits, tells what does not, and can be helped by a change or a deletion', {
  timeout: 120_000,
}, async (t) => {
  const folder = await temporaryFolder(t);
  const first = await nodeFor(t, { folder });
  const config = { vectors: { size: 256, distance: 'Dot' }, optimizers_config: { indexing_threshold: 100 } };
  await first.client.result('PUT', '/collections/c', config);
  await first.client.result('PUT', '/collections/empty', config);
  await first.client.result('PUT', '/collections/c/points?wait=true', { points: POINTS });
  await untilIndexed(first.client, 'c', POINTS.length);
  await first.end('SIGTERM');
  const mark = { kills: 0, oomKills: null, limitBytes: 100, peakBytes: 90, wasReady: true };
  writeFileSync(join(folder, 'storage', '.memory.json'), JSON.stringify(mark));

  const second = await nodeFor(t, { folder, environment: LEAST_BUDGET });
  assert.match(second.log(), /this node was ended for memory before: builds and loading wait/);
  const info = await second.client.call('GET', '/collections/c');
  assert.match(JSON.stringify(info.body), /not loaded, since this node was killed for memory before: it may need \d+ MB/);
  const read = await second.client.call('POST', '/collections/c/points/count', {});
  assert.equal(read.status, 503);
  assert.match(JSON.stringify(read.body), /not loaded.*Set `on_disk` of its vectors, delete this collection or others/);
  await second.client.result('PATCH', '/collections/c', { vectors: { '': { on_disk: true } } });
  await second.client.result('DELETE', '/collections/empty');
  await second.end('SIGKILL');

  // With room again it loads by itself.
  const third = await nodeFor(t, { folder });
  const count = await until(
    () => third.client.call('POST', '/collections/c/points/count', {}),
    ({ status }) => status === 200,
  );
  assert.match(JSON.stringify(count.body), /"count":2000/);
});

test('in recovery mode a node opens nothing, also after a start that memory has ended, and goes on after a deletion', {
  timeout: 120_000,
}, async (t) => {
  const folder = await temporaryFolder(t);
  const first = await nodeFor(t, { folder });
  await first.client.result('PUT', '/collections/c', { vectors: { size: 256, distance: 'Dot' } });
  await first.client.result('PUT', '/collections/c/points?wait=true', { points: POINTS });
  await first.end('SIGTERM');
  const mark = { kills: 0, oomKills: null, limitBytes: 100, peakBytes: 90, wasReady: false };
  writeFileSync(join(folder, 'storage', '.memory.json'), JSON.stringify(mark));

  const second = await nodeFor(t, { folder, environment: { SERVICE_ALLOW_RECOVERY_MODE: 'true' } });
  const refused = await second.client.call('POST', '/collections/c/points/count', {});
  assert.equal(refused.status, 503);
  assert.match(JSON.stringify(refused.body), /recovery mode, .*: the last start was ended for want of memory/);
  await second.client.result('PATCH', '/collections/c', { optimizers_config: { indexing_threshold: 0 } });
  await second.end('SIGTERM');

  const third = await nodeFor(t, { folder, environment: { SERVICE__STORAGE__RECOVERY_MODE: 'too many points' } });
  const count = await third.client.call('POST', '/collections/c/points/count', {});
  assert.match(JSON.stringify(count.body), /too many points/);
  assert.equal(await third.client.result('DELETE', '/collections/c'), true);
  assert.deepEqual(await third.client.result('GET', '/collections'), { collections: [] });
});

test('points that do not fit into the memory of a container are refused before the kernel ends the node', {
  timeout: 240_000,
}, async (t) => {
  const group = ownCgroup(300 * MB);
  if (typeof group === 'string') return t.skip(group);
  t.after(() => group.remove());
  const folder = await temporaryFolder(t);
  const inGroup = { folder, wrapper: ['sh', '-c', `echo $$ > ${group.processes}; exec "$@"`, 'sh'] };
  const { client, end } = await nodeFor(t, inGroup);
  await client.result('PUT', '/collections/c', { vectors: { size: 784, distance: 'Dot' } });
  const row = Array.from({ length: 784 }, (_, at) => at % 10);
  let acknowledged = 0;
  let refused = 0;
  // 188 MB of vectors as float32.
  for (let batch = 0; batch < 60; batch++) {
    const points = Array.from({ length: 1000 }, (_, at) => ({ id: batch * 1000 + at, vector: row }));
    const { status } = await client.call('PUT', '/collections/c/points?wait=true', { points });
    assert.ok(status === 200 || status === 507, `${status}`);
    if (status === 200) acknowledged += points.length;
    else refused++;
  }
  assert.ok(refused > 0, 'some are refused');
  assert.equal((await client.result<{ count: number }>('POST', '/collections/c/points/count', {})).count, acknowledged);
  await end('SIGKILL');

  const again = await nodeFor(t, inGroup);
  const counted = await until(
    () => again.client.call('POST', '/collections/c/points/count', {}),
    ({ status }) => status === 200,
  );
  assert.match(JSON.stringify(counted.body), new RegExp(`"count":${acknowledged}\\b`));
});

/** A cgroup of this test's own with a limit of memory; a text says why there is none. */
function ownCgroup(bytes: number): { readonly processes: string; remove(): Promise<void> } | string {
  const name = `troupe-test-${process.pid}`;
  for (const [root, limit] of [
    ['/sys/fs/cgroup/memory', 'memory.limit_in_bytes'],
    ['/sys/fs/cgroup', 'memory.max'],
  ] as const) {
    const folder = join(root, name);
    try {
      mkdirSync(folder);
    } catch {
      continue;
    }
    const remove = async () => {
      const processes = readFileSync(join(folder, 'cgroup.procs'), 'utf8').split('\n').filter(Boolean);
      for (const id of processes) process.kill(Number(id), 'SIGKILL');
      await until(
        async () => readFileSync(join(folder, 'cgroup.procs'), 'utf8'),
        (left) => left === '',
      );
      rmdirSync(folder);
    };
    try {
      writeFileSync(join(folder, limit), String(bytes));
      return { processes: join(folder, 'cgroup.procs'), remove };
    } catch {
      rmdirSync(folder);
    }
  }
  return 'skipped: this machine lets no test make a cgroup with a limit of memory (it takes root and a cgroup file system that can be written)';
}

interface Telemetry {
  readonly app: {
    readonly engine: {
      readonly memory: { readonly request_budget_bytes: number; readonly accounts: { readonly bodies: number } };
      readonly workers: readonly { readonly restarts: number }[];
    };
  };
}

function telemetry(node: NodeUnderTest): Promise<Telemetry> {
  return node.client.result<Telemetry>('GET', '/telemetry');
}

async function ledgerOf(node: NodeUnderTest): Promise<{ bodies: number; budget: number }> {
  const { accounts, request_budget_bytes: budget } = (await telemetry(node)).app.engine.memory;
  return { bodies: accounts.bodies, budget };
}
