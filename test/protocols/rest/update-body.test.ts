import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { errorFacts, TroupeError } from '../../../protocols/errors.js';
import { parseJson } from '../../../protocols/json.js';
import type { WriteOperation } from '../../../protocols/model/update.js';
import type { VectorNames } from '../../../protocols/rest/point-vectors.js';
import { decodeUpdateBody } from '../../../protocols/rest/update-body.js';
import { type DecodedUpdate, decodeUpdateValue } from '../../../protocols/rest/updates.js';

const SINGLE: VectorNames = { vectors: { size: 2, distance: 'Dot' } };
const NAMED: VectorNames = {
  vectors: {
    a: { size: 2, distance: 'Dot' },
    b: { size: 3, distance: 'Euclid' },
    m: { size: 2, distance: 'Cosine', multivector_config: { comparator: 'max_sim' } },
  },
  sparse_vectors: { s: {} },
};

const bytesOf = (text: string): Uint8Array => new TextEncoder().encode(text);

/** What decoding comes to: the update, or what its sender is told. */
function outcome(decode: () => DecodedUpdate): unknown {
  try {
    const { failure, ...update } = decode();
    return { ...update, failure: failure && errorFacts(failure) };
  } catch (error) {
    if (error instanceof TroupeError) return errorFacts(error);
    throw error;
  }
}

/** Asserts that bytes and parsed body are decoded to the same, to the sign of a zero and the digits of a bigint. */
function same(kind: WriteOperation, body: Uint8Array, vectors: VectorNames): void {
  const scanned = outcome(() => decodeUpdateBody(kind, body, {}, vectors));
  const parsed = outcome(() => decodeUpdateValue(kind, parseJson(body), {}, vectors));
  assert.deepStrictEqual(scanned, parsed);
}

function sameText(kind: WriteOperation, text: string, vectors: VectorNames = SINGLE): void {
  same(kind, bytesOf(text), vectors);
}

// ------------------------------------------------------------------ random bodies

const space = fc.constantFrom('', '', '', ' ', '\n\t ');

const digits = fc.stringMatching(/^[0-9]{1,24}$/);
const component = fc.oneof(
  { weight: 20, arbitrary: fc.integer({ min: -300, max: 300 }).map(String) },
  { weight: 20, arbitrary: fc.double({ noNaN: true, noDefaultInfinity: true }).map(String) },
  { weight: 10, arbitrary: fc.float({ noNaN: true, noDefaultInfinity: true }).map(String) },
  { weight: 10, arbitrary: fc.tuple(fc.integer(), digits).map(([whole, fraction]) => `${whole}.${fraction}`) },
  {
    weight: 10,
    arbitrary: fc
      .tuple(fc.integer(), digits, fc.integer({ min: -60, max: 60 }))
      .map(([whole, fraction, exponent]) => `${whole}.${fraction}e${exponent}`),
  },
  {
    weight: 5,
    arbitrary: fc.constantFrom('-0', '-0.0', '0e5', '1e39', '1E-400', '1e+07', '12345678901234567890', '9007199254740993', '1e0005'),
  },
  { weight: 1, arbitrary: fc.constantFrom('null', '"1"', '[1]', '1e400', '01', '1.', 'NaN', '{}') },
);

const list = (items: readonly string[]): string => `[${items.join(',')}]`;
const vectorOf = (size: number) =>
  fc.oneof(
    { weight: 30, arbitrary: fc.array(component, { minLength: size, maxLength: size }).map(list) },
    { weight: 1, arbitrary: fc.array(component, { maxLength: 4 }).map(list) },
    { weight: 1, arbitrary: fc.constantFrom('null', '{"indices":[1],"values":[2]}', '{"text":"a","model":"m"}', '[[1,2],[3,4]]', '7') },
  );

