import assert from 'node:assert/strict';
import { test } from 'node:test';
import {
  EMPTY_WINDOW,
  type EntryWindow,
  entriesFrom,
  entryAt,
  withAdded,
  withoutFirst,
} from '../../../cluster/replication/entry-window.js';
import { recentAfter, withRecent } from '../../../cluster/replication/recent.js';
import type { Recent } from '../../../cluster/replication/state.js';
import type { LogTag, ShardEntry } from '../../../protocols/model/shard-log.js';

const tag = (index: number): LogTag => ({ index, term: 1, peer: 1 });
const entry = (index: number): ShardEntry => ({ tag: tag(index), operation: new Uint8Array(100) });
const entries = (from: number, to: number): ShardEntry[] => Array.from({ length: to - from }, (_, at) => entry(from + at));
const windowOf = (added: readonly ShardEntry[]): EntryWindow => withAdded(EMPTY_WINDOW, added);
const indexes = (window: EntryWindow): number[] => [...entriesFrom(window)].map(({ tag }) => tag.index);

/** How many elements of arrays are copied or walked while `run` runs. */
function elementsTouched(run: () => void): number {
  const { slice, values } = Array.prototype;
  const iterate = Array.prototype[Symbol.iterator];
  let touched = 0;
  const counting = <Call extends (...given: never[]) => unknown>(call: Call) =>
    function (this: unknown[], ...given: never[]) {
      touched += this.length;
      return call.apply(this, given);
    };
  Object.assign(Array.prototype, { slice: counting(slice), [Symbol.iterator]: counting(iterate), values: counting(values) });
  try {
    run();
  } finally {
    Object.assign(Array.prototype, { slice, [Symbol.iterator]: iterate, values });
  }
  return touched;
}

test('a write costs what it adds, however many entries wait for a replica that lags', () => {
  let recent: Recent = { after: tag(0), entries: windowOf(entries(1, 100_001)), bytes: 10_000_000 };
  const touched = elementsTouched(() => {
    for (let index = 100_001; index <= 100_200; index++) recent = withRecent(recent, [entry(index)], 0);
  });
  assert.equal(recent.entries.length, 100_200);
  assert.ok(touched < 20_000, `${touched} elements for 200 writes`);
});

test('reading a portion for a replica costs the portion, not what waits', () => {
  const recent: Recent = { after: tag(0), entries: windowOf(entries(1, 100_001)), bytes: 10_000_000 };
  let taken: readonly ShardEntry[] | null = null;
  const touched = elementsTouched(() => {
    taken = recentAfter(recent, tag(10), 100_000, 1000);
  });
  assert.deepEqual(indexes(windowOf(taken ?? [])), [11, 12, 13, 14, 15, 16, 17, 18, 19, 20]);
  assert.ok(touched < 100, `${touched} elements`);
});

test('entries that every replica has leave in steps that cost little in all, and later ones stay readable', () => {
  let recent: Recent = { after: tag(0), entries: windowOf(entries(1, 10_001)), bytes: 1_000_000 };
  const touched = elementsTouched(() => {
    for (let index = 1; index <= 10_000; index++) recent = withRecent(recent, [], index);
  });
  assert.ok(touched < 100_000, `${touched} elements for 10,000 entries that leave`);
  assert.deepEqual([recent.entries.length, recent.bytes, recent.after.index], [0, 0, 10_000]);
});

test('windows that are made of one another do not see each other’s entries', () => {
  const first = windowOf(entries(1, 5));
  const left = withAdded(first, [entry(5)]);
  const right = withAdded(first, [entry(6), entry(7)]);
  assert.deepEqual(indexes(first), [1, 2, 3, 4]);
  assert.deepEqual(indexes(left), [1, 2, 3, 4, 5]);
  assert.deepEqual(indexes(right), [1, 2, 3, 4, 6, 7]);
  const shorter = withoutFirst(left, 1);
  assert.deepEqual(
    [indexes(shorter), indexes(left)],
    [
      [2, 3, 4, 5],
      [1, 2, 3, 4, 5],
    ],
  );
  assert.deepEqual(indexes(withAdded(shorter, [entry(8)])), [2, 3, 4, 5, 8]);
  assert.deepEqual([entryAt(shorter, 0)?.tag.index, entryAt(shorter, -1), entryAt(shorter, 4)], [2, undefined, undefined]);
});
