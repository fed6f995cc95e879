import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import {
  type ExampleFacts,
  type ExampleForm,
  type ExampleSearch,
  exampleFacts,
  exampleSearch,
  planExamples,
  walkSettles,
} from '../../query/example-plan.js';
import { type CodeFacts, explain, type SegmentFacts } from '../../query/plan.js';
import type { Metric } from '../../vectors/kernel-api.js';
import { referenceScore } from '../../vectors/reference.js';
import { seeded } from './property.js';

const CODES: CodeFacts = { bytes: 128, rescore: true, oversampling: null, coarse: false, rescoreFound: false };
const SEGMENT: SegmentFacts = {
  ...{ rows: 200_000, live: 200_000, admitted: null, hasGraph: true, codes: CODES, exact: false, indexedOnly: false, hnswEf: null },
  ...{ efDefault: 100, shards: 1, k: 10, fullScanThresholdKb: 10_000, dim: 128, element: 'f32', m0: 32, valueGraph: null },
};

const vectors = (count: number): Float32Array[] => Array.from({ length: count }, (_, at) => Float32Array.of(1, at, 2 - at));

function factsOf(form: ExampleForm, count: number, metric: Metric = 'dot'): ExampleFacts {
  return { count, search: exampleSearch(form, vectors(count), metric), countMax: 1000 };
}

const BEST = factsOf({ kind: 'bestScore', positives: 2 }, 3);

/** Facts, and the plan as text. */
const PLANS: readonly [string, SegmentFacts, ExampleFacts, string][] = [
  [
    'best score',
    SEGMENT,
    BEST,
    'walk ef 100, on codes, best 100 rescored, else gather: walk 487 µs, gather 63648 µs, 100 % of 200000 rows admitted',
  ],
  [
    'each pair of a discovery adds twice as many candidates as there were',
    SEGMENT,
    factsOf({ kind: 'discover' }, 5),
    'walk ef 500, on codes, best 500 rescored, else gather: walk 2646 µs, gather 106080 µs, 100 % of 200000 rows admitted',
  ],
  [
    'a discovery without pairs',
    SEGMENT,
    factsOf({ kind: 'discover' }, 1),
    'walk ef 100, on codes, best 100 rescored, else gather: walk 336 µs, gather 21216 µs, 100 % of 200000 rows admitted',
  ],
  [
    'context, small ef, no codes',
    { ...SEGMENT, hnswEf: 32, codes: null },
    factsOf({ kind: 'context' }, 4),
    'walk ef 32, on originals, best 32 rescored, else gather: walk 315 µs, gather 84864 µs, 100 % of 200000 rows admitted',
  ],
  [
    'a sum of several similarities',
    SEGMENT,
    factsOf({ kind: 'sum', weights: [1, 1, -1] }, 3),
    'walk ef 300, on codes, best 300 rescored, else gather: walk 938 µs, gather 63648 µs, 100 % of 200000 rows admitted',
  ],
  [
    'a tenth admitted',
    { ...SEGMENT, admitted: 20_000 },
    BEST,
    'walk ef 100, two hops through the filter, on codes, best 100 rescored, else gather: walk 1019 µs, gather 6365 µs, 10 % of 200000 rows admitted',
  ],
  [
    'a payload value with a graph of its own',
    { ...SEGMENT, admitted: 20_000, hasGraph: false, valueGraph: { rows: 20_000, m0: 32, of: 'tenant = a' } },
    BEST,
    'walk of sub-graph ef 100, on codes, best 100 rescored, else gather: walk 487 µs, gather 6365 µs, 100 % of 20000 rows of tenant = a admitted',
  ],
  ['few admitted', { ...SEGMENT, admitted: 1000 }, BEST, 'gather on originals, best 10: 500 kB are below full_scan_threshold'],
  [
    'few admitted, without a threshold',
    { ...SEGMENT, admitted: 1000, fullScanThresholdKb: 0 },
    BEST,
    'gather on originals, best 10: walk 817 µs, gather 318 µs, 0.5 % of 200000 rows admitted',
  ],
  ['most rows wanted', { ...SEGMENT, k: 200_000 }, BEST, 'gather on originals, best 200000: most of the rows are wanted'],
  ['exact', { ...SEGMENT, exact: true }, BEST, 'gather on originals, best 10: exact search asked for'],
  ['no graph', { ...SEGMENT, hasGraph: false }, BEST, 'gather on originals, best 10: no graph'],
  [
    'only negatives',
    SEGMENT,
    factsOf({ kind: 'bestScore', positives: 0 }, 2),
    'gather on originals, best 10: the examples lead to no place in the graph',
  ],
  [
    'coarse codes',
    { ...SEGMENT, codes: { ...CODES, bytes: 16, coarse: true } },
    BEST,
    'gather on originals, best 10: codes too coarse to tell on which side of examples a row lies',
  ],
  [
    'codes of half a byte for a discovery',
    { ...SEGMENT, codes: { ...CODES, bytes: 72 } },
    factsOf({ kind: 'discover' }, 3),
    'gather on originals, best 10: codes too coarse to tell on which side of examples a row lies',
  ],
  [
    'coarse codes for a sum',
    { ...SEGMENT, codes: { ...CODES, bytes: 16, coarse: true } },
    factsOf({ kind: 'sum', weights: [1] }, 1),
    'walk ef 100, on codes, best 100 rescored, else gather: walk 261 µs, gather 21216 µs, 100 % of 200000 rows admitted',
  ],
  ['no room', SEGMENT, { ...BEST, countMax: 2 }, 'gather on originals, best 10: too many examples for a walk'],
  [
    'more pairs than ranks have zones',
    SEGMENT,
    factsOf({ kind: 'discover' }, 63),
    'gather on originals, best 10: too many examples for a walk',
  ],
];

