import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import type { FieldSchema } from '../../../protocols/model/collection.js';
import { FilterCache } from '../../../query/filter/cache.js';
import { seeded } from '../property.js';
import * as arbitrary from './arbitrary.js';
import { naiveRows } from './naive.js';
import { evaluate, type IndexKind, oneByOne, rowsWith, sourceOf, wire } from './support.js';

test('without indexes a filter passes the rows of the naive model', () => {
  fc.assert(
    fc.property(arbitrary.rows, arbitrary.filter, (rows, filter) => {
      assert.deepEqual(evaluate(filter, sourceOf(rows)), naiveRows(filter, rows));
      assert.deepEqual(oneByOne(filter, rows), naiveRows(filter, rows));
    }),
    seeded(2000),
  );
});

test('a sealed index, an index of terms and no index file give the same rows once the field has a schema', () => {
  fc.assert(
    fc.property(arbitrary.rows, arbitrary.filter, arbitrary.schemas, (rows, filter, schemas) => {
      const expected = oneByOne(filter, rows, schemas);
      for (const kind of ['none', 'sealed', 'onDisk', 'terms'] as IndexKind[])
        assert.deepEqual(evaluate(filter, sourceOf(rows, schemas, kind)), expected, kind);
    }),
    seeded(2500),
  );
});

test('a cache changes no answer while a segment grows, also for a reader that is behind', () => {
  const growing = fc.tuple(
    arbitrary.rows,
    fc.array(arbitrary.filter, { minLength: 1, maxLength: 3 }),
    arbitrary.schemas,
    fc.array(fc.nat(70), { maxLength: 6 }),
  );
  fc.assert(
    fc.property(growing, fc.constantFrom<IndexKind>('none', 'sealed', 'onDisk', 'terms'), ([rows, filters, schemas, counts], kind) => {
      const cache = new FilterCache(1e6).scope('segment');
      for (const count of [...counts, rows.length]) {
        const first = rows.slice(0, count);
        for (const filter of filters)
          assert.deepEqual(evaluate(filter, sourceOf(first, schemas, kind), cache), oneByOne(filter, first, schemas));
      }
    }),
    seeded(600),
  );
});

test('rows that an index decides are not read', () => {
  const rows = rowsWith(...Array.from({ length: 100 }, (_, n) => ({ n, color: n % 2 === 0 ? 'red' : 'blue', note: `n${n % 10}` })));
  const schemas = new Map<string, FieldSchema>([
    ['n', { type: 'integer' }],
    ['color', { type: 'keyword' }],
  ]);
  const read = (body: unknown): number => {
    const source = sourceOf(rows, schemas, 'sealed');
    evaluate(wire(body), source);
    return source.read.length;
  };
  const red = { key: 'color', match: { value: 'red' } };
  const few = { key: 'n', range: { lt: 10 } };
  const note = { key: 'note', match: { value: 'n4' } };
  assert.equal(read({ must: [red, few] }), 0);
  assert.equal(read({ must: [red], must_not: [few] }), 0);
  assert.equal(read({ must: [note, red, few] }), 5);
  assert.equal(read({ should: [few, { must: [red, note] }] }), 45);
  assert.equal(read({ must_not: [note, few] }), 90);
  assert.equal(read({ must: [{ key: 'n', match: { value: 500 } }, note] }), 0);
});

test('each payload is read once, however many conditions need it', () => {
  const rows = rowsWith({ a: 1, b: 2 }, { a: 1, b: 3 }, { a: 2, b: 2 });
  const source = sourceOf(rows);
  const conditions = [
    { key: 'a', match: { value: 1 } },
    { key: 'b', match: { value: 2 } },
  ];
  assert.deepEqual(evaluate(wire({ min_should: { conditions, min_count: 2 } }), source), [0]);
  assert.deepEqual(source.read, [0, 1, 2]);
});

test('a cached filter reads only the rows that came since, and so does a condition it had', () => {
  const rows = rowsWith(...Array.from({ length: 40 }, (_, n) => ({ n, even: n % 2 === 0 })));
  const cache = new FilterCache(1e6).scope('segment');
  const filter = wire({
    must: [
      { key: 'even', match: { value: true } },
      { key: 'n', range: { gte: 10 } },
    ],
  });
  const read = (count: number, body = filter): number[] => {
    const source = sourceOf(rows.slice(0, count));
    evaluate(body, source, cache);
    return source.read;
  };
  assert.equal(read(30).length, 30);
  assert.deepEqual(read(30), []);
  assert.deepEqual(read(33), [30, 31, 32]);
  const sameCondition = wire({ must: [{ key: 'even', match: { value: true } }], must_not: [{ has_id: [4] }] });
  assert.deepEqual(read(33, sameCondition), [30, 31, 32]);
  assert.deepEqual(read(20), []);
});

