import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { type Group, type GroupValue, gatherGroups, gatherRounds, groupValues, type Narrowing, type Round } from '../../query/group.js';
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

test('prefetched points come in rounds, and the best of all rounds make the groups', () => {
  const rounds: [string, GroupValue, number][][] = [
    [
      ['six', 'c', 0.83],
      ['eight', 7, 0.75],
      ['three', 'b', 0.5],
      ['two', 'a', 0.36],
    ],
    [
      ['five', 'c', 0.7],
      ['seven', 7, 0.58],
      ['nine', 'b', 0.9],
    ],
    [['ten', 'b', 0.1]],
  ];
  const asked: number[] = [];
  const run = ({ seen, count }: Round<unknown>) => {
    asked.push(count);
    return rounds.find((_, at) => rounds.slice(0, at).flat().length === seen.length) ?? [];
  };
  const gather = (limit: number, size: number) =>
    gatherRounds(
      { limit, size },
      run,
      ([, value]) => [value],
      ([, , a], [, , b]) => b - a,
    ).map(({ value, hits }) => [value, hits.map(([name]) => name).join(' ')]);
  assert.deepEqual(gather(2, 2), [
    ['b', 'nine three'],
    ['c', 'six five'],
  ]);
  assert.deepEqual(asked, [4, 4]);
  assert.deepEqual(gather(1, 3), [['b', 'nine three ten']]);
  assert.deepEqual(
    gather(9, 1).map(([value]) => value),
    ['b', 'c', 7, 'a'],
  );
  let rounded = 0;
  const endless = (value: string[]) => () => {
    rounded++;
    return [value];
  };
  const roundsOf = (value: string[]): number => {
    rounded = 0;
    gatherRounds(
      { limit: 2, size: 99 },
      endless(value),
      (values) => values,
      () => 0,
    );
    return rounded;
  };
  assert.deepEqual([roundsOf([]), roundsOf(['a'])], [5, 10], 'not for ever');
});

test('rounds pass over groups that are full, and the last ones ask for what the best groups lack', () => {
  // By score: the group «big» hides the others, and many groups of one stand before the second hit of the second-best one.
  const singles = Array.from({ length: 40 }, (_, at): [string, number] => [`single ${at}`, 50 - at / 100]);
  const points: [string, number][] = [
    ...Array.from({ length: 30 }, (_, at): [string, number] => ['big', 100 - at]),
    ['two', 60],
    ...singles,
    ['two', 1],
  ];
  const asked: Round<[string, number]>[] = [];
  const groups = gatherRounds<[string, number]>(
    { limit: 2, size: 2 },
    (round) => {
      asked.push({ ...round, seen: [...round.seen] });
      const wanted = points.filter((point) => !round.seen.includes(point) && !round.without.includes(point[0]));
      return wanted.filter(([value]) => round.only?.includes(value) ?? true).slice(0, round.count);
    },
    ([value]) => [value],
    ([, a], [, b]) => b - a,
  );
  assert.deepEqual(
    groups.map(({ value, hits }) => [value, ...hits.map(([, score]) => score)]),
    [
      ['big', 100, 99],
      ['two', 60, 1],
    ],
  );
  assert.deepEqual(
    asked.map(({ without, only }) => [without, only]),
    [[[], null], ...Array.from({ length: 4 }, () => [['big'], null]), [[], ['two']]],
  );
});

test('texts and integers make groups, also within arrays, each once; other values make none', () => {
  assert.deepEqual(groupValues({ k: ['a', 7, 'a', 1.5, null, true, ['b'], 9007199254740993n] }, 'k'), ['a', 7, 9007199254740993n]);
  assert.deepEqual(groupValues({ k: -3 }, 'k'), [-3]);
  assert.deepEqual(groupValues({ k: [{ j: 'x' }, { j: ['y', 'x'] }] }, 'k[].j'), ['x', 'y']);
  assert.deepEqual(groupValues({ k: 2.5 }, 'k'), []);
  assert.deepEqual(groupValues({}, 'k'), []);
});
