import assert from 'node:assert/strict';
import { test } from 'node:test';
import { FilterCache } from '../../../query/filter/cache.js';

const entry = (words: number) => ({ rows: words * 32, bits: new Uint32Array(words) });

test('the least recently used bitset goes first when the bound is reached', () => {
  const cache = new FilterCache(3 * 1300);
  const scope = cache.scope('s');
  for (const key of ['a', 'b', 'c']) scope.set(key, entry(250));
  scope.get('a');
  scope.set('d', entry(250));
  assert.deepEqual(
    ['a', 'b', 'c', 'd'].filter((key) => scope.get(key) !== undefined),
    ['a', 'c', 'd'],
  );
  assert.ok(cache.sizeBytes <= 3 * 1300);
});

test('a bitset larger than the whole cache is not kept', () => {
  const cache = new FilterCache(1000);
  cache.scope('s').set('a', entry(1000));
  assert.equal(cache.size, 0);
  assert.equal(cache.sizeBytes, 0);
});

test('scopes do not see each other, and a dropped one is empty', () => {
  const cache = new FilterCache(1e6);
  cache.scope('s1').set('a', entry(1));
  cache.scope('s2').set('a', entry(2));
  assert.equal(cache.scope('s2').get('a')?.rows, 64);
  cache.drop('s2');
  assert.equal(cache.scope('s2').get('a'), undefined);
  assert.equal(cache.scope('s1').get('a')?.rows, 32);
});

test('replacing a bitset counts it once', () => {
  const cache = new FilterCache(1e6);
  cache.scope('s').set('a', entry(100));
  const bytes = cache.sizeBytes;
  cache.scope('s').set('a', entry(100));
  assert.equal(cache.sizeBytes, bytes);
});

test('what a cache holds and knew is counted for the owner of its bitsets, until they are dropped', () => {
  const told: Record<string, { bytes: number; asked: boolean[] }> = {};
  const of = (owner: string) => {
    told[owner] ??= { bytes: 0, asked: [] };
    return told[owner];
  };
  const cache = new FilterCache(1e6, undefined, {
    grew: (owner, bytes) => {
      of(owner).bytes += bytes;
    },
    asked: (owner, known) => of(owner).asked.push(known),
  });
  const scope = cache.scope('c/0/1', 'c');
  scope.asked(false);
  scope.set('a', entry(100));
  scope.set('a', entry(200));
  scope.asked(true);
  assert.deepEqual(told, { c: { bytes: cache.sizeBytes, asked: [false, true] } });
  cache.drop('c/0/1');
  assert.equal(of('c').bytes, 0);
});
