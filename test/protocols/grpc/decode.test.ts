import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import protobuf from 'protobufjs';
import { TroupeError } from '../../../protocols/errors.js';
import { decodeMessage } from '../../../protocols/grpc/decode.js';
import { shortestFloat } from '../../../protocols/grpc/float.js';
import { type GrpcMethod, schema } from '../../../protocols/grpc/schema.js';
import { enumWord } from '../../../protocols/grpc/words.js';
import { seeded } from '../../query/property.js';
import { bytesOf, isPlain, messages, root } from './protos.js';

const REQUESTS = [...schema().methods.values()].filter(({ path }) => path.startsWith('/qdrant.'));

/** A method's request with its protobufjs type and random messages of it. */
const requests = fc.constantFrom(...REQUESTS).chain((method) => {
  const type = root.lookupType(`qdrant.${method.request.name}`);
  return fc.record({ method: fc.constant(method), message: messages(type) });
});

function encode({ request }: GrpcMethod, message: object): Uint8Array {
  return bytesOf(request.name, message);
}

test('messages decode to what protobufjs reads from the same bytes', () => {
  const property = fc.property(requests, ({ method, message }) => {
    const bytes = encode(method, message);
    const type = root.lookupType(`qdrant.${method.request.name}`);
    const expected = expectedOf(type, type.decode(bytes));
    const { value, vectors } = decodeMessage(method.request, bytes, { forms: {} });
    assert.deepEqual(withVectors(value, vectors as readonly Float32Array[], type), expected);
  });
  fc.assert(property, seeded(1500));
});

test('what a truncated or damaged message comes to is a value or an error of the client', () => {
  const damage = fc.record({ request: requests, cut: fc.nat(), flips: fc.array(fc.tuple(fc.nat(), fc.nat(255)), { maxLength: 4 }) });
  const property = fc.property(damage, ({ request: { method, message }, cut, flips }) => {
    const whole = encode(method, message);
    const bytes = whole.slice(0, whole.length === 0 ? 0 : (cut % whole.length) + 1);
    for (const [at, value] of flips) if (bytes.length > 0) bytes[at % bytes.length] = value;
    staysCalm(method, bytes);
  });
  fc.assert(property, seeded(2000));
});

test('random bytes come to a value or an error of the client', () => {
  const property = fc.property(fc.constantFrom(...REQUESTS), fc.uint8Array({ maxLength: 200 }), staysCalm);
  fc.assert(property, seeded(2000));
});

function staysCalm(method: GrpcMethod, bytes: Uint8Array): void {
  try {
    decodeMessage(method.request, bytes);
  } catch (error) {
    assert.ok(error instanceof TroupeError, String(error));
    assert.equal(error.code, 'malformedBody');
  }
}

const search = schema().message('qdrant.SearchPoints');
const upsert = schema().message('qdrant.UpsertPoints');

test('floats one by one and in several packed parts are one vector', () => {
  const unpacked = (value: number): number[] => [0x15, ...new Uint8Array(Float32Array.of(value).buffer)];
  const packed = [0x12, 8, ...new Uint8Array(Float32Array.of(3, 4).buffer)];
  const { value, vectors } = decodeMessage(search, Uint8Array.from([...unpacked(1), ...unpacked(2), ...packed, ...unpacked(5)]));
  assert.deepEqual((value as { vector: unknown }).vector, [0]);
  assert.deepEqual(vectors?.[0], Float32Array.of(1, 2, 3, 4, 5));
});

test('a million floats one by one are read in linear time', () => {
  const one = Uint8Array.from([0x15, 0, 0, 0x80, 0x3f]);
  const bytes = new Uint8Array(one.length * 1_000_000);
  for (let i = 0; i < 1_000_000; i++) bytes.set(one, i * one.length);
  assert.equal(decodeMessage(search, bytes).vectors?.[0]?.length, 1_000_000);
});

test('unknown fields and groups are stepped over', () => {
  const known = bytesOf('SearchPoints', { limit: 3 });
  const unknown = [0xc3, 0x3e, 0x08, 0x01, 0xc4, 0x3e, 0xfa, 0x3e, 2, 1, 2];
  assert.equal((decodeMessage(search, Uint8Array.from([...unknown, ...known])).value as { limit: number }).limit, 3);
});

test('integers keep all of their digits', () => {
  for (const digits of ['9007199254740991', '9007199254740992', '18446744073709551615']) {
    const { value } = decodeMessage(upsert, bytesOf('UpsertPoints', { points: [{ id: { num: digits } }] }));
    assert.equal(String((value as { points: { id: unknown }[] }).points[0]?.id), digits);
  }
  for (const digits of ['-9007199254740991', '-9007199254740992', '9223372036854775807', '-9223372036854775808', '-1']) {
    const payload = { n: { integer_value: digits } };
    const { value } = decodeMessage(upsert, bytesOf('UpsertPoints', { points: [{ id: { num: 1 }, payload }] }));
    const read = (value as { points: { payload: { n: number | bigint } }[] }).points[0]?.payload.n;
    assert.equal(String(read), digits);
    assert.equal(typeof read, Number.isSafeInteger(Number(digits)) ? 'number' : 'bigint');
  }
});

test('a payload may have any key', () => {
  const entry = (key: string) => [0x1a, key.length + 6, 0x0a, key.length, ...Buffer.from(key), 0x12, 2, 0x18, 7];
  const point = [0x0a, 2, 0x08, 1, ...entry('__proto__'), ...entry('constructor')];
  const { value } = decodeMessage(upsert, Uint8Array.from([0x1a, point.length, ...point]));
  const { payload } = (value as { points: { payload: object }[] }).points[0] as { payload: object };
  assert.deepEqual(Object.entries(payload), [
    ['__proto__', 7],
    ['constructor', 7],
  ]);
});

