import assert from 'node:assert/strict';
import { test } from 'node:test';
import { GROUP_ROWS_MAX, groupsOf, LEADERS_MAX, nearParts, RANKED_ROWS } from '../../vectors/near-groups.js';
import { randomOf } from '../../vectors/seeded.js';
import { testSeed } from '../seed.js';

/** Rows on a line: the leaders nearest to one are those of the nearest numbers. */
function rankOnLine(place: (row: number) => number) {
  return (leaders: Uint32Array, rows: Uint32Array, each: number): Uint32Array => {
    assert.ok(leaders.length <= LEADERS_MAX && rows.length <= RANKED_ROWS && each <= leaders.length);
    assert.equal(new Set(leaders).size, leaders.length);
    const numbers = Array.from(leaders.keys());
    const ranked = Array.from(rows, (row) => {
      const distance = (number: number) => Math.abs(place(leaders[number] as number) - place(row));
      return numbers.toSorted((one, other) => distance(one) - distance(other) || one - other).slice(0, each);
    });
    return Uint32Array.from(ranked.flat());
  };
}

async function allGroups(rows: Uint32Array, each: number, place: (row: number) => number): Promise<Uint32Array[]> {
  const groups: Uint32Array[] = [];
  const tools = { rank: rankOnLine(place), random: randomOf(testSeed()), pause: async () => {} };
  const parts = await nearParts(rows, tools);
  for (const part of parts) for await (const group of groupsOf(part, parts.length, each, tools)) groups.push(group);
  return groups;
}

const count = (length: number): Uint32Array => Uint32Array.from({ length }, (_, row) => row);

test('few rows are one group, and none are none', async () => {
  assert.deepEqual(await allGroups(count(GROUP_ROWS_MAX), 10, (row) => row), [count(GROUP_ROWS_MAX)]);
  assert.deepEqual(await allGroups(count(0), 10, (row) => row), []);
});

for (const { rows, each } of [
  { rows: GROUP_ROWS_MAX + 1, each: 6 },
  { rows: 14_000, each: 10 },
])
  test(`of ${rows} rows each is in about ${each} groups of rows near to it`, async () => {
    const groups = await allGroups(count(rows), each, (row) => row);
    const times = new Uint32Array(rows);
    for (const group of groups) {
      assert.ok(group.length > 0 && group.length <= 400 && new Set(group).size === group.length);
      for (const row of group) times[row] = (times[row] as number) + 1;
    }
    assert.ok(times.every((own) => own >= 1 && own <= each));
    assert.ok(times.reduce((sum, own) => sum + own, 0) >= 0.9 * rows * each);
    const spans = groups.map((group) => Math.max(...group) - Math.min(...group));
    assert.ok(Math.max(...spans) < rows / 2, `${Math.max(...spans)}`);
    // Neighbours on the line are nearly always in a group together.
    const groupsWith = groups.map((group) => new Set(group));
    const apart = Array.from({ length: 200 }, (_, n) => Math.floor((n * (rows - 1)) / 200)).filter(
      (row) => !groupsWith.some((group) => group.has(row) && group.has(row + 1)),
    );
    assert.deepEqual(apart, []);
  });

test('rows that are all alike are cut into groups, in another way each time', async () => {
  const rows = 5000;
  const groups = await allGroups(count(rows), 4, () => 0);
  assert.ok(groups.every(({ length }) => length > 0 && length <= 400));
  const times = new Uint32Array(rows);
  for (const group of groups) for (const row of group) times[row] = (times[row] as number) + 1;
  assert.ok(times.every((own) => own === 4));
  // So that each way connects what another one divides.
  const [first, ...others] = groups as [Uint32Array, ...Uint32Array[]];
  const own = new Set(first);
  assert.ok(others.every((group) => group.filter((row) => own.has(row)).length < 200));
});