for (const [name, facts, examples, text] of PLANS) {
  test(`plan by examples: ${name}`, () => {
    assert.equal(explain(planExamples(facts, examples)), text);
  });
}

test('a walk that codes are too coarse for goes by originals in memory', () => {
  const coarse = { ...SEGMENT, codes: { ...CODES, bytes: 16, coarse: true, rescoreFound: true } };
  const half = { ...SEGMENT, codes: { ...CODES, bytes: 72, rescoreFound: true } };
  const codesOf = (facts: SegmentFacts, form: ExampleForm): CodeFacts | null =>
    exampleFacts(facts, exampleSearch(form, vectors(3), 'dot')).codes;
  assert.equal(codesOf(coarse, { kind: 'bestScore', positives: 1 }), null);
  assert.equal(codesOf(half, { kind: 'discover' }), null);
  assert.equal(codesOf(half, { kind: 'bestScore', positives: 1 }), half.codes);
  assert.equal(codesOf(coarse, { kind: 'sum', weights: [1, 1, 1] }), coarse.codes);
  assert.equal(codesOf(SEGMENT, { kind: 'discover' }), CODES);
  const search = exampleSearch({ kind: 'discover' }, vectors(3), 'dot');
  assert.equal(planExamples(exampleFacts(half, search), { count: 3, countMax: 100, search }).kind, 'walk');
});

test('walks begin at positives and at the target of a discovery', () => {
  const starts = (form: ExampleForm, count: number): number[] | null => {
    const all = vectors(count);
    const search = exampleSearch(form, all, 'dot');
    return search?.kind === 'ranks' ? search.walk.starts.map((start) => all.indexOf(start)) : null;
  };
  assert.deepEqual(starts({ kind: 'bestScore', positives: 2 }, 4), [0, 1]);
  assert.deepEqual(starts({ kind: 'discover' }, 5), [0, 1, 3]);
  assert.deepEqual(starts({ kind: 'context' }, 4), [0, 2]);
  assert.equal(starts({ kind: 'context' }, 0), null);
});

test('a walk within a context settles the answer only where its last row is as good as any', () => {
  const search = (form: ExampleForm): ExampleSearch | null => exampleSearch(form, vectors(4), 'dot');
  assert.equal(walkSettles(search({ kind: 'context' }), 0), true);
  assert.equal(walkSettles(search({ kind: 'context' }), -1e-7), false);
  assert.equal(walkSettles(search({ kind: 'bestScore', positives: 2 }), -0.5), true);
  assert.equal(walkSettles(search({ kind: 'sum', weights: [1, 1, -1, -1] }), -3), true);
});

test('a sum of weighted similarities orders rows as the similarity to one vector does, or leads nowhere', () => {
  const component = fc.integer({ min: -8, max: 8 });
  const vector = fc.array(component, { minLength: 3, maxLength: 3 }).map((values) => Float32Array.from(values));
  const example = fc.record({ vector, weight: fc.integer({ min: -3, max: 3 }) });
  fc.assert(
    fc.property(
      fc.array(example, { minLength: 1, maxLength: 4 }),
      vector,
      vector,
      fc.constantFrom('dot', 'l2'),
      (examples, one, other, metric) => {
        const weights = examples.map(({ weight }) => weight);
        const search = exampleSearch(
          { kind: 'sum', weights },
          examples.map((each) => each.vector),
          metric,
        );
        if (search === null) {
          const total = weights.reduce((sum, weight) => sum + weight, 0);
          const isZero = [0, 1, 2].every((i) => examples.reduce((sum, each) => sum + each.weight * (each.vector[i] as number), 0) === 0);
          assert.ok(metric === 'l2' ? total <= 0 : isZero);
          return;
        }
        const { target } = search as Extract<ExampleSearch, { kind: 'nearest' }>;
        const score = (row: Float32Array): number =>
          examples.reduce((sum, each) => sum + each.weight * referenceScore(metric, row, each.vector), 0);
        const [difference, byTarget] = [
          score(one) - score(other),
          referenceScore(metric, one, target) - referenceScore(metric, other, target),
        ];
        if (Math.abs(byTarget) > 1e-3) assert.equal(Math.sign(difference), Math.sign(byTarget));
        else assert.ok(Math.abs(difference) < 1);
      },
    ),
    seeded(1000),
  );
  assert.equal(exampleSearch({ kind: 'sum', weights: [1] }, vectors(1), 'l1'), null);
  assert.equal(exampleSearch({ kind: 'sum', weights: [2] }, [Float32Array.of(3e38, 1, 1)], 'dot'), null);
});
