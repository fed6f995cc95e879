/** Texts made to vectors by the node itself: through both doors, in every place where a vector may stand, over a kill. */

import assert from 'node:assert/strict';
import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { bm25Document } from '../../query/text/bm25.js';
import { GrpcClient } from '../http/grpc/client.js';
import { type NodeUnderTest, nodeFor, temporaryFolder } from './support.js';

/** Each with a question that it answers, and no other does. */
const SENTENCES: readonly (readonly [text: string, question: string])[] = [
  ['The lighthouse keeper trimmed the wick every evening before the ships came in.', 'who trims the wick of a lighthouse'],
  ['Bread rises because yeast turns sugar into gas that the dough holds.', 'yeast and dough'],
  ['A glacier moves a few metres a year and grinds the rock beneath it.', 'how glaciers grind rocks'],
  ['The orchestra tuned to the note of the oboe before the conductor arrived.', 'which instrument does an orchestra tune to'],
  ['Bees dance to tell the hive where the flowers are.', 'dancing bees'],
  ['The printing press made books cheap and letters uniform.', 'printed books'],
  ['Salt lowers the temperature at which water freezes on the road.', 'salted roads that do not freeze'],
  ['Her grandmother kept buttons of every coat in a jar on the shelf.', 'jars of buttons'],
  ['The river changed its bed after the flood and left the mill dry.', 'a mill without its river'],
  ['Chess players think of squares, not of pieces, in the endgame.', 'endgames of chess'],
  ['A telescope gathers light; what it magnifies matters less.', 'telescopes gathering light'],
  ['The baker closed early on the day of the bicycle race.', 'bicycle races'],
  ['Old maps show islands that nobody has found since.', 'islands on old maps'],
  ['The train waits for the ferry, and the ferry for the tide.', 'waiting for the tide'],
  ['Copper roofs turn green after some decades of rain.', 'why is copper green'],
  ['The tortoise outlived three gardeners of the castle.', 'gardeners and tortoises'],
  ['Violin strings were made of gut before there was steel.', 'steel strings for violins'],
  ['A sundial is wrong by a quarter of an hour in November.', 'sundials in november'],
  ['The potter threw the bowl away because of a crack in its glaze.', 'cracked glazes of bowls'],
  ['Swallows fly low when the air is damp and the insects stay down.', 'low flying swallows'],
  ['The vineyard faces south and the cellar faces north.', 'cellars of the vineyard'],
  ['He repaired the clock with a hairpin and a drop of oil.', 'clock repairs'],
  ['Coral grows slowly, one skeleton upon another.', 'skeletons of corals'],
  ['The librarian wrote the shelf marks in pencil.', 'pencils of librarians'],
];

const doc = (text: string, options?: object) => ({ text, model: 'qdrant/bm25', ...(options === undefined ? {} : { options }) });
const DEFAULTS = { k: 1.2, b: 0.75, avgLen: 256, stopwords: 'english', stemmer: { type: 'snowball', language: 'english' } } as const;

interface Shown {
  readonly id: number;
  readonly score: number;
  readonly vector?: { readonly words?: { readonly indices: number[]; readonly values: number[] } };
}

async function library(t: TestContext): Promise<{ node: NodeUnderTest; folder: string }> {
  const folder = await temporaryFolder(t);
  const node = await nodeFor(t, { folder });
  await node.client.result('PUT', '/collections/c', {
    vectors: { d: { size: 2, distance: 'Dot' } },
    sparse_vectors: { words: { modifier: 'idf' } },
  });
  const points = SENTENCES.map(([text], id) => ({ id, vector: { words: doc(text), d: [id, 1] }, payload: { text } }));
  await node.client.result('PUT', '/collections/c/points?wait=true', { points });
  return { node, folder };
}

async function ask(node: NodeUnderTest, query: object): Promise<Shown[]> {
  const { points } = await node.client.result<{ points: Shown[] }>('POST', '/collections/c/points/query', { limit: 3, ...query });
  return points;
}

const bestFor = async (node: NodeUnderTest): Promise<unknown[]> =>
  Promise.all(SENTENCES.map(async ([, question]) => (await ask(node, { query: doc(question), using: 'words', limit: 1 }))[0]?.id));