test('what JSON has no word for is refused', () => {
  const refused = (message: object) => {
    const bytes = bytesOf('UpsertPoints', { points: [{ id: { num: 1 }, ...message }] });
    assert.throws(() => decodeMessage(upsert, bytes), { code: 'malformedBody' });
  };
  refused({ payload: { a: { double_value: Number.NaN } } });
  refused({ payload: { a: { double_value: Number.POSITIVE_INFINITY } } });
  assert.throws(() => decodeMessage(search, bytesOf('SearchPoints', { score_threshold: Number.NaN })), { code: 'malformedBody' });
  assert.throws(() => decodeMessage(search, Uint8Array.from([0x52, 2, 0xc3, 0x28])), { code: 'malformedBody' }, 'broken UTF-8');
});

test('nesting without end is refused, not followed', () => {
  let value: Uint8Array = Uint8Array.of();
  for (let depth = 0; depth < 20_000; depth++) value = nested(7, nested(1, value));
  const bytes = nested(
    3,
    Buffer.concat([bytesOf('PointStruct', { id: { num: 1 } }), nested(3, Buffer.concat([Buffer.from([0x0a, 1, 97]), nested(2, value)]))]),
  );
  assert.throws(() => decodeMessage(upsert, bytes), { code: 'malformedBody', message: /nested too deeply/ });
  let filter: Uint8Array = Uint8Array.of();
  for (let depth = 0; depth < 20_000; depth++) filter = nested(2, nested(4, filter));
  assert.throws(() => decodeMessage(search, nested(3, filter)), { code: 'malformedBody', message: /nested too deeply/ });
});

function nested(field: number, bytes: Uint8Array): Uint8Array {
  const writer = protobuf.Writer.create();
  return writer
    .uint32(field * 8 + 2)
    .bytes(bytes)
    .finish();
}

// ------------------------------------------------------------------ what protobufjs read, in our shapes

function expectedOf(type: protobuf.Type, message: object): unknown {
  const fields: Record<string, unknown> = {};
  for (const field of type.fieldsArray) {
    const own = Object.hasOwn(message, field.name);
    const value = (message as Record<string, unknown>)[field.name];
    if (field.map) {
      const entries = own ? Object.entries(value as object) : [];
      if (entries.length > 0) fields[field.name] = Object.fromEntries(entries.map(([key, one]) => [key, expectedValue(field, one)]));
    } else if (field.repeated) {
      const items = own ? (value as unknown[]) : [];
      if (items.length > 0) fields[field.name] = items.map((item) => expectedValue(field, item));
    } else if (own || (isPlain(field) && !(field.resolvedType instanceof protobuf.Type))) {
      const read = expectedValue(field, own ? value : (field.defaultValue as unknown));
      if (read !== undefined) fields[field.name] = read;
    }
  }
  return fields;
}

function expectedValue(field: protobuf.Field, value: unknown): unknown {
  const { resolvedType: type } = field;
  if (type instanceof protobuf.Enum) return enumWord(type.fullName.replace('.qdrant.', ''), value as number);
  if (type !== null) return type.name === 'Value' ? jsonOf(value as object) : expectedOf(type, value as object);
  if (field.type === 'float') return field.repeated ? value : shortestFloat(value as number);
  return field.type === 'uint64' || field.type === 'int64' ? integerOf(value) : value;
}

function jsonOf(value: object): unknown {
  const fields = value as Record<string, unknown>;
  for (const kind of ['double_value', 'string_value', 'bool_value']) if (Object.hasOwn(value, kind)) return fields[kind];
  if (Object.hasOwn(value, 'integer_value')) return integerOf(fields.integer_value);
  const struct = fields.struct_value as { fields: Record<string, object> } | null;
  if (Object.hasOwn(value, 'struct_value')) {
    return Object.fromEntries(Object.entries(struct?.fields ?? {}).map(([key, one]) => [key, jsonOf(one)]));
  }
  const list = fields.list_value as { values: object[] } | null;
  return Object.hasOwn(value, 'list_value') ? (list?.values ?? []).map(jsonOf) : null;
}

function integerOf(value: unknown): unknown {
  const exact = BigInt(String(value));
  return Number.isSafeInteger(Number(exact)) ? Number(exact) : exact;
}

/** Puts the floats back where `[index]` stands for them, and leaves out what is undefined. */
function withVectors(value: unknown, vectors: readonly Float32Array[], type: protobuf.Type): unknown {
  const fields: Record<string, unknown> = {};
  for (const [name, member] of Object.entries(value as object)) {
    const field = type.fields[name] as protobuf.Field;
    if (member !== undefined)
      fields[name] = field.map ? mapValues(member as object, (one) => restored(one, field, vectors)) : restored(member, field, vectors);
  }
  return fields;
}

function restored(value: unknown, field: protobuf.Field, vectors: readonly Float32Array[]): unknown {
  const { resolvedType: type } = field;
  if (field.repeated && field.type === 'float') return [...(vectors[(value as number[])[0] as number] as Float32Array)];
  if (field.repeated && Array.isArray(value) && type instanceof protobuf.Type && type.name !== 'Value')
    return value.map((item) => withVectors(item, vectors, type));
  return type instanceof protobuf.Type && type.name !== 'Value' ? withVectors(value, vectors, type) : value;
}

function mapValues(map: object, change: (value: unknown) => unknown): object {
  return Object.fromEntries(Object.entries(map).map(([key, value]) => [key, change(value)]));
}
