import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { TroupeError } from '../../../protocols/errors.js';
import { countValueMarks } from '../../../protocols/rest/byte-scan.js';
import { checkValues, valuesMax } from '../../../storage/requests/body-values.js';
import { decodeWriteRequest } from '../../../storage/requests/decode-update.js';
import { decodeRead } from '../../../storage/requests/read-request.js';
import { sampleConfig } from '../../actors/samples.js';

function bytes(text: string): Buffer {
  return Buffer.from(text);
}

test('values are counted by the brackets and commas outside of strings', () => {
  assert.equal(countValueMarks(bytes('{"a":[1,2,{"b":3}],"c":4}')), 6);
  assert.equal(countValueMarks(bytes('{"a":"[{,\\",[\\\\"}')), 1);
  assert.equal(countValueMarks(bytes('')), 0);
  // Strings, and what is escaped in them, go on from one piece that the kernel gets to the next.
  for (const before of [32_766, 32_767, 32_768, 32_769]) {
    const text = `["${'x'.repeat(before)}\\",[{","é",1]`;
    assert.equal(countValueMarks(bytes(text)), 3, `${before}`);
  }
});

test('values are counted alike wherever strings and escapes begin and end', () => {
  const text = fc.array(fc.constantFrom(',', '[', '{', '"', '\\', '\\"', '1', '0.25', 'x'.repeat(17), ','.repeat(40)), { maxLength: 60 });
  fc.assert(
    fc.property(text, (parts) => {
      const whole = parts.join('');
      const outside = whole.replaceAll(/"(?:[^"\\]|\\.)*(?:"|\\?$)/g, '');
      assert.equal(countValueMarks(bytes(whole)), outside.replaceAll(/[^,[{]/g, '').length, whole);
    }),
    { seed: 20261129, numRuns: 3000 },
  );
});

test('a body with too many values is refused with their number, and one below the bound is not', () => {
  const body = (count: number) => bytes(`[${'{},'.repeat(count - 1)}{}]`);
  checkValues('read', body(450_000));
  assert.throws(
    () => checkValues('read', body(1_000_000)),
    (error: TroupeError) =>
      error.code === 'bodyTooLarge' && /has 2000000 commas and brackets .* a read may have 1000000 here: ask in/.test(error.detail),
  );
  checkValues('write', body(1_000_000));
  assert.throws(() => checkValues('write', body(3_000_000)), /a write may have 4000000 here: send the points in several requests/);
});

test('numbers of vectors do not count', () => {
  const vector = `[${'0,'.repeat(60_000)}1]`;
  const points = Array.from({ length: 80 }, (_, id) => `{"id":${id},"vector":${vector}}`);
  const body = bytes(`{"points":[${points.join(',')}]}`);
  assert.ok(countValueMarks(body) > 4_000_000);
  const { params } = sampleConfig();
  const sized = { ...params, vectors: { size: 60_001, distance: 'Dot' as const } };
  const { operations } = decodeWriteRequest('upsertPoints', { body, path: {} }, sized);
  assert.ok(operations[0]?.kind === 'upsert');
  assert.equal(operations[0].batch.ids.length, 80);
  assert.throws(() => checkValues('write', body), TroupeError);
});

test('a request is refused for the values of its body before these are parsed', () => {
  // It is no JSON: the parser would say so.
  const body = bytes(`{"a":[${'{},'.repeat(3_000_000)}`);
  const { params } = sampleConfig();
  for (const operation of ['scroll', 'query'] as const)
    assert.throws(() => decodeRead(operation, { path: {}, query: {}, body, deadlineMs: 1 }), /a read may have 1000000 here/, operation);
  for (const operation of ['upsertPoints', 'setPayload'] as const)
    assert.throws(() => decodeWriteRequest(operation, { path: {}, body }, params), /a write may have 4000000 here/, operation);
});

test('a thread with a small heap takes fewer values', () => {
  assert.equal(valuesMax('write', 4e9), 4_000_000);
  assert.equal(valuesMax('read', 4e9), 1_000_000);
  assert.equal(valuesMax('write', 128e6), 1_000_000);
  assert.equal(valuesMax('read', 64e6), 500_000);
});

test('vectors of a read count by what is decoded around them: a batch that would fill the heap of a small thread is refused', () => {
  const heap = 110 << 20;
  // Without vectors, 860,000 marks would be 215,000 queries of a batch, for which decoding takes 800 bytes each.
  const queries = 130_000;
  assert.ok(4 * queries > valuesMax('read', heap, queries));
  assert.ok(4 * 90_000 <= valuesMax('read', heap, 90_000));
  assert.equal(valuesMax('read', heap, 1_000_000), 0);
  assert.equal(valuesMax('read', 4e9, 150_000), 1_000_000);
});
