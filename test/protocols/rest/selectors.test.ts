import assert from 'node:assert/strict';
import { test } from 'node:test';
import { ALL, decodePayloadSelector, decodeVectorSelector, NONE } from '../../../protocols/rest/selectors.js';

test('a payload selector is a flag, a list, or an object with one of include and exclude', () => {
  assert.deepEqual(decodePayloadSelector(true, NONE), ALL);
  assert.deepEqual(decodePayloadSelector(false, ALL), NONE);
  assert.deepEqual(decodePayloadSelector(undefined, ALL), ALL);
  assert.deepEqual(decodePayloadSelector(null, NONE), NONE);
  assert.deepEqual(decodePayloadSelector(['a', '"b"'], NONE), { kind: 'include', keys: ['a', 'b'] });
  assert.deepEqual(decodePayloadSelector({ include: [] }, NONE), { kind: 'include', keys: [] });
  assert.deepEqual(decodePayloadSelector({ exclude: ['a[].b'] }, NONE), { kind: 'exclude', keys: ['a[].b'] });
});

for (const value of [5, 'a', {}, { include: ['a'], exclude: ['b'] }, { include: 'a' }, { only: ['a'] }, ['a..b'], [1]]) {
  test(`the payload selector ${JSON.stringify(value)} is refused`, () => {
    assert.throws(() => decodePayloadSelector(value, ALL), /Format error in JSON body: `with_payload/);
  });
}

test('a vector selector is a flag or a list of names', () => {
  assert.deepEqual(decodeVectorSelector(true, NONE), ALL);
  assert.deepEqual(decodeVectorSelector(undefined, NONE), NONE);
  assert.deepEqual(decodeVectorSelector(['', 'a'], NONE), { kind: 'names', names: ['', 'a'] });
  assert.deepEqual(decodeVectorSelector([], NONE), { kind: 'names', names: [] });
});

for (const value of [null, 5, 'a', { a: true }, [1]]) {
  test(`the vector selector ${JSON.stringify(value)} is refused`, () => {
    assert.throws(() => decodeVectorSelector(value, NONE), /Expected a boolean, or an array of strings/);
  });
}