const multi = fc.oneof(
  { weight: 10, arbitrary: fc.array(vectorOf(2), { minLength: 1, maxLength: 3 }).map(list) },
  { weight: 3, arbitrary: vectorOf(2) },
  { weight: 1, arbitrary: fc.constantFrom('[[]]', '[[],[1,2]]', '[[1,2],[3]]', '[[1,[2]]]', '[[1,2],3]', '[1,[2]]') },
);
const sparse = fc.oneof(
  {
    weight: 10,
    arbitrary: fc
      .uniqueArray(fc.nat(0xffff_ffff), { maxLength: 4 })
      .chain((indices) =>
        fc.array(component, { minLength: indices.length, maxLength: indices.length }).map((values) => [indices, values] as const),
      )
      .map(([indices, values]) => `{"indices":${list(indices.map(String))},"values":${list(values)}}`),
  },
  {
    weight: 2,
    arbitrary: fc.constantFrom(
      '{"indices":[1,1],"values":[1,2]}',
      '{"indices":[1],"values":[]}',
      '{"indices":[-1],"values":[1]}',
      '{"values":[1]}',
    ),
  },
  { weight: 1, arbitrary: vectorOf(2) },
);

/** Members in any order, some of them missing, some given twice. */
function objectOf(members: Record<string, fc.Arbitrary<string>>): fc.Arbitrary<string> {
  const each = Object.entries(members).map(([key, value]) =>
    fc.tuple(space, value, space).map(([a, text, b]) => `"${key}"${a}:${b}${text}`),
  );
  return fc.tuple(fc.tuple(...each), fc.nat(40), space, fc.boolean()).map(([parts, odd, gap, turned]) => {
    const kept = odd < parts.length ? parts.filter((_, at) => at !== odd) : odd === 40 ? [...parts, ...parts] : parts;
    return `{${gap}${(turned ? [...kept].reverse() : kept).join(`${gap},`)}}`;
  });
}

const id = fc.oneof(
  { weight: 8, arbitrary: fc.nat(5).map(String) },
  { weight: 2, arbitrary: fc.uuid().map((uuid) => `"${uuid}"`) },
  { weight: 1, arbitrary: fc.constantFrom('18446744073709551615', '9007199254740993', '5.0', '1e3', '-1', '"x"') },
);
const payload = fc.oneof(
  fc.json({ maxDepth: 3 }).map((text) => (text.startsWith('{') ? text : `{"value":${text}}`)),
  fc.constantFrom(
    '{}',
    'null',
    '{"n":12345678901234567890,"limit":3.0}',
    '{"a":1,"a":2}',
    '{"vector":[1,2],"":"\\"]["}',
    '{"ü":"é\\u0000"}',
    '[1]',
  ),
);
const named = objectOf({ a: vectorOf(2), b: vectorOf(3), m: multi, s: sparse });
const filter = fc.constantFrom(
  'null',
  '{"must":[{"key":"a[]","match":{"value":3.0}}]}',
  '{"should":[{"has_id":[1,2]}]}',
  '{"min_count":1.0}',
  '7',
);
const lists = (item: fc.Arbitrary<string>) => fc.array(item, { minLength: 2, maxLength: 2 }).map(list);

const points = (vector: fc.Arbitrary<string>) => fc.array(objectOf({ id, vector, payload }), { maxLength: 4 }).map(list);
const listForm = (vector: fc.Arbitrary<string>) =>
  fc.oneof(
    { weight: 4, arbitrary: objectOf({ points: points(vector) }) },
    { weight: 1, arbitrary: objectOf({ points: points(vector), update_filter: filter, update_mode: fc.constantFrom('"upsert"', '"x"') }) },
  );
const batchForm = (vectors: fc.Arbitrary<string>) => objectOf({ batch: objectOf({ ids: lists(id), vectors, payloads: lists(payload) }) });

interface Case {
  readonly kind: WriteOperation;
  readonly text: string;
  readonly vectors: VectorNames;
}

const upsertOf = (vectors: VectorNames): fc.Arbitrary<string> =>
  vectors === SINGLE
    ? fc.oneof(listForm(vectorOf(2)), batchForm(lists(vectorOf(2))))
    : fc.oneof(listForm(named), batchForm(lists(named)), batchForm(objectOf({ a: lists(vectorOf(2)), m: lists(multi), s: lists(sparse) })));

