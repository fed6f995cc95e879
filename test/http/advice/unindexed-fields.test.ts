import assert from 'node:assert/strict';
import { test } from 'node:test';
import { UnindexedFields } from '../../../http/advice/unindexed-fields.js';

const scan = (field: string, type: 'keyword' | 'integer' | 'float', rows: number, milliseconds: number) => {
  return { collection: 'a b', field, type, reads: 2, rows, milliseconds };
};

test('scans of all readers add up to an issue for each field, with what they cost and the call that makes the index', () => {
  const fields = new UnindexedFields(() => 0);
  fields.note([scan('color', 'keyword', 1000, 10), scan('size', 'float', 10, 500)]);
  fields.note([scan('color', 'keyword', 3000, 30)]);
  const issues = fields.issues(() => false);
  assert.deepEqual(
    issues.map(({ id, count }) => `${id} ${count}`),
    ['UNINDEXED_FIELD/a b/size 2', 'UNINDEXED_FIELD/a b/color 4'],
  );
  assert.equal(
    issues[1]?.description,
    'Filters on `color` of collection `a b` read payloads, as the field has no payload index: 4 requests, 4,000 payloads (1,000 payloads ' +
      "each), 0.0400 s of threads' time.",
  );
  assert.deepEqual(issues[1]?.action, {
    method: 'PUT',
    path: '/collections/a%20b/index?wait=true',
    body: { field_name: 'color', field_schema: 'keyword' },
  });
});

test('the index is of the type that would have spared most payloads', () => {
  const fields = new UnindexedFields(() => 0);
  fields.note([scan('year', 'float', 1000, 1), scan('year', 'integer', 5000, 1)]);
  const [issue] = fields.issues(() => false);
  assert.deepEqual(issue?.action?.body, { field_name: 'year', field_schema: 'integer' });
});

test('a field that has got an index, or has lost its collection, is no issue any more, and begins anew', () => {
  const fields = new UnindexedFields(() => 0);
  fields.note([scan('color', 'keyword', 1000, 10)]);
  assert.deepEqual(
    fields.issues(() => true),
    [],
  );
  assert.deepEqual(
    fields.issues(() => false),
    [],
  );
  fields.note([scan('color', 'keyword', 1000, 10)]);
  assert.deepEqual(
    fields.issues(() => null),
    [],
  );
});
