/** A node whose readers take the connections of clients, where the runtime can share a port. */

import assert from 'node:assert/strict';
import { readdirSync, readFileSync } from 'node:fs';
import { Agent, request } from 'node:http';
import { availableParallelism } from 'node:os';
import { test } from 'node:test';
import { canSharePort } from '../../http/context/share-port.js';
import { failure, GrpcClient } from '../http/grpc/client.js';
import { nodeFor, temporaryFolder, until } from './support.js';

const CONNECTIONS = 12;
const skip = canSharePort() ? false : 'this Node cannot share a port between threads';

interface Answer {
  readonly status: number;
  readonly text: string;
}

test('readers that take connections answer by what was changed last, on every connection', { skip }, async (t) => {
  const node = await nodeFor(t, { folder: await temporaryFolder(t) });
  const agents = Array.from({ length: CONNECTIONS }, () => new Agent({ keepAlive: true, maxSockets: 1 }));
  t.after(() => {
    for (const agent of agents) agent.destroy();
  });
  const call = (method: string, path: string, body?: unknown, agent = agents[0] as Agent): Promise<Answer> =>
    new Promise((resolve, reject) => {
      const asking = request(`http://127.0.0.1:${node.port}${path}`, { agent, method }, (response) => {
        const chunks: Buffer[] = [];
        response.on('data', (chunk) => chunks.push(chunk));
        response.on('end', () => resolve({ status: response.statusCode ?? 0, text: Buffer.concat(chunks).toString() }));
      });
      asking.on('error', reject);
      asking.end(body === undefined ? undefined : JSON.stringify(body));
    });
  const everywhere = (path: string) => Promise.all(agents.map((agent) => call('POST', path, {}, agent)));
  const countsOf = (answers: readonly Answer[]) => [...new Set(answers.map(({ text }) => /"count":\d+/.exec(text)?.[0]))];

  for (const [name, points] of [
    ['one', 1],
    ['two', 2],
  ] as const) {
    await call('PUT', `/collections/${name}`, { vectors: { size: 2, distance: 'Dot' } });
    const written = Array.from({ length: points }, (_, id) => ({ id, vector: [id, 1] }));
    await call('PUT', `/collections/${name}/points?wait=true`, { points: written });
  }
  // Each answer to a change is followed at once by reads on all connections.
  for (let round = 0; round < 20; round++) {
    const name = round % 2 === 0 ? 'one' : 'two';
    const actions = [{ delete_alias: { alias_name: 'alias' } }, { create_alias: { alias_name: 'alias', collection_name: name } }];
    assert.equal((await call('POST', '/collections/aliases', { actions: round === 0 ? actions.slice(1) : actions })).status, 200);
    assert.deepEqual(countsOf(await everywhere('/collections/alias/points/count')), [round % 2 === 0 ? '"count":1' : '"count":2']);
    await call('PUT', '/collections/one/points?wait=true', { points: [{ id: 0, vector: [round, 1] }] });
    const [shown] = await Promise.all([call('GET', '/collections/one/points/0', undefined, agents[round % CONNECTIONS])]);
    assert.match(shown?.text as string, new RegExp(`"vector":\\[${round}\\.0,1\\.0\\]|"vector":\\[${round}(\\.0)?,1(\\.0)?\\]`));
  }
  const before = await metric(node.port);
  await everywhere('/collections/one/points/count');
  assert.equal((await metric(node.port)) - before, CONNECTIONS, 'the answers of all threads are counted');

  await call('PATCH', '/collections/one', { strict_mode_config: { enabled: true, read_rate_limit: 2 } });
  const limited = await everywhere('/collections/one/points/count');
  assert.equal(limited.filter(({ status }) => status === 200).length, 2, 'a limit holds for all readers together');
  await call('DELETE', '/collections/two');
  assert.deepEqual([...new Set((await everywhere('/collections/two/points/count')).map(({ status }) => status))], [404]);
  assert.deepEqual([...new Set((await everywhere('/collections/alias/points/count')).map(({ status }) => status))], [404]);
});

