import assert from 'node:assert/strict';
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { after, before, test } from 'node:test';
import type { CollectionConfig, FieldSchema, HnswConfig, VectorParams } from '../../../../protocols/model/collection.js';
import type { Condition, Filter } from '../../../../protocols/model/filter.js';
import { EnginePool } from '../../../../storage/pool/pool.js';
import { nearestHits } from '../../../../storage/reader/nearest/search.js';
import { idAt } from '../../../../storage/segment/ids.js';
import { loadSealed } from '../../../../storage/segment/sealed.js';
import { CollectionFixture, configOf, markDeleted, randomOf, type TestPoint } from '../../engine/collection-fixture.js';
import { writeTo } from '../../write.js';

/** Searches within one payload value, by graphs over the rows of that value. */

const DIM = 256;
const TENANTS = ['ann', 'bob', 'cleo'];
/** Rows of a tenant with a graph; of `dan`, who has none; and of nobody. */
const ROWS = 1500;
const FEW = 200;
const LIMIT = 10;
const FIELDS = new Map<string, FieldSchema>([
  ['group', { type: 'integer' }],
  ['tenant', { type: 'keyword', params: { is_tenant: true } }],
  ['tags', { type: 'keyword' }],
  ['off', { type: 'keyword', params: { enable_hnsw: false } }],
]);

const random = randomOf(11);
const normal = () => random() + random() + random() + random() - 2;
const centres = Array.from({ length: 40 }, () => Array.from({ length: DIM }, normal));
const vectorNear = () => (centres[Math.floor(random() * centres.length)] as number[]).map((value) => value + 0.4 * normal());

function tenantOf(id: number): string | undefined {
  if (id < TENANTS.length * ROWS) return TENANTS[id % TENANTS.length];
  return id < TENANTS.length * ROWS + FEW ? 'dan' : undefined;
}

const points = Array.from({ length: TENANTS.length * ROWS + 2 * FEW }, (_, id): TestPoint => {
  const payload = { group: id % 4, tags: id % 5 === 0 ? ['even', 'rare'] : [id % 2 === 0 ? 'even' : 'odd'], off: 'all', n: id % 100 };
  const tenant = tenantOf(id);
  return { id, vectors: { '': vectorNear() }, payload: tenant === undefined ? payload : { ...payload, tenant } };
});
const QUERIES = Array.from({ length: 30 }, vectorNear);

const is = (key: string, value: string | number): Condition => ({ kind: 'match', key, match: { kind: 'value', value } });
const all = (...must: Condition[]): Filter => ({ must, should: [], mustNot: [], minShould: null });

const fixtures: CollectionFixture[] = [];
async function collectionOf(hnsw: Partial<HnswConfig>, vector: Partial<VectorParams> = {}): Promise<CollectionFixture> {
  const plain = configOf({ size: DIM, distance: 'Cosine', ...vector });
  const config: CollectionConfig = { ...plain, hnsw_config: { ...plain.hnsw_config, ...hnsw } };
  const fixture = new CollectionFixture(config, FIELDS);
  fixtures.push(fixture);
  await fixture.addSealed(points, true);
  return fixture;
}

const made = new Map<string, CollectionFixture>();
before(async () => {
  made.set('m 0', await collectionOf({ m: 0, payload_m: 8 }));
  made.set('m 16', await collectionOf({ m: 16, payload_m: 8 }));
});
after(() => {
  for (const fixture of fixtures) fixture.remove();
});

function idsOf(fixture: CollectionFixture, query: readonly number[], filter: Filter | null, exact: boolean): unknown[] {
  const params = { exact, hnswEf: 16, indexedOnly: false, quantization: { ignore: false, rescore: null, oversampling: null } };
  const value = { kind: 'dense' as const, values: Float32Array.from(query) };
  const hits = nearestHits(
    [fixture.snapshot()],
    { using: '', value, filter, params: params as never, own: null },
    { limit: LIMIT, offset: 0, scoreThreshold: null },
  );
  return hits.map(({ view, row }) => view.id(row));
}

const segmentOf = (fixture: CollectionFixture) =>
  fixture.snapshot().segments[0] as NonNullable<ReturnType<typeof fixture.snapshot>['segments'][0]>;
const vectorOf = (fixture: CollectionFixture) =>
  segmentOf(fixture).handle.layout.vectors[0] as NonNullable<ReturnType<typeof segmentOf>['handle']['layout']['vectors'][0]>;

/** Share of the exact answers that are found, and the rows scored for each. */
function measure(fixture: CollectionFixture, filter: Filter | null): { recall: number; scored: number } {
  const { kernels } = segmentOf(fixture).reader;
  let found = 0;
  let expected = 0;
  let scored = 0;
  for (const query of QUERIES) {
    const exact = idsOf(fixture, query, filter, true);
    kernels.takeScored();
    const answered = idsOf(fixture, query, filter, false);
    scored += kernels.takeScored();
    assert.equal(answered.length, exact.length);
    expected += exact.length;
    found += answered.filter((id) => exact.includes(id)).length;
  }
  return { recall: expected === 0 ? 1 : found / expected, scored: scored / QUERIES.length };
}