function bodyOf(kind: WriteOperation, vectors: VectorNames): fc.Arbitrary<string> {
  if (kind !== 'batchUpdate') return upsertOf(vectors);
  const operation = fc.oneof(
    objectOf({ upsert: upsertOf(vectors) }),
    objectOf({ update_vectors: upsertOf(vectors) }),
    fc.constantFrom('{"delete":{"points":[1]}}', '{"delete_vectors":{"points":[1],"vector":["a"]}}', '{"x":1}'),
  );
  return objectOf({ operations: fc.array(operation, { maxLength: 3 }).map(list) });
}

const cases: fc.Arbitrary<Case> = fc
  .tuple(fc.constantFrom<WriteOperation>('upsertPoints', 'updateVectors', 'batchUpdate'), fc.constantFrom(SINGLE, NAMED))
  .chain(([kind, vectors]) => bodyOf(kind, vectors).map((text) => ({ kind, text, vectors })));

// ------------------------------------------------------------------ tests

test('random bodies are decoded as if they were parsed whole', () => {
  fc.assert(
    fc.property(cases, ({ kind, text, vectors }) => sameText(kind, text, vectors)),
    { numRuns: 3000 },
  );
});

test('broken bodies are refused as if they were parsed whole', () => {
  const edit = fc.record({ at: fc.nat(), length: fc.nat(3), byte: fc.oneof(fc.nat(255), fc.constantFrom(...bytesOf('[]{},:"\\0.e-'))) });
  const edited = fc.tuple(cases, fc.array(edit, { minLength: 1, maxLength: 3 }), fc.boolean());
  fc.assert(
    fc.property(edited, ([{ kind, text, vectors }, edits, cut]) => {
      let bytes = [...bytesOf(text)];
      for (const { at, length, byte } of edits) bytes.splice(at % (bytes.length + 1), length, byte);
      if (cut) bytes = bytes.slice(0, (edits[0]?.at ?? 0) % (bytes.length + 1));
      same(kind, Uint8Array.from(bytes), vectors);
    }),
    { numRuns: 3000 },
  );
});

test('any bytes are decoded as if they were parsed whole', () => {
  fc.assert(
    fc.property(fc.uint8Array(), (bytes) => same('upsertPoints', bytes, SINGLE)),
    { numRuns: 500 },
  );
});

test('long bodies are looked at no closer without their vectors', () => {
  const filler = Array.from({ length: 8000 }, (_, at) => `{"id":${at},"vector":[0.12345678,-1.5e-3],"payload":{"limit":3.0}}`).join(',');
  const filters = ['{"must":[{"key":"a","match":{"value":3.0}}]}', '{"min_should":{"min_count":1.0,"conditions":[]}}', 'null'];
  for (const filter of filters) sameText('upsertPoints', `{"update_filter":${filter},"points":[${filler}]}`);
  sameText('upsertPoints', `{"points":[],"points":[${filler}]}`);
  sameText('upsertPoints', `{"points":[],"points":[${filler},{"id":1,"vector":[12345678901234567,1]}]}`);
  sameText('upsertPoints', `{"points":[${filler},{"id":5.0,"vector":[1,1]}]}`);
});

test('deep payloads come to the same', () => {
  for (const depth of [10, 511, 512, 600]) {
    const payload = `{"a":${'['.repeat(depth)}${']'.repeat(depth)}}`;
    sameText('upsertPoints', `{"points":[{"id":1,"vector":[1,2],"payload":${payload}}]}`);
    sameText('upsertPoints', `{"points":[{"id":1,"vector":[1e-100,12345678901234567],"payload":${payload}}]}`);
  }
});

test('a body without a route of its own for vectors is parsed', () => {
  sameText('deletePoints', '{"points":[1]}');
  sameText('setPayload', '{"payload":{"vector":[1,2]},"points":[1]}');
  const { operations } = decodeUpdateBody('deleteFieldIndex', new Uint8Array(0), { field_name: 'a' }, SINGLE);
  assert.deepEqual(operations, [{ kind: 'deleteFieldIndex', field: 'a' }]);
  sameText('upsertPoints', '');
});
