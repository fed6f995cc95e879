import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { parseJson, stringifyJson } from '../../protocols/json.js';
import type { Filter } from '../../protocols/model/filter.js';
import type { Payload } from '../../protocols/model/payload.js';
import type { UpdateOperation } from '../../protocols/model/update.js';
import { decodeUpdate, encodeUpdate } from '../../protocols/update-codec.js';

const FILTER: Filter = {
  must: [{ kind: 'match', key: 'n', match: { kind: 'value', value: 9007199254740993n } }],
  should: [{ kind: 'range', key: 'x', range: { gt: 0.1, lte: 5 } }],
  mustNot: [{ kind: 'hasId', ids: [1, 18446744073709551615n, '550e8400-e29b-41d4-a716-446655440000'] }],
  minShould: null,
};

function roundTrip(operation: UpdateOperation, chained = false): void {
  for (const reserve of [0, 8]) {
    const bytes = encodeUpdate({ operation, chained }, reserve);
    assert.deepEqual(decodeUpdate(bytes.subarray(reserve)), { operation, chained });
    const unaligned = new Uint8Array(bytes.length + 1);
    unaligned.set(bytes.subarray(reserve), 1);
    assert.deepEqual(decodeUpdate(unaligned.subarray(1, 1 + bytes.length - reserve)), { operation, chained });
  }
}

test('bytes that are known need not be made again', () => {
  const operation: UpdateOperation = { kind: 'deleteFieldIndex', field: 'a' };
  const encoded = encodeUpdate({ operation, chained: true });
  const known = decodeUpdate(encoded);
  assert.deepEqual(encodeUpdate({ ...known, encoded }, 16).subarray(16), encoded);
});

test('every kind of operation comes back as it was', () => {
  const byIds = { kind: 'ids', ids: [0, 7, 9007199254740993n, '550e8400-e29b-41d4-a716-446655440000'] } as const;
  const byFilter = { kind: 'filter', filter: FILTER } as const;
  const payload = parseJson('{"__proto__":1,"big":18446744073709551615,"nested":{"a":[null,1.5,"ü😀"]}}') as Payload;
  roundTrip({ kind: 'deletePoints', selector: byIds });
  roundTrip({ kind: 'deletePoints', selector: byFilter }, true);
  roundTrip({ kind: 'setPayload', selector: byIds, payload, key: 'a.b[0]' });
  roundTrip({ kind: 'overwritePayload', selector: byFilter, payload: {}, key: null });
  roundTrip({ kind: 'deletePayload', selector: byIds, keys: ['a', '"p.q"'] });
  roundTrip({ kind: 'clearPayload', selector: byFilter });
  roundTrip({ kind: 'createFieldIndex', field: 'a', schema: { type: 'integer', params: { type: 'integer', lookup: true, range: null } } });
  roundTrip({ kind: 'deleteFieldIndex', field: 'a' });
  roundTrip({ kind: 'deleteVectors', selector: byIds, names: ['', 'image'] });
});

test('batches keep vectors bit by bit, also where points lack some, and payloads', () => {
  const values = Float32Array.of(1.5, -0, Number.POSITIVE_INFINITY, 1e-40, 3, 4);
  roundTrip({
    kind: 'upsert',
    mode: 'insertOnly',
    filter: FILTER,
    batch: {
      ids: [1, 2n ** 63n, '550e8400-e29b-41d4-a716-446655440000'],
      vectors: [
        { kind: 'dense' as const, name: '', dim: 2, points: null, values },
        { kind: 'dense' as const, name: 'b', dim: 3, points: Uint32Array.of(2), values: Float32Array.of(7, 8, 9) },
      ],
      payloads: [{ a: 1 }, undefined, { text: 'ü"\\' }],
    },
  });
  roundTrip({ kind: 'upsert', batch: { ids: [5], vectors: [], payloads: [undefined] } });
});