for (const name of ['m 0', 'm 16']) {
  test(`${name}: a search within a tenant walks the tenant's graph, alone or among other conditions, and finds its neighbours`, () => {
    const fixture = made.get(name) as CollectionFixture;
    assert.equal(vectorOf(fixture).graph === null, name === 'm 0');
    for (const tenant of TENANTS) {
      const filters = [
        all(is('tenant', tenant)),
        all({ kind: 'filter', filter: all(is('tenant', tenant)) }),
        all(is('tenant', tenant), { kind: 'range', key: 'n', range: { lt: 70 } }),
        { ...all(is('tenant', tenant)), mustNot: [is('group', 1)] },
        {
          ...all({ kind: 'match', key: 'tenant', match: { kind: 'any', values: [tenant] } }),
          should: [is('tags', 'even'), is('tags', 'odd')],
        },
      ];
      for (const filter of filters) {
        const { recall, scored } = measure(fixture, filter);
        assert.ok(recall >= 0.95 && scored < ROWS / 2, `${JSON.stringify(filter)}: recall ${recall}, ${scored} rows scored`);
      }
    }
  });

  test(`${name}: filters without a value that has a graph find all the same`, () => {
    const fixture = made.get(name) as CollectionFixture;
    const filters = [
      null,
      all(is('tenant', 'dan')),
      all(is('tenant', 'nobody')),
      all(is('off', 'all')),
      all(is('tenant', 'ann'), is('tenant', 'bob')),
      { ...all(), mustNot: [is('tenant', 'ann')] },
      { ...all(), should: [is('tenant', 'ann'), is('tenant', 'dan')] },
      all(is('tenant', 'ann'), is('tags', 'rare'), is('group', 0)),
    ];
    for (const filter of filters) {
      const { recall } = measure(fixture, filter);
      assert.ok(recall >= 0.95, `${JSON.stringify(filter)}: recall ${recall}`);
    }
  });
}

test('values of indexed fields have graphs from a number of rows on, tenants first; fields that say enable_hnsw false have none', () => {
  for (const fixture of made.values()) {
    const { subgraphs } = vectorOf(fixture);
    assert.deepEqual(
      subgraphs?.values.map(({ field, value, rows }) => `${field} ${value} ${rows}`),
      [
        ...TENANTS.map((tenant) => `tenant ${tenant} ${ROWS}`),
        ...[0, 1, 2, 3].map((group) => `group ${group} ${points.length / 4}`),
        'tags even 2940',
        'tags odd 1960',
      ],
    );
    assert.deepEqual(
      subgraphs?.values.map(({ layer }) => layer),
      [0, 0, 0, 1, 1, 1, 1, 2, 2],
    );
  }
});

test('the rows of a tenant lie together, and those without one behind all others', () => {
  for (const fixture of made.values()) {
    const { handle } = segmentOf(fixture);
    const runs: string[] = [];
    for (let row = 0; row < handle.rows; row++) {
      const tenant = tenantOf(Number(idAt(handle, row))) ?? '';
      if (runs[runs.length - 1] !== tenant) runs.push(tenant);
    }
    assert.deepEqual(runs, [...TENANTS, 'dan', '']);
  }
});

test('deleted rows are walked through and not found', async () => {
  const fixture = await collectionOf({ m: 0, payload_m: 8 });
  const { reader, handle } = segmentOf(fixture);
  markDeleted(
    reader,
    Array.from({ length: Math.ceil(handle.rows / 3) }, (_, third) => 3 * third),
    1,
  );
  for (const tenant of TENANTS) {
    const { recall, scored } = measure(fixture, all(is('tenant', tenant)));
    assert.ok(recall >= 0.95 && scored < ROWS / 2, `recall ${recall}, ${scored} rows scored`);
    for (const id of idsOf(fixture, QUERIES[0] as number[], all(is('tenant', tenant)), false)) {
      const row = segmentOf(fixture).findLive(id as number);
      assert.ok(row !== undefined && row % 3 !== 0);
    }
  }
});

test('rows without the vector are in no graph', async () => {
  const config = configOf({ one: { size: DIM, distance: 'Euclid' }, two: { size: DIM, distance: 'Dot' } });
  const fixture = new CollectionFixture({ ...config, hnsw_config: { ...config.hnsw_config, m: 0, payload_m: 8 } }, FIELDS);
  fixtures.push(fixture);
  const split = points.map(
    (point, i): TestPoint => ({
      ...point,
      vectors: { one: point.vectors[''] ?? [], ...(i % 8 === 0 ? {} : { two: point.vectors[''] ?? [] }) },
    }),
  );
  await fixture.addSealed(split, true);
  const tenants = (at: number) =>
    (segmentOf(fixture).handle.layout.vectors[at]?.subgraphs?.values ?? []).filter(({ field }) => field === 'tenant');
  assert.deepEqual(
    [0, 1].map((at) => tenants(at).map(({ value, rows }) => `${value} ${rows}`)),
    [
      ['ann 1500', 'bob 1500', 'cleo 1500'],
      ['ann 1312', 'bob 1313', 'cleo 1312'],
    ],
  );
});

