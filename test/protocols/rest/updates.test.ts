import assert from 'node:assert/strict';
import { test } from 'node:test';
import { TroupeError } from '../../../protocols/errors.js';
import { parseJson } from '../../../protocols/json.js';
import type { PointBatch, UpdateOperation, WriteOperation } from '../../../protocols/model/update.js';
import type { Embed, VectorNames } from '../../../protocols/rest/point-vectors.js';
import { decodeUpdateValue } from '../../../protocols/rest/updates.js';

const SINGLE: VectorNames = { vectors: { size: 2, distance: 'Dot' } };
const NAMED: VectorNames = { vectors: { a: { size: 2, distance: 'Dot' }, b: { size: 3, distance: 'Euclid' } } };

function decode(kind: WriteOperation, body: string | object, vectors: VectorNames = SINGLE): readonly UpdateOperation[] {
  return decodeUpdateValue(kind, parseJson(typeof body === 'string' ? body : JSON.stringify(body)), {}, vectors).operations;
}

function batchOf(body: string | object, vectors: VectorNames = SINGLE): PointBatch {
  const [operation] = decode('upsertPoints', body, vectors);
  return operation?.kind === 'upsert' ? operation.batch : assert.fail('no upsert');
}

function refused(kind: WriteOperation, body: string | object, vectors: VectorNames = SINGLE): string {
  try {
    decode(kind, body, vectors);
  } catch (error) {
    if (error instanceof TroupeError) return error.code;
    throw error;
  }
  return 'accepted';
}

test('the list form and the batch form come to the same columns', () => {
  const listed = batchOf({
    points: [
      { id: 1, vector: [1, 0], payload: { a: 1 } },
      { id: '936DA01F9ABD4D9D80C702AF85C822A8', vector: [0, 1], payload: null },
    ],
  });
  const columns = batchOf({
    batch: {
      ids: [1, '936da01f-9abd-4d9d-80c7-02af85c822a8'],
      vectors: [
        [1, 0],
        [0, 1],
      ],
      payloads: [{ a: 1 }, null],
    },
  });
  assert.deepEqual(listed, columns);
  assert.deepEqual(listed, {
    ids: [1, '936da01f-9abd-4d9d-80c7-02af85c822a8'],
    vectors: [{ kind: 'dense', name: '', dim: 2, points: null, values: Float32Array.of(1, 0, 0, 1) }],
    payloads: [{ a: 1 }, undefined],
  });
});

test('points may lack vectors; the unnamed vector has the name of nothing', () => {
  const batch = batchOf(
    {
      points: [
        { id: 1, vector: { a: [1, 2] } },
        { id: 2, vector: {} },
        { id: 3, vector: { a: [3, 4], b: [1, 2, 3] } },
      ],
    },
    NAMED,
  );
  assert.deepEqual(batch.vectors, [
    { kind: 'dense', name: 'a', dim: 2, points: Uint32Array.of(0, 2), values: Float32Array.of(1, 2, 3, 4) },
    { kind: 'dense', name: 'b', dim: 3, points: Uint32Array.of(2), values: Float32Array.of(1, 2, 3) },
  ]);
  assert.deepEqual(batchOf({ points: [{ id: 20, vector: { '': [1, 2] } }] }).vectors[0]?.points, null);
  const many = batchOf({ points: Array.from({ length: 500 }, (_, id) => ({ id, vector: { a: [id, -id] } })) }, NAMED);
  assert.deepEqual([many.vectors[0]?.points, many.vectors[0]?.values.length, many.vectors[0]?.values[999]], [null, 1000, -499]);
});

test('of points with one id the last one counts', () => {
  const batch = batchOf(
    {
      points: [
        { id: 7, vector: { a: [1, 1] } },
        { id: 8, vector: { b: [1, 2, 3] } },
        { id: 7, vector: { a: [2, 2] }, payload: { v: 2 } },
      ],
    },
    NAMED,
  );
  assert.deepEqual(batch, {
    ids: [8, 7],
    payloads: [undefined, { v: 2 }],
    vectors: [
      { kind: 'dense', name: 'a', dim: 2, points: Uint32Array.of(1), values: Float32Array.of(2, 2) },
      { kind: 'dense', name: 'b', dim: 3, points: Uint32Array.of(0), values: Float32Array.of(1, 2, 3) },
    ],
  });
});

test('ids are 64-bit integers or UUIDs and nothing else', () => {
  assert.deepEqual(batchOf('{"points":[{"id":18446744073709551615,"vector":[1,1]}]}').ids, [18446744073709551615n]);
  for (const id of ['-1', '1.5', '"abc"', '""', 'null', 'true', '[1]', '{"num":1}', '"123"', '18446744073709551616', '5.0']) {
    assert.equal(refused('upsertPoints', `{"points":[{"id":${id},"vector":[1,1]}]}`), 'malformedBody', id);
  }
});