test('what the caller does with an answer does not reach the cache', () => {
  const rows = rowsWith({ a: 1 }, { a: 2 });
  const cache = new FilterCache(1e6).scope('segment');
  const filter = wire({ must: [{ key: 'a', match: { value: 1 } }] });
  for (let again = 0; again < 3; again++) assert.deepEqual(evaluate(filter, sourceOf(rows), cache), [0]);
});

test('a new index on a field makes cached answers about it void', () => {
  const rows = rowsWith({ i: 15 }, { i: 15.5 });
  const cache = new FilterCache(1e6).scope('segment');
  const filter = wire({ must: [{ key: 'i', range: { gt: 10 } }] });
  assert.deepEqual(evaluate(filter, sourceOf(rows), cache), [0, 1]);
  assert.deepEqual(evaluate(filter, sourceOf(rows, new Map([['i', { type: 'integer' }]]), 'sealed'), cache), [0]);
});

test('a new index on a field within an array makes cached answers of nested conditions about it void', () => {
  const rows = rowsWith({ diet: [{ food: 'meat' }, { likes: true }] });
  const cache = new FilterCache(1e6).scope('segment');
  const filter = wire({ must: [{ nested: { key: 'diet', filter: { must: [{ is_empty: { key: 'likes' } }] } } }] });
  assert.deepEqual(evaluate(filter, sourceOf(rows), cache), [0]);
  assert.deepEqual(evaluate(filter, sourceOf(rows, new Map([['diet[].likes', { type: 'bool' }]]), 'sealed'), cache), []);
});

test('the checkpoint can stop the reading of payloads', () => {
  const source = {
    ...sourceOf(rowsWith(...Array.from({ length: 1000 }, () => ({ a: 1 })))),
    checkpoint: () => {
      throw new Error('out of time');
    },
  };
  assert.throws(() => evaluate(wire({ must: [{ key: 'a', match: { value: 1 } }] }), source), /out of time/);
});

// ------------------------------------------------------------------ answers of the contract

const MATCHED = rowsWith(
  {},
  { kw: 'red', n: 1, arr: ['red', 'blue'] },
  { kw: 'Red', n: 2, arr: ['green'] },
  { kw: 'blue', n: -5, arr: [] },
  { kw: '', n: 0, arr: null },
  { kw: 'x', n: 1.5, arr: 'red' },
  { kw: ['red', 'white'], n: '1', arr: [['red']] },
);
const RANGED = rowsWith({}, { i: 10 }, { i: 20 }, { i: -5 }, { i: [1, 100] }, { i: '15' }, { i: 15.5 }, { i: null });
const EMPTY = rowsWith({}, { x: 1 }, { x: null }, { x: [] }, { x: [null] }, { x: [1, null] }, { x: '' }, { x: {} }, { x: [1, 2, 3] });
const DATED = rowsWith(
  {},
  { t: '2024-03-01T10:00:00Z' },
  { t: ['2020-01-01', '2030-01-01'] },
  { t: 'no date' },
  { t: 1709287200 },
  { t: '1969-07-20T20:17:40Z' },
);
const DIETS = rowsWith(
  {},
  {
    diet: [
      { food: 'leaves', likes: false },
      { food: 'meat', likes: true },
    ],
  },
  {
    diet: [
      { food: 'leaves', likes: true },
      { food: 'meat', likes: false },
    ],
  },
  { diet: [] },
  { diet: { food: 'meat', likes: true } },
  { diet: [{ food: 'meat' }, { likes: true }] },
  { diet: ['meat', 5] },
);

