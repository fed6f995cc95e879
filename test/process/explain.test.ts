/** Explained reads through both doors of one node. */

import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import type { Explanation } from '../../protocols/model/explanation.js';
import { GrpcClient } from '../http/grpc/client.js';
import { type NodeUnderTest, nodeFor, temporaryFolder } from './support.js';

const BOOKS = '/collections/books';
let node: NodeUnderTest;
let grpc: GrpcClient;

before(async (t) => {
  const context = t as Parameters<typeof nodeFor>[0];
  node = await nodeFor(context, { folder: await temporaryFolder(context) });
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
