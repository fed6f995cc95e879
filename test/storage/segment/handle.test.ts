import assert from 'node:assert/strict';
import { test } from 'node:test';
import { freedBytes, type SegmentHandle, type SegmentSet } from '../../../storage/segment/handle.js';

type Parts = Partial<Pick<SegmentHandle, 'fieldIndexes' | 'payloadBytes' | 'sparseIndexes'>>;

const segment = (id: number, parts: Parts = {}): SegmentHandle =>
  ({ id, layout: { bytes: 1 << 20 }, payloadBytes: null, fieldIndexes: [], sparseIndexes: [], ...parts }) as unknown as SegmentHandle;
const set = (...segments: SegmentHandle[]): SegmentSet => ({ generation: 1, segments });
const field = (name: string, bytes: number): SegmentHandle['fieldIndexes'][number] => ({
  field: name,
  type: 'keyword',
  buffer: new SharedArrayBuffer(bytes),
});

const freed = (dropped: SegmentSet[], kept: SegmentSet[], isEmptied = false): number => freedBytes(dropped, kept, isEmptied);

test('a set that only got one more segment frees nothing', () => {
  assert.equal(freed([set(segment(1))], [set(segment(1), segment(2))]), 0);
  assert.equal(freed([], [set(segment(1))]), 0);
});

test('memory is freed with a segment that no kept set has, and hardly any is left to free where it is emptied', () => {
  assert.equal(freed([set(segment(1), segment(2))], [set(segment(3))]), 2 << 20);
  assert.equal(freed([set(segment(1), segment(2))], [set(segment(3))], true), 2 << 16);
  assert.equal(freed([set(segment(1)), set(segment(1), segment(2))], [set(segment(2))]), 1 << 20);
  assert.equal(freed([set(segment(1), segment(2))], [set(segment(1)), set(segment(2))]), 0);
});

test('memory is freed with an index or the payloads of a segment, which nobody empties', () => {
  const indexed = segment(1, { fieldIndexes: [field('a', 8), field('b', 8)] });
  assert.equal(freed([set(indexed)], [set(segment(1, { fieldIndexes: [field('b', 8)] }))], true), 8);
  assert.equal(freed([set(indexed)], [set(segment(1, { fieldIndexes: [field('a', 8), field('b', 16)] }))], true), 8);
  assert.equal(freed([set(indexed)], [set(segment(1, { fieldIndexes: [field('a', 8), field('b', 8), field('c', 8)] }))], true), 0);
  const sparse = { name: 's', buffer: new SharedArrayBuffer(8) };
  assert.equal(freed([set(segment(1, { sparseIndexes: [sparse] }))], [set(segment(1))], true), 8);
  assert.equal(freed([set(segment(1, { payloadBytes: new SharedArrayBuffer(8) }))], [set(segment(1))], true), 8);
  assert.equal(freed([set(segment(1, { payloadBytes: new SharedArrayBuffer(8) }))], [], true), (1 << 16) + 8);
});
