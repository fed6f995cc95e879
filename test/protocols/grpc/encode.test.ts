import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { encodeMessage } from '../../../protocols/grpc/encode.js';
import { schema } from '../../../protocols/grpc/schema.js';
import { WireWriter } from '../../../protocols/grpc/wire-writer.js';
import { writeValueMap } from '../../../protocols/grpc/write-value.js';
import type { JsonValue } from '../../../protocols/model/payload.js';
import { seeded } from '../../query/property.js';
import { messageOf, root } from './protos.js';

/** What protobufjs reads from the answer that stands for a REST value. */
function answerOf(name: string, value: unknown): Record<string, unknown> {
  return messageOf(name, encodeMessage(schema().message(`qdrant.${name}`), value));
}

test('what REST shows of a collection becomes the message that says the same', () => {
  const info = {
    status: 'yellow',
    optimizer_status: { error: 'full disk' },
    points_count: 3,
    indexed_vectors_count: 0,
    segments_count: 2,
    config: {
      params: {
        vectors: { a: { size: 4, distance: 'Dot', datatype: 'uint8', multivector_config: { comparator: 'max_sim' } } },
        sparse_vectors: { s: { modifier: 'idf', index: { on_disk: true } } },
        shard_number: 1,
        on_disk_payload: true,
      },
      hnsw_config: { m: 0, full_scan_threshold: 10 },
      optimizer_config: { deleted_threshold: 0.2, max_optimization_threads: null },
      wal_config: { wal_capacity_mb: 32 },
      quantization_config: { turbo: { bits: 'bits4' } },
      strict_mode_config: { enabled: false, sparse_config: { s: { max_length: 7 } } },
      metadata: { tags: ['x', 1.5, null] },
    },
    payload_schema: {
      k: { data_type: 'keyword', params: { type: 'keyword', is_tenant: true }, points: 3 },
      t: {
        data_type: 'text',
        params: { type: 'text', tokenizer: 'word', stopwords: 'english', stemmer: { type: 'snowball', language: 'german' } },
        points: 0,
      },
    },
    update_queue: { length: 5 },
  };
  const { result } = answerOf('GetCollectionInfoResponse', info) as { result: Record<string, never> };
  const read = JSON.parse(JSON.stringify(result)) as Record<string, Record<string, Record<string, unknown>>>;
  assert.equal(read.status, 'Yellow');
  assert.deepEqual(read.optimizer_status, { ok: false, error: 'full disk' });
  assert.deepEqual([read.points_count, read.indexed_vectors_count, read.segments_count], ['3', '0', '2']);
  assert.deepEqual(read.config?.params?.vectors_config, {
    params_map: { map: { a: { size: '4', distance: 'Dot', datatype: 'Uint8', multivector_config: { comparator: 'MaxSim' } } } },
  });
  assert.deepEqual(read.config?.params?.sparse_vectors_config, { map: { s: { modifier: 'Idf', index: { on_disk: true } } } });
  assert.deepEqual(read.config?.hnsw_config, { m: '0', full_scan_threshold: '10' });
  assert.deepEqual(read.config?.optimizer_config, { deleted_threshold: 0.2 });
  assert.deepEqual(read.config?.quantization_config, { turboquant: { bits: 'Bits4' } });
  assert.deepEqual(read.config?.strict_mode_config, { enabled: false, sparse_config: { sparse_config: { s: { max_length: '7' } } } });
  assert.deepEqual(read.config?.metadata, {
    tags: { list_value: { values: [{ string_value: 'x' }, { double_value: 1.5 }, { null_value: 'NULL_VALUE' }] } },
  });
  assert.deepEqual(read.payload_schema?.k, { data_type: 'Keyword', params: { keyword_index_params: { is_tenant: true } }, points: '3' });
  assert.deepEqual(read.payload_schema?.t?.params, {
    text_index_params: {
      tokenizer: 'Word',
      stopwords: { languages: ['english'], custom: [] },
      stemmer: { snowball: { language: 'german' } },
    },
  });
  assert.deepEqual(read.update_queue, { length: '5' });
});

