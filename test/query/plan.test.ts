import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { type CodeFacts, explain, planNs, planSegment, type SegmentFacts } from '../../query/plan.js';
import { seeded } from './property.js';

/** 8-bit codes, as every segment has them. */
const CODES: CodeFacts = { bytes: 784, rescore: true, oversampling: null, coarse: false, rescoreFound: false };
/** Half a byte a component. */
const TURBO: CodeFacts = { ...CODES, bytes: 408 };

const MNIST: SegmentFacts = {
  rows: 60_000,
  live: 60_000,
  admitted: null,
  hasGraph: true,
  codes: CODES,
  exact: false,
  indexedOnly: false,
  hnswEf: 64,
  efDefault: 100,
  shards: 1,
  k: 10,
  fullScanThresholdKb: 10_000,
  dim: 784,
  element: 'f32',
  m0: 32,
  valueGraph: null,
};
const SMALL_VECTORS: SegmentFacts = { ...MNIST, rows: 200_000, live: 200_000, dim: 128, codes: { ...CODES, bytes: 128 } };

/** A third of MNIST. */
const TENANT = { rows: 20_000, m0: 32, of: 'tenant = a' };

/** A million rows in lists on disk. */
const LISTED: SegmentFacts = {
  ...SMALL_VECTORS,
  ...{ rows: 1_000_000, live: 1_000_000, hasGraph: false, hnswEf: null, lists: { count: 5000, probes: 40 } },
};

