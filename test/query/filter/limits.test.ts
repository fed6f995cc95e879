import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Condition, Filter } from '../../../protocols/model/filter.js';
import { evaluateFilter } from '../../../query/filter/evaluate.js';
import type { FieldIndex, FilterSource } from '../../../query/filter/source.js';

const ROWS = 6400;
const NONE: Filter = { must: [], should: [], mustNot: [], minShould: null };

class TimeOver extends Error {}

/** A segment whose clock runs out at the n-th look at it, and which counts what is asked of it. */
function limitedSource(looksMax: number, index: FieldIndex | undefined) {
  const seen = { looks: 0, payloads: 0, heldBytes: 0, mostHeldBytes: 0 };
  const source: FilterSource = {
    rows: ROWS,
    fieldIndex: () => index,
    payload: () => {
      seen.payloads++;
      return { n: 1 };
    },
    rowsWithIds: () => [],
    hasVector: () => false,
    checkpoint: () => {
      if (++seen.looks >= looksMax) throw new TimeOver();
    },
    hold: (bytes) => {
      seen.heldBytes += bytes;
      seen.mostHeldBytes = Math.max(seen.mostHeldBytes, seen.heldBytes);
    },
    giveBack: (bytes) => {
      seen.heldBytes -= bytes;
    },
  };
  return { seen, source };
}

/** An index that answers everything, and counts how often and for how many values. */
function countingIndex() {
  const asked = { conditions: 0, valuesMost: 0 };
  const index: FieldIndex = {
    match: (condition) => {
      asked.conditions++;
      const count = condition.kind === 'match' && condition.match.kind === 'any' ? condition.match.values.length : 1;
      asked.valuesMost = Math.max(asked.valuesMost, count);
      return 'exact';
    },
    cardinality: () => null,
  };
  return { asked, index };
}

const ranges = (count: number): Condition[] =>
  Array.from({ length: count }, (_, at) => ({ kind: 'range', key: 'n', range: { gt: at } }) as Condition);

test('a filter of many conditions ends with the condition at which the time is over', () => {
  const { asked, index } = countingIndex();
  const { seen, source } = limitedSource(5, index);
  assert.throws(() => evaluateFilter({ ...NONE, should: ranges(100_000) }, source), TimeOver);
  assert.ok(asked.conditions < 5, `${asked.conditions} conditions were looked up`);
  assert.equal(seen.heldBytes, 0);
});

test('the order of many conditions is not looked for once the time is over', () => {
  const { asked, index } = countingIndex();
  const { source } = limitedSource(5, index);
  assert.throws(() => evaluateFilter({ ...NONE, must: ranges(100_000) }, source), TimeOver);
  assert.equal(asked.conditions, 0);
});

test('a long list of values is looked up in portions, with a look at the clock before each', () => {
  const { asked, index } = countingIndex();
  const { source } = limitedSource(5, index);
  const values = Array.from({ length: 100_000 }, (_, at) => at);
  const filter: Filter = { ...NONE, must: [{ kind: 'match', key: 'n', match: { kind: 'any', values } }] };
  assert.throws(() => evaluateFilter(filter, source), TimeOver);
  assert.ok(asked.valuesMost <= 512 && asked.conditions < 5, JSON.stringify(asked));
});

test('with many conditions the clock is looked at after fewer payloads', () => {
  const { seen, source } = limitedSource(10_000 + 3, undefined);
  assert.throws(() => evaluateFilter({ ...NONE, should: ranges(10_000) }, source), TimeOver);
  assert.ok(seen.payloads > 0 && seen.payloads <= 3 * 6, `${seen.payloads} payloads were tested by 10,000 conditions`);
});

test('the bits of all conditions are held while a filter is evaluated, and given back', () => {
  const { index } = countingIndex();
  const { seen, source } = limitedSource(Number.POSITIVE_INFINITY, index);
  evaluateFilter({ ...NONE, should: ranges(1000) }, source);
  assert.equal(seen.mostHeldBytes, (1000 * 2 * ROWS) / 8);
  assert.equal(seen.heldBytes, 0);
});
