import assert from 'node:assert/strict';
import { test } from 'node:test';
import { routeFinder } from '../../../../http/rest/fast/find-route.js';
import { ROUTES } from '../../../../http/routes.js';

const findRoute = routeFinder(ROUTES);

test('each row of the table is found by its method and path, with its parameters', () => {
  ROUTES.forEach((route, at) => {
    const names = [...route.path.matchAll(/\{(\w+)\}/g)].map(([, name]) => name as string);
    const found = findRoute(
      route.method,
      route.path.replace(/\{(\w+)\}/g, (_, name: string) => `value-${name}`),
    );
    assert.equal(found?.at, at, `${route.method} ${route.path}`);
    assert.deepEqual(found?.path, Object.fromEntries(names.map((name) => [name, `value-${name}`])));
  });
});

test('a name in a path goes before a parameter, and the parameter is tried when the name leads nowhere', () => {
  assert.equal(
    findRoute('POST', '/collections/aliases')?.at,
    ROUTES.findIndex(({ method, path }) => method === 'POST' && path === '/collections/aliases'),
  );
  assert.deepEqual(findRoute('GET', '/collections/aliases')?.path, { collection_name: 'aliases' });
  assert.deepEqual(findRoute('GET', '/collections/aliases/exists')?.path, { collection_name: 'aliases' });
  assert.deepEqual(findRoute('GET', '/collections/c/points/count')?.path, { collection_name: 'c', id: 'count' });
});

test('paths and methods that the table does not have are not found', () => {
  for (const path of ['/none', '/collections/c/points/5/more', '/Collections']) assert.equal(findRoute('GET', path), null, path);
  assert.equal(findRoute('POST', '/healthz'), null);
});
