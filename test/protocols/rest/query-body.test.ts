import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { TroupeError } from '../../../protocols/errors.js';
import { decodeQuery, decodeQueryBatch, decodeSearch } from '../../../protocols/rest/queries.js';
import { plainBody, type RequestValue, scannedBody } from '../../../protocols/rest/request-value.js';
import { seeded } from '../../query/property.js';

/** What decoding gives or refuses. Anything but a catalogue error is a bug. */
function outcome(decode: (body: RequestValue) => unknown, body: RequestValue): unknown {
  try {
    return { value: decode(body) };
  } catch (error) {
    assert.ok(error instanceof TroupeError, String(error));
    return { code: error.code };
  }
}

const number = fc.oneof(fc.integer({ min: -5, max: 5 }), fc.float({ noNaN: true, noDefaultInfinity: true }), fc.constant(1e39));
const list = fc.array(number, { maxLength: 4 });
const sparse = fc.record({ indices: fc.array(fc.nat(5), { maxLength: 3 }), values: fc.array(number, { maxLength: 3 }) });
const odd = fc.oneof(fc.jsonValue({ maxDepth: 2 }), fc.constantFrom(null, true, 'x', {}, [[]], [[1], 2], [null]));
const input = fc.oneof({ weight: 4, arbitrary: list }, fc.array(list, { maxLength: 3 }), fc.nat(9), sparse, odd);
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
  fc.record({ order_by: fc.oneof(fc.constantFrom('n', 'a..b'), odd) }),
);
const { node } = fc.letrec<{ node: object; prefetch: unknown }>((tie) => ({
  node: fc.record(
    { query, prefetch: tie('prefetch'), using: fc.constant('a'), limit: fc.integer({ min: 1, max: 5 }), score_threshold: number },
    { requiredKeys: ['query'] },
  ),
  prefetch: fc.oneof({ maxDepth: 3 }, odd, tie('node'), fc.array(tie('node'), { maxLength: 3 })),
}));
const search = fc.record({
  vector: fc.oneof(input, fc.record({ name: fc.constant('a'), vector: input })),
  limit: fc.integer({ min: 1, max: 3 }),
});

test('a query decodes to the same whether its vectors are read from the bytes or by the parser', () => {
  const cases = fc.oneof(
    node.map((body): [(body: RequestValue) => unknown, object] => [decodeQuery, body]),
    fc.array(node, { maxLength: 2 }).map((searches): [(body: RequestValue) => unknown, object] => [decodeQueryBatch, { searches }]),
    search.map((body): [(body: RequestValue) => unknown, object] => [decodeSearch, body]),
  );
  fc.assert(
    fc.property(cases, ([decode, body]) => {
      const bytes = new TextEncoder().encode(JSON.stringify(body));
      assert.deepEqual(outcome(decode, scannedBody(bytes)), outcome(decode, plainBody(bytes)));
    }),
    seeded(5000),
  );
});
