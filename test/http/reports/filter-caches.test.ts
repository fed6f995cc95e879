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

test('a collection that is gone is forgotten', () => {
  const names = new Set(['c']);
  const caches = new FilterCaches((name) => names.has(name));
  caches.note(0, [{ collection: 'c', bytes: 100, hits: 1, misses: 2 }]);
  names.delete('c');
  caches.note(0, [{ collection: 'c', bytes: -100, hits: 0, misses: 0 }]);
  assert.deepEqual(caches.of('c'), NO_CACHE_FIGURES);
});
