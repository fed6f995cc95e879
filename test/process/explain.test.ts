/** Explained reads through both doors of one node. */

import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { readFile } from 'node:fs/promises';
import { after, before, test } from 'node:test';
import type { Explanation } from '../../protocols/model/explanation.js';
import { GrpcClient } from '../http/grpc/client.js';
import { type NodeUnderTest, nodeFor, temporaryFolder } from './support.js';

const BOOKS = '/collections/books';
let node: NodeUnderTest;
let grpc: GrpcClient;

before(async (t) => {
  const context = t as Parameters<typeof nodeFor>[0];
  const environment = { SERVICE__SERVICE__SLOW_REQUEST_MS: '1' };
  node = await nodeFor(context, { folder: await temporaryFolder(context), environment });
  grpc = new GrpcClient(node.grpcPort);
  await node.client.result('PUT', BOOKS, { vectors: { size: 4, distance: 'Dot' } });
  const points = Array.from({ length: 1200 }, (_, id) => ({ id, vector: [1, id % 7, id % 5, 1], payload: { shelf: id % 40 } }));
  await node.client.result('PUT', `${BOOKS}/points?wait=true`, { points });
});
after(() => grpc.close());

async function explainOf(method: string, path: string, body?: object): Promise<Explanation | undefined> {
  const answer = await node.client.call(method, `${BOOKS}/points${path}`, body);
  assert.equal(answer.status, 200, JSON.stringify(answer.body));
  return (answer.body as { explain?: Explanation }).explain;
}

const filter = { must: [{ key: 'shelf', match: { value: 3 } }] };

test('a body or an address that asks for it has the answer say how it came about, and nothing else does', async () => {
  const query = { query: [1, 2, 3, 4], limit: 3, filter };
  const explained = await explainOf('POST', '/query', { ...query, explain: true });
  assert.deepEqual([explained?.operation, explained?.collection, explained?.shards.length], ['query', 'books', 1]);
  assert.equal(explained?.shards[0]?.segments[0]?.searches[0]?.matches, 30);
  assert.equal(await explainOf('POST', '/query', query), undefined);
  assert.equal((await explainOf('POST', '/query?explain=true', query))?.operation, 'query');
  assert.equal((await explainOf('GET', '/7?explain=true'))?.operation, 'getPoint');
  assert.equal(await explainOf('GET', '/7?explain=false'), undefined);
  assert.equal((await explainOf('POST', '/count', { filter, explain: true }))?.shards[0]?.segments[0]?.searches[0]?.found, 30);
  assert.equal((await node.client.call('POST', `${BOOKS}/points/count?explain=yes`, {})).status, 400);
  const { headers } = await fetch(`http://127.0.0.1:${node.port}${BOOKS}/points/count`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ explain: true }),
  });
  assert.equal(headers.get('x-troupe-unknown-fields'), null, 'the field is known');
});

test('an explanation has the words of the filter as they are, whatever letters they have', async () => {
  const foreign = { must: [{ key: 'shelf', match: { value: 'Köln ≥ 東京 😀' } }] };
  const answer = await fetch(`http://127.0.0.1:${node.port}${BOOKS}/points/count`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ filter: foreign, explain: true }),
  });
  const text = new TextDecoder('utf-8', { fatal: true }).decode(await answer.arrayBuffer());
  const { explain } = JSON.parse(text) as { explain: Explanation };
  const [condition] = explain.shards[0]?.segments[0]?.searches[0]?.filter?.conditions ?? [];
  assert.equal(condition?.condition, 'shelf match "Köln ≥ 東京 😀"');
});

test('the call that an explanation advises makes the index, and is not advised again', async () => {
  const asked = { query: [1, 2, 3, 4], limit: 3, filter, explain: true };
  const [advice] = (await explainOf('POST', '/query', asked))?.advice ?? [];
  assert.ok(advice !== undefined);
  const { body, method, path } = advice.call;
  await node.client.result(method, `${path}?wait=true`, body);
  const again = await explainOf('POST', '/query', asked);
  assert.deepEqual(again?.advice, []);
  const [condition] = again?.shards[0]?.segments[0]?.searches[0]?.filter?.conditions ?? [];
  assert.deepEqual([condition?.answered_by, condition?.index, condition?.matches], ['index', 'integer', 30]);
});

