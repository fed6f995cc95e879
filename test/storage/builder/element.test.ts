import assert from 'node:assert/strict';
import test from 'node:test';
import {
  buildLadder,
  encodeSigned,
  haveEqualNorms,
  isWorthNext,
  sampleFidelity,
  signedScale,
  typeFidelity,
} from '../../../storage/builder/element.js';
import { clusteredRows } from './fixture.js';

const ladder = (i8: number, f16: number) =>
  buildLadder([
    { element: 'i8', fidelity: i8 },
    { element: 'f16', fidelity: f16 },
    { element: 'f32', fidelity: 1 },
  ])
    .map(({ element }) => element)
    .join(' ');

test('the ladder starts at the smallest type that keeps the neighbours and goes on to types that keep more', () => {
  assert.equal(ladder(1, 1), 'i8');
  assert.equal(ladder(0.97, 1), 'i8 f16');
  assert.equal(ladder(0.92, 0.97), 'i8 f16 f32');
  assert.equal(ladder(0.5, 0.999), 'f16');
  assert.equal(ladder(0.1, 0.2), 'f32');
  assert.equal(ladder(0.995, 0.992), 'i8');
});

test('a graph is built again when its type confuses about as many neighbours as it misses, and not when the data is hard', () => {
  const again = (recall: number, i8: number, f16: number) =>
    isWorthNext(recall, 'l2sq', { element: 'i8', fidelity: i8 }, { element: 'f16', fidelity: f16 });
  assert.equal(again(0.92, 0.93, 1), true);
  assert.equal(again(0.69, 0.92, 1), false);
  assert.equal(again(0.84, 0.92, 1), false);
  assert.equal(again(0.92, 0.98, 1), false);
  assert.equal(again(0.96, 0.9, 1), false);
  assert.equal(isWorthNext(0.5, 'ip', { element: 'f32', fidelity: 1 }, undefined), false);
});

function flat(rows: Float32Array[]): Float32Array {
  return Float32Array.from(rows.flatMap((row) => [...row]));
}

test('fidelity is one for the same rows and falls with coarser ones', () => {
  const rows = flat(clusteredRows(300, 8, { clusters: 10, range: 1, spread: 0.1, seed: 1 }));
  const rounded = (step: number) => rows.map((value) => Math.round(value / step) * step);
  for (const metric of ['l2sq', 'ip'] as const) {
    assert.equal(sampleFidelity(rows, rows, 8, metric), 1);
    const fine = sampleFidelity(rows, rounded(0.001), 8, metric);
    const coarse = sampleFidelity(rows, rounded(0.5), 8, metric);
    assert.ok(fine > 0.98 && coarse < 0.8, `${metric}: ${fine} ${coarse}`);
  }
});

test('infinite components lose all fidelity, a single row none', () => {
  const rows = flat(clusteredRows(50, 4, { clusters: 50, range: 1, spread: 0, seed: 2 }));
  assert.ok(
    sampleFidelity(
      rows,
      rows.map(() => Number.POSITIVE_INFINITY),
      4,
      'l2sq',
    ) < 0.5,
  );
  assert.equal(sampleFidelity(new Float32Array(4), new Float32Array(4), 4, 'l2sq'), 1);
  assert.equal(sampleFidelity(new Float32Array(0), new Float32Array(0), 4, 'l2sq'), 1);
});

test('fidelity of one row counts its own neighbours, whatever becomes of those of others', () => {
  const line = Float32Array.from({ length: 40 }, (_, i) => (i < 20 ? i : 1000 + i / 100));
  const whole = line.map(Math.round);
  assert.equal(typeFidelity(line, whole, 1, 'l2sq', 0), 1);
  assert.ok(typeFidelity(line, whole, 1, 'l2sq', 39) < 0.6);
});

test('norms are equal within a hundredth', () => {
  assert.equal(haveEqualNorms(Float32Array.of(3, 4, 5, 0, 0, -5), 2), true);
  assert.equal(haveEqualNorms(Float32Array.of(3, 4, 5.1, 0), 2), false);
});

test('signed codes keep zero and are symmetric', () => {
  const scale = signedScale(Float32Array.of(-2.54, 1));
  const out = new Int8Array(4);
  encodeSigned(Float32Array.of(0, -2.54, 2.54, 9), scale, out);
  assert.deepEqual([...out], [0, -127, 127, 127]);
  assert.equal(signedScale(new Float32Array(3)), 1);
});