test('graphs are in the file, load again, and are left out where it is damaged', async () => {
  for (const fixture of made.values()) {
    const { handle } = segmentOf(fixture);
    const folder = handle.folder as string;
    const options = { readers: 3, onDiskPayload: true, fields: FIELDS };
    const loaded = await loadSealed(folder, options);
    const links = ({ memory, layout, rows }: typeof handle) =>
      (layout.vectors[0]?.subgraphs?.layers ?? []).map(({ level0, m0, upperIndex, upper, upperWords }) => [
        Buffer.from(new Uint32Array(memory.buffer, level0, rows * (1 + m0)).slice().buffer).toString('base64'),
        Buffer.from(new Uint32Array(memory.buffer, upperIndex, rows).slice().buffer).toString('base64'),
        Buffer.from(new Uint32Array(memory.buffer, upper, upperWords).slice().buffer).toString('base64'),
      ]);
    assert.deepEqual(loaded.damagedFiles, []);
    assert.deepEqual(loaded.handle.layout.vectors[0]?.subgraphs?.values, handle.layout.vectors[0]?.subgraphs?.values);
    assert.ok(links(handle).length === 3);
    assert.deepEqual(links(loaded.handle), links(handle));
    const file = path.join(folder, 'graph.0');
    const whole = fs.readFileSync(file);
    const broken = Buffer.from(whole);
    const at = broken.length - 100;
    broken[at] = (broken[at] as number) ^ 1;
    fs.writeFileSync(file, broken);
    const damaged = await loadSealed(folder, options);
    assert.deepEqual(damaged.damagedFiles, ['graph.0']);
    const { graph, subgraphs } = damaged.handle.layout.vectors[0] as NonNullable<(typeof handle.layout.vectors)[0]>;
    assert.deepEqual([graph, subgraphs], [null, null]);
    fs.writeFileSync(file, whole);
  }
});

test('writes, a build and a restart leave the same answers, with originals in memory and on disk', async (t) => {
  const base = fs.mkdtempSync(path.join(os.tmpdir(), 'troupe-values-'));
  t.after(() => fs.rmSync(base, { recursive: true, force: true }));
  const pool = await EnginePool.start({ readers: 1, writers: 1 });
  t.after(() => pool.close());
  const body = (value: unknown) => ({ path: {}, query: {}, body: Buffer.from(JSON.stringify(value)), deadlineMs: Date.now() + 60_000 });
  const search = { filter: { must: [{ key: 'tenant', match: { value: 'ann' } }] }, limit: 20, params: { hnsw_ef: 64 } };
  const seen: unknown[] = [];
  for (const onDisk of [false, true]) {
    const key = `c${onDisk}/0`;
    const plain = configOf({ size: DIM, distance: 'Cosine', on_disk: onDisk });
    const config = { ...plain, hnsw_config: { ...plain.hnsw_config, m: 0, payload_m: 16 } };
    const open = () => pool.openReplica({ key, folder: path.join(base, key), config }, null);
    const answers = async () => {
      for (const query of QUERIES.slice(0, 5))
        seen.push(JSON.parse(Buffer.from(await pool.read('query', [key], body({ ...search, query }))).toString()));
    };
    await open();
    await writeTo(pool, 'createFieldIndex', key, true, body({ field_name: 'tenant', field_schema: 'keyword' }));
    const rows = points.filter(({ payload }) => payload?.tenant === 'ann');
    await writeTo(
      pool,
      'upsertPoints',
      key,
      true,
      body({ points: rows.map(({ id, vectors, payload }) => ({ id, vector: vectors[''], payload })) }),
    );
    const segments = (pool.stats(key)?.segments ?? []).filter((segment) => segment.rows > 0).map(({ id }) => id);
    const plan = { plan: 'segment' as const, segments, missingFields: [], withGraph: true, threads: 1, niceness: 0 };
    await pool.build(key, plan, () => {}, new AbortController().signal);
    await writeTo(pool, 'deletePoints', key, true, body({ points: [0, 3] }));
    const graphs = () => pool.stats(key)?.segments.flatMap((segment) => segment.graphs);
    const setting = { m: 16, efConstruct: 100, rowsMin: 1000, fields: ['keyword tenant'] };
    assert.deepEqual(graphs(), [{ name: '', m: 0, efConstruct: 100, subgraphs: setting }]);
    await answers();
    await pool.closeReplica(key);
    await open();
    assert.deepEqual(graphs(), [{ name: '', m: 0, efConstruct: 100, subgraphs: setting }]);
    await answers();
  }
  for (let i = 5; i < seen.length; i++) assert.deepEqual(seen[i], seen[i % 5]);
});