test('every question finds the sentence that answers it, also after a kill and by vectors that were logged, not texts', async (t) => {
  const { node, folder } = await library(t);
  const expected = SENTENCES.map((_, id) => id);
  assert.deepEqual(await bestFor(node), expected);
  const before = await ask(node, { query: doc('books, islands and clocks'), using: 'words' });
  // Without payload, so the words of this one are nowhere but in its vector.
  const secret = { id: 100, vector: { words: doc('zanzibar quagmire'), d: [1, 1] } };
  await node.client.result('PUT', '/collections/c/points?wait=true', { points: [secret] });
  await node.end('SIGKILL');
  assert.deepEqual(await filesWith(folder, 'zanzibar'), []);
  assert.notDeepEqual(await filesWith(folder, 'lighthouse'), [], 'payloads would have been found');

  const again = await nodeFor(t, { folder });
  assert.deepEqual(await bestFor(again), expected);
  assert.equal((await ask(again, { query: doc('Zanzibar'), using: 'words' }))[0]?.id, 100);
  await again.client.result('POST', '/collections/c/points/delete?wait=true', { points: [100] });
  const ids = (points: readonly Shown[]) => points.map(({ id }) => id);
  assert.deepEqual(ids(await ask(again, { query: doc('books, islands and clocks'), using: 'words' })), ids(before));
});

/** Files below a folder that hold this word. */
async function filesWith(folder: string, word: string): Promise<string[]> {
  const entries = await readdir(folder, { recursive: true, withFileTypes: true });
  const files = entries.filter((entry) => entry.isFile()).map((entry) => join(entry.parentPath ?? entry.path, entry.name));
  const found = await Promise.all(files.map(async (file) => ((await readFile(file)).includes(word) ? [file] : [])));
  return found.flat();
}

test('both doors make the same vectors, in every form of a write', async (t) => {
  const { node } = await library(t);
  const grpc = new GrpcClient(node.grpcPort);
  t.after(() => grpc.close());
  const text = 'The tortoise and the hare race, and the tortoise wins';
  const options = { language: 'english', k: 1.5, avg_len: 8 };
  const messageOptions = { language: { string_value: 'english' }, k: { double_value: 1.5 }, avg_len: { integer_value: 8 } };
  const vector = { document: { text, model: 'bm25', options: messageOptions } };
  const vectors = { vectors: { vectors: { words: vector } } };
  const bare = (id: number) => ({ id, vector: { d: [1, 1] } });
  const { result } = node.client;
  const put = (body: object) => result.call(node.client, 'PUT', '/collections/c/points?wait=true', body);
  await put({ points: [{ id: 201, vector: { words: doc(text, options) } }] });
  await put({ batch: { ids: [202, 203], vectors: { words: [doc(text, options), doc('another')] } } });
  await put({ batch: { ids: [204], vectors: [{ words: doc(text, options) }] } });
  await put({ points: [bare(205), bare(206), bare(209)] });
  await result.call(node.client, 'PUT', '/collections/c/points/vectors?wait=true', {
    points: [{ id: 205, vector: { words: doc(text, options) } }],
  });
  const operations = [{ update_vectors: { points: [{ id: 206, vector: { words: doc(text, options) } }] } }];
  await result.call(node.client, 'POST', '/collections/c/points/batch?wait=true', { operations });
  const upsert = { collection_name: 'c', wait: true, points: [{ id: { num: 207 }, vectors }] };
  await grpc.call('Points/Upsert', upsert);
  await grpc.call('Points/UpdateBatch', {
    collection_name: 'c',
    wait: true,
    operations: [{ upsert: { points: [{ id: { num: 208 }, vectors }] } }],
  });
  await grpc.call('Points/UpdateVectors', { collection_name: 'c', wait: true, points: [{ id: { num: 209 }, vectors }] });

  const ids = [201, 202, 204, 205, 206, 207, 208, 209];
  const stored = await result.call(node.client, 'POST', '/collections/c/points', { ids, with_vector: ['words'] });
  const shown = stored as { vector: { words: { indices: number[]; values: number[] } } }[];
  const wanted = bm25Document(text, { ...DEFAULTS, k: 1.5, avgLen: 8 });
  assert.equal(shown.length, ids.length);
  for (const point of shown) {
    assert.deepEqual(point.vector.words.indices, [...wanted.indices]);
    assert.deepEqual(Float32Array.from(point.vector.words.values), wanted.values);
  }
  const query = { collection_name: 'c', query: { nearest: { document: { text: 'hares', model: 'bm25' } } }, using: 'words', limit: 3 };
  const answer = (await grpc.call('Points/Query', query)) as unknown as { result: { id: { num: string }; score: number }[] };
  const rest = await ask(node, { query: doc('hares'), using: 'words' });
  assert.deepEqual(
    answer.result.map(({ id, score }) => [Number(id.num), Math.fround(score)]),
    rest.map(({ id, score }) => [id, Math.fround(score)]),
  );
});