/** [rows, schemas, condition, answer without index, answer with index when it is another one]. */
const CASES: readonly [readonly arbitrary.Row[], Record<string, FieldSchema>, object, number[], number[]?][] = [
  [MATCHED, { kw: { type: 'keyword' } }, { key: 'kw', match: { value: 'red' } }, [1, 6]],
  [MATCHED, { kw: { type: 'keyword' } }, { key: 'kw', match: { value: '' } }, [4]],
  [MATCHED, { kw: { type: 'keyword' } }, { key: 'kw', match: { except: ['red'] } }, [2, 3, 4, 5, 6]],
  [MATCHED, { kw: { type: 'keyword' } }, { key: 'kw', match: { except: [] } }, [1, 2, 3, 4, 5, 6]],
  [MATCHED, { arr: { type: 'keyword' } }, { key: 'arr', match: { value: 'red' } }, [1, 5]],
  [MATCHED, { arr: { type: 'keyword' } }, { key: 'arr[]', match: { value: 'red' } }, [1, 6]],
  [MATCHED, { arr: { type: 'keyword' } }, { key: 'arr[0]', match: { value: 'red' } }, [1, 6]],
  [MATCHED, { arr: { type: 'keyword' } }, { key: 'arr', match: { except: ['red'] } }, [1, 2, 6], [1, 2]],
  [MATCHED, { n: { type: 'integer' } }, { key: 'n', match: { except: [1, 2] } }, [3, 4, 5, 6], [3, 4]],
  [MATCHED, { n: { type: 'integer' } }, { key: 'n', match: { value: '1' } }, [6]],
  [MATCHED, { n: { type: 'integer' } }, { key: 'n', match: { any: [1, 2, 100] } }, [1, 2]],
  [RANGED, { i: { type: 'integer' } }, { key: 'i', range: { gt: 10 } }, [2, 4, 6], [2, 4]],
  [RANGED, { i: { type: 'integer' } }, { key: 'i', range: { gt: 5, gte: 15 } }, [2, 4, 6], [1, 2, 4]],
  [RANGED, { i: { type: 'float' } }, { key: 'i', range: { gt: 5, gte: 15 } }, [2, 4, 6]],
  [RANGED, { i: { type: 'integer' } }, { key: 'i', range: { gt: 30, lt: 60 } }, []],
  [RANGED, { i: { type: 'integer', params: { lookup: true, range: false } } }, { key: 'i', range: { gt: 10 } }, [2, 4, 6]],
  [EMPTY, { x: { type: 'integer' } }, { is_empty: { key: 'x' } }, [0, 2, 3]],
  [EMPTY, { x: { type: 'integer' } }, { key: 'x', is_empty: false }, [1, 4, 5, 6, 7, 8]],
  [EMPTY, { x: { type: 'integer' } }, { is_null: { key: 'x' } }, [2], [2, 4, 5]],
  [EMPTY, { x: { type: 'integer' } }, { key: 'x', is_null: true }, [2, 4, 5]],
  [EMPTY, { x: { type: 'integer' } }, { key: 'x', is_null: false }, [0, 1, 3, 6, 7, 8]],
  [EMPTY, { x: { type: 'integer' } }, { key: 'x', values_count: { lt: 1 } }, [2, 3]],
  [EMPTY, { x: { type: 'integer' } }, { key: 'x', values_count: { gte: 2 } }, [5, 8]],
  [DATED, { t: { type: 'datetime' } }, { key: 't', range: { gt: '2024-01-01' } }, [1, 2]],
  [DATED, { t: { type: 'datetime' } }, { key: 't', range: { gt: 0 } }, [4], [1, 2]],
  [DATED, { t: { type: 'datetime' } }, { key: 't', match: { value: '2024-03-01T10:00:00Z' } }, [1]],
  [rowsWith({ u: arbitrary.UUID }), { u: { type: 'uuid' } }, { key: 'u', match: { value: arbitrary.UUID.toUpperCase() } }, [], [0]],
  [rowsWith({ u: arbitrary.UUID }), { u: { type: 'uuid' } }, { key: 'u', match: { any: [arbitrary.UUID.toUpperCase(), 'abc'] } }, []],
  [DIETS, { 'diet[].food': { type: 'keyword' } }, { nested: { key: 'diet', filter: {} } }, [1, 2, 5]],
  [DIETS, { 'diet[].likes': { type: 'bool' } }, { nested: { key: 'diet', filter: { must: [{ is_empty: { key: 'likes' } }] } } }, [5], []],
  [DIETS, { 'diet[].food': { type: 'keyword' } }, { nested: { key: 'diet', filter: { must: [{ has_id: [1] }] } } }, []],
  [
    DIETS,
    { 'diet[].food': { type: 'keyword' }, 'diet[].likes': { type: 'bool' } },
    {
      nested: {
        key: 'diet[]',
        filter: {
          must: [
            { key: 'food', match: { value: 'meat' } },
            { key: 'likes', match: { value: true } },
          ],
        },
      },
    },
    [1],
  ],
];

for (const [rows, schemas, condition, plain, indexed] of CASES) {
  test(`${JSON.stringify(condition)} passes ${plain}${indexed ? `, with ${Object.values(schemas)[0]?.type} index ${indexed}` : ''}`, () => {
    const filter = wire({ must: [condition] });
    const fields = new Map(Object.entries(schemas));
    assert.deepEqual(evaluate(filter, sourceOf(rows)), plain);
    for (const kind of ['none', 'sealed', 'onDisk', 'terms'] as IndexKind[])
      assert.deepEqual(evaluate(filter, sourceOf(rows, fields, kind)), indexed ?? plain, kind);
  });
}

