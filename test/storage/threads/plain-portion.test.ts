import assert from 'node:assert/strict';
import { test } from 'node:test';
import { seededRandom } from '../../../ops/random.js';
import { TroupeError } from '../../../protocols/errors.js';
import {
  decodePlainAnswer,
  decodePlainPortion,
  encodePlainAnswer,
  encodePlainPortion,
  isPlain,
} from '../../../storage/threads/plain-portion.js';
import type { Ask, Hits, LevelAsk, Portion, ShardAnswer } from '../../../storage/threads/portion.js';
import { NO_EXTRAS } from '../../../storage/threads/portion.js';
import {
  decodePortion,
  decodePortionAnswer,
  encodePortion,
  encodePortionAnswer,
  packedPortion,
} from '../../../storage/threads/portion-codec.js';

const UUID = '6f2b1c3a-0f1e-4a5b-9c8d-7e6f5a4b3c2d';
const ALL = { ...NO_EXTRAS, withPayload: { kind: 'all' } } as const;
const FILTER = { must: [], should: [], mustNot: [], minShould: null } as unknown as NonNullable<LevelAsk['filter']>;
const LEVEL: LevelAsk = {
  kind: 'level',
  query: { kind: 'nearest', value: { kind: 'dense', values: Float32Array.of(0.5, -1, 3) }, own: null },
  using: '',
  filter: null,
  params: { hnswEf: null, exact: false, indexedOnly: false, quantization: { ignore: false, rescore: null, oversampling: null } },
  scoreThreshold: null,
  count: 10,
  candidates: null,
  terms: null,
  extras: NO_EXTRAS,
};
const PARAMS = { hnswEf: 64, exact: true, indexedOnly: true, quantization: { ignore: true, rescore: false, oversampling: 2.5 } };
const ASKS: readonly Ask[] = [
  LEVEL,
  { ...LEVEL, using: 'größe', filter: FILTER, params: PARAMS, scoreThreshold: -0.25, count: 0, extras: ALL },
  { ...LEVEL, params: { ...PARAMS, quantization: { ...PARAMS.quantization, rescore: true } } },
  {
    kind: 'points',
    points: [
      { shard: null, ids: [1, Number.MAX_SAFE_INTEGER] },
      { shard: 3, ids: [] },
    ],
    extras: ALL,
  },
  { kind: 'count', filter: null },
  { kind: 'count', filter: FILTER },
];
const HITS: Hits = {
  kind: 'hits',
  shards: [0, 5],
  ids: [7, Number.MAX_SAFE_INTEGER],
  scores: Float64Array.of(0.5, -1),
  versions: Float64Array.of(3, 4),
  orderValues: null,
  shown: null,
  groups: null,
  total: 9,
};
const ANSWERS: readonly ShardAnswer[] = [
  HITS,
  { ...HITS, shards: [], ids: [], scores: new Float64Array(0), versions: new Float64Array(0) },
  { ...HITS, ids: [UUID, UUID], shown: [{ payload: Uint8Array.of(1, 2, 3) }, {}] },
  { kind: 'count', count: 12_345_678_901 },
];

test('frequent portions are plain, and say what the packed ones say', () => {
  for (const ask of ASKS) {
    const portion: Portion = { asks: [ask] };
    const bytes = encodePlainPortion(portion) as Uint8Array;
    assert.deepEqual([isPlain(bytes), decodePortion(bytes)], [true, portion]);
    const packed = new Uint8Array(encodePortion(portion));
    assert.deepEqual([isPlain(packed), decodePortion(packed)], [false, portion]);
    assert.ok(Buffer.from(packedPortion(bytes)).equals(packed));
    assert.equal(packedPortion(packed), packed);
  }
});

test('frequent answers are plain, wherever their bytes stand in memory', () => {
  for (const answer of ANSWERS) {
    const bytes = encodePlainAnswer({ answers: [answer] }) as Uint8Array;
    for (const at of [0, 1, 4]) {
      const moved = new Uint8Array(bytes.length + at);
      moved.set(bytes, at);
      assert.deepEqual(decodePortionAnswer(moved.subarray(at)), { answers: [answer] });
    }
    assert.deepEqual(decodePortionAnswer(new Uint8Array(encodePortionAnswer({ answers: [answer] }))), { answers: [answer] });
  }
});

test('portions and answers of other forms are not plain', () => {
  const others: readonly Ask[] = [
    { ...LEVEL, query: { kind: 'list', from: null } },
    { ...LEVEL, query: { ...LEVEL.query, own: { shard: 1, id: 2 } } as LevelAsk['query'] },
    { ...LEVEL, candidates: [] },
    { ...LEVEL, count: 2 ** 32 },
    { ...LEVEL, extras: { ...ALL, withPayload: { kind: 'include', keys: ['a'] } } },
    { ...LEVEL, extras: { ...ALL, withVector: { kind: 'all' } } },
    { ...LEVEL, extras: { ...ALL, groupBy: 'a' } },
    { kind: 'points', points: [{ shard: 1, ids: [1, UUID] }], extras: ALL },
    { kind: 'field', key: 'a' },
  ];
  for (const ask of others) assert.equal(encodePlainPortion({ asks: [ask] }), null);
  assert.equal(encodePlainPortion({ asks: [LEVEL, LEVEL] }), null);
  assert.equal(encodePlainPortion({ asks: [LEVEL], explain: true }), null);
  const answers: readonly ShardAnswer[] = [
    { ...HITS, ids: [1, UUID] },
    { ...HITS, ids: [1, 2n ** 60n] },
    { ...HITS, orderValues: [1, 2] },
    { ...HITS, groups: [[], []] },
    { ...HITS, shown: [{ vector: { kind: 'named', vectors: [] } }, {}] },
    { kind: 'field', schema: null },
  ];
  for (const answer of answers) assert.equal(encodePlainAnswer({ answers: [answer] }), null);
});

test('other bytes are refused, and never read beyond their end', () => {
  const random = seededRandom(20_002);
  const portions = ASKS.map((ask) => encodePlainPortion({ asks: [ask] }) as Uint8Array);
  const answers = ANSWERS.map((answer) => encodePlainAnswer({ answers: [answer] }) as Uint8Array);
  const tried = (decode: (bytes: Uint8Array) => unknown, sources: readonly Uint8Array[]): number => {
    let refused = 0;
    for (let round = 0; round < 3000; round++) {
      const source = sources[round % sources.length] as Uint8Array;
      const bytes = source.slice(0, random.unit() < 0.5 ? 1 + random.integer(source.length) : source.length);
      for (let flips = random.integer(5); flips > 0; flips--)
        bytes[1 + random.integer(Math.max(1, bytes.length - 1))] = random.integer(256);
      try {
        decode(bytes);
      } catch (error) {
        assert.ok(error instanceof TroupeError && error.code === 'wrongInput', String(error));
        refused++;
      }
    }
    return refused;
  };
  assert.ok(tried(decodePlainPortion, portions) > 300);
  assert.ok(tried(decodePlainAnswer, answers) > 300);
});