test('texts stand wherever a query takes a vector', async (t) => {
  const { node } = await library(t);
  const best = async (query: object) => (await ask(node, { using: 'words', ...query }))[0]?.id;
  assert.equal(await best({ query: doc('copper and rain') }), 14);
  assert.equal(await best({ query: { nearest: doc('copper'), mmr: {} } }), 14);
  assert.equal(
    await best({ query: { recommend: { positive: [doc('violin strings')], negative: [doc('steel')], strategy: 'best_score' } } }),
    16,
  );
  assert.equal(await best({ query: { recommend: { positive: [doc('violin strings')], strategy: 'sum_scores' } } }), 16);
  assert.equal(
    await best({ query: { discover: { target: doc('ferry'), context: [{ positive: doc('tide'), negative: doc('race') }] } } }),
    13,
  );
  const searches = ['swallows', 'coral'].map((text) => ({ query: doc(text), using: 'words', limit: 1 }));
  const batch = await node.client.result<{ points: Shown[] }[]>('POST', '/collections/c/points/query/batch', { searches });
  assert.deepEqual(batch.map(({ points }) => points[0]?.id), [19, 22]); // biome-ignore format: a line
  // Dense and sparse together: 11 is second by words, and first by the dense vector of those that the filter leaves.
  const prefetch = [
    { query: doc('the race of the tortoise, the race of bicycles'), using: 'words', limit: 5 },
    { query: [1, 0], using: 'd', limit: 5, filter: { must: [{ has_id: [11, 2, 3] }] } },
  ];
  assert.equal(await best({ prefetch, query: { fusion: 'rrf' }, using: null }), 11);
  assert.deepEqual(await ask(node, { query: doc('the of and'), using: 'words' }), []);
});

test('inputs that no model here takes are mistakes of the client', async (t) => {
  const { node } = await library(t);
  const refused = async (method: string, path: string, body: object, message: RegExp, status = 400) => {
    const answer = await node.client.call(method, `/collections/c/points${path}`, body);
    assert.equal(answer.status, status, answer.text);
    assert.match(answer.text, message);
  };
  const upsert = (vector: object, message: RegExp, status?: number) =>
    refused('PUT', '?wait=true', { points: [{ id: 300, vector }] }, message, status);
  const query = (input: object, using: string, message: RegExp, status?: number) =>
    refused('POST', '/query', { query: input, using }, message, status);
  const both = async (name: string, input: object, message: RegExp, status?: number) => {
    await upsert({ [name]: input }, message, status);
    await query(input, name, message, status);
  };
  await both('words', { text: 'a', model: 'vendor/model' }, /no model .*vendor\/model/);
  await both('words', { image: 'x', model: 'bm25' }, /no model .*bm25.* image/);
  await both('words', { object: {}, model: 'vendor/model' }, /no model/);
  await both('d', doc('lighthouse'), /is dense, the request has a sparse vector/);
  await both('words', doc('a', { language: 'klingon' }), /language.*german/);
  await both('words', doc('a', { k: 'x' }), /options\.k/);
  await both('words', doc('a', { b: 2 }), /options\.b/, 422);
  await both('none', doc('a'), /Not existing vector name error: none/);
  assert.equal((await node.client.result<{ count: number }>('POST', '/collections/c/points/count', {})).count, SENTENCES.length);
});

test('the example of the README finds the note about swallows', async (t) => {
  const node = await nodeFor(t, { folder: await temporaryFolder(t) });
  const readme = await readFile(new URL('../../../README.md', import.meta.url), 'utf8');
  const section = readme.slice(readme.indexOf('## Search texts'), readme.indexOf('## Within'));
  const commands = [...section.matchAll(/curl -X (\w+) '?localhost:6333([^' ]+)'? -d '([^']+)'/g)];
  assert.equal(commands.length, 3);
  const results = [];
  for (const [, method = '', path = '', body = ''] of commands) results.push(await node.client.result(method, path, body));
  assert.deepEqual((results[2] as { points: Shown[] }).points.map(({ id }) => id), [1]); // biome-ignore format: a line
});
