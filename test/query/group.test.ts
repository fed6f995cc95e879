import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { type Group, type GroupValue, gatherGroups, groupValues, type Narrowing } from '../../query/group.js';
import { seeded } from './property.js';

type Point = readonly GroupValue[];

/** The first hits of the ranking that are wanted, as an engine without any cleverness gives them. */
function first(points: readonly Point[], narrowing: Narrowing, count: number): Point[] {
  const wanted = (point: Point): boolean => {
    if (narrowing.kind === 'all') return true;
    return point.some((value) => narrowing.values.includes(value) === (narrowing.kind === 'any'));
  };
  return points.filter(wanted).slice(0, count);
}

function naive(points: readonly Point[], limit: number, size: number): Group<Point>[] {
  const values = [...new Set(points.flat())].slice(0, limit);
  return values.map((value) => ({ value, hits: points.filter((point) => point.includes(value)).slice(0, size) }));
}

test('groups are those of the whole ranking, however it is asked', () => {
  const value = fc.oneof(
    { weight: 4, arbitrary: fc.constant('most') },
    { weight: 4, arbitrary: fc.nat(12) },
    { weight: 1, arbitrary: fc.nat(60) },
  );
  const point = fc.uniqueArray(value as fc.Arbitrary<GroupValue>, { maxLength: 3 });
  fc.assert(
    fc.property(
      fc.array(point, { maxLength: 120 }),
      fc.integer({ min: 1, max: 8 }),
      fc.integer({ min: 1, max: 5 }),
      fc.boolean(),
      (points, limit, size, canNarrow) => {
        const groups = gatherGroups(
          { limit, size, canNarrow },
          (narrowing, count) => first(points, narrowing, count),
          (hit) => hit,
        );
        assert.deepEqual(groups, naive(points, limit, size));
      },
    ),
    seeded(2000),
  );
});

test('a group that hides all others is asked around, not read through', () => {
  const points: Point[] = [...Array.from({ length: 10_000 }, (): Point => ['big']), ['a'], ['b'], ['a']];
  let asked = 0;
  const run = (narrowing: Narrowing, count: number): Point[] => {
    const hits = first(points, narrowing, count);
    asked += hits.length;
    return hits;
  };
  const groups = gatherGroups({ limit: 3, size: 2, canNarrow: true }, run, (hit) => hit);
  assert.deepEqual(
    groups.map(({ value, hits }) => [value, hits.length]),
    [
      ['big', 2],
      ['a', 2],
      ['b', 1],
    ],
  );
  assert.ok(asked < 50, `${asked} hits read`);
});

test('texts and integers make groups, also within arrays, each once; other values make none', () => {
  assert.deepEqual(groupValues({ k: ['a', 7, 'a', 1.5, null, true, ['b'], 9007199254740993n] }, 'k'), ['a', 7, 9007199254740993n]);
  assert.deepEqual(groupValues({ k: -3 }, 'k'), [-3]);
  assert.deepEqual(groupValues({ k: [{ j: 'x' }, { j: ['y', 'x'] }] }, 'k[].j'), ['x', 'y']);
  assert.deepEqual(groupValues({ k: 2.5 }, 'k'), []);
  assert.deepEqual(groupValues({}, 'k'), []);
});
