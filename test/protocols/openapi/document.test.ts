import assert from 'node:assert/strict';
import { test } from 'node:test';
import { ROUTES } from '../../../http/routes.js';
import { openApiDocument, saysItself } from '../../../protocols/openapi/document.js';
import { FIELD_NOTES } from '../../../protocols/openapi/field-notes.js';
import { OPERATION_SCHEMAS } from '../../../protocols/openapi/operations.js';
import type { SchemaObject } from '../../../protocols/openapi/schema.js';
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

test('every field of a request or an answer is described', () => {
  const lacking: string[] = [];
  const visit = (schema: SchemaObject, where: string): void => {
    for (const [name, field] of Object.entries(schema.properties ?? {})) {
      if (!saysItself(field)) lacking.push(`${where}.${name}`);
      visit(field, where);
    }
    if (typeof schema.additionalProperties === 'object') visit(schema.additionalProperties, where);
    for (const inner of [...(schema.anyOf ?? []), ...(schema.items === undefined ? [] : [schema.items])]) visit(inner, where);
  };
  for (const name of Object.keys(SCHEMAS)) visit(DOCUMENT.components.schemas[name], name);
  assert.deepEqual(lacking, []);
});

test('every note is about a field that there is', () => {
  const text = JSON.stringify(DOCUMENT.components.schemas);
  for (const [key, note] of Object.entries(FIELD_NOTES)) assert.ok(text.includes(JSON.stringify(note.text).slice(1, -1)), key);
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
