import assert from 'node:assert/strict';
import test from 'node:test';
import {
  fittingLayout,
  MEMORY_BYTES_MAX,
  type SegmentLayout,
  scratchOf,
  segmentLayout,
  type VectorPlan,
} from '../../../storage/segment/layout.js';

/** A dense vector as a build makes it with m 16: 8-bit codes, and a graph. */
function plan(dim: number, rows: number): VectorPlan {
  const graph = { m: 16, m0: 32, efConstruct: 100, entryRow: 0, maxLevel: 4, upperWords: Math.ceil(rows * 1.7) };
  const codes = { scale: 1, origin: 0, exact: false };
  return { kind: 'dense', name: '', dim, distance: 'Cosine', element: 'f32', itemCapacity: 0, codes, graph };
}

/** Slots that readers have: byte offset and readers of each. */
function slotsOf(layout: SegmentLayout, readers: number): Map<number, number> {
  const slots = new Map<number, number>();
  for (let reader = 0; reader < readers; reader++) {
    const at = scratchOf(layout, reader);
    slots.set(at, (slots.get(at) ?? 0) + 1);
  }
  return slots;
}

test('each reader has scratch of its own where there is room', () => {
  const layout = fittingLayout(1000, [plan(128, 1000)], { ordered: true, readers: 46 });
  assert.deepEqual(layout, segmentLayout(1000, [plan(128, 1000)], { ordered: true, readers: 46 }));
  assert.equal(layout.scratchLevel, 0);
  assert.equal(slotsOf(layout, 46).size, 46);
});

for (const [rows, dim, built, opened, sharing] of [
  [2_930_000, 128, 3, 46, 2],
  [2_930_000, 128, 3, 190, 8],
  [5_000_000, 32, 3, 46, 2],
] as const) {
  test(`${rows} rows × ${dim} of a machine with ${built} readers open with ${opened}, of which ${sharing} take turns at scratch`, () => {
    const plans = [plan(dim, rows)];
    assert.ok(segmentLayout(rows, plans, { ordered: true, readers: built }).bytes < 3.75 * 2 ** 30);
    assert.ok(segmentLayout(rows, plans, { ordered: true, readers: opened }).bytes > MEMORY_BYTES_MAX);
    const layout = fittingLayout(rows, plans, { ordered: true, readers: opened });
    assert.ok(layout.bytes <= MEMORY_BYTES_MAX);
    const slots = [...slotsOf(layout, opened)];
    assert.equal(Math.max(...slots.map(([, readers]) => readers)), sharing);
    // They lie behind each other, and end where the rows begin.
    for (const [n, [at]] of slots.entries()) assert.equal(at, layout.scratchOffset + n * layout.scratch.bytes);
    assert.equal(layout.kinds, layout.scratchOffset + slots.length * layout.scratch.bytes);
  });
}

test('a limit just below what scratch of each reader takes makes two share, and one below one slot cannot be kept', () => {
  const options = { ordered: true, readers: 7 };
  const plans = [plan(16, 500)];
  const own = fittingLayout(500, plans, options).bytes;
  assert.equal(fittingLayout(500, plans, options, own).scratchLevel, 0);
  assert.deepEqual([...slotsOf(fittingLayout(500, plans, options, own - 1), 7).values()], [2, 2, 2, 1]);
  const least = fittingLayout(500, plans, options, 0);
  assert.deepEqual([...slotsOf(least, 7).values()], [7]);
  assert.ok(least.bytes > 0);
  assert.equal(fittingLayout(500, plans, { ...options, base: 64 }, own).scratchLevel, 1);
});
