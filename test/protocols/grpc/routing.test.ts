import assert from 'node:assert/strict';
import { test } from 'node:test';
import { encodeMessage } from '../../../protocols/grpc/encode.js';
import { RoutingReader } from '../../../protocols/grpc/routing.js';
import { schema } from '../../../protocols/grpc/schema.js';

function routingOf(value: object) {
  const type = schema().message('qdrant.QueryPoints');
  const bytes = encodeMessage(type, { collection_name: 'films', ...value } as never);
  return new RoutingReader(type, ['collection_name']).read(bytes);
}

test('the consistency of a read stands in its message, as a word or as a number', () => {
  for (const word of ['all', 'majority', 'quorum']) assert.equal(routingOf({ read_consistency: { type: word } }).consistency, word);
  assert.equal(routingOf({ read_consistency: { factor: 3 } }).consistency, 3);
  assert.equal(routingOf({}).consistency, undefined);
});

test('what stands behind the consistency is read on, and a consistency that says nothing is none', () => {
  const routing = routingOf({ read_consistency: { factor: 2 }, timeout: 5 });
  assert.deepEqual([routing.consistency, routing.timeoutSeconds, routing.path.collection_name], [2, 5, 'films']);
  assert.equal(routingOf({ read_consistency: {} }).consistency, undefined);
});
