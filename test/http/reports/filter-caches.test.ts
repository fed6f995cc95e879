import assert from 'node:assert/strict';
import { test } from 'node:test';
import { FilterCaches, NO_CACHE_FIGURES } from '../../../http/reports/filter-caches.js';

test('a reader that is gone holds nothing, and what it knew stays counted', () => {
  const caches = new FilterCaches(() => true);
  caches.note(0, [{ collection: 'c', bytes: 100, hits: 1, misses: 2 }]);
  caches.note(1, [{ collection: 'c', bytes: 30, hits: 4, misses: 0 }]);
  caches.note(0, null);
  assert.deepEqual(caches.of('c'), { bytes: 30, hits: 5, misses: 2 });
});

test('collections that are gone are forgotten while others are told of, a few for each of these', () => {
  const names = new Set(Array.from({ length: 1000 }, (_, at) => `c${at}`));
  let asked = 0;
  const caches = new FilterCaches((name) => {
    asked += 1;
    return names.has(name);
  });
  caches.note(
    0,
    [...names].map((collection) => ({ collection, bytes: 0, hits: 1, misses: 0 })),
  );
  const gone = [...names].slice(1);
  for (const name of gone) names.delete(name);
  asked = 0;
  caches.note(0, [{ collection: 'c0', bytes: 0, hits: 1, misses: 0 }]);
  assert.ok(asked <= 3, `${asked} names were looked at for one`);
  for (let told = 0; told < 1000; told++) caches.note(0, [{ collection: 'c0', bytes: 0, hits: 1, misses: 0 }]);
  assert.deepEqual(
    gone.filter((name) => caches.of(name) !== NO_CACHE_FIGURES),
    [],
  );
});

test('a collection that is gone is forgotten', () => {
  const names = new Set(['c']);
  const caches = new FilterCaches((name) => names.has(name));
  caches.note(0, [{ collection: 'c', bytes: 100, hits: 1, misses: 2 }]);
  names.delete('c');
  caches.note(0, [{ collection: 'c', bytes: -100, hits: 0, misses: 0 }]);
  assert.deepEqual(caches.of('c'), NO_CACHE_FIGURES);
});
