import assert from 'node:assert/strict';
import { test } from 'node:test';
import { freesMemory, type SegmentHandle, type SegmentSet } from '../../../storage/segment/handle.js';

type Parts = Partial<Pick<SegmentHandle, 'fieldIndexes' | 'payloadBytes' | 'sparseIndexes'>>;

const segment = (id: number, parts: Parts = {}): SegmentHandle =>
  ({ id, payloadBytes: null, fieldIndexes: [], sparseIndexes: [], ...parts }) as unknown as SegmentHandle;
const set = (...segments: SegmentHandle[]): SegmentSet => ({ generation: 1, segments });
const field = (name: string, bytes: number): SegmentHandle['fieldIndexes'][number] => ({
  field: name,
  type: 'keyword',
  buffer: new SharedArrayBuffer(bytes),
});

test('a set that only got one more segment frees nothing', () => {
  assert.equal(freesMemory([set(segment(1))], [set(segment(1), segment(2))]), false);
  assert.equal(freesMemory([], [set(segment(1))]), false);
});

test('memory is freed with a segment that no kept set has', () => {
  assert.equal(freesMemory([set(segment(1), segment(2))], [set(segment(3))]), true);
  assert.equal(freesMemory([set(segment(1)), set(segment(1), segment(2))], [set(segment(2))]), true);
  assert.equal(freesMemory([set(segment(1), segment(2))], [set(segment(1)), set(segment(2))]), false);
});

test('memory is freed with an index or the payloads of a segment that stays', () => {
  const indexed = segment(1, { fieldIndexes: [field('a', 8), field('b', 8)] });
  assert.equal(freesMemory([set(indexed)], [set(segment(1, { fieldIndexes: [field('b', 8)] }))]), true);
  assert.equal(freesMemory([set(indexed)], [set(segment(1, { fieldIndexes: [field('a', 8), field('b', 16)] }))]), true);
  assert.equal(freesMemory([set(indexed)], [set(segment(1, { fieldIndexes: [field('a', 8), field('b', 8), field('c', 8)] }))]), false);
  const sparse = { name: 's', buffer: new SharedArrayBuffer(8) };
  assert.equal(freesMemory([set(segment(1, { sparseIndexes: [sparse] }))], [set(segment(1))]), true);
  assert.equal(freesMemory([set(segment(1, { payloadBytes: new SharedArrayBuffer(8) }))], [set(segment(1))]), true);
});
