import assert from 'node:assert/strict';
import test from 'node:test';
import { groupedOrder, neighbourOrder, reorderRows } from '../../../storage/builder/reorder.js';
import { selectRows } from '../../../storage/builder/select-rows.js';
import { idColumns, sortOrder } from '../../../storage/segment/ids.js';
import { type GraphLayout, LIVE, residentOffset, segmentLayout, segmentMemory } from '../../../storage/segment/layout.js';
import { makeSource, randomFrom } from './fixture.js';

const GRAPH = { m: 2, m0: 4, efConstruct: 100, entryRow: 2, maxLevel: 1, upperWords: 6 };

/** A draft of rows whose id is their number; links: neighbours on level 0 of each row. */
function draftOf(links: readonly (readonly number[])[], upper: ReadonlyMap<number, readonly number[]> = new Map()) {
  const rows = links.length;
  const layout = segmentLayout(
    rows,
    [
      {
        kind: 'dense',
        name: '',
        dim: 3,
        distance: 'Euclid',
        element: 'f32',
        itemCapacity: 0,
        codes: { scale: 1, origin: 0, exact: false },
        graph: GRAPH,
      },
    ],
    {
      ordered: true,
      readers: 1,
    },
  );
  const memory = segmentMemory(layout);
  const columns = idColumns(memory, layout);
  const vector = layout.vectors[0] as (typeof layout.vectors)[number];
  const level0 = new Uint32Array(memory.buffer, vector.graph?.level0, rows * 5);
  const upperIndex = new Uint32Array(memory.buffer, vector.graph?.upperIndex, rows).fill(LIVE);
  const upperLists = new Uint32Array(memory.buffer, vector.graph?.upper, GRAPH.upperWords);
  const presence = new Uint32Array(memory.buffer, vector.presence, Math.ceil(rows / 32));
  let next = 0;
  links.forEach((neighbours, row) => {
    columns.words[row * 4 + 3] = row;
    new Float64Array(memory.buffer, layout.versions)[row] = row * 10;
    new Float32Array(memory.buffer, residentOffset(vector) + row * vector.stride).set([row, row, row].slice(0, 3));
    new Uint8Array(memory.buffer, vector.codes?.offset)[row * 16] = row;
    level0.set([neighbours.length, ...neighbours], row * 5);
    if (neighbours.length > 0) presence[row >>> 5] = (presence[row >>> 5] as number) | (1 << (row & 31));
    const above = upper.get(row);
    if (above === undefined) return;
    upperIndex[row] = next;
    upperLists.set([above.length, ...above], next);
    next += 3;
  });
  sortOrder(columns, rows);
  return { memory, layout, rows, vector, columns, level0, upperIndex, upperLists, presence };
}

test('rows come depth first from the entry, nearest neighbours first, and rows without links at the end', () => {
  const { memory, vector, rows } = draftOf([[], [4], [3, 1], [2, 5], [1], [3]]);
  assert.deepEqual([...neighbourOrder(memory, vector.graph as never, rows)], [2, 3, 5, 1, 4, 0]);
});

test('rows of a group come together, in the order they had among themselves', () => {
  assert.deepEqual(groupedOrder(Uint32Array.of(4, 0, 3, 1, 2), Uint32Array.of(2, 0, 0, 2, 0)), Uint32Array.of(4, 1, 2, 0, 3));
  assert.deepEqual(groupedOrder(new Uint32Array(0), new Uint32Array(0)), new Uint32Array(0));
});

test('a graph of no rows keeps the order', () => {
  const { memory, vector, rows } = draftOf([[], [], []]);
  assert.deepEqual([...neighbourOrder(memory, { ...(vector.graph as GraphLayout), entryRow: LIVE }, rows)], [0, 1, 2]);
});

test('everything of a row moves with it, and all that names rows names the new ones', () => {
  const random = randomFrom(4);
  const rows = 70;
  const links = Array.from({ length: rows }, (_, row) =>
    row % 9 === 8 ? [] : Array.from({ length: 1 + Math.floor(random() * 4) }, () => Math.floor(random() * rows)),
  );
  const draft = draftOf(
    links,
    new Map([
      [2, [7]],
      [7, [2, 2]],
    ]),
  );
  const source = makeSource({ id: 1, rows, vectors: {}, idOf: (row) => row });
  const order = neighbourOrder(draft.memory, draft.vector.graph as GraphLayout, rows);
  const { vectors, selection } = reorderRows(draft, draft.layout.vectors, order, selectRows([source], [rows], 5));
  const idOf = (row: number) => draft.columns.words[row * 4 + 3] as number;
  assert.notDeepEqual(
    Array.from({ length: rows }, (_, row) => idOf(row)),
    Array.from({ length: rows }, (_, row) => row),
  );
  assert.equal(idOf(vectors[0]?.graph?.entryRow as number), 2);
  assert.deepEqual(
    [...draft.columns.order].map(idOf),
    Array.from({ length: rows }, (_, row) => row),
  );
  assert.deepEqual(selection.order, draft.columns.order);
  const map = new Uint32Array(selection.rowMaps[0] as SharedArrayBuffer);
  const upperOf = new Map<number, number[]>();
  for (let row = 0; row < rows; row++) {
    const id = idOf(row);
    assert.equal(selection.sourceRowOf[row], id);
    assert.equal(map[id], row);
    assert.equal(new Float64Array(draft.memory.buffer, draft.layout.versions)[row], id * 10);
    assert.deepEqual([...new Float32Array(draft.memory.buffer, residentOffset(draft.vector) + row * draft.vector.stride, 3)], [id, id, id]);
    assert.equal(new Uint8Array(draft.memory.buffer, draft.vector.codes?.offset)[row * 16], id);
    const list = [...draft.level0.subarray(row * 5 + 1, row * 5 + 1 + (draft.level0[row * 5] as number))];
    assert.deepEqual(list.map(idOf), links[id]);
    assert.equal(((draft.presence[row >>> 5] as number) >>> (row & 31)) & 1, links[id]?.length === 0 ? 0 : 1);
    const at = draft.upperIndex[row] as number;
    if (at !== LIVE) upperOf.set(id, [...draft.upperLists.subarray(at + 1, at + 1 + (draft.upperLists[at] as number))].map(idOf));
  }
  assert.deepEqual([upperOf.get(2), upperOf.get(7), upperOf.size], [[7], [2, 2], 2]);
});
