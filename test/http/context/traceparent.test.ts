import assert from 'node:assert/strict';
import { test } from 'node:test';
import { parseTraceParent } from '../../../http/context/traceparent.js';

const TRACE = '4bf92f3577b34da6a3ce929d0e0e4736';
const SPAN = '00f067aa0ba902b7';

test('a traceparent names its trace, the span of the caller, and whether the caller records it', () => {
  assert.deepEqual(parseTraceParent(`00-${TRACE}-${SPAN}-01`), { traceId: TRACE, spanId: SPAN, isSampled: true });
  assert.deepEqual(parseTraceParent(`00-${TRACE}-${SPAN}-00`), { traceId: TRACE, spanId: SPAN, isSampled: false });
  assert.equal(parseTraceParent(`00-${TRACE}-${SPAN}-03`)?.isSampled, true);
});

test('a version to come may have more behind it', () => {
  assert.equal(parseTraceParent(`cc-${TRACE}-${SPAN}-01-what-comes`)?.traceId, TRACE);
});

test('what is no traceparent is none', () => {
  const wrong = [
    '',
    TRACE,
    `ff-${TRACE}-${SPAN}-01`,
    `00-${TRACE}-${SPAN}-01-more`,
    `00-${TRACE.toUpperCase()}-${SPAN}-01`,
    `00-${'0'.repeat(32)}-${SPAN}-01`,
    `00-${TRACE}-${'0'.repeat(16)}-01`,
    `00-${TRACE.slice(1)}-${SPAN}-01`,
    `00-${TRACE}-${SPAN}`,
  ];
  for (const value of wrong) assert.equal(parseTraceParent(value), null, value);
});
