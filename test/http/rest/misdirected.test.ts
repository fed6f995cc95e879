import assert from 'node:assert/strict';
import { test } from 'node:test';
import { misdirection } from '../../../http/rest/misdirected.js';
import { ROUTES } from '../../../http/routes.js';

const misdirected = misdirection(ROUTES);

function hintOf(method: string, url: string): string | undefined {
  return /did you mean (.*)\?$/.exec(misdirected(method, url)?.error.detail ?? '')?.[1];
}

test('the nearest path is named: a part that is missing, too many, misspelt, or of an operation with another method', () => {
  const meant: [string, string, string | undefined][] = [
    ['POST', '/collections/c/search', '/collections/{collection_name}/points/search'],
    ['POST', '/collections/c/points/serach', '/collections/{collection_name}/points/search'],
    ['POST', '/collections/c/point/query', '/collections/{collection_name}/points/query'],
    ['POST', '/v1/collections/c/points/query/batch', '/collections/{collection_name}/points/query/batch'],
    ['POST', '/c/points/query', '/collections/{collection_name}/points/query'],
    ['GET', '/collection', '/collections'],
    ['GET', '/health', '/healthz'],
    ['GET', '/Metrics', '/metrics'],
    ['POST', '/collection', 'GET /collections'],
    ['PUT', '/collections/c/points/snapshots/recover', '/collections/{collection_name}/snapshots/recover'],
    ['GET', '/', undefined],
    ['GET', '/no/such/path', undefined],
    ['GET', '/favicon.ico', undefined],
    ['GET', `/${'collections/'.repeat(2000)}`, undefined],
    ['GET', `/${'x'.repeat(60_000)}`, undefined],
  ];
  for (const [method, url, path] of meant) assert.equal(hintOf(method, url), path, `${method} ${url.slice(0, 100)}`);
});

test('every row is found with its own method, and each path says which methods it takes', () => {
  for (const { method, path } of ROUTES) {
    assert.equal(misdirected(method, path), null);
    const { allow, error } = misdirected('TRACE', `${path}//?x=1`) ?? {};
    assert.equal(error?.code, 'methodNotAllowed', path);
    assert.ok(allow?.split(', ').includes(method));
    assert.equal(allow?.includes('GET'), allow?.includes('HEAD'));
  }
});

test('neither the query nor the end of a long path is shown', () => {
  const { detail } = misdirected('GET', `/${'x'.repeat(5000)}y?api-key=secret`)?.error ?? { detail: '' };
  assert.ok(detail.length < 400);
  assert.doesNotMatch(detail, /secret/);
});
