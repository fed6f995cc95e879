import assert from 'node:assert/strict';
import test from 'node:test';
import type { VectorParams } from '../../../protocols/model/collection.js';
import type { VectorPlan } from '../../../storage/segment/layout.js';
import { canArriveLater, staysOnDisk } from '../../../storage/segment/residence.js';
import { makeConfig } from '../builder/fixture.js';

const CODES = { scale: 1, origin: 0, exact: false };
const GRAPH = { m: 4, m0: 8, efConstruct: 100, entryRow: 0, maxLevel: 0, upperWords: 0 };
const PLAN: VectorPlan = {
  kind: 'dense',
  itemCapacity: 0,
  name: '',
  dim: 256,
  distance: 'Dot',
  element: 'f32',
  codes: CODES,
  graph: GRAPH,
};

/** 100 rows: 100 kB. */
function decide(onDisk: VectorParams['on_disk'], memmapKb: number | null, more: Partial<VectorPlan> = {}): boolean {
  const config = makeConfig({ size: 256, distance: 'Dot', on_disk: onDisk });
  const optimizers = { ...config.optimizer_config, memmap_threshold: memmapKb };
  return staysOnDisk({ ...PLAN, ...more }, 100, { ...config, optimizer_config: optimizers });
}

test('on_disk decides; where it is silent, memmap_threshold does', () => {
  for (const threshold of [null, 0, 1, 1000]) {
    assert.equal(decide(true, threshold), true);
    assert.equal(decide(false, threshold), false);
  }
  assert.deepEqual(
    [null, 0, 99, 100].map((threshold) => decide(undefined, threshold)),
    [false, false, true, false],
  );
  assert.equal(decide(undefined, 50, { element: 'f16' }), false);
  assert.equal(decide(undefined, 49, { element: 'f16' }), true);
});

test('originals arrive later where a walk scores codes, and where they are many', () => {
  const rows = (16 << 20) / 1024;
  assert.equal(canArriveLater(PLAN, rows), true);
  assert.equal(canArriveLater(PLAN, rows - 1), false);
  for (const more of [{ codes: null }, { graph: null }, { element: 'u8' }, { decoded: true }, { kind: 'multi' }] as const)
    assert.equal(canArriveLater({ ...PLAN, ...more }, 4 * rows), false, JSON.stringify(more));
});

test('what walks score stays in memory', () => {
  assert.equal(decide(true, null, { codes: null }), false);
  assert.equal(decide(true, null, { codes: null, graph: null }), true);
  assert.equal(decide(true, null, { element: 'u8', codes: null, graph: null }), false);
});
