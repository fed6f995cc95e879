import assert from 'node:assert/strict';
import { test } from 'node:test';
import { freeAliases } from '../../../ops/transfer/collection-copy.js';

test('a copy gets the aliases of its source whose names are free, or are its own already', () => {
  const alias = (name: string, collection: string) => ({ alias_name: name, collection_name: collection });
  const source = ['free', 'own', 'other', 'c'].map((name) => alias(name, 'source'));
  const { free, taken } = freeAliases(
    source,
    [alias('own', 'copy'), alias('other', 'b')],
    [{ name: 'copy' }, { name: 'b' }, { name: 'c' }],
    'copy',
  );
  assert.deepEqual(free, ['free']);
  assert.deepEqual(
    [...taken],
    [
      ['other', 'b'],
      ['c', 'c'],
    ],
  );
});
