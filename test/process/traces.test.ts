/** Traces and metrics of a node for a collector, over each way of a request. */

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Metadata } from '@grpc/grpc-js';
import { GrpcClient } from '../http/grpc/client.js';
import { attribute, collectorFor } from '../http/otlp/collector.js';
import { nodeFor, temporaryFolder, until } from './support.js';

const TRACE = '4bf92f3577b34da6a3ce929d0e0e4736';
const CALLER_SPAN = '00f067aa0ba902b7';
const SERVER = 2;
const RECORDED = `00-${TRACE}-${CALLER_SPAN}-01`;

test('requests of a recorded trace become its spans over each way, others become none, and metrics come by themselves', async (t) => {
  const collector = await collectorFor(t);
  const environment = {
    SERVICE__OTLP__ENDPOINT: collector.endpoint,
    SERVICE__OTLP__HEADERS: 'x-tenant=us',
    SERVICE__OTLP__TRACE_RATIO: '0',
    SERVICE__OTLP__METRICS_PERIOD_SEC: '1',
  };
  const node = await nodeFor(t, { folder: await temporaryFolder(t), environment });
  const call = async (method: string, path: string, headers: Record<string, string>, body?: unknown): Promise<void> => {
    const answer = await fetch(`${node.url}${path}`, { method, headers, ...(body === undefined ? {} : { body: JSON.stringify(body) }) });
    await answer.arrayBuffer();
  };
  const traced = { traceparent: RECORDED };
  await call('PUT', '/collections/c', {}, { vectors: { size: 2, distance: 'Dot' } });
  await call('PUT', '/collections/c/points?wait=true', traced, { points: [{ id: 1, vector: [1, 2] }] });
  // A reader answers the first, the main thread's plain path the second, its HTTP server the third.
  await call('POST', '/collections/c/points/count', traced, {});
  await call('GET', '/collections/c', traced);
  await call('GET', '//collections//none', traced);
  await call('POST', '/collections/c/points/count', { traceparent: RECORDED.replace(/01$/, '00') }, {});
  const metadata = new Metadata();
  metadata.set('traceparent', RECORDED);
  const grpc = new GrpcClient(node.grpcPort);
  t.after(() => grpc.close());
  await grpc.call('Points/Count', { collection_name: 'c' }, {}, metadata);

  const requests = () => collector.spans.filter(({ kind }) => kind === SERVER);
  const spans = await until(
    async () => requests(),
    ({ length }) => length >= 5,
  );
  const seen = spans.map((span) => [
    span.name,
    attribute(span, 'http.response.status_code') ?? `grpc ${attribute(span, 'rpc.grpc.status_code')}`,
  ]);
  assert.deepEqual(seen.sort(), [
    ['count_points c', '200'],
    ['count_points c', 'grpc 0'],
    ['get_collection c', '200'],
    ['get_collection none', '404'],
    ['upsert_points c', '200'],
  ]);
  for (const { parentSpanId, traceId } of spans) assert.deepEqual([traceId, parentSpanId], [TRACE, CALLER_SPAN]);
  // What each of the two counts and the upsert went through, whichever thread had the connection.
  const [upsert, ...counts] = ['upsert_points c', 'count_points c'].flatMap((name) => spans.filter((span) => span.name === name));
  const below = (parent: (typeof spans)[number] | undefined) =>
    collector.spans.filter(({ parentSpanId }) => parentSpanId === parent?.spanId);
  for (const count of counts) {
    const [shard] = below(count);
    const [segment] = below(shard);
    assert.deepEqual([shard?.name, attribute(segment, 'troupe.segment_kind')], ['shard 0', 'appendable']);
  }
  const [written] = below(upsert);
  assert.deepEqual([written?.name, below(written).map(({ name }) => name)], ['shard 0', ['writer']]);
  const names = await until(
    async () => collector.metrics,
    ({ length }) => length > 0,
  );
  assert.ok(names.includes('trace_spans_total') && names.includes('memory_resident_bytes'));
  assert.ok(collector.headers.every((headers) => headers['x-tenant'] === 'us'));
});