test('vectors that do not fit are refused, each with its own kind of error', () => {
  const cases: [unknown, string][] = [
    [[1], 'wrongInput'],
    [[1, 2, 3], 'wrongInput'],
    [[], 'invalidValue'],
    [null, 'malformedBody'],
    ['abc', 'malformedBody'],
    [5, 'malformedBody'],
    [['1', '2'], 'malformedBody'],
    [[1, null], 'malformedBody'],
    [[[1, 2]], 'wrongInput'],
    [{ zzz: [1, 2] }, 'wrongInput'],
    [{ '': { indices: [1], values: [1] } }, 'wrongInput'],
    [{ '': { indices: [1, 1], values: [1, 2] } }, 'invalidValue'],
    [{ '': { indices: [1, 2], values: [1] } }, 'invalidValue'],
    [{ '': { indices: [-1], values: [1] } }, 'malformedBody'],
    [{ text: 'a', model: 'm' }, 'unsupported'],
  ];
  for (const [vector, code] of cases)
    assert.equal(
      refused('upsertPoints', {
        points: [
          { id: 1, vector: [1, 2] },
          { id: 2, vector },
        ],
      }),
      code,
      JSON.stringify(vector),
    );
  assert.equal(refused('upsertPoints', { points: [{ id: 1 }] }), 'malformedBody');
  assert.equal(refused('upsertPoints', { points: [{ id: 1, vector: [1, 2] }] }, NAMED), 'wrongInput');
  assert.equal(refused('upsertPoints', { points: [{ id: 1, vector: { a: null } }] }, NAMED), 'malformedBody');
});

test('lists of different lengths, missing parts and wrong payloads are refused', () => {
  const batch = (fields: object) => refused('upsertPoints', { batch: fields });
  assert.equal(batch({ ids: [6, 7], vectors: [[1, 0]] }), 'invalidValue');
  assert.equal(batch({ ids: [6], vectors: [[1, 0]], payloads: [{}, {}] }), 'invalidValue');
  assert.equal(batch({ ids: [6] }), 'malformedBody');
  assert.equal(batch({ vectors: [[1, 0]] }), 'malformedBody');
  assert.equal(batch({ ids: [], vectors: [] }), 'badRequest');
  assert.equal(
    refused(
      'upsertPoints',
      {
        batch: {
          ids: [4, 5],
          vectors: {
            a: [
              [1, 0],
              [0, 1],
            ],
            b: [[1, 2, 3]],
          },
        },
      },
      NAMED,
    ),
    'invalidValue',
  );
  assert.equal(refused('upsertPoints', {}), 'malformedBody');
  assert.equal(refused('upsertPoints', { points: [] }), 'badRequest');
  for (const points of [{ id: 1, vector: [1, 2] }, null, [1, 2]]) assert.equal(refused('upsertPoints', { points }), 'malformedBody');
  for (const payload of [[1], 'x', 3])
    assert.equal(refused('upsertPoints', { points: [{ id: 1, vector: [1, 2], payload }] }), 'malformedBody');
  assert.equal(refused('upsertPoints', { update_mode: 'replace', points: [{ id: 1, vector: [1, 1] }] }), 'malformedBody');
});

test('points are selected by ids, else by filter, and by neither not at all', () => {
  assert.deepEqual(decode('deletePoints', { points: [6], filter: { must: [{ has_id: [7] }] } }), [
    { kind: 'deletePoints', selector: { kind: 'ids', ids: [6] } },
  ]);
  assert.equal(decode('deletePoints', { filter: {} })[0]?.kind, 'deletePoints');
  for (const body of ['{}', '[3]', '{"points":["abc"]}']) assert.equal(refused('deletePoints', body), 'malformedBody', body);
  assert.equal(refused('deletePoints', { points: [] }), 'badRequest');
  assert.equal(refused('setPayload', { payload: { a: 1 } }), 'malformedBody');
  assert.equal(refused('setPayload', { payload: { a: 1 }, points: [] }), 'badRequest');
});

