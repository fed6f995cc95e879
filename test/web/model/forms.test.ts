/** What forms and texts of the dashboard become. */

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { curlOf, parseRequest } from '../../../web/model/client-code.js';
import { formFilter } from '../../../web/model/filter.js';
import { bytes, percent, seconds } from '../../../web/model/format.js';
import { parseMetrics, rate, sumOf } from '../../../web/model/metrics.js';
import { shareDone, spansOf } from '../../../web/model/timeline.js';

test('conditions of the form are a filter of the API', () => {
  assert.equal(formFilter([]), null);
  assert.deepEqual(
    formFilter([
      { field: 'city', operator: 'is', value: 'Berlin' },
      { field: 'zip', operator: 'is', value: '"10115"' },
      { field: 'people', operator: '≥', value: '1000' },
      { field: 'made', operator: '<', value: '2024-01-01' },
      { field: 'old', operator: 'is not', value: 'true' },
      { field: 'name', operator: 'is there', value: '' },
    ]),
    {
      must: [
        { key: 'city', match: { value: 'Berlin' } },
        { key: 'zip', match: { value: '10115' } },
        { key: 'people', range: { gte: 1000 } },
        { key: 'made', range: { lt: '2024-01-01' } },
      ],
      must_not: [{ key: 'old', match: { value: true } }, { is_empty: { key: 'name' } }],
    },
  );
});

test('a request of the console is read, or refused in words; curl gets it with its quotes', () => {
  const request = parseRequest('\nPOST /collections/c/points/count\n{"a": "it\'s"}\n');
  assert.ok(typeof request !== 'string');
  assert.equal(
    curlOf(request, 'http://n', true),
    `curl -X POST 'http://n/collections/c/points/count' \\\n  -H "api-key: $TROUPE_KEY" \\\n  -d '{"a": "it'\\''s"}'`,
  );
  assert.match(parseRequest('FETCH /') as string, /begins with one of GET/);
  assert.match(parseRequest('GET collections') as string, /a path/);
  assert.match(parseRequest('POST /c\n{') as string, /no JSON/);
});

test('figures are read from the text for Prometheus, with quotes in labels', () => {
  const samples = parseMetrics('# HELP a b\na_total{x="1,\\"2",y="z"} 3\na_total{x="2",y="z"} 4\nb 1e3\n');
  assert.equal(sumOf(samples, 'a_total'), 7);
  assert.equal(
    sumOf(samples, 'a_total', ({ x }) => x === '1,\\"2'),
    3,
  );
  assert.equal(sumOf(samples, 'b'), 1000);
  assert.equal(rate(10, 30, 2), 10);
  assert.equal(rate(30, 10, 2), 0);
});

test('cycles of optimizations are spans of time, and work that is under way has a share', () => {
  const spans = spansOf(
    [
      {
        optimizer: 'merge',
        status: 'done',
        segments: [{ uuid: 'a', points_count: 3 }],
        progress: { name: 'm', started_at: '2024-01-01T00:00:00Z', finished_at: '2024-01-01T00:00:02Z' },
      },
      {
        optimizer: 'vacuum',
        status: { error: 'no room' },
        segments: [],
        progress: { name: 'v', started_at: '2024-01-01T00:00:03Z', finished_at: '2024-01-01T00:00:04Z' },
      },
      { optimizer: 'indexing', segments: [] },
    ],
    Date.parse('2024-01-01T00:00:09Z'),
  );
  assert.deepEqual(
    spans.map(({ title, detail, outcome }) => `${title} ${outcome}: ${detail}`),
    ['vacuum error: 0 segments, 0 points, 1 s: no room', 'merge done: 1 segments, 3 points, 2 s'],
  );
  assert.equal(shareDone({ name: 'x', done: 1, total: 4 }), 0.25);
  assert.equal(
    shareDone({
      name: 'x',
      children: [
        { name: 'a', finished_at: '2024' },
        { name: 'b', done: 1, total: 2 },
      ],
    }),
    0.75,
  );
  assert.equal(shareDone({ name: 'x' }), null);
});

test('numbers are shown with the digits that matter', () => {
  assert.deepEqual([bytes(0), bytes(1536), bytes(20_221_208_166)], ['0 B', '1.54 kB', '20.2 GB']);
  assert.deepEqual(
    [seconds(0.000123), seconds(0.0021), seconds(5), seconds(600), seconds(360_000)],
    ['123 µs', '2.1 ms', '5 s', '10 min', '4 days'],
  );
  assert.deepEqual([percent(1, 3), percent(0, 0)], ['33.3 %', '–']);
});
