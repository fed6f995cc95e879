import assert from 'node:assert/strict';
import { test } from 'node:test';
import { type ErrorFacts, errorFromFacts } from '../../../protocols/errors.js';
import type { CollectionParams } from '../../../protocols/model/collection.js';
import { newTokens, type SharedTokens, takeTokens } from '../../../storage/limits/tokens.js';
import { payWrite } from '../../../storage/reader/rates.js';
import type { RawRequest, WriteOperation } from '../../../storage/threads/messages.js';

const NOW_MS = 1_700_000_000_000;
const PER_MINUTE = 100;
const params: CollectionParams = {
  vectors: { '': { size: 2, distance: 'Dot' } },
  shard_number: 1,
  replication_factor: 1,
  write_consistency_factor: 1,
  on_disk_payload: true,
};

function bucketOf(tokensLeft: number): SharedTokens {
  const tokens = newTokens('write', PER_MINUTE);
  takeTokens(tokens, PER_MINUTE - tokensLeft, NOW_MS);
  return tokens;
}

function pay(tokens: SharedTokens, request: () => RawRequest, operation: WriteOperation = 'upsertPoints') {
  return payWrite(tokens, { operation, request, params }, NOW_MS);
}

function asked(body: string): () => RawRequest {
  return () => ({ path: {}, query: {}, body: Buffer.from(body), deadlineMs: Number.POSITIVE_INFINITY });
}

const upsert = (count: number, pad = ''): string =>
  JSON.stringify({ points: Array.from({ length: count }, (_, id) => ({ id, vector: [1, 1], payload: { pad } })) });
const unseen = (): RawRequest => assert.fail('the body was looked at');

test('a write takes a token for each point, and is refused, without taking any, where there are too few', () => {
  const tokens = bucketOf(8);
  assert.equal(pay(tokens, asked(upsert(3))), 3);
  const lack = pay(tokens, asked(upsert(6)));
  assert.throws(() => takeTokens(tokens, 6, NOW_MS), { message: errorFromFacts(lack as ErrorFacts).message });
  assert.equal(pay(tokens, asked(upsert(5))), 5);
  assert.equal((pay(tokens, unseen) as ErrorFacts).code, 'rateLimited');
});

test('no body is looked at of a write that costs one token whatever it says', () => {
  const tokens = bucketOf(1);
  assert.equal(pay(tokens, unseen, 'createFieldIndex'), 1);
  assert.equal((pay(tokens, unseen, 'createFieldIndex') as ErrorFacts).code, 'rateLimited');
});

test('what is wrong with a body, and what takes long to decode, is for the main thread, and takes nothing', () => {
  const tokens = bucketOf(5);
  assert.equal(pay(tokens, asked('no JSON')), 0);
  assert.equal(pay(tokens, asked(upsert(6, 'x'.repeat(50_000)))), 0);
  assert.equal(pay(tokens, asked(upsert(5))), 5);
});
