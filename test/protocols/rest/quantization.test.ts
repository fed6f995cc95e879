import assert from 'node:assert/strict';
import { test } from 'node:test';
import { TroupeError } from '../../../protocols/errors.js';
import type { CollectionConfig } from '../../../protocols/model/collection.js';
import type { JsonValue } from '../../../protocols/model/payload.js';
import {
  applyCollectionChange,
  BUILT_IN_DEFAULTS,
  decodeCreateCollection,
  decodeUpdateCollection,
} from '../../../protocols/rest/collections.js';

const VECTOR = { size: 4, distance: 'Dot' } as const;

const create = (body: unknown) => decodeCreateCollection(body as JsonValue, BUILT_IN_DEFAULTS);
const settingOf = (quantization_config: unknown) => create({ vectors: VECTOR, quantization_config }).quantization_config;
const patch = (config: CollectionConfig, body: unknown) => applyCollectionChange(config, decodeUpdateCollection(body as JsonValue));

function codeOf(act: () => unknown): string {
  try {
    act();
  } catch (error) {
    if (error instanceof TroupeError) return error.code;
    throw error;
  }
  return 'none';
}

test('each kind of quantization is kept as it was given, nulls left out', () => {
  const settings = [
    { scalar: { type: 'int8', quantile: 0.95, always_ram: true } },
    { scalar: { type: 'int8' } },
    { product: { compression: 'x64', always_ram: false } },
    { binary: {} },
    { binary: { always_ram: true, encoding: 'one_and_half_bits', query_encoding: 'scalar4bits' } },
    { turbo: {} },
    { turbo: { bits: 'bits1_5' } },
  ];
  for (const setting of settings) assert.deepEqual(settingOf(setting), setting);
  assert.deepEqual(settingOf({ scalar: { type: 'int8', quantile: null, always_ram: null } }), { scalar: { type: 'int8' } });
  assert.equal(settingOf(null), null);
  assert.deepEqual(create({ vectors: { a: { ...VECTOR, quantization_config: { binary: {} } } } }).params.vectors, {
    a: { ...VECTOR, quantization_config: { binary: {} } },
  });
});

test('of several kinds the first that is described counts', () => {
  assert.deepEqual(settingOf({ binary: {}, scalar: { type: 'int8' } }), { scalar: { type: 'int8' } });
  assert.deepEqual(settingOf({ scalar: { type: 'int4' }, binary: {} }), { binary: {} });
});

test('what describes no quantization is malformed, and a quantile out of range is invalid', () => {
  const cases: [unknown, string][] = [
    [{}, 'malformedBody'],
    [5, 'malformedBody'],
    ['Disabled', 'malformedBody'],
    [[], 'malformedBody'],
    [{ magic: {} }, 'malformedBody'],
    [{ scalar: {} }, 'malformedBody'],
    [{ scalar: { type: 'int8', quantile: 'x' } }, 'malformedBody'],
    [{ scalar: { type: 'int8', quantile: 0.3 } }, 'invalidValue'],
    [{ scalar: { type: 'int8', quantile: 1.1 } }, 'invalidValue'],
    [{ product: {} }, 'malformedBody'],
    [{ product: { compression: 'x3' } }, 'malformedBody'],
    [{ binary: { encoding: 'three_bits' } }, 'malformedBody'],
    [{ binary: { query_encoding: 4 } }, 'malformedBody'],
    [{ turbo: { bits: 'bits3' } }, 'malformedBody'],
    [{ constructor: {} }, 'malformedBody'],
  ];
  for (const [setting, code] of cases)
    assert.equal(
      codeOf(() => settingOf(setting)),
      code,
      JSON.stringify(setting),
    );
});

test('a change puts a quantization in place of another, null keeps it, and Disabled takes it away', () => {
  const config = create({
    vectors: { a: { ...VECTOR, quantization_config: { binary: {} } }, b: VECTOR },
    quantization_config: { scalar: { type: 'int8', quantile: 0.9 } },
  });
  assert.deepEqual(patch(config, {}), config);
  assert.deepEqual(patch(config, { quantization_config: null }), config);
  assert.deepEqual(patch(config, { quantization_config: { turbo: {} } }).quantization_config, { turbo: {} });
  assert.equal(patch(config, { quantization_config: 'Disabled' }).quantization_config, null);
  const named = patch(config, {
    vectors: { a: { quantization_config: 'Disabled' }, b: { quantization_config: { product: { compression: 'x8' } } } },
  });
  assert.deepEqual(named.params.vectors, { a: VECTOR, b: { ...VECTOR, quantization_config: { product: { compression: 'x8' } } } });
});
