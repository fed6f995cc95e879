import assert from 'node:assert/strict';
import { test } from 'node:test';
import { requestIdsOf, type SlowRequest, SlowRequests } from '../../../http/context/slow-requests.js';
import { openDoor } from '../rest/fake-node.js';

const TRACE = '4bf92f3577b34da6a3ce929d0e0e4736';
const PARENT = `00-${TRACE}-00f067aa0ba902b7-01`;
const REQUEST: SlowRequest = {
  ...{ door: 'rest', operation: 'query_points', collection: 'books', status: 200, milliseconds: 1234.6, plan: 'scan' },
  ...{ request_id: null, trace_id: TRACE },
};

test('each slow request is a line of the log with its plan and trace, but no more lines than anyone reads', () => {
  let now = 0;
  const lines: Record<string, unknown>[] = [];
  const log = {
    debug: () => {},
    info: () => {},
    error: () => {},
    warn: (_: string, facts?: Record<string, unknown>) => lines.push(facts ?? {}),
  };
  const slow = new SlowRequests({ thresholdMs: 1000, log, dateMs: () => now, monotonicMs: () => now });
  for (let i = 0; i < 25; i++) slow.note(REQUEST);
  assert.equal(lines.length, 20);
  const facts = {
    door: 'rest',
    operation: 'query_points',
    collection: 'books',
    status: 200,
    milliseconds: 1235,
    plan: 'scan',
    trace_id: TRACE,
  };
  assert.deepEqual(lines[0], facts);
  now = 10_000;
  slow.note(REQUEST);
  assert.deepEqual(lines[20], { ...facts, left_out: 5 });
  slow.note(REQUEST);
  assert.deepEqual(lines[21], facts);
  assert.equal(slow.report().count, 27);
});

test('the last hundred are kept, the newest first', () => {
  let now = 0;
  const quiet = () => {};
  const log = { debug: quiet, info: quiet, error: quiet, warn: quiet };
  const slow = new SlowRequests({ thresholdMs: 1000, log, dateMs: () => now, monotonicMs: () => now });
  for (; now < 120; now++) slow.note(REQUEST);
  const { count, last, threshold_ms } = slow.report();
  assert.deepEqual([count, last.length, threshold_ms], [120, 100, 1000]);
  assert.deepEqual([last[0]?.time, last[99]?.time], ['1970-01-01T00:00:00.119Z', '1970-01-01T00:00:00.020Z']);
});

test('ids are taken from headers that have the form of one', () => {
  const of = (fields: Record<string, string>) => requestIdsOf((name) => fields[name]);
  assert.deepEqual(of({ traceparent: PARENT, 'x-request-id': 'a-7' }), { request_id: 'a-7', trace_id: TRACE });
  for (const traceparent of ['', 'x', PARENT.toUpperCase(), `00-${'0'.repeat(32)}-00f067aa0ba902b7-01`, `${PARENT}x`])
    assert.equal(of({ traceparent }).trace_id, null, traceparent);
  assert.equal(of({ 'x-request-id': 'a b' }).request_id, null);
});

test('reads and writes that took long are noted with what the reader says of its plan, on both ways of the server; others are not', async (t) => {
  let now = 0;
  const { url, door, node, services } = await openDoor({ slowRequestMs: 100, monotonicMs: () => now });
  t.after(() => door.close(0));
  await node.createCollection('c', {} as never);
  let takesMs = 150;
  node.answer = async () => {
    now += takesMs;
    const explain = node.asked.at(-1)?.request.explain;
    if (explain !== undefined) explain.plan = `from ${explain.planFromMs} ms on`;
    return Buffer.from('[]');
  };
  const headers = { 'content-type': 'application/json', traceparent: PARENT, 'x-request-id': 'mine' };
  const ask = (path: string, more: Record<string, string> = {}) =>
    fetch(`${url}/collections/c/points${path}`, { method: 'POST', body: '{}', headers: { ...headers, ...more } }).then((answer) =>
      answer.text(),
    );
  await ask('/count');
  // A head with such a field goes to the other server.
  await ask('/scroll', { 'upgrade-insecure-requests': '1' });
  await ask('/payload');
  takesMs = 50;
  await ask('/count');
  const { last } = services.slow.report();
  assert.deepEqual(
    last.map(({ operation, plan, milliseconds, trace_id, request_id }) => [operation, plan, milliseconds, trace_id, request_id]),
    [
      ['set_payload', null, 150, TRACE, 'mine'],
      ['scroll_points', 'from 100 ms on', 150, TRACE, 'mine'],
      ['count_points', 'from 100 ms on', 150, TRACE, 'mine'],
    ],
  );
  const report = (path: string) =>
    fetch(`${url}${path}`).then((answer) => answer.json()) as Promise<{ result: { app: { slow_requests?: { last: unknown[] } } } }>;
  assert.deepEqual((await report('/telemetry?details_level=1')).result.app.slow_requests?.last, JSON.parse(JSON.stringify(last)));
  assert.deepEqual((await report('/telemetry?details_level=1&anonymize=true')).result.app.slow_requests?.last, []);
});
