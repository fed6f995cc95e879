import assert from 'node:assert/strict';
import { type TestContext, test } from 'node:test';
import type { RequestOrigin } from '../../../http/audit/origin.js';
import type { CallOperation } from '../../../http/context/call-log.js';
import { TRACE_MEMORY_BYTES, TraceLog } from '../../../http/otlp/trace-log.js';
import { ROUTES } from '../../../http/routes.js';
import { until } from '../../process/support.js';
import { attribute, type Collector, collectorFor } from './collector.js';

const CALLER = { kind: 'anyone' } as const;
const QUERY = ROUTES.find(({ name }) => name === 'query_points') as CallOperation;
const TRACE = '4bf92f3577b34da6a3ce929d0e0e4736';
const SPAN = '00f067aa0ba902b7';
/** What chance says in these tests. */
const RANDOM = 0.5;

function from(traceparent?: string): RequestOrigin {
  return { address: '10.0.0.9', field: (name) => (name === 'traceparent' ? traceparent : undefined) };
}

function logFor(t: TestContext, { endpoint }: Collector, ratio: number): TraceLog {
  const address = { endpoint, headers: { 'api-key': 'secret' } };
  const settings = {
    address,
    version: '1',
    resource: { 'service.name': 'troupe' },
    ratio,
    memory: new SharedArrayBuffer(TRACE_MEMORY_BYTES),
  };
  const log = new TraceLog(settings, () => RANDOM);
  t.after(() => log.close());
  return log;
}

test('a call within a recorded trace becomes a span of it, and one whose trace is not recorded becomes none', async (t) => {
  const collector = await collectorFor(t);
  const log = logFor(t, collector, 1);
  assert.equal(log.begin('rest', QUERY, CALLER, 'books', from(`00-${TRACE}-${SPAN}-00`)), null);
  log.begin('rest', QUERY, CALLER, 'books', from(`00-${TRACE}-${SPAN}-01`))?.(503, null);
  await log.close();
  const [span, ...others] = collector.spans;
  assert.deepEqual(others, []);
  assert.deepEqual([span?.traceId, span?.parentSpanId, span?.name, span?.kind], [TRACE, SPAN, 'query_points books', 2]);
  assert.deepEqual(
    [attribute(span, 'http.response.status_code'), attribute(span, 'db.collection.name'), span?.status.code],
    ['503', 'books', 2],
  );
  assert.ok(BigInt(span?.endTimeUnixNano ?? 0) >= BigInt(span?.startTimeUnixNano ?? 1));
  assert.equal(collector.headers[0]?.['api-key'], 'secret');
});

test('without a traceparent the ratio decides, and a trace of its own begins', async (t) => {
  const collector = await collectorFor(t);
  assert.equal(logFor(t, collector, 0.4).begin('grpc', QUERY, CALLER, null, from()), null);
  const log = logFor(t, collector, 0.6);
  log.begin('grpc', QUERY, CALLER, null, from())?.(3, null);
  log.begin('grpc', QUERY, CALLER, null, from('nonsense'))?.(13, null);
  await log.close();
  const [mistake, fault] = collector.spans;
  assert.deepEqual([mistake?.parentSpanId, mistake?.status.code, fault?.status.code], [undefined, undefined, 2]);
  assert.match(mistake?.traceId ?? '', /^[0-9a-f]{32}$/);
  assert.notEqual(mistake?.traceId, fault?.traceId);
});

test('a collector that is busy gets the same spans again; what it refuses is lost and counted', async (t) => {
  const collector = await collectorFor(t);
  const log = logFor(t, collector, 1);
  collector.statuses.push(503);
  log.begin('rest', QUERY, CALLER, 'again', from())?.(200, null);
  await until(
    async () => log.counts(),
    ({ sent }) => sent === 1,
  );
  assert.deepEqual([collector.headers.length, collector.spans.length], [2, 1]);
  collector.statuses.push(400);
  log.begin('rest', QUERY, CALLER, 'refused', from())?.(200, null);
  await log.close();
  assert.deepEqual([log.counts(), collector.spans.length], [{ sent: 1, lost: 1 }, 1]);
});
