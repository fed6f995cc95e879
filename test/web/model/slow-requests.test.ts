import assert from 'node:assert/strict';
import { test } from 'node:test';
import { idsText, type ShownSlowRequest, slowSentence } from '../../../web/model/slow-requests.js';

test('the page says what is slow, how many were, and when nothing is noted', () => {
  assert.match(slowSentence({ threshold_ms: null, count: 0, last: [] }), /are not noted/);
  assert.equal(
    slowSentence({ threshold_ms: 1000, count: 0, last: [] }),
    'No read or write of points took 1000 ms or more since this node started.',
  );
  const one = { operation: 'count_points' } as ShownSlowRequest;
  assert.equal(
    slowSentence({ threshold_ms: 5, count: 1, last: [one] }),
    '1 read or write of points took 5 ms or more since this node started.',
  );
  assert.match(slowSentence({ threshold_ms: 5, count: 1200, last: [one] }), /^1,200 reads and writes .*; these are the last 1\.$/);
});

test('a request is named by the ids that it had', () => {
  assert.equal(idsText({ request_id: null, trace_id: null }), '');
  assert.equal(idsText({ request_id: 'a', trace_id: 'b' }), 'request a, trace b');
});