test('payload operations carry payloads, keys and paths', () => {
  assert.deepEqual(decode('setPayload', { payload: { q: 1 }, points: [1], key: 'nested' }), [
    { kind: 'setPayload', payload: { q: 1 }, selector: { kind: 'ids', ids: [1] }, key: 'nested' },
  ]);
  assert.deepEqual(decode('overwritePayload', { payload: {}, points: [1], key: 'nested' }), [
    { kind: 'overwritePayload', payload: {}, selector: { kind: 'ids', ids: [1] }, key: null },
  ]);
  assert.deepEqual(decode('deletePayload', { keys: ['a', 'b.c[]'], points: [1] }), [
    { kind: 'deletePayload', keys: ['a', 'b.c[]'], selector: { kind: 'ids', ids: [1] } },
  ]);
  for (const key of ['a..b', '', 'a[']) assert.equal(refused('setPayload', { payload: {}, points: [1], key }), 'malformedBody');
  assert.equal(refused('setPayload', { payload: [1], points: [1] }), 'malformedBody');
  assert.equal(refused('setPayload', { points: [1] }), 'malformedBody');
  assert.equal(refused('deletePayload', { points: [1] }), 'malformedBody');
});

test('a batch of operations is decoded whole or refused whole', () => {
  const update = decodeUpdateValue(
    'batchUpdate',
    parseJson(
      '{"operations":[{"upsert":{"points":[{"id":1,"vector":[1,2]}]}},{"delete_vectors":{"points":[1],"filter":{},"vector":[""]}},{"clear_payload":{"points":[1]}}]}',
    ),
    {},
    SINGLE,
  );
  assert.deepEqual(
    [update.operations.map(({ kind }) => kind), update.parts, update.listed],
    [['upsert', 'deleteVectors', 'deleteVectors', 'clearPayload'], [1, 2, 1], true],
  );
  assert.equal(refused('batchUpdate', {}), 'malformedBody');
  assert.equal(refused('batchUpdate', { operations: [{ explode: {} }] }), 'malformedBody');
  assert.equal(
    refused('batchUpdate', { operations: [{ upsert: { points: [{ id: 1, vector: [1, 2] }] } }, { set_payload: { points: [60] } }] }),
    'malformedBody',
  );
  assert.deepEqual(decode('batchUpdate', { operations: [] }), []);
});

test('of a batch those operations stand that come before one that does not fit the collection', () => {
  const body =
    '{"operations":[{"upsert":{"points":[{"id":50,"vector":[1,1]}]}},{"upsert":{"points":[{"id":51,"vector":[1,1,1]}]}},{"delete":{"points":[50]}}]}';
  const update = decodeUpdateValue('batchUpdate', parseJson(body), {}, SINGLE);
  assert.deepEqual([update.operations.length, update.failure?.code], [1, 'wrongInput']);
  assert.equal(refused('batchUpdate', body.replace('{"delete":{"points":[50]}}', '{"delete":{}}')), 'malformedBody');
});

test('vectors of points are updated and deleted by name', () => {
  assert.equal(refused('updateVectors', { points: [] }, NAMED), 'invalidValue');
  assert.equal(refused('updateVectors', { points: [{ id: 1, vector: {} }] }, NAMED), 'invalidValue');
  assert.equal(refused('deleteVectors', { points: [1], vector: [] }, NAMED), 'invalidValue');
  assert.equal(refused('deleteVectors', { points: [1], vector: ['zzz'] }, NAMED), 'wrongInput');
  assert.equal(refused('deleteVectors', { vector: ['a'] }, NAMED), 'badRequest');
});

const ALL_KINDS: VectorNames = {
  vectors: { a: { size: 2, distance: 'Dot' }, m: { size: 2, distance: 'Dot', multivector_config: { comparator: 'max_sim' } } },
  sparse_vectors: { s: {} },
};

test('points have vectors of every kind, each kind in a column of its own', () => {
  const points = [
    { id: 1, vector: { m: [[1, 2]], s: { indices: [9, 3], values: [0.5, 0.25], more: true } } },
    { id: 2, vector: { a: [1, 2], m: [3, 4] } },
    { id: 3, vector: { s: { indices: [], values: [] } } },
    { id: 4, vector: { m: [[5, 6], [7, 8]], a: [3, 4] } }, // biome-ignore format: one point a line
  ];
  const columns = [
    { kind: 'multi', name: 'm', dim: 2, points: [0, 1, 3], counts: [1, 1, 2], values: [1, 2, 3, 4, 5, 6, 7, 8] },
    { kind: 'sparse', name: 's', points: [0, 2], counts: [2, 0], indices: [3, 9], values: [0.25, 0.5] },
    { kind: 'dense', name: 'a', dim: 2, points: [1, 3], values: [1, 2, 3, 4] },
  ];
  assert.deepEqual(JSON.parse(JSON.stringify(batchOf({ points }, ALL_KINDS).vectors, plain)), columns);
});

/** Typed arrays as lists. */
function plain(_: string, value: unknown): unknown {
  return value instanceof Uint32Array || value instanceof Float32Array ? [...value] : value;
}