/** Facts that differ from MNIST's, and the plan as text. */
const PLANS: readonly [string, SegmentFacts, string][] = [
  ['lists', LISTED, 'lists 40, on codes, best 36 rescored, else scan: 5000 lists on disk, 100 % of the rows admitted'],
  [
    'lists, small ef',
    { ...LISTED, hnswEf: 10 },
    'lists 4, on codes, best 36 rescored, else scan: 5000 lists on disk, 100 % of the rows admitted',
  ],
  [
    'lists, large limit',
    { ...LISTED, k: 1000 },
    'lists 400, on codes, best 2016 rescored, else scan: 5000 lists on disk, 100 % of the rows admitted',
  ],
  [
    'lists, 1 % admitted',
    { ...LISTED, admitted: 10_000 },
    'lists 400, on codes, best 36 rescored, else gather: 5000 lists on disk, 1 % of the rows admitted',
  ],
  [
    'lists, few admitted',
    { ...LISTED, admitted: 100 },
    'gather on originals, best 10: so few rows take fewer reads than 4000 lists on disk',
  ],
  ['lists, exact', { ...LISTED, exact: true }, 'scan on originals, best 10: exact search asked for'],
  [
    'lists, indexed_only',
    { ...LISTED, indexedOnly: true },
    'lists 40, on codes, best 36 rescored, else scan: 5000 lists on disk, 100 % of the rows admitted',
  ],
  ['no filter', MNIST, 'walk ef 64, on codes, best 36 rescored, else scan: walk 238 µs, scan 6300 µs, 100 % of 60000 rows admitted'],
  [
    'default ef',
    { ...MNIST, hnswEf: null },
    'walk ef 100, on codes, best 36 rescored, else scan: walk 325 µs, scan 6300 µs, 100 % of 60000 rows admitted',
  ],
  [
    'small ef',
    { ...MNIST, hnswEf: 16 },
    'walk ef 16, on codes, best 16 rescored, else scan: walk 73 µs, scan 6300 µs, 100 % of 60000 rows admitted',
  ],
  [
    'four shards',
    { ...MNIST, shards: 4 },
    'walk ef 32, on codes, best 32 rescored, else scan: walk 146 µs, scan 6300 µs, 100 % of 60000 rows admitted',
  ],
  [
    'four shards, large limit',
    { ...MNIST, shards: 4, k: 50 },
    'walk ef 50, on codes, best 50 rescored, else scan: walk 229 µs, scan 6300 µs, 100 % of 60000 rows admitted',
  ],
  [
    'many shards',
    { ...MNIST, shards: 100 },
    'walk ef 24, on codes, best 24 rescored, else scan: walk 110 µs, scan 6300 µs, 100 % of 60000 rows admitted',
  ],
  [
    'many shards, fewer candidates asked for',
    { ...MNIST, shards: 100, hnswEf: 12 },
    'walk ef 12, on codes, best 12 rescored, else scan: walk 55 µs, scan 6300 µs, 100 % of 60000 rows admitted',
  ],
  [
    'no codes',
    { ...MNIST, codes: null },
    'walk ef 64, on originals, best 10, else scan: walk 566 µs, scan 23940 µs, 100 % of 60000 rows admitted',
  ],
  [
    'quantized',
    { ...MNIST, codes: TURBO },
    'walk ef 64, on codes, best 36 rescored, else scan: walk 228 µs, scan 3480 µs, 100 % of 60000 rows admitted',
  ],
  [
    'coarse codes',
    { ...MNIST, codes: { ...TURBO, bytes: 108, coarse: true } },
    'walk ef 64, on codes, best 64 rescored, else scan: walk 176 µs, scan 1230 µs, 100 % of 60000 rows admitted',
  ],
  [
    'coarse codes of a multivector',
    { ...MNIST, hasGraph: false, codes: { ...TURBO, bytes: 108, coarse: true, summed: true } },
    'scan on codes, best 400 rescored: no graph',
  ],
  [
    'oversampling',
    { ...MNIST, codes: { ...TURBO, oversampling: 2.05 } },
    'walk ef 64, on codes, best 21 rescored, else scan: walk 228 µs, scan 3480 µs, 100 % of 60000 rows admitted',
  ],
  [
    'oversampling, with the originals in memory',
    { ...MNIST, codes: { ...TURBO, oversampling: 2.05, rescoreFound: true } },
    'walk ef 64, on codes, best 64 rescored, else scan: walk 228 µs, scan 3480 µs, 100 % of 60000 rows admitted',
  ],
  [
    'oversampling beyond ef',
    { ...MNIST, codes: { ...TURBO, oversampling: 20 } },
    'walk ef 200, on codes, best 200 rescored, else scan: walk 712 µs, scan 3480 µs, 100 % of 60000 rows admitted',
  ],
  [
    'oversampling beyond all rows',
    { ...MNIST, codes: { ...TURBO, oversampling: 1e12 } },
    'scan on originals, best 10: most of the rows are wanted',
  ],
  [
    'no rescoring',
    { ...MNIST, codes: { ...TURBO, rescore: false, oversampling: 3 } },
    'walk ef 64, on codes, best 10, else scan: walk 228 µs, scan 3480 µs, 100 % of 60000 rows admitted',
  ],
  ['exact', { ...MNIST, exact: true }, 'scan on originals, best 10: exact search asked for'],
  ['exact, filtered', { ...MNIST, exact: true, admitted: 6000 }, 'gather on originals, best 10: exact search asked for'],
  ['no graph', { ...MNIST, hasGraph: false }, 'scan on codes, best 36 rescored: no graph'],
  ['indexed_only, no graph', { ...MNIST, hasGraph: false, indexedOnly: true }, 'none: indexed_only, and the segment has no graph yet'],
  [
    '50 %',
    { ...MNIST, admitted: 30_000 },
    'walk ef 64, on codes, best 36 rescored, else gather: walk 475 µs, gather 3893 µs, 50 % of 60000 rows admitted',
  ],
  [
    '10 %',
    { ...MNIST, admitted: 6000 },
    'walk ef 64, two hops through the filter, on codes, best 36 rescored, else gather: walk 451 µs, gather 779 µs, 10 % of 60000 rows admitted',
  ],
  ['1 %', { ...MNIST, admitted: 600 }, 'gather on codes, best 36 rescored: 1838 kB are below full_scan_threshold'],
  ['0.1 %', { ...MNIST, admitted: 60 }, 'gather on originals, best 10: 184 kB are below full_scan_threshold'],
  ['nothing passes', { ...MNIST, admitted: 0 }, 'none: no row passes the filter'],
  ['all deleted', { ...MNIST, live: 0 }, 'none: no live rows'],
  ['limit 0', { ...MNIST, k: 0 }, 'none: no results wanted'],
  ['most rows wanted', { ...MNIST, k: 40_000 }, 'scan on originals, best 40000: most of the rows are wanted'],
  [
    '200k × 128',
    SMALL_VECTORS,
    'walk ef 64, on codes, best 36 rescored, else scan: walk 146 µs, scan 4600 µs, 100 % of 200000 rows admitted',
  ],
  [
    '200k × 128, 10 %',
    { ...SMALL_VECTORS, admitted: 20_000 },
    'walk ef 64, two hops through the filter, on codes, best 36 rescored, else gather: walk 359 µs, gather 758 µs, 10 % of 200000 rows admitted',
  ],
  ['200k × 128, 5 %', { ...SMALL_VECTORS, admitted: 10_000 }, 'gather on codes, best 36 rescored: 5000 kB are below full_scan_threshold'],
  [
    '50k × 256, 5 %',
    { ...SMALL_VECTORS, rows: 50_000, live: 50_000, dim: 256, codes: { ...CODES, bytes: 256 }, admitted: 2500, fullScanThresholdKb: 10 },
    'gather on codes, best 36 rescored: walk 377 µs, gather 140 µs, 5 % of 50000 rows admitted',
  ],
  [
    '200k × 128, low threshold, 1 %',
    { ...SMALL_VECTORS, admitted: 2000, fullScanThresholdKb: 10 },
    'gather on codes, best 36 rescored: walk 359 µs, gather 76 µs, 1 % of 200000 rows admitted',
  ],
  [
    'a value with a graph',
    { ...MNIST, admitted: 20_000, valueGraph: TENANT },
    'walk of sub-graph ef 64, on codes, best 36 rescored, else gather: walk 238 µs, gather 2595 µs, 100 % of 20000 rows of tenant = a admitted',
  ],
  [
    'a value with a graph, another condition',
    { ...MNIST, admitted: 4800, valueGraph: TENANT, fullScanThresholdKb: 10 },
    'walk of sub-graph ef 64, two hops through the filter, on codes, best 36 rescored, else gather: walk 451 µs, gather 623 µs, 24 % of 20000 rows of tenant = a admitted',
  ],
  [
    'a value with a graph, another condition that most rows pass',
    { ...MNIST, admitted: 16_000, valueGraph: TENANT },
    'walk of sub-graph ef 64, on codes, best 36 rescored, else gather: walk 297 µs, gather 2076 µs, 80 % of 20000 rows of tenant = a admitted',
  ],
  [
    'a value with a graph, most rows filtered out',
    { ...MNIST, admitted: 600, valueGraph: TENANT },
    'gather on codes, best 36 rescored: 1838 kB are below full_scan_threshold',
  ],
  [
    'a value with a graph, and none over all rows',
    { ...MNIST, hasGraph: false, m0: 0, admitted: 20_000, valueGraph: TENANT },
    'walk of sub-graph ef 64, on codes, best 36 rescored, else gather: walk 238 µs, gather 2595 µs, 100 % of 20000 rows of tenant = a admitted',
  ],
  [
    'a value with a graph of more links than the whole one',
    { ...MNIST, admitted: 20_000, valueGraph: { ...TENANT, m0: 128 } },
    'walk ef 64, on codes, best 36 rescored, else gather: walk 713 µs, gather 2595 µs, 33 % of 60000 rows admitted',
  ],
];

