import assert from 'node:assert/strict';
import { test } from 'node:test';
import { ROUTES } from '../../../http/routes.js';
import { openApiDocument } from '../../../protocols/openapi/document.js';
import { completionAt, type OpenApi } from '../../../web/model/completion.js';

const API = openApiDocument(ROUTES, '1') as unknown as OpenApi;

/** What is proposed at the `|`. */
function proposed(text: string): string[] {
  const cursor = text.indexOf('|');
  return (completionAt(text.replace('|', ''), cursor, API, ['cities'])?.choices ?? []).map((choice) => choice.text);
}

test('methods, paths and fields are proposed by what is written before the cursor', () => {
  assert.deepEqual(proposed('PA|'), ['PATCH /']);
  assert.deepEqual(proposed('POST /collections/cities/points/query|').slice(0, 2), [
    '/collections/cities/points/query/batch',
    '/collections/cities/points/query/groups',
  ]);
  assert.deepEqual(proposed('POST /collections/cities/points/scroll\n{"filter": {"mus|'), ['must": ', 'must_not": ']);
  assert.deepEqual(proposed('POST /collections/cities/points/scroll\n{"filter": {"must": [{"key": "a", "ma|'), ['match": ']);
  assert.deepEqual(proposed('PUT /collections/cities\n{"vectors": {"size": 4, "dis|'), ['distance": ']);
});

test('nothing is proposed within a value, after the end of a body, and for paths that are not there', () => {
  assert.deepEqual(proposed('POST /collections/cities/points/scroll\n{"offset": "li|'), []);
  assert.deepEqual(proposed('POST /collections/cities/points/scroll\n{"limit": 1}|'), []);
  assert.deepEqual(proposed('POST /nowhere\n{"li|'), []);
});
