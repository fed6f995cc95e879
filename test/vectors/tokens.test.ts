import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { KernelExpired, type Matrix, type Metric, type TokenLists } from '../../vectors/kernel-api.js';
import { makeSegment, matrixBytes, randomOf, SEED, storeRows } from './segment.js';

const CODES = { scale: 0.01, origin: -1 };

interface Options {
  readonly metric: Metric;
  readonly dim: number;
  /** Vectors of each row. */
  readonly counts: readonly number[];
  readonly lists: number;
  readonly probes: number;
  readonly tokens: number;
  readonly seed: number;
}

/** Rows in lists at random: what the kernel finds, and what it should. */
function search({ metric, dim, counts, lists, probes, tokens, seed }: Options, expired?: () => boolean) {
  const random = randomOf(seed);
  const codesOf = (length: number) => Float32Array.from({ length }, () => Math.floor(random() * 256));
  const vectors = counts.reduce((sum, count) => sum + count, 0);
  const room = matrixBytes('code', vectors, dim) + matrixBytes('code', lists, dim) + 8 * vectors + 4 * lists + 1024;
  const segment = makeSegment(counts.length, dim, room, expired);
  const stored = storeRows(segment, 'code', metric, codesOf(vectors * dim), dim, CODES);
  const middles = storeRows(segment, 'code', metric, codesOf(lists * dim), dim, CODES);
  const rowOf = counts.flatMap((count, row) => Array.from({ length: count }, () => row));
  const entries = rowOf.map((row, item) => ({ row, item, list: Math.floor(random() * lists) })).sort((a, b) => a.list - b.list);
  const words = (numbers: readonly number[]): number => {
    const at = segment.take(numbers.length * 4);
    new Uint32Array(segment.memory.buffer, at, numbers.length).set(numbers);
    return at;
  };
  const startsAt = words(Array.from({ length: lists + 1 }, (_, list) => entries.filter((entry) => entry.list < list).length));
  const listed: TokenLists = {
    count: lists,
    centroids: middles.matrix,
    starts: new Uint32Array(segment.memory.buffer, startsAt, lists + 1),
    items: words(entries.map(({ item }) => item)),
    rows: words(entries.map(({ row }) => row)),
  };
  const deleted = new Set([...counts.keys()].filter(() => random() < 0.1));
  for (const row of deleted) segment.deletedAt[row] = 0;
  const passes = (row: number) => row % 5 !== 3;
  const query = Float32Array.from({ length: tokens * dim }, () => random() * 2 - 1);
  const keep = counts.length;
  const found = segment.kernels.byTokens(segment.slot, stored.matrix, listed, query, segment.admit(passes), {
    probes,
    keep,
    rows: counts.length,
  });
  const answer = { rows: [...found.rows], scores: [...found.scores] };
  const sums = new Map<number, number>();
  for (let token = 0; token < tokens; token++) {
    const vector = query.subarray(token * dim, (token + 1) * dim);
    // Scores of the kernels themselves, as rounding decides which of two lists is nearer; tests of kernels look at them.
    const scoresOf = (matrix: Matrix, count: number) => {
      segment.kernels.setQuery(segment.slot, matrix, vector);
      return Array.from({ length: count }, (_, at) => segment.kernels.scoreEach(segment.slot, matrix, Uint32Array.of(at))[0] as number);
    };
    const [ofLists, ofVectors] = [scoresOf(middles.matrix, lists), scoresOf(stored.matrix, vectors)];
    const ranked = [...Array(lists).keys()].sort((a, b) => (ofLists[b] as number) - (ofLists[a] as number) || a - b);
    const chosen = new Set(ranked.slice(0, probes));
    const floor = ofLists[ranked[Math.min(probes, lists - 1)] as number] as number;
    const gains = new Map<number, number>();
    for (const { item, list, row } of entries) {
      if (!chosen.has(list) || deleted.has(row) || !passes(row)) continue;
      gains.set(row, Math.max(gains.get(row) ?? 0, (ofVectors[item] as number) - floor));
    }
    for (const [row, gain] of gains) sums.set(row, (sums.get(row) ?? 0) + gain);
  }
  return { ...answer, sums, keep: Math.min(keep, counts.length >>> 1) };
}

const options = fc.record({
  metric: fc.constantFrom<Metric>('dot', 'l2', 'l1'),
  dim: fc.constantFrom(3, 16, 33, 64),
  counts: fc.array(fc.integer({ min: 1, max: 9 }), { minLength: 12, maxLength: 60 }),
  lists: fc.integer({ min: 1, max: 12 }),
  probes: fc.integer({ min: 1, max: 14 }),
  tokens: fc.integer({ min: 1, max: 5 }),
  seed: fc.nat(),
});

test('rows are found by what the best of their vectors in the nearest lists is above the next centroid, for every metric', () => {
  fc.assert(
    fc.property(options, (given) => {
      const { keep, rows, scores, sums } = search(given);
      assert.equal(rows.length, Math.min(keep, sums.size));
      const tolerance = 1e-5 * given.dim * given.tokens;
      const best = [...sums.values()].sort((a, b) => b - a);
      rows.forEach((row, at) => {
        assert.ok(Math.abs((scores[at] as number) - (sums.get(row) ?? Number.NaN)) <= tolerance, `row ${row}`);
        assert.ok(Math.abs((scores[at] as number) - (best[at] as number)) <= tolerance, `place ${at}`);
      });
      assert.equal(new Set(rows).size, rows.length);
    }),
    { seed: SEED, numRuns: 150 },
  );
});

test('a search of lists ends when its time is up', () => {
  const long = {
    metric: 'dot',
    dim: 16,
    counts: Array.from({ length: 9000 }, () => 1),
    lists: 1,
    probes: 1,
    tokens: 1,
    seed: SEED,
  } as const;
  assert.throws(() => search(long, () => true), KernelExpired);
});
