/** Random bodies of queries: most of them nearly right. */

import fc from 'fast-check';

const number = fc.oneof(
  { weight: 20, arbitrary: fc.integer({ min: -5, max: 5 }) },
  { weight: 5, arbitrary: fc.float({ noNaN: true, min: -1000, max: 1000 }) },
  fc.constant(1e39),
);
const list = fc.oneof({ weight: 9, arbitrary: fc.array(number, { minLength: 2, maxLength: 2 }) }, fc.array(number, { maxLength: 4 }));
const sparse = fc.record({ indices: fc.array(fc.nat(5), { maxLength: 3 }), values: fc.array(number, { maxLength: 3 }) });
const odd = fc.oneof(fc.jsonValue({ maxDepth: 2 }), fc.constantFrom(null, true, 'x', {}, [[]], [[1], 2], [null]));
const input = fc.oneof(
  { weight: 12, arbitrary: list },
  fc.array(list, { maxLength: 3 }),
  { weight: 2, arbitrary: fc.integer({ min: 1, max: 7 }) },
  sparse,
  odd,
);
const inputs = fc.oneof({ weight: 4, arbitrary: fc.array(input, { maxLength: 3 }) }, odd);
const pair = fc.record({ positive: input, negative: input }, { requiredKeys: [] });
const pairs = fc.oneof(fc.array(pair, { maxLength: 2 }), pair, odd);
const formula = fc.oneof(
  number,
  fc.constantFrom('$score', '$score[1]', 'n', '$x'),
  fc.record({ sum: list }),
  fc.record({ neg: number }),
  odd,
);
const query = fc.oneof(
  input,
  fc.record({ nearest: input, mmr: fc.oneof(fc.record({ diversity: number }), odd) }, { requiredKeys: ['nearest'] }),
  fc.record({ recommend: fc.record({ positive: inputs, negative: inputs }, { requiredKeys: [] }) }),
  fc.record({ discover: fc.record({ target: input, context: pairs }, { requiredKeys: [] }) }),
  fc.record({ context: pairs }),
  fc.record({
    relevance_feedback: fc.record({ target: input, feedback: fc.oneof(fc.array(fc.record({ example: input, score: number })), odd) }),
  }),
  fc.record({ fusion: fc.constantFrom('rrf', 'dbsf', 'x') }),
  fc.record({ rrf: fc.record({ weights: list, k: fc.nat(3) }, { requiredKeys: [] }) }),
  fc.record({ formula, defaults: odd }, { requiredKeys: ['formula'] }),
  fc.record({ sample: fc.constantFrom('random', 'x') }),
  fc.record({
    order_by: fc.oneof(
      fc.constantFrom('n', 'a..b'),
      fc.record({ key: fc.constant('n'), start_from: number, direction: fc.constantFrom('asc', 'desc') }),
      odd,
    ),
  }),
);
/** A query with prefetches; vectors have two components more often than not. */
export const { node: queryBody } = fc.letrec<{ node: object; prefetch: unknown }>((tie) => ({
  node: fc.record(
    {
      query,
      prefetch: tie('prefetch'),
      offset: fc.nat(2),
      filter: fc.constantFrom({}, { must_not: [{ has_id: [1] }] }, { must: [{ key: 'n', range: { gt: 1 } }] }),
      using: fc.constant('a'),
      limit: fc.integer({ min: 1, max: 5 }),
      score_threshold: number,
    },
    { requiredKeys: ['query', 'using'] },
  ),
  prefetch: fc.oneof({ maxDepth: 3 }, fc.constant([]), tie('node'), fc.array(tie('node'), { maxLength: 3 }), odd),
}));
export const searchBody = fc.record({
  vector: fc.oneof(input, fc.record({ name: fc.constant('a'), vector: input })),
  limit: fc.integer({ min: 1, max: 3 }),
});
