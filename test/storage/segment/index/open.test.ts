import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import type { FieldSchema } from '../../../../protocols/model/collection.js';
import { pathOf } from '../../../../protocols/model/json-path.js';
import type { Payload } from '../../../../protocols/model/payload.js';
import { countBits, emptyBits, hasBit, setBit } from '../../../../query/filter/bits.js';
import { scalarTerms, type TermValue } from '../../../../query/filter/lookup.js';
import { buildFieldIndex } from '../../../../storage/segment/index/build.js';
import { openFieldIndex } from '../../../../storage/segment/index/open.js';
import * as arbitrary from '../../../query/filter/arbitrary.js';
import { onDiskIndex, oneByOne, rowsOf, rowsWith, sealedIndex, termIndex } from '../../../query/filter/support.js';
import { seeded } from '../../../query/property.js';

const SCHEMAS: readonly FieldSchema[] = (['keyword', 'integer', 'float', 'bool', 'datetime', 'uuid', 'text', 'geo'] as const).map(
  (type) => ({ type }),
);
const SCALAR_SCHEMAS = SCHEMAS.filter(({ type }) => type !== 'text' && type !== 'geo');

test('a sealed index and the index of terms say the same about every condition, and keep within their own cardinality', () => {
  fc.assert(
    fc.property(arbitrary.rows, arbitrary.fieldCondition, fc.constantFrom(...SCHEMAS), (rows, condition, schema) => {
      const sealed = sealedIndex(rows, condition.key, schema);
      const [one, other] = [emptyBits(rows.length), emptyBits(rows.length)];
      const quality = sealed.match(condition, one);
      const otherQuality = termIndex(rows, condition.key, schema).match(condition, other);
      if (quality === 'exact' && otherQuality === 'exact') assert.deepEqual(one, other);
      assert.equal(quality === 'unable', otherQuality === 'unable');
      const bounds = sealed.cardinality(condition);
      assert.equal(bounds === null, quality === 'unable');
      if (bounds === null) return;
      const count = countBits(one);
      assert.ok(count <= bounds.max && (quality === 'superset' || count >= bounds.min), `${count} of ${JSON.stringify(bounds)}`);
    }),
    seeded(2500),
  );
});

test('what an index calls a superset holds every row that passes', () => {
  fc.assert(
    fc.property(arbitrary.rows, arbitrary.fieldCondition, fc.constantFrom(...SCHEMAS), (rows, condition, schema) => {
      const filter = { must: [condition], should: [], mustNot: [], minShould: null };
      const passing = oneByOne(filter, rows, new Map([[condition.key, schema]]));
      for (const index of [sealedIndex(rows, condition.key, schema), termIndex(rows, condition.key, schema)]) {
        const bits = emptyBits(rows.length);
        if (index.match(condition, bits) === 'superset') assert.ok(passing.every((row) => hasBit(bits, row)));
      }
    }),
    seeded(1500),
  );
});

test('the values of an index are counted as the payloads have them, over all rows and over some', () => {
  fc.assert(
    fc.property(
      arbitrary.rows,
      fc.constantFrom(...arbitrary.KEYS),
      fc.constantFrom(...SCALAR_SCHEMAS),
      fc.array(fc.nat(40)),
      (rows, key, schema, some) => {
        const bits = emptyBits(rows.length);
        for (const row of some) if (row < rows.length) setBit(bits, row);
        for (const chosen of [null, bits]) {
          const found = new Map<TermValue, number>();
          const counted = (chosen === null ? onDiskIndex : sealedIndex)(rows, key, schema).countValues?.(chosen, (value, count) =>
            found.set(value, count),
          );
          const large = rows.some(({ payload }) => scalarTerms(schema.type, payload, pathOf(key)).some(isLarge));
          assert.equal(counted, !(large && schema.type !== 'float'));
          if (counted) assert.deepEqual(byText(found), byText(naiveCounts(rows, key, schema, chosen)));
        }
      },
    ),
    seeded(1000),
  );
});

