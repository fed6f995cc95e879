import assert from 'node:assert/strict';
import { test } from 'node:test';
import { cacheText } from '../../../query/filter/cache-text.js';

const text = (value: object) => cacheText(value, 1000);

test('values that differ have different texts, and equal ones the same', () => {
  const values = [
    { match: 1 },
    { match: 1n },
    { match: '1' },
    { match: '1n' },
    { match: true },
    { match: 'true' },
    { match: null },
    { match: undefined },
    { match: [1, 2] },
    { match: ['1', '2'] },
    { match: ['1,2'] },
    { match: '["1","2"]' },
    { match: { key: 1 } },
    { match: {}, key: 1 },
    { match: 'a","key":"b' },
    { match: 'a', key: 'b' },
    { ['__proto__']: 1 },
    {},
    [],
  ];
  const texts = values.map(text);
  assert.equal(new Set(texts).size, values.length, String(texts));
  assert.deepEqual(structuredClone(values).map(text), texts);
});

test('a list that is too long has no text, and is not gone through to its end', () => {
  assert.notEqual(text({ ids: Array.from({ length: 100 }, (_, id) => id) }), null);
  let looked = 0;
  const ids = new Proxy(new Array(1_000_000).fill(12), {
    get: (list, at, self) => {
      looked++;
      return Reflect.get(list, at, self);
    },
  });
  assert.equal(text({ must: [{ ids }] }), null);
  assert.ok(looked < 2000, `${looked} were looked at`);
  assert.equal(text({ name: 'x'.repeat(1001) }), null);
});
