import assert from 'node:assert/strict';
import test from 'node:test';
import { NOT_TAKEN, type Selection, selectRows, splitSelection } from '../../../storage/builder/select-rows.js';
import type { SegmentHandle } from '../../../storage/segment/handle.js';
import { LIVE } from '../../../storage/segment/layout.js';
import { makeSource } from './fixture.js';

const source = (id: number, ids: number[], facts: { deletedAt?: number[]; versions?: number[] } = {}): SegmentHandle =>
  makeSource({
    id,
    rows: ids.length,
    vectors: {},
    idOf: (row) => ids[row] as number,
    deletedAt: (row) => facts.deletedAt?.[row] ?? LIVE,
    versionOf: (row) => facts.versions?.[row] ?? 1,
  });

function describe(sources: SegmentHandle[], rows: number[], seq: number) {
  return describeOne(selectRows(sources, rows, seq));
}

function describeOne(selection: Selection) {
  return {
    taken: Array.from(selection.sourceOf, (from, row) => `${from}:${selection.sourceRowOf[row]}`),
    order: [...selection.order],
    maps: selection.rowMaps.map((map) => [...new Uint32Array(map)].map((row) => (row === NOT_TAKEN ? '-' : row))),
  };
}

test('rows visible at the sequence are taken in the order of their sources, and maps say where they went', () => {
  const first = source(1, [30, 10, 20], { deletedAt: [LIVE, 5, 6] });
  const second = source(2, [5, 40, 50]);
  assert.deepEqual(describe([first, second], [3, 2], 5), {
    taken: ['0:0', '0:2', '1:0', '1:1'],
    order: [2, 1, 0, 3],
    maps: [
      [0, '-', 1],
      [2, 3],
    ],
  });
});

test('of two rows with one id the newer version is taken, the earlier source of equal ones', () => {
  const first = source(1, [1, 2, 3, 4], { versions: [5, 5, 5, 5] });
  const second = source(2, [3, 2, 9, 1], { versions: [6, 5, 5, 4] });
  assert.deepEqual(describe([first, second], [4, 4], 0), {
    taken: ['0:0', '0:1', '0:3', '1:0', '1:2'],
    order: [0, 1, 3, 2, 4],
    maps: [
      [0, 1, '-', 2],
      [3, '-', 4, '-'],
    ],
  });
});

test('nothing visible makes an empty selection', () => {
  assert.deepEqual(describe([source(1, [1], { deletedAt: [0] })], [1], 3), { taken: [], order: [], maps: [['-']] });
});

test('a selection is split into parts of as many rows, each with its own order and maps', () => {
  const first = source(1, [30, 10, 20], { deletedAt: [LIVE, 5, LIVE] });
  const second = source(2, [5, 40, 50]);
  const whole = selectRows([first, second], [3, 3], 5);
  assert.deepEqual(splitSelection(whole, 1, [3, 3]), [whole]);
  assert.deepEqual(splitSelection(whole, 2, [3, 3]).map(describeOne), [
    {
      taken: ['0:0', '0:2'],
      order: [1, 0],
      maps: [
        [0, '-', 1],
        ['-', '-', '-'],
      ],
    },
    {
      taken: ['1:0', '1:1', '1:2'],
      order: [0, 1, 2],
      maps: [
        ['-', '-', '-'],
        [0, 1, 2],
      ],
    },
  ]);
  assert.deepEqual(
    splitSelection(whole, 7, [3, 3]).map(({ rows }) => rows),
    [0, 1, 1, 0, 1, 1, 1],
  );
});