test('the unnamed vector and settings by word have their own fields', () => {
  const config = (params: object, more: object) =>
    answerOf('CollectionConfig', { params, ...more }) as Record<string, Record<string, unknown>>;
  const single = config({ vectors: { size: 3, distance: 'Cosine' } }, { optimizer_config: { max_optimization_threads: 'auto' } });
  assert.deepEqual(single.params?.vectors_config, { params: { size: '3', distance: 'Cosine' } });
  assert.deepEqual(single.optimizer_config?.max_optimization_threads, { setting: 'Auto' });
  const binary = { binary: { encoding: 'two_bits', query_encoding: 'scalar4bits' } };
  assert.deepEqual(config({}, { quantization_config: binary }).quantization_config, {
    binary: { encoding: 'TwoBits', query_encoding: { setting: 'Scalar4Bits' } },
  });
});

test('payloads of any shape are read back as they were', () => {
  const type = root.lookupType('qdrant.Struct');
  const integers = fc.bigInt({ min: -(2n ** 63n), max: 2n ** 63n - 1n }).filter((value) => !Number.isSafeInteger(Number(value)));
  const { json } = fc.letrec<{ json: JsonValue }>((tie) => ({
    json: fc.oneof(
      { maxDepth: 4 },
      fc.constant(null),
      fc.boolean(),
      fc.integer(),
      fc.double({ noNaN: true, noDefaultInfinity: true }),
      integers,
      fc.string({ unit: 'grapheme' }),
      fc.array(tie('json'), { maxLength: 3 }),
      fc.dictionary(fc.string(), tie('json'), { maxKeys: 3, noNullPrototype: true }),
    ),
  }));
  const property = fc.property(fc.dictionary(fc.string(), json, { noNullPrototype: true }), (payload) => {
    const writer = new WireWriter();
    writeValueMap(writer, 1, payload);
    const read = type.toObject(type.decode(writer.finish()), { longs: String, objects: true }) as { fields: Record<string, object> };
    assert.deepEqual(Object.fromEntries(Object.entries(read.fields).map(([key, value]) => [key, jsonOf(value)])), plain(payload));
  });
  fc.assert(property, seeded(500));
});

/** Numbers as texts where protobufjs gives them so. */
function plain(value: unknown): unknown {
  if (typeof value === 'number' && Number.isSafeInteger(value) && !Object.is(value, -0)) return String(value);
  if (typeof value === 'bigint') return value.toString();
  if (Array.isArray(value)) return value.map(plain);
  if (typeof value !== 'object' || value === null) return value;
  return Object.fromEntries(Object.entries(value).map(([key, member]) => [key, plain(member)]));
}

function jsonOf(message: object): unknown {
  const [[kind, value] = ['null_value', null]] = Object.entries(message) as [string, unknown][];
  if (kind === 'null_value') return null;
  if (kind === 'struct_value') {
    const { fields = {} } = value as { fields?: Record<string, object> };
    return Object.fromEntries(Object.entries(fields).map(([key, member]) => [key, jsonOf(member)]));
  }
  return kind === 'list_value' ? ((value as { values?: object[] }).values ?? []).map(jsonOf) : value;
}

test('writers take turns with one buffer, and messages that are written at the same time or kept are apart', () => {
  const first = new WireWriter();
  first.string(1, 'first');
  const second = new WireWriter();
  second.string(1, 'zweitens: größer'.repeat(500));
  first.string(2, 'grün');
  const message = first.finish();
  const third = new WireWriter();
  third.string(1, 'third');
  assert.equal(Buffer.from(message).toString('latin1'), '\x12\x05gr\xc3\xbcn\x0a\x05first');
  assert.equal(Buffer.from(second.finish()).toString('utf8').slice(3), 'zweitens: größer'.repeat(500));
  assert.equal(Buffer.from(third.finish()).toString('latin1'), '\x0a\x05third');
  assert.equal(Buffer.from(message).toString('latin1').length, 14);
  first.bool(1, true);
  assert.deepEqual([...first.finish()], [8, 1]);
});
