import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import type { CollectionConfig, QuantizationConfig } from '../../../protocols/model/collection.js';
import { TooHeavy } from '../../../storage/threads/deadline.js';
import { CollectionFixture, configOf, randomOf, type TestPoint } from './collection-fixture.js';
import { explainedQuery } from './explained-query.js';

/** Rows that codes have found in several segments: those that are best among the rows of all are scored by their originals. */

const DIM = 24;
const LIMIT = 10;
/** Of one segment: twice the limit, and 16. */
const SCORED_ANEW = 2 * LIMIT + 16;
const SEGMENTS = 4;
const ROWS = 1500;
const random = randomOf(11);
const normal = (): number => random() + random() + random() + random() - 2;
const centres = Array.from({ length: 40 }, () => Array.from({ length: DIM }, () => 2 * normal()));
const near = (n: number): number[] => (centres[n % centres.length] as number[]).map((value) => value + normal());
const POINTS: readonly TestPoint[] = Array.from({ length: SEGMENTS * ROWS }, (_, id) => ({ id, vectors: { '': near(id) }, payload: {} }));
const QUERIES = Array.from({ length: 40 }, (_, n) => near(n));
const fixtures: CollectionFixture[] = [];
after(() => {
  for (const fixture of fixtures) fixture.remove();
});

async function collectionOf(config: CollectionConfig): Promise<CollectionFixture> {
  const fixture = new CollectionFixture(config, new Map());
  fixtures.push(fixture);
  for (let segment = 0; segment < SEGMENTS; segment++) await fixture.addSealed(POINTS.slice(segment * ROWS, (segment + 1) * ROWS), true);
  return fixture;
}

const CONFIGS: Readonly<Record<string, CollectionConfig>> = {
  'graphs and originals in memory': configOf({ size: DIM, distance: 'Cosine' }),
  'graphs, originals on disk': configOf({ size: DIM, distance: 'Euclid', on_disk: true }),
  'lists on disk': configOf({ size: DIM, distance: 'Dot', on_disk: true, hnsw_config: { on_disk: true } }),
};

for (const [name, config] of Object.entries(CONFIGS))
  test(`of several segments with ${name} as many rows are scored anew as of one, and they are found wherever they are`, async () => {
    const fixture = await collectionOf(config);
    let [found, inSeveral] = [0, 0];
    for (const query of QUERIES) {
      const body = { query, limit: LIMIT };
      const exact = explainedQuery(fixture, { ...body, params: { exact: true } }).points as { id: number; score: number }[];
      const answer = explainedQuery(fixture, { ...body, params: { hnsw_ef: 100 } });
      const rescored = answer.searches.map(({ rows_rescored }) => rows_rescored);
      assert.equal(
        rescored.reduce((sum, rows) => sum + rows, 0),
        SCORED_ANEW,
        rescored.join(),
      );
      const scores = new Map(exact.map(({ id, score }) => [id, score]));
      for (const { id, score } of answer.points as typeof exact) {
        if (!scores.has(id)) continue;
        found++;
        assert.equal(score, scores.get(id));
      }
      if (new Set(answer.ids.map((id) => Math.floor(id / ROWS))).size > 2) inSeveral++;
      // What each segment has given is told.
      assert.ok(answer.searches.reduce((sum, search) => sum + search.found, 0) >= LIMIT);
    }
    const least = name.startsWith('lists') ? 0.93 : 0.97;
    assert.ok(found >= least * LIMIT * QUERIES.length, `${found} found`);
    assert.ok(inSeveral > QUERIES.length / 2, `${inSeveral}`);
  });

test('a search that is too much work for its thread leaves it before any of its segments is searched', async () => {
  const fixture = await collectionOf(CONFIGS['lists on disk'] as CollectionConfig);
  const { deadline } = fixture;
  const search = () => explainedQuery(fixture, { query: QUERIES[0], limit: LIMIT });
  deadline.effortNs = 0;
  search();
  const allNs = deadline.effortNs;
  const rowsScored = () => fixture.snapshot().segments.reduce((sum, { reader }) => sum + reader.takeWork().rows, 0);
  rowsScored();
  deadline.effortNs = 0;
  deadline.effortNsMax = 0.8 * allNs;
  assert.throws(search, TooHeavy);
  assert.equal(rowsScored(), 0);
  deadline.effortNs = 0;
  deadline.effortNsMax = 1.2 * allNs;
  assert.equal(search().ids.length, LIMIT);
});

test('codes that a quantization asks for are scored anew in each segment as it says', async () => {
  const quantization: QuantizationConfig = { scalar: { type: 'int8' } };
  const fixture = await collectionOf({ ...configOf({ size: DIM, distance: 'Cosine' }), quantization_config: quantization });
  const params = { hnsw_ef: 100, quantization: { rescore: true, oversampling: 2 } };
  const { searches } = explainedQuery(fixture, { query: QUERIES[0], limit: LIMIT, params });
  assert.ok(searches.every(({ rows_rescored }) => rows_rescored >= 2 * LIMIT));
});