for (const [name, facts, text] of PLANS) {
  test(`plan: ${name}`, () => {
    assert.equal(explain(planSegment(facts)), text);
  });
}

test('every plan keeps at least min(k, admitted) rows, and a walk names its exact way out (Query-Q1)', () => {
  const facts = fc
    .record({
      rows: fc.nat(1_000_000),
      deleted: fc.double({ min: 0, max: 1, noNaN: true }),
      admitted: fc.option(fc.double({ min: 0, max: 1, noNaN: true })),
      hasGraph: fc.boolean(),
      codes: fc.option(
        fc.record({
          bytes: fc.integer({ min: 4, max: 4096 }),
          rescore: fc.boolean(),
          oversampling: fc.option(fc.double({ min: 1, max: 1e9, noNaN: true })),
          coarse: fc.boolean(),
          summed: fc.boolean(),
          rescoreFound: fc.boolean(),
        }),
      ),
      exact: fc.boolean(),
      hnswEf: fc.option(fc.nat(1000)),
      shards: fc.integer({ min: 1, max: 64 }),
      k: fc.nat(20_000),
      fullScanThresholdKb: fc.nat(20_000),
      dim: fc.integer({ min: 1, max: 4096 }),
      element: fc.constantFrom('f32' as const, 'f16' as const, 'u8' as const),
      m0: fc.integer({ min: 2, max: 128 }),
      valueRows: fc.option(fc.double({ min: 0, max: 1, noNaN: true })),
    })
    .map(({ rows, deleted, admitted, valueRows, ...rest }): SegmentFacts => {
      const live = Math.round(rows * (1 - deleted));
      return {
        ...rest,
        rows,
        live,
        admitted: admitted === null ? null : Math.round(live * admitted),
        indexedOnly: false,
        efDefault: 100,
        valueGraph:
          valueRows === null || admitted === null ? null : { rows: Math.round(live * Math.max(valueRows, admitted)), m0: 32, of: 'x' },
      };
    });
  fc.assert(
    fc.property(facts, (one) => {
      const plan = planSegment(one);
      const wanted = Math.min(one.k, one.admitted ?? one.live);
      if (plan.kind === 'none') {
        assert.equal(wanted, 0);
        return;
      }
      assert.ok(plan.keep >= wanted);
      assert.ok(!one.exact || (plan.kind !== 'walk' && !plan.useCodes));
      assert.ok(one.codes !== null || !plan.useCodes);
      assert.ok(plan.rescore === (plan.useCodes && one.codes?.rescore === true));
      if (plan.kind === 'walk') assert.ok(plan.ef >= plan.keep && (plan.graph === 'whole' ? one.hasGraph : one.valueGraph !== null));
      assert.ok(explain(plan).length > 0);
    }),
    seeded(3000),
  );
});

test('a scan of rows with codes of their own is told to take less, by as many of them as have some', () => {
  const none = { ...SMALL_VECTORS, hasGraph: false, codes: null };
  const ns = (codedRows: number): number => {
    const facts = { ...none, codedRows };
    return planNs(facts, planSegment(facts));
  };
  assert.ok(ns(none.rows) < 0.4 * ns(0));
  assert.ok(Math.abs(ns(none.rows / 2) - (ns(0) + ns(none.rows)) / 2) < 1);
  assert.equal(ns(2 * none.rows), ns(none.rows), 'rows that came since');
});