test('numbers of an index are visited in either order from any number on, as long as is asked', () => {
  const schemas = SCHEMAS.filter(({ type }) => type === 'integer' || type === 'float' || type === 'datetime');
  const starts = fc.option(fc.oneof(fc.integer({ min: -5, max: 5 }), fc.double({ noNaN: true })));
  const keys = fc.constantFrom(...arbitrary.KEYS);
  const directions = fc.constantFrom('asc' as const, 'desc' as const);
  fc.assert(
    fc.property(
      arbitrary.rows,
      keys,
      fc.constantFrom(...schemas),
      directions,
      starts,
      fc.nat(20),
      (rows, key, schema, direction, start, most) => {
        const sign = direction === 'asc' ? 1 : -1;
        const terms = rows.flatMap(({ payload }, row) =>
          scalarTerms(schema.type, payload, pathOf(key)).map((value) => ({ value: value as number | bigint, row })),
        );
        const visited: { value: number; row: number }[] = [];
        const told = sealedIndex(rows, key, schema).visitInOrder?.(direction, start, (value, row) => visited.push({ value, row }) < most);
        assert.equal(told, schema.type === 'float' || !terms.some(({ value }) => isLarge(value)));
        const wanted = terms
          .map(({ value, row }) => ({ value: Number(value), row }))
          .filter(({ value }) => start === null || sign * (value - start) >= 0)
          .sort((a, b) => sign * (a.value - b.value));
        const values = (of: readonly { value: number }[]) => of.map(({ value }) => value);
        if (told) assert.deepEqual(values(visited), values(wanted).slice(0, Math.max(1, most)));
        for (const { value, row } of visited) assert.ok(wanted.some((one) => one.value === value && one.row === row));
      },
    ),
    seeded(500),
  );
});

function naiveCounts(rows: readonly arbitrary.Row[], key: string, schema: FieldSchema, bits: Uint32Array | null): Map<TermValue, number> {
  const counts = new Map<TermValue, number>();
  rows.forEach(({ payload }, row) => {
    if (bits !== null && !hasBit(bits, row)) return;
    const values = scalarTerms(schema.type, payload, pathOf(key)).map((value) => (schema.type === 'float' ? Number(value) : value));
    for (const value of values) counts.set(value, (counts.get(value) ?? 0) + 1);
  });
  return counts;
}

function isLarge(value: TermValue): boolean {
  return (typeof value === 'number' || typeof value === 'bigint') && (value >= 2 ** 53 || value <= -(2 ** 53));
}

function byText(counts: ReadonlyMap<TermValue, number>): [string, number][] {
  return [...counts].map(([value, count]): [string, number] => [`${typeof value} ${value}`, count]).sort(([a], [b]) => (a < b ? -1 : 1));
}

test('points are the rows with a value of the type', () => {
  const rows = rowsWith({ k: 'a' }, { k: ['a', 'b', 'a'] }, { k: 5 }, { k: null }, {}, { k: [] });
  assert.equal((sealedIndex(rows, 'k', { type: 'keyword' }) as unknown as { points: number }).points, 2);
  assert.equal((sealedIndex(rows, 'k', { type: 'integer' }) as unknown as { points: number }).points, 1);
});

test('more than half of the rows is found through the others', () => {
  const rows = rowsWith(...Array.from({ length: 1000 }, (_, n): Payload => (n % 7 === 0 ? {} : { n, flag: n % 2 === 0 })));
  const bits = emptyBits(1000);
  sealedIndex(rows, 'n', { type: 'integer' }).match({ kind: 'range', key: 'n', range: { gte: 100 } }, bits);
  assert.deepEqual(
    rowsOf(bits),
    rows.flatMap((_, n) => (n >= 100 && n % 7 !== 0 ? [n] : [])),
  );
});

test('an index over no rows and one without values answer', () => {
  for (const schema of SCHEMAS) {
    for (const rows of [rowsWith(), rowsWith({}, {})]) {
      const bits = emptyBits(rows.length);
      assert.equal(sealedIndex(rows, 'k', schema).match({ kind: 'fieldIsEmpty', key: 'k', isEmpty: true }, bits), 'exact');
      assert.equal(countBits(bits), rows.length);
      for (const value of ['a', 1, true])
        sealedIndex(rows, 'k', schema).match({ kind: 'match', key: 'k', match: { kind: 'value', value } }, emptyBits(rows.length));
    }
  }
});

test('bytes that are not an index of this field are refused by name', () => {
  const buffer = buildFieldIndex({ type: 'keyword' }, 3, () => ({ k: 'a' }), 'k');
  assert.throws(() => openFieldIndex({ type: 'integer' }, 'k', buffer, 3), /Storage error: index of field k: of another type/);
  assert.throws(() => openFieldIndex({ type: 'keyword' }, 'k', buffer, 4), /number of rows/);
  assert.throws(() => openFieldIndex({ type: 'keyword' }, 'k', new SharedArrayBuffer(8), 3), /too short/);
  assert.throws(() => openFieldIndex({ type: 'keyword' }, 'k', new SharedArrayBuffer(640), 3), /version 0/);
  const longer = new SharedArrayBuffer(buffer.byteLength + 8);
  new Uint8Array(longer).set(new Uint8Array(buffer));
  assert.throws(() => openFieldIndex({ type: 'keyword' }, 'k', longer, 3), /bytes instead of/);
});
