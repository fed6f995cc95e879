import assert from 'node:assert/strict';
import { test } from 'node:test';
import { TroupeError } from '../../../protocols/errors.js';
import { encodeResult } from '../../../storage/answers/encode.js';
import { encodeGrpcResult } from '../../../storage/answers/encode-grpc.js';
import type { PointView, ReadResult } from '../../../storage/answers/result.js';

const COUNT = 20_000;

/** Points of an answer; what is read of them is counted. */
function points(): { readonly list: PointView[]; printed: number } {
  const all = { list: [] as PointView[], printed: 0 };
  for (let id = 0; id < COUNT; id++) {
    all.list.push({
      get id() {
        all.printed++;
        return id;
      },
      score: 1,
    });
  }
  return all;
}

/** A clock that runs out at the n-th look at it. */
function expiringAt(looks: number) {
  let looked = 0;
  const check = (): void => {
    if (++looked >= looks) throw new TroupeError('timeout', 'over');
  };
  return { check, hold: () => {} };
}

test('printing ends within a thousand and some points once the time is over, in both formats', () => {
  for (const encode of [
    (result: ReadResult) => encodeResult(result, expiringAt(3)),
    (result: ReadResult) => encodeGrpcResult(result, false, expiringAt(3)),
  ]) {
    const all = points();
    assert.throws(() => encode({ kind: 'queried', points: all.list }), { code: 'timeout' });
    assert.ok(all.printed <= 3 * 1024 + 1, `${all.printed} were printed`);
  }
});

test('the lists of a batch that are empty are looked at as well', () => {
  const lists = Array.from({ length: COUNT }, (): PointView[] => []);
  assert.throws(() => encodeResult({ kind: 'queriedLists', lists }, expiringAt(2)), { code: 'timeout' });
});

test('the bytes of an answer are held before they are taken: once while they are printed, and once as they are given away', () => {
  const holds: number[] = [];
  const answer = encodeResult({ kind: 'queried', points: points().list }, { check: () => {}, hold: (bytes) => holds.push(bytes) });
  const held = holds.reduce((sum, bytes) => sum + bytes, 0);
  assert.ok(answer.length > 400_000);
  assert.ok(held >= 2 * answer.length - 4096 && held <= 4 * answer.length, `${held} for ${answer.length}`);
});

test('a matrix is printed pair by pair', () => {
  const neighbours = [
    { at: Uint32Array.of(1, 2), scores: Float32Array.of(0.5, 0.25) },
    { at: Uint32Array.of(0), scores: Float32Array.of(0.5) },
    { at: new Uint32Array(0), scores: new Float32Array(0) },
  ];
  const matrix = { ids: [7, 8, 9], neighbours };
  const pairs = encodeResult({ kind: 'matrixPairs', matrix });
  assert.equal(Buffer.from(pairs).toString(), '{"pairs":[{"a":7,"b":8,"score":0.5},{"a":7,"b":9,"score":0.25},{"a":8,"b":7,"score":0.5}]}');
  const offsets = encodeResult({ kind: 'matrixOffsets', matrix });
  assert.equal(Buffer.from(offsets).toString(), '{"offsets_row":[0,0,1],"offsets_col":[1,2,0],"scores":[0.5,0.25,0.5],"ids":[7,8,9]}');
});