test('integers beyond 2^53 are told apart, with and without index', () => {
  const rows = rowsWith({ n: 9007199254740993n }, { n: 9007199254740994n }, { n: 2 ** 53 }, { n: [9007199254740995n] });
  for (const type of ['integer', 'float'] as const) {
    for (const kind of ['none', 'sealed', 'onDisk', 'terms'] as IndexKind[]) {
      const source = sourceOf(rows, new Map([['n', { type }]]), kind);
      assert.deepEqual(evaluate(wire({ must: [{ key: 'n', match: { value: 9007199254740993n } }] }), source), [0]);
      assert.deepEqual(evaluate(wire({ must: [{ key: 'n', range: { gt: 2 ** 53 } }] }), source), [0, 1, 3]);
      assert.deepEqual(evaluate(wire({ must_not: [{ key: 'n', match: { any: [9007199254740994n] } }] }), source), [0, 2, 3]);
    }
  }
});

test('a geo index changes no answer about places', () => {
  const one = fc.record({ kind: fc.constant('geo' as const), key: fc.constantFrom('k', 'k[]', 'm'), area: arbitrary.area });
  fc.assert(
    fc.property(arbitrary.rows, one, (rows, condition) => {
      const filter = { must: [condition], should: [], mustNot: [], minShould: null };
      const schemas = new Map<string, FieldSchema>([[condition.key, { type: 'geo' }]]);
      for (const kind of ['none', 'sealed', 'onDisk', 'terms'] as IndexKind[]) {
        const source = sourceOf(rows, schemas, kind);
        assert.deepEqual(evaluate(filter, source), naiveRows(filter, rows));
        assert.ok(kind === 'none' || source.read.length === 0);
      }
    }),
    seeded(1500),
  );
});

test('a text index finds the words of a plain model', () => {
  const tokens = (text: string): string[] => text.toLowerCase().match(/[a-z]+/g) ?? [];
  const word = fc.constantFrom('fox', 'FOX', 'dog', 'a', 'The', 'quick');
  const sentence = fc.array(fc.tuple(word, fc.constantFrom(' ', ', ', '-')), { maxLength: 5 }).map((words) => words.flat().join(''));
  const texts = fc.array(fc.oneof(sentence, fc.array(sentence, { maxLength: 2 })), { maxLength: 20 });
  const kinds = fc.constantFrom('text' as const, 'textAny' as const, 'phrase' as const);
  fc.assert(
    fc.property(texts, sentence, kinds, fc.boolean(), (values, text, kind, hasPhrases) => {
      const rows = rowsWith(...values.map((t) => ({ t })));
      const asked = tokens(text);
      const expected = values.flatMap((value, row) => {
        const documents = [value].flat().map(tokens);
        const has = (token: string): boolean => documents.some((document) => document.includes(token));
        const holds = {
          text: asked.every(has),
          textAny: asked.some(has),
          phrase: hasPhrases && documents.some((one) => ` ${one.join(' ')} `.includes(` ${asked.join(' ')} `)),
        };
        return asked.length > 0 && holds[kind] ? [row] : [];
      });
      const filter = { must: [{ kind: 'match' as const, key: 't', match: { kind, text } }], should: [], mustNot: [], minShould: null };
      const schemas = new Map<string, FieldSchema>([['t', { type: 'text', params: { phrase_matching: hasPhrases } }]]);
      for (const index of ['none', 'sealed', 'onDisk', 'terms'] as IndexKind[])
        assert.deepEqual(evaluate(filter, sourceOf(rows, schemas, index)), expected);
    }),
    seeded(1500),
  );
});

test('words of a nested element are compared as the text index of the field compares them', () => {
  const rows = rowsWith({ a: [{ t: 'The Fox' }, { t: 'dog' }] }, { a: [{ t: 'the' }, { t: 'fox' }] });
  const filter = wire({ must: [{ nested: { key: 'a', filter: { must: [{ key: 't', match: { text: 'fox the' } }] } } }] });
  const schemas = new Map<string, FieldSchema>([['a[].t', { type: 'text' }]]);
  assert.deepEqual(evaluate(filter, sourceOf(rows)), []);
  for (const kind of ['none', 'sealed', 'onDisk', 'terms'] as IndexKind[])
    assert.deepEqual(evaluate(filter, sourceOf(rows, schemas, kind)), [0]);
});
