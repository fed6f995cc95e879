import assert from 'node:assert/strict';
import { test } from 'node:test';
import { ROUTES } from '../../../http/routes.js';
import { noteKey, openApiDocument } from '../../../protocols/openapi/document.js';
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

/** Calls `visit` with each field of a schema, at any depth. */
function eachField(schema: SchemaObject, visit: (name: string, field: SchemaObject) => void): void {
  for (const [name, field] of Object.entries(schema.properties ?? {})) {
    visit(name, field);
    eachField(field, visit);
  }
  if (typeof schema.additionalProperties === 'object') eachField(schema.additionalProperties, visit);
  for (const inner of [...(schema.anyOf ?? []), ...(schema.items === undefined ? [] : [schema.items])]) eachField(inner, visit);
}

test('every field of a request or an answer has a description, or refers to a schema that has one', () => {
  const lacking: string[] = [];
  const { schemas } = DOCUMENT.components;
  for (const within of Object.keys(SCHEMAS))
    eachField(schemas[within], (name, { $ref, anyOf, description }) => {
      const to = $ref ?? (anyOf?.length === 1 ? anyOf[0]?.$ref : undefined);
      if (description === undefined && schemas[to?.split('/').at(-1) ?? '']?.description === undefined) lacking.push(`${within}.${name}`);
    });
  assert.deepEqual(lacking, []);
});

test('every note is of a field that has no description of its own', () => {
  const unused = new Set(Object.keys(FIELD_NOTES));
  for (const [within, schema] of Object.entries(SCHEMAS))
    eachField(schema, (name, { description }) => {
      if (description === undefined) unused.delete(noteKey(name, within));
    });
  assert.deepEqual([...unused], []);
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