test('a multivector of whole numbers is no sparse vector', () => {
  const [column] = batchOf({ points: [{ id: 1, vector: { m: [[1, 0], [0, 1]] } }] }, ALL_KINDS).vectors; // biome-ignore format: one point
  assert.deepEqual([column?.kind, column?.values], ['multi', Float32Array.of(1, 0, 0, 1)]);
});

test('what is no vector of any kind is told apart from one of another kind', () => {
  const codeOf = (vector: unknown): string => refused('upsertPoints', { points: [{ id: 1, vector }] }, ALL_KINDS);
  for (const vector of [{ s: [1, 2] }, { s: [[1, 2]] }, { a: [[1, 2]] }, { m: { indices: [1], values: [1] } }, { m: [[1, 2, 3]] }])
    assert.equal(codeOf(vector), 'wrongInput');
  for (const vector of [
    { m: [] },
    { m: [[]] },
    { m: [[1, 2], [3]] },
    { s: { indices: [1, 1], values: [1, 2] } },
    { s: { indices: [1], values: [] } },
  ])
    assert.equal(codeOf(vector), 'invalidValue');
  for (const vector of [
    { s: { indices: [-1], values: [1] } },
    { s: { indices: [2 ** 32], values: [1] } },
    { s: { values: [1] } },
    { m: [[1, '2']] },
    { m: [[1], 2] },
  ])
    assert.equal(codeOf(vector), 'malformedBody');
  assert.equal(codeOf({ a: { text: 'a text', model: 'some/model' } }), 'unsupported');
  assert.equal(codeOf({ a: { text: 'a text', model: '' } }), 'invalidValue');
});

test('a model that is there makes the vectors of documents', () => {
  const embed: Embed = (input) => ({
    kind: 'sparse',
    indices: Uint32Array.of(input.kind === 'document' ? input.text.length : 0),
    values: Float32Array.of(1),
  });
  const body = { points: [{ id: 1, vector: { s: { text: 'seven..', model: 'some/model' } } }] };
  const [operation] = decodeUpdateValue('upsertPoints', body, {}, ALL_KINDS, null, embed).operations;
  const [column] = operation?.kind === 'upsert' ? operation.batch.vectors : [];
  assert.deepEqual(column?.kind === 'sparse' && [...column.indices], [7]);
});

test('of points given twice the last one counts, with vectors of every kind', () => {
  const points = [
    { id: 1, vector: { m: [[1, 2], [3, 4]], s: { indices: [1], values: [1] } } }, // biome-ignore format: one point a line
    { id: 2, vector: { m: [5, 6], s: { indices: [2, 3], values: [2, 3] } } },
    { id: 1, vector: { m: [[7, 8]], a: [1, 1] } },
  ];
  const twice = batchOf({ points }, ALL_KINDS);
  assert.deepEqual(twice, batchOf({ points: points.slice(1) }, ALL_KINDS));
});

test('values beyond a float32 are refused in vectors of every kind, so that no infinity is ever stored', () => {
  const kinds: VectorNames = {
    vectors: { a: { size: 2, distance: 'Dot' }, m: { size: 2, distance: 'Dot', multivector_config: { comparator: 'max_sim' } } },
    sparse_vectors: { s: {} },
  };
  for (const value of ['1e39', '-3.5e38']) {
    const vectors = [`{"a":[1,${value}]}`, `{"m":[[1,2],[${value},1]]}`, `{"s":{"indices":[7],"values":[${value}]}}`];
    for (const vector of vectors) {
      assert.equal(refused('upsertPoints', `{"points":[{"id":1,"vector":${vector}}]}`, kinds), 'wrongInput', vector);
      assert.equal(refused('updateVectors', `{"points":[{"id":1,"vector":${vector}}]}`, kinds), 'wrongInput', vector);
    }
  }
  assert.equal(refused('upsertPoints', '{"points":[{"id":1,"vector":{"a":[3.4e38,-3.4e38]}}]}', kinds), 'accepted');
});

test('payloads are taken 500 levels deep, by every call, and refused beyond', () => {
  const payload = (levels: number) => `{"a":${'['.repeat(levels - 1)}${']'.repeat(levels - 1)}}`;
  for (const [levels, code] of [
    [500, 'accepted'],
    [501, 'malformedBody'],
    [5000, 'malformedBody'],
  ] as const) {
    assert.equal(refused('upsertPoints', `{"points":[{"id":1,"vector":[1,2],"payload":${payload(levels)}}]}`), code);
    assert.equal(refused('setPayload', `{"points":[1],"payload":${payload(levels)}}`), code);
    assert.equal(refused('overwritePayload', `{"points":[1],"payload":${payload(levels)}}`), code);
  }
});
