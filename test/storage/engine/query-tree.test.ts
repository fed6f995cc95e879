import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import fc from 'fast-check';
import { decodeQuery } from '../../../protocols/rest/queries.js';
import { seeded } from '../../query/property.js';
import { CollectionFixture, configOf, contextOf, randomOf, runQuery, SEQ, type TestPoint } from './collection-fixture.js';

const fixture = new CollectionFixture(configOf({ a: { size: 2, distance: 'Dot' }, b: { size: 2, distance: 'Manhattan' } }));
after(() => fixture.remove());

/** Integers, so that scores are exact, and so many that no two are equal; some points lack `b`, some are deleted. */
const random = randomOf(11);
const component = (): number => Math.floor(random() * 4001) - 2000;
const QUERIES = Array.from({ length: 12 }, () => [component(), component()]);
const points: TestPoint[] = Array.from({ length: 80 }, (_, id) => ({
  id,
  vectors: { a: [component(), component()], ...(random() < 0.8 ? { b: [component(), component()] } : {}) } as TestPoint['vectors'],
  payload: { n: id % 5 },
  ...(random() < 0.1 ? { deletedAt: SEQ - 1 } : {}),
}));

interface Tree {
  readonly prefetch?: readonly Tree[];
  readonly query: readonly number[] | { readonly rrf: object } | { readonly formula: object };
  readonly using: 'a' | 'b';
  readonly limit: number;
  readonly offset?: number;
  readonly filter?: { readonly must_not: readonly { readonly key: 'n'; readonly match: { readonly value: number } }[] };
  readonly score_threshold?: number;
}

interface Scored {
  readonly id: number;
  readonly score: number;
}

/** The page of a level by plain loops. refused: values of `n` that levels above refuse. */
function naive(tree: Tree, refused: readonly number[]): Scored[] {
  const without = [...refused, ...(tree.filter?.must_not ?? []).map(({ match }) => match.value)];
  const lists = tree.prefetch?.map((prefetch) => naive(prefetch, without));
  const candidates = points.filter(
    ({ id, payload, deletedAt }) =>
      deletedAt === undefined &&
      !without.includes(payload?.n as number) &&
      (lists === undefined || lists.some((list) => list.some((point) => point.id === id))),
  );
  const { query, using } = tree;
  const scored: Scored[] = [];
  for (const { id, vectors } of candidates) {
    const vector = vectors[using];
    const ranks = lists?.map((list) => list.findIndex((point) => point.id === id)) ?? [];
    if (!Array.isArray(query)) {
      const score =
        'rrf' in query
          ? ranks.reduce((sum, rank) => sum + (rank < 0 ? 0 : 1 / (rank + 2)), 0)
          : ranks.reduce((sum, rank, at) => sum + (rank < 0 ? 0 : (lists?.[at]?.[rank]?.score ?? 0)), 0);
      scored.push({ id: id as number, score: Math.fround(score) });
    } else if (vector !== undefined) {
      const [x, y] = query as [number, number];
      const [u, v] = vector as [number, number];
      scored.push({ id: id as number, score: using === 'a' ? x * u + y * v : Math.abs(x - u) + Math.abs(y - v) });
    }
  }
  const sign = Array.isArray(query) && using === 'b' ? 1 : -1;
  const threshold = tree.score_threshold;
  const { offset = 0, limit } = tree;
  return scored
    .filter(({ score }) => threshold === undefined || sign * (threshold - score) > 0)
    .sort((a, b) => sign * (a.score - b.score) || a.id - b.id)
    .slice(offset, offset + limit)
    .map(({ id, score }) => ({ id, score: score + 0 }));
}

const vector = fc.constantFrom(...QUERIES);
const filter = fc.array(fc.nat(4), { maxLength: 2 }).map((values) => ({
  must_not: values.map((value) => ({ key: 'n' as const, match: { value } })),
}));
const level = {
  using: fc.constantFrom('a' as const, 'b' as const),
  limit: fc.integer({ min: 1, max: 40 }),
  filter,
  score_threshold: fc.integer({ min: -4000, max: 6000 }),
};
const { tree } = fc.letrec<{ tree: Tree; leaf: Tree; inner: Tree }>((tie) => ({
  tree: fc.oneof({ maxDepth: 3 }, tie('leaf'), tie('inner')),
  leaf: fc.record({ ...level, query: vector }, { requiredKeys: ['using', 'limit', 'query'] }),
  inner: fc.array(tie('tree'), { minLength: 1, maxLength: 3 }).chain((prefetch) => {
    const sum = { formula: { sum: prefetch.map((_, at) => `$score[${at}]`) } };
    const query = fc.oneof(vector, fc.constant({ rrf: {} }), fc.constant(sum));
    return fc.record({ ...level, prefetch: fc.constant(prefetch), query }, { requiredKeys: ['using', 'limit', 'query', 'prefetch'] });
  }),
}));

test('trees of prefetches, fusions and formulas find what plain loops find', async () => {
  await fixture.addSealed(points.slice(0, 50), false);
  fixture.addAppendable(points.slice(50));
  const context = contextOf(fixture);
  fc.assert(
    fc.property(tree, fc.nat(5), (body, offset) => {
      const request = { ...body, offset };
      const found = runQuery(context, decodeQuery({ value: request as never, vectors: null }));
      assert.deepEqual(
        found.map(({ id, score }) => ({ id, score: (score as number) + 0 })),
        naive(request, []),
      );
    }),
    seeded(2000),
  );
});
