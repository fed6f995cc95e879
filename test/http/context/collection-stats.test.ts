import assert from 'node:assert/strict';
import { test } from 'node:test';
import { CollectionStats, collectionNames, OTHERS } from '../../../http/context/collection-stats.js';

const good = (stats: CollectionStats, name: string) => stats.record(name, 3, 200, 1, 5, true);
const everyName = (name: string) => name;

/** `name endpoint status: count` of all that was counted. */
function shown(stats: CollectionStats, nameOf: (name: string) => string | null = everyName): string[] {
  return [...stats.counts(nameOf)].flatMap(([name, counts]) =>
    counts.map(({ durations, endpoint, status }) => `${name} ${endpoint} ${status}: ${durations.count}`),
  );
}

test('an error is counted for names that had a good answer, and makes no name known', () => {
  const stats = new CollectionStats();
  const fail = (name: string) => stats.record(name, 3, 404, 1, 5, false);
  fail('c');
  good(stats, 'c');
  fail('c');
  fail('none');
  assert.deepEqual(shown(stats), ['c 3 200: 1', 'c 3 404: 1']);
});

test('what readers counted goes to the figures of the main thread through a message, and is told once', () => {
  const [main, reader] = [new CollectionStats(), new CollectionStats()];
  good(main, 'c');
  good(reader, 'c');
  good(reader, 'd');
  main.add(structuredClone(reader.take()));
  assert.ok(reader.isEmpty);
  assert.deepEqual(shown(main), ['c 3 200: 2', 'd 3 200: 1']);
});

test('requests by an alias count for its collection, and those of collections that are gone are forgotten', () => {
  const stats = new CollectionStats();
  for (const name of ['c', 'alias', 'gone']) good(stats, name);
  const nameOf = collectionNames({ listCollections: () => ['c'], aliases: () => [{ alias_name: 'alias', collection_name: 'c' }] });
  assert.deepEqual(shown(stats, nameOf), ['c 3 200: 2']);
  assert.deepEqual(shown(stats), ['c 3 200: 1', 'alias 3 200: 1']);
});

test('a thousand collections have figures of their own, and all further ones have them together', () => {
  const stats = new CollectionStats();
  for (let at = 0; at < 1100; at++) good(stats, `c${at}`);
  const lines = shown(stats);
  assert.equal(lines.length, 1001);
  assert.equal(lines.at(-1), `${OTHERS} 3 200: 100`);
});
