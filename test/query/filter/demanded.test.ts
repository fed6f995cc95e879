import assert from 'node:assert/strict';
import test from 'node:test';
import type { FieldSchema } from '../../../protocols/model/collection.js';
import type { Condition, Filter, MatchValue } from '../../../protocols/model/filter.js';
import { demandedValues } from '../../../query/filter/demanded.js';

const SCHEMAS = new Map<string, FieldSchema>([
  ['word', { type: 'keyword' }],
  ['number', { type: 'integer' }],
  ['id', { type: 'uuid' }],
  ['text', { type: 'text' }],
]);
const UUID = '01234567-89ab-4cde-8f01-23456789abcd';

const is = (key: string, value: MatchValue): Condition => ({ kind: 'match', key, match: { kind: 'value', value } });
const filter = (parts: Partial<Filter>): Filter => ({ must: [], should: [], mustNot: [], minShould: null, ...parts });
const demanded = (parts: Partial<Filter>) =>
  demandedValues(filter(parts), (key) => SCHEMAS.get(key)).map(({ key, value }) => `${key} ${value}`);

test('single values under must are demanded, as the index has them, also in filters within', () => {
  assert.deepEqual(demanded({ must: [is('word', 'a'), is('number', 5n), is('id', UUID.toUpperCase().replaceAll('-', ''))] }), [
    'word a',
    'number 5',
    `id ${UUID}`,
  ]);
  const one: Condition = { kind: 'match', key: 'word', match: { kind: 'any', values: ['a'] } };
  assert.deepEqual(demanded({ must: [{ kind: 'filter', filter: filter({ must: [one] }) }], should: [is('word', 'b')] }), ['word a']);
});

test('nothing is demanded by other conditions, under other clauses, of fields without an index or of another type', () => {
  const some: Condition = { kind: 'match', key: 'word', match: { kind: 'any', values: ['a', 'b'] } };
  const except: Condition = { kind: 'match', key: 'word', match: { kind: 'except', values: ['a'] } };
  const range: Condition = { kind: 'range', key: 'number', range: { gte: 5, lte: 5 } };
  const nested: Condition = { kind: 'nested', key: 'word', filter: filter({ must: [is('word', 'a')] }) };
  assert.deepEqual(demanded({ must: [some, except, range, nested, is('other', 'a'), is('text', 'a'), is('word', 5)] }), []);
  const a = [is('word', 'a')];
  assert.deepEqual(demanded({ should: a, mustNot: a, minShould: { conditions: a, minCount: 1 } }), []);
  assert.deepEqual(demanded({ must: [{ kind: 'filter', filter: filter({ should: a, mustNot: a }) }] }), []);
});