test('the guide on tuning does what it says, block by block', async (t) => {
  const folder = await temporaryFolder(t);
  const markdown = await readFile(new URL('../../../docs/tuning.md', import.meta.url), 'utf8');
  const blocks = [...markdown.matchAll(/^```sh\n([\s\S]*?)^```$/gm)].map(([, code]) =>
    (code as string).replaceAll(':6333/collections/books', `:${node.port}/collections/tuned`),
  );
  const last = (code: string): { result: object; explain: Explanation } => {
    const printed = execFileSync('sh', ['-e', '-c', code.replaceAll(':6333', `:${node.port}`).replaceAll('curl ', 'curl -sSf -w "\\n" ')], {
      cwd: folder,
    });
    return JSON.parse(printed.toString().trim().split('\n').at(-1) as string);
  };
  const searchOf = ({ explain }: { explain: Explanation }) => explain.shards[0]?.segments[0]?.searches[0];
  const [make, why, index, again, telemetry, ...others] = blocks as [string, string, string, string, string];
  assert.deepEqual(others, [], 'a block that this test does not run');
  last(make);
  const slow = last(why);
  assert.deepEqual([searchOf(slow)?.plan, searchOf(slow)?.matches, searchOf(slow)?.filter?.payloads_read], ['gather', 20, 2000]);
  const [advice] = slow.explain.advice;
  assert.deepEqual(advice?.call.body, { field_name: 'shelf', field_schema: 'integer' });
  assert.match(index, /'\{"field_name": "shelf", "field_schema": "integer"\}'/);
  last(index);
  const quick = last(again);
  assert.deepEqual([searchOf(quick)?.filter?.payloads_read, searchOf(quick)?.filter?.conditions[0]?.answered_by], [0, 'index']);
  assert.deepEqual(quick.explain.advice, []);
  assert.ok('app' in last(telemetry).result);
});

test('a read that takes long is kept with how it was carried out and its ids, also where nobody asked to explain it', async () => {
  const trace = '4bf92f3577b34da6a3ce929d0e0e4736';
  const searches = Array.from({ length: 60 }, () => ({ query: [1, 2, 3, 4], limit: 3, params: { exact: true } }));
  const answer = await fetch(`http://127.0.0.1:${node.port}${BOOKS}/points/query/batch`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', 'x-request-id': 'slow-1', traceparent: `00-${trace}-00f067aa0ba902b7-01` },
    body: JSON.stringify({ searches }),
  });
  assert.equal(answer.status, 200);
  type Kept = {
    readonly request_id: string | null;
    readonly plan: string | null;
    readonly trace_id: string;
    readonly milliseconds: number;
  };
  const { app } = await node.client.result<{ app: { slow_requests: { last: readonly Kept[] } } }>('GET', '/telemetry?details_level=1');
  const kept = app.slow_requests.last.find(({ request_id }) => request_id === 'slow-1');
  assert.equal(kept?.trace_id, trace);
  assert.ok((kept?.milliseconds ?? 0) >= 1);
  assert.match(kept?.plan ?? '', /16 × scan on originals, best 3: exact search asked for; and 44 more segments/);
});

test('gRPC takes `explain` and answers `explanation` as JSON', async () => {
  const ask = async (method: string, message: object): Promise<Explanation | undefined> => {
    const { explanation } = (await grpc.call(method, { collection_name: 'books', ...message })) as { explanation?: string };
    return explanation === undefined ? undefined : (JSON.parse(explanation) as Explanation);
  };
  const search = { vector: [1, 2, 3, 4], limit: 2 };
  assert.equal((await ask('Points/Search', { ...search, explain: true }))?.shards[0]?.segments[0]?.searches[0]?.found, 2);
  assert.equal((await ask('Points/Count', { explain: true }))?.operation, 'count');
  const batch = { search_points: [{ collection_name: 'books', ...search }] };
  assert.equal((await ask('Points/SearchBatch', { ...batch, explain: true }))?.operation, 'searchBatch');
  assert.equal(await ask('Points/Search', search), undefined);
});
