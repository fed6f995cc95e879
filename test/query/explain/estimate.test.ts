import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Condition, Filter } from '../../../protocols/model/filter.js';
import { estimateMatches } from '../../../query/explain/estimate.js';

const ROWS = 1000;
const NONE: Filter = { must: [], should: [], mustNot: [], minShould: null };
/** A condition that so many of the rows pass, as an index knows it. */
const of = (matches: number): Condition => ({ kind: 'isEmpty', key: String(matches) });
const UNKNOWN: Condition = { kind: 'hasVector', name: 'v' };

function estimated(filter: Partial<Filter>): [min: number, expected: number, max: number] {
  const bounds = (condition: Condition) =>
    condition.kind === 'isEmpty' ? { min: Number(condition.key), max: Number(condition.key) } : null;
  const { expected, max, min } = estimateMatches({ ...NONE, ...filter }, ROWS, bounds);
  return [min, expected, max];
}

test('the bounds of a filter follow from those of its conditions, and what is expected of them as if they were independent', () => {
  assert.deepEqual(estimated({}), [ROWS, ROWS, ROWS]);
  assert.deepEqual(estimated({ must: [of(300)] }), [300, 300, 300]);
  assert.deepEqual(estimated({ must: [of(300), of(500)] }), [0, 150, 300]);
  assert.deepEqual(estimated({ must: [of(900), of(800)] }), [700, 720, 800]);
  assert.deepEqual(estimated({ mustNot: [of(300)] }), [700, 700, 700]);
  assert.deepEqual(estimated({ should: [of(300), of(500)] }), [500, 650, 800]);
  assert.deepEqual(estimated({ must: [UNKNOWN] }), [0, 500, ROWS]);
  assert.deepEqual(estimated({ must: [{ kind: 'hasId', ids: [1, 2] }] }), [0, 2, 2]);
  assert.deepEqual(estimated({ must: [{ kind: 'filter', filter: { ...NONE, mustNot: [of(100)] } }] }), [900, 900, 900]);
  assert.deepEqual(estimated({ minShould: { conditions: [of(300), of(500)], minCount: 2 } }), [0, 200, 400]);
  assert.deepEqual(estimated({ minShould: { conditions: [of(300)], minCount: 0 } }), [ROWS, ROWS, ROWS]);
});
