import assert from 'node:assert/strict';
import { test } from 'node:test';
import { metricsBody } from '../../../http/otlp/metrics-body.js';

const TEXT = `# HELP requests_total requests
# TYPE requests_total counter
requests_total{path="/a \\"b\\"\\n",status="200"} 7
# HELP memory_bytes what is "held"
# TYPE memory_bytes gauge
memory_bytes 1.5
# HELP wait_seconds waiting
# TYPE wait_seconds histogram
wait_seconds_bucket{door="rest",le="0.1"} 2
wait_seconds_bucket{door="rest",le="1"} 5
wait_seconds_bucket{door="rest",le="+Inf"} 6
wait_seconds_sum{door="rest"} 3.25
wait_seconds_count{door="rest"} 6
`;

const TIMES = { startTimeUnixNano: '1000000000', timeUnixNano: '2000000000' };

function metricsIn(text: string): readonly object[] {
  const work = metricsBody({ 'service.name': 'troupe' }, '1.2.3', text, { startMs: 1000, nowMs: 2000 });
  for (;;) {
    const step = work.next();
    if (step.done !== true) continue;
    const { resourceMetrics } = step.value as { resourceMetrics: { resource: object; scopeMetrics: { metrics: object[] }[] }[] };
    assert.deepEqual(resourceMetrics[0]?.resource, { attributes: [label('service.name', 'troupe')] });
    return resourceMetrics[0]?.scopeMetrics[0]?.metrics ?? [];
  }
}

function label(key: string, stringValue: string): object {
  return { key, value: { stringValue } };
}

test('counters become sums, gauges stay gauges, and buckets of histograms are no longer added up', () => {
  const point = { attributes: [label('path', '/a "b"\n'), label('status', '200')], ...TIMES, asDouble: 7 };
  const histogram = {
    attributes: [label('door', 'rest')],
    ...TIMES,
    count: '6',
    sum: 3.25,
    bucketCounts: ['2', '3', '1'],
    explicitBounds: [0.1, 1],
  };
  assert.deepEqual(metricsIn(TEXT), [
    { name: 'requests_total', description: 'requests', sum: { aggregationTemporality: 2, isMonotonic: true, dataPoints: [point] } },
    { name: 'memory_bytes', description: 'what is "held"', gauge: { dataPoints: [{ attributes: [], ...TIMES, asDouble: 1.5 }] } },
    { name: 'wait_seconds', description: 'waiting', histogram: { aggregationTemporality: 2, dataPoints: [histogram] } },
  ]);
});
