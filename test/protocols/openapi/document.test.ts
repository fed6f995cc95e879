import assert from 'node:assert/strict';
import { test } from 'node:test';
import { ROUTES } from '../../../http/routes.js';
import { openApiDocument } from '../../../protocols/openapi/document.js';
import { OPERATION_SCHEMAS } from '../../../protocols/openapi/operations.js';
import { SCHEMAS } from '../../../protocols/openapi/schemas.js';

const DOCUMENT = JSON.parse(JSON.stringify(openApiDocument(ROUTES, '1.2.3')));

function refsIn(text: string): string[] {
  return [...text.matchAll(/"\$ref":"#\/components\/schemas\/(\w+)"/g)].map(([, name]) => name as string);
}

test('every operation that this node carries out is described, by the method and path it has', () => {
  for (const { method, name, path } of ROUTES) {
    const described = DOCUMENT.paths[path]?.[method.toLowerCase()];
    assert.equal(described?.operationId, name, `${method} ${path}`);
    const names = [...path.matchAll(/\{(\w+)\}/g)].map(([, parameter]) => parameter);
    assert.deepEqual(
      described.parameters
        .filter((parameter: { in: string }) => parameter.in === 'path')
        .map((parameter: { name: string }) => parameter.name),
      names,
    );
  }
});

test('every reference leads to a schema, and every schema is referred to', () => {
  const refs = new Set(refsIn(JSON.stringify([SCHEMAS, OPERATION_SCHEMAS])));
  const named = new Set(Object.keys(SCHEMAS));
  assert.deepEqual(
    [...refs].filter((name) => !named.has(name)),
    [],
  );
  assert.deepEqual(
    Object.keys(SCHEMAS).filter((name) => !refs.has(name)),
    [],
  );
});