test('batches keep vectors of every kind', () => {
  roundTrip({
    kind: 'updateVectors',
    filter: null,
    batch: {
      ids: [1, 2, 3],
      vectors: [
        {
          kind: 'multi',
          name: 'm',
          dim: 2,
          points: Uint32Array.of(0, 2),
          counts: Uint32Array.of(1, 2),
          values: Float32Array.of(1, 2, 3, 4, 5, 6),
        },
        {
          kind: 'sparse',
          name: 's',
          points: null,
          counts: Uint32Array.of(1, 0, 2),
          indices: Uint32Array.of(7, 0, 0xffff_ffff),
          values: Float32Array.of(0.5, -1, 1e-40),
        },
        {
          kind: 'sparse',
          name: 'empty',
          points: Uint32Array.of(1),
          counts: Uint32Array.of(0),
          indices: new Uint32Array(0),
          values: new Float32Array(0),
        },
        { kind: 'dense', name: 'd', dim: 1, points: Uint32Array.of(1), values: Float32Array.of(9) },
      ],
      payloads: [undefined, undefined, undefined],
    },
  });
});

test('vectors of an aligned record are views on it', () => {
  const batch = {
    ids: [1],
    vectors: [{ kind: 'dense' as const, name: '', dim: 3, points: null, values: Float32Array.of(1, 2, 3) }],
    payloads: [undefined],
  };
  const bytes = encodeUpdate({ operation: { kind: 'upsert', batch }, chained: false });
  const { operation } = decodeUpdate(bytes);
  assert.ok(operation.kind === 'upsert' && operation.batch.vectors[0]?.values.buffer === bytes.buffer);
});

test('payloads of any JSON come back as they were', () => {
  fc.assert(
    fc.property(
      fc.array(fc.option(fc.dictionary(fc.string(), fc.jsonValue() as fc.Arbitrary<never>), { nil: undefined }), { minLength: 1 }),
      (payloads) => {
        const ids = payloads.map((_, index) => index);
        const decoded = decodeUpdate(
          encodeUpdate({ operation: { kind: 'upsert', batch: { ids, vectors: [], payloads } }, chained: false }),
        );
        assert.ok(decoded.operation.kind === 'upsert');
        assert.deepEqual(
          decoded.operation.batch.payloads.map((payload) => payload && stringifyJson(payload)),
          payloads.map((payload) => payload && stringifyJson(payload)),
        );
      },
    ),
    { numRuns: 100, seed: 3 },
  );
});

test('numbers of payloads stay written as floats, in batches and in changes of payloads', () => {
  const payload = parseJson('{"a":1.0,"b":[2.0,3]}') as Payload;
  const batch = decodeUpdate(
    encodeUpdate({ operation: { kind: 'upsert', batch: { ids: [1], vectors: [], payloads: [payload] } }, chained: false }),
  );
  assert.ok(batch.operation.kind === 'upsert');
  assert.equal(stringifyJson(batch.operation.batch.payloads[0]), '{"a":1.0,"b":[2.0,3]}');
  const selector = { kind: 'ids', ids: [1] } as const;
  const change = decodeUpdate(encodeUpdate({ operation: { kind: 'setPayload', selector, payload, key: null }, chained: false }));
  assert.ok(change.operation.kind === 'setPayload');
  assert.equal(stringifyJson(change.operation.payload), '{"a":1.0,"b":[2.0,3]}');
});

test('bytes that are cut short or of another kind are refused', () => {
  const bytes = encodeUpdate({
    operation: {
      kind: 'upsert',
      batch: {
        ids: [1],
        vectors: [{ kind: 'dense' as const, name: '', dim: 2, points: null, values: Float32Array.of(1, 2) }],
        payloads: [{ a: 1 }],
      },
    },
    chained: false,
  });
  for (const length of [0, 4, 20, bytes.length - 24]) assert.throws(() => decodeUpdate(bytes.subarray(0, length)));
  assert.throws(() => decodeUpdate(new Uint8Array(64)), { code: 'storage' });
});