async function metric(port: number): Promise<number> {
  const text = await (await fetch(`http://127.0.0.1:${port}/metrics`)).text();
  const row = /^rest_responses_total\{.*points\/count",status="200"\} (\d+)$/m.exec(text);
  return Number(row?.[1]);
}

test('readers that take gRPC connections answer by what was changed last, on every connection', { skip }, async (t) => {
  const node = await nodeFor(t, { folder: await temporaryFolder(t) });
  const clients = Array.from(
    { length: CONNECTIONS },
    (_, at) => new GrpcClient(node.grpcPort, { 'grpc.use_local_subchannel_pool': 1, at }),
  );
  t.after(() => {
    for (const client of clients) client.close();
  });
  const [first] = clients as [GrpcClient];
  const counts = async (collection_name: string) => {
    const answers = await Promise.all(clients.map((client) => client.call('Points/Count', { collection_name })));
    return [...new Set(answers.map(({ result }) => (result as { count: string }).count))];
  };
  const point = (num: number) => ({ id: { num }, vectors: { vector: { dense: { data: [num, 1] } } } });
  await first.call('Collections/Create', { collection_name: 'c', vectors_config: { params: { size: 2, distance: 'Dot' } } });
  for (let num = 1; num <= 10; num++) {
    const client = clients[num] as GrpcClient;
    await client.call('Points/Upsert', { collection_name: 'c', wait: true, points: [point(num)] });
    assert.deepEqual(await counts('c'), [String(num)]);
  }
  const query = { collection_name: 'c', query: { nearest: { dense: { data: [1, 0] } } }, limit: 3 };
  const found = await Promise.all(
    Array.from({ length: 300 }, (_, at) =>
      (clients[at % CONNECTIONS] as GrpcClient).call('Points/Query', { ...query, limit: 1 + (at % 5) }),
    ),
  );
  found.forEach(({ result }, at) => {
    assert.deepEqual(
      (result as { id: { num: string } }[]).map(({ id }) => Number(id.num)),
      [10, 9, 8, 7, 6].slice(0, 1 + (at % 5)),
    );
  });
  const text = await (await fetch(`http://127.0.0.1:${node.port}/metrics`)).text();
  assert.match(text, /^grpc_responses_total\{endpoint="\/qdrant\.Points\/Count",status="0"\} 120$/m);
  assert.match(text, /^grpc_responses_total\{endpoint="\/qdrant\.Points\/Query",status="0"\} 300$/m);
  // Readers tell of their collections twice a second.
  const each = async () => (await fetch(`http://127.0.0.1:${node.port}/metrics?per_collection=true`)).text();
  await until(each, (lines) => /^grpc_responses_total\{endpoint="\/qdrant\.Points\/Query",status="0",collection="c"\} 300$/m.test(lines));
  for (const client of clients) assert.equal((await failure(client.call('Points/Count', { collection_name: 'none' }))).code, 5);
  await first.call('Collections/Delete', { collection_name: 'c' });
  for (const client of clients) assert.equal((await failure(client.call('Points/Count', { collection_name: 'c' }))).code, 5);
});

test('a heavy read beside quick ones is answered by a reader without connections, with the same answer, and counted once', {
  skip,
}, async (t) => {
  const node = await nodeFor(t, { folder: await temporaryFolder(t) });
  const client = new GrpcClient(node.grpcPort, {});
  t.after(() => client.close());
  const post = async (path: string, body: unknown, method = 'POST') => {
    const answer = await fetch(`http://127.0.0.1:${node.port}/collections/c${path}`, { method, body: JSON.stringify(body) });
    return ((await answer.json()) as { result: { count: number } }).result;
  };
  const rows = Array.from({ length: 1000 }, (_, id) => id);
  await post('', { vectors: { size: 2, distance: 'Dot' } }, 'PUT');
  await post('/points?wait=true', { points: rows.map((id) => ({ id, vector: [id, 1], payload: { n: id } })) }, 'PUT');
  const metrics = async () => (await fetch(`http://127.0.0.1:${node.port}/metrics`)).text();
  // A filter without an index is new each time, as its rows are known afterwards. The first such reads also start their reader.
  let asked = 0;
  while ((await processedByHeavy(node.port)) < 10) {
    const heavyAndQuick = await Promise.all(
      Array.from({ length: 10 }, async (_, at) => {
        await post('/points/count', {});
        const must = [{ key: 'n', range: { gt: asked + at + 0.5 } }];
        const viaRest = await post('/points/count', { filter: { must } });
        const filter = { must: [{ field: { key: 'n', range: { gt: asked + at + 0.25 } } }] };
        const { result } = await client.call('Points/Count', { collection_name: 'c', filter });
        return [viaRest.count, Number((result as { count: string }).count)];
      }),
    );
    for (let at = 0; at < 10; at++) assert.deepEqual(heavyAndQuick[at], [999 - asked - at, 999 - asked - at]);
    asked += 10;
    assert.ok(asked < 900, 'no heavy read was handed on');
  }
  const priorities = nicenessOfThreads(node.pid);
  const heavy = Math.min(19, (priorities.get(node.pid) as number) + 10);
  assert.ok([...priorities.values()].includes(heavy), `no thread has niceness ${heavy}: ${[...priorities.values()]}`);
  assert.equal(await metric(node.port), 2 * asked);
  assert.match(await metrics(), new RegExp(`^grpc_responses_total\\{endpoint="/qdrant\\.Points/Count",status="0"\\} ${asked}$`, 'm'));
});

test('a read with a large body goes to a reader without connections, also without company, so that somebody can answer at its deadline', {
  skip,
}, async (t) => {
  const node = await nodeFor(t, { folder: await temporaryFolder(t) });
  await node.client.result('PUT', '/collections/c', { vectors: { size: 2, distance: 'Dot' } });
  await node.client.result('PUT', '/collections/c/points?wait=true', { points: [{ id: 1, vector: [1, 1] }] });
  const body = { filter: { must: [{ has_id: Array.from({ length: 200_000 }, (_, id) => id) }] } };
  assert.ok(JSON.stringify(body).length > 1 << 20);
  for (let asked = 1; (await processedByHeavy(node.port)) === 0; asked++) {
    assert.deepEqual(await node.client.result('POST', '/collections/c/points/count', body), { count: 1 });
    assert.ok(asked < 50, 'no read was handed on');
  }
});

/** By number of the thread; that of the main thread is the process's. */
function nicenessOfThreads(pid: number): Map<number, number> {
  return new Map(
    readdirSync(`/proc/${pid}/task`).map((thread) => {
      const fields = readFileSync(`/proc/${pid}/task/${thread}/stat`, 'utf8').split(') ').at(-1)?.split(' ') ?? [];
      // The 19th, and the name before is the second.
      return [Number(thread), Number(fields[16])];
    }),
  );
}

/** Reads that readers without connections have answered. */
async function processedByHeavy(port: number): Promise<number> {
  const text = await (await fetch(`http://127.0.0.1:${port}/metrics`)).text();
  const samples = text.matchAll(/^engine_worker_processed_total\{worker="reader-(\d+)",kind="reader"\} (\d+)$/gm);
  return [...samples].reduce((sum, [, reader, count]) => sum + (Number(reader) >= availableParallelism() ? Number(count) : 0), 0);
}
