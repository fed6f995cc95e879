/** A vector store of LangChain over a node, with its unmodified package. As a program: arguments are the address and the key. */

import assert from 'node:assert/strict';
import { fileURLToPath } from 'node:url';
import { Document } from '@langchain/core/documents';
import { Embeddings } from '@langchain/core/embeddings';
import { QdrantVectorStore } from '@langchain/qdrant';

const SUBJECTS = ['sea', 'train', 'bread', 'night'];

/** How often each subject is spoken of: texts about the same are near to each other, on every machine. */
class SubjectEmbeddings extends Embeddings {
  constructor() {
    super({});
  }

  embedQuery(text: string): Promise<number[]> {
    const words = text.toLowerCase().match(/\w+/g) ?? [];
    return Promise.resolve(SUBJECTS.map((subject) => 0.01 + words.filter((word) => word === subject).length));
  }

  embedDocuments(texts: string[]): Promise<number[][]> {
    return Promise.all(texts.map((text) => this.embedQuery(text)));
  }
}

const IDS = [1, 2, 3, 4, 5].map((at) => `00000000-0000-4000-8000-00000000000${at}`);
const DOCUMENTS = [
  ['The sea at night', 1990],
  ['A night train, a night train', 1991],
  ['Bread', 1992],
  ['The sea, the sea', 1993],
  ['By train to the sea', 1994],
].map(([pageContent, year]) => new Document({ pageContent: pageContent as string, metadata: { year, deep: { list: [1, null] } } }));

/** Documents are added, searched, filtered, diversified and deleted. */
export async function useVectorStore(url: string, apiKey?: string): Promise<void> {
  const access = { url, ...(apiKey === undefined ? {} : { apiKey }) };
  const embeddings = new SubjectEmbeddings();
  const store = new QdrantVectorStore(embeddings, { ...access, collectionName: 'texts' });
  await store.addDocuments(DOCUMENTS, { ids: IDS });
  const textsOf = (documents: readonly Document[]) => documents.map(({ pageContent }) => pageContent);

  const [nearest] = await store.similaritySearch('the sea', 1);
  assert.equal(nearest?.pageContent, 'The sea, the sea');
  assert.deepEqual(nearest?.metadata, { year: 1993, deep: { list: [1, null] } });
  assert.equal(nearest?.id, IDS[3]);

  const filter = { must: [{ key: 'metadata.year', range: { lt: 1993 } }], must_not: [{ key: 'content', match: { value: 'Bread' } }] };
  assert.deepEqual(textsOf(await store.similaritySearch('sea', 5, filter)), ['The sea at night', 'A night train, a night train']);

  const scored = await store.similaritySearchWithScore('train', 2);
  assert.deepEqual(textsOf(scored.map(([document]) => document)), ['By train to the sea', 'A night train, a night train']);
  for (const [document, score] of scored) {
    const [a, b] = await embeddings.embedDocuments(['train', document.pageContent]);
    assert.ok(Math.abs(score - cosine(a as number[], b as number[])) < 1e-6, `${document.pageContent}: ${score}`);
  }

  // The package hands its `lambda` on as the diversity: with 1 what is like the first text comes last.
  const alike = await store.maxMarginalRelevanceSearch('sea', { k: 2, fetchK: 5, lambda: 0 });
  const diverse = await store.maxMarginalRelevanceSearch('sea', { k: 2, fetchK: 5, lambda: 1 });
  assert.deepEqual(textsOf(alike), textsOf(await store.similaritySearch('sea', 2)));
  assert.deepEqual(textsOf(diverse), ['The sea, the sea', 'A night train, a night train']);
  const within = await store.maxMarginalRelevanceSearch('sea', { k: 5, filter });
  assert.deepEqual(textsOf(within).sort(), ['A night train, a night train', 'The sea at night']);

  const again = await QdrantVectorStore.fromExistingCollection(embeddings, { ...access, collectionName: 'texts' });
  await again.delete({ ids: [IDS[3] as string] });
  assert.deepEqual(textsOf(await again.similaritySearch('sea, train', 1)), ['By train to the sea']);
  await again.delete({ filter: { must: [{ key: 'metadata.year', match: { any: [1990, 1994] } }] } });
  assert.deepEqual(textsOf(await again.similaritySearch('the sea', 9)).sort(), ['A night train, a night train', 'Bread']);

  const other = await QdrantVectorStore.fromTexts(['night', 'bread'], [{ a: 1 }, { a: 2 }], embeddings, {
    ...access,
    collectionName: 'others',
    collectionConfig: { vectors: { size: SUBJECTS.length, distance: 'Dot' } },
    customPayload: [{ kept: true }, { kept: false }],
  });
  assert.deepEqual(textsOf(await other.asRetriever({ k: 1 }).invoke('bread')), ['bread']);
  await assert.rejects(other.addVectors([[1, 2]], [new Document({ pageContent: 'short' })]), /400 .*dimension/);
}

function cosine(a: readonly number[], b: readonly number[]): number {
  const dot = (x: readonly number[], y: readonly number[]) => x.reduce((sum, value, at) => sum + value * (y[at] as number), 0);
  return dot(a, b) / Math.sqrt(dot(a, a) * dot(b, b));
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const [, , url = '', apiKey = ''] = process.argv;
  await useVectorStore(url, apiKey);
  // The client keeps its connections.
  process.exit();
}
