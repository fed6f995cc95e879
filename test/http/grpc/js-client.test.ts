import assert from 'node:assert/strict';
import { test } from 'node:test';
import { QdrantClient } from '@qdrant/js-client-grpc';
import { nodeFor, temporaryFolder } from '../../process/support.js';

type Points = ReturnType<QdrantClient['api']> extends infer Api ? Extract<Api, { upsert: unknown }> : never;
/** A point as the client's `upsert` takes it. */
type PointInit = NonNullable<Parameters<Points['upsert']>[0]['points']>[number];
type QueryInit = Parameters<Points['query']>[0]['query'];

test('the JavaScript client for gRPC works unmodified, with its compression', async (context) => {
  const node = await nodeFor(context, { folder: await temporaryFolder(context) });
  const client = new QdrantClient({ host: '127.0.0.1', port: node.grpcPort });
  const collections = client.api('collections');
  const points = client.api('points');
  const collectionName = 'films';

  const params = { case: 'params', value: { size: 3n, distance: 1 } } as const;
  assert.equal((await collections.create({ collectionName, vectorsConfig: { config: params } })).result, true);
  const point = (num: bigint, data: number[]): PointInit => ({
    id: { pointIdOptions: { case: 'num', value: num } } as const,
    vectors: { vectorsOptions: { case: 'vector', value: { vector: { case: 'dense', value: { data } } } } } as const,
    payload: {
      year: { kind: { case: 'integerValue', value: 1990n + (num & 0xffn) } } as const,
      tags: { kind: { case: 'listValue', value: { values: [{ kind: { case: 'stringValue', value: 'новый' } }] } } } as const,
      large: { kind: { case: 'integerValue', value: 9_007_199_254_740_993n } } as const,
    },
  });
  const written = await points.upsert({
    collectionName,
    wait: true,
    points: [point(1n, [1, 0, 0]), point(2n, [0, 1, 0]), point(2n ** 63n, [0, 0, 1])],
  });
  assert.equal(written.result?.status, 2);

  const query: QueryInit = { variant: { case: 'nearest', value: { variant: { case: 'dense', value: { data: [0, 0.1, 1] } } } } };
  const found = await points.query({ collectionName, query, limit: 2n, withPayload: { selectorOptions: { case: 'enable', value: true } } });
  assert.deepEqual(
    found.result.map((hit) => hit.id?.pointIdOptions.value),
    [2n ** 63n, 2n],
  );
  assert.deepEqual(found.result[1]?.payload.large?.kind, { case: 'integerValue', value: 9_007_199_254_740_993n });
  assert.equal(found.result[1]?.payload.year?.kind.value, 1992n);

  const filter = {
    must: [
      { conditionOneOf: { case: 'field', value: { key: 'year', match: { matchValue: { case: 'integer', value: 1991n } } } } } as const,
    ],
  };
  assert.equal((await points.count({ collectionName, filter })).result?.count, 1n);
  const page = await points.scroll({ collectionName, limit: 1, withVectors: { selectorOptions: { case: 'enable', value: true } } });
  assert.equal(page.nextPageOffset?.pointIdOptions.value, 2n);
  const shown = page.result[0]?.vectors?.vectorsOptions;
  assert.deepEqual(shown?.case === 'vector' && shown.value.vector.case === 'dense' && shown.value.vector.value.data, [1, 0, 0]);

  await points.delete({ collectionName, wait: true, points: { pointsSelectorOneOf: { case: 'filter', value: filter } } });
  assert.equal((await collections.get({ collectionName })).result?.pointsCount, 2n);
  await assert.rejects(points.count({ collectionName: 'none' }), { code: 5 });
});
