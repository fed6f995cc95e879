import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import type { FieldSchema } from '../../../protocols/model/collection.js';
import { effortNsMaxOf, HEAVY_NS } from '../../../query/effort.js';
import { memoryBudget } from '../../../storage/memory/budget.js';
import { SharedLedger } from '../../../storage/memory/shared-ledger.js';
import { runRead } from '../../../storage/reader/operations.js';
import { Reader } from '../../../storage/reader/reader.js';
import { TooHeavy } from '../../../storage/threads/deadline.js';
import type { FromReader, RawRequest, ReadOperation } from '../../../storage/threads/messages.js';
import { CollectionFixture, configOf, contextOf, randomOf, type TestPoint } from '../engine/collection-fixture.js';

const ROWS = 6000;
const DIM = 64;
const TOKENS = 4;
const FIELDS: ReadonlyMap<string, FieldSchema> = new Map([
  ['color', { type: 'keyword' }],
  ['n', { type: 'integer' }],
]);

const config = configOf(
  {
    dense: { size: DIM, distance: 'Dot' },
    small: { size: DIM, distance: 'Dot' },
    multi: { size: DIM, distance: 'Dot', multivector_config: { comparator: 'max_sim' } },
  },
  { sparse: { words: {} } },
);
const fixture = new CollectionFixture(config, FIELDS);
after(() => fixture.remove());

const random = randomOf(7);
const numbers = (): number[] => Array.from({ length: DIM }, random);
await fixture.addSealed(
  Array.from({ length: ROWS }, (_, id): TestPoint => {
    const words = { indices: Array.from({ length: 20 }, (_, i) => i * 10 + (id % 10)), values: Array.from({ length: 20 }, random) };
    const few: TestPoint['vectors'] = id < 50 ? { small: numbers() } : {};
    return {
      id,
      vectors: { dense: numbers(), multi: Array.from({ length: TOKENS }, numbers), words, ...few },
      payload: { color: `c${id % 3}`, n: id, plain: id % 7 },
    };
  }),
  false,
);

/** Whether a thread that quick reads wait for leaves the read to another one. */
function isHeavy(operation: ReadOperation, body: unknown, effortNsMax = HEAVY_NS): boolean {
  const { deadline } = fixture;
  const request: RawRequest = { path: {}, query: {}, body: Buffer.from(JSON.stringify(body)), deadlineMs: 0 };
  deadline.effortNs = 0;
  deadline.effortNsMax = effortNsMax;
  try {
    runRead(operation, request, contextOf(fixture));
    return false;
  } catch (error) {
    if (!(error instanceof TooHeavy)) throw error;
    return true;
  } finally {
    deadline.effortNsMax = Number.POSITIVE_INFINITY;
    // The same read is answered where nobody waits.
    runRead(operation, request, contextOf(fixture));
  }
}

const plain = { must: [{ key: 'plain', match: { value: 3 } }] };
const search = { query: numbers(), using: 'dense', limit: 3 };

test('reads of a few points, indexed filters and small vectors stay', () => {
  assert.equal(isHeavy('retrieve', { ids: [1, 2, 3], with_vector: true }), false);
  assert.equal(isHeavy('count', { filter: { must: [{ key: 'color', match: { value: 'c1' } }] } }), false);
  assert.equal(isHeavy('query', search), false);
  assert.equal(isHeavy('query', { ...search, using: 'small' }), false);
  assert.equal(isHeavy('query', { query: { indices: [1, 12], values: [1, 1] }, using: 'words', limit: 3 }), false);
  assert.equal(isHeavy('scroll', { limit: 10, offset: 3000 }), false);
  assert.equal(isHeavy('scroll', { limit: 10, order_by: 'n' }), false);
  assert.equal(isHeavy('facet', { key: 'color' }), false);
});

test('a filter without an index is too heavy at first, and stays once its rows are known', () => {
  assert.equal(isHeavy('count', { filter: plain }), true);
  assert.equal(isHeavy('count', { filter: plain }), false);
});

test('work adds up over the queries of a batch, the prefetches of a query and the rounds of groups', () => {
  assert.equal(isHeavy('queryBatch', { searches: Array.from({ length: 20 }, () => search) }), true);
  assert.equal(isHeavy('query', { prefetch: Array.from({ length: 20 }, () => search), query: { fusion: 'rrf' } }), true);
  assert.equal(isHeavy('queryGroups', { ...search, group_by: 'n', limit: 300, group_size: 2 }), true);
});

test('scores by many examples, of all multivectors and of all pairs of a sample are too heavy', () => {
  const positive = Array.from({ length: 20 }, (_, id) => id);
  assert.equal(isHeavy('recommend', { positive, strategy: 'best_score', using: 'dense', limit: 3 }), true);
  assert.equal(isHeavy('query', { query: Array.from({ length: 8 }, numbers), using: 'multi', limit: 3 }), true);
  assert.equal(isHeavy('matrixPairs', { sample: 1000, limit: 3, using: 'dense' }), true);
});

test('without company reads of some milliseconds stay, and long ones leave: other connections of the thread are not heard meanwhile', () => {
  const isLong = (operation: ReadOperation, body: unknown): boolean => isHeavy(operation, body, effortNsMaxOf(true, null));
  assert.equal(isLong('matrixPairs', { sample: 200, limit: 3, using: 'dense' }), false);
  assert.equal(isLong('matrixPairs', { sample: 2000, limit: 3, using: 'dense' }), true);
  const exact = { ...search, params: { exact: true } };
  assert.equal(isLong('query', exact), false);
  assert.equal(isLong('queryBatch', { searches: Array.from({ length: 500 }, () => exact) }), true);
  assert.equal(effortNsMaxOf(false, 0), Number.POSITIVE_INFINITY);
});

test('a read that nobody waits for any more ends', () => {
  const { deadline } = fixture;
  const gone = new Int32Array(new SharedArrayBuffer(4));
  const request: RawRequest = {
    path: {},
    query: {},
    body: Buffer.from(JSON.stringify({ ...search, params: { exact: true } })),
    deadlineMs: 0,
  };
  deadline.gone = gone;
  try {
    runRead('query', request, contextOf(fixture));
    gone[0] = 1;
    assert.throws(() => runRead('query', request, contextOf(fixture)), { code: 'timeout' });
  } finally {
    deadline.gone = null;
  }
});

test('many points to show are too heavy', () => {
  assert.equal(isHeavy('scroll', { limit: 5000 }), true);
  assert.equal(isHeavy('retrieve', { ids: Array.from({ length: 400 }, (_, id) => id), with_vector: ['dense'] }), true);
});

test('a large read is not decoded beside a large write, for which a small container has no memory', () => {
  const memory = new SharedLedger(memoryBudget(100 * 2 ** 20, null));
  const said: FromReader[] = [];
  const own = {
    index: 0,
    scratchTurns: new Int32Array(1),
    useTicks: new Int32Array(1),
    firstForHeavy: 1,
    quickReads: new Int32Array(1),
    memory: memory.shareOf('reader-0'),
  };
  const reader = new Reader(
    own,
    (message) => said.push(message),
    () => {},
  );
  const ask = (id: number, bytes: number): void => {
    const body = Buffer.from(`{"filter":{}}${' '.repeat(bytes)}`);
    reader.receive({
      kind: 'read',
      id,
      operation: 'count',
      replicas: ['c/0'],
      request: { path: {}, query: {}, body, deadlineMs: Infinity },
      mayLeave: false,
    });
  };
  assert.ok(memory.reserve('values', 19 * 2 ** 20));
  ask(1, 2 * 2 ** 20);
  ask(2, 2 ** 10);
  memory.release('values', 19 * 2 ** 20);
  ask(3, 2 * 2 ** 20);
  // No replica is open here, which is found once there is memory.
  const codes = said.map((message) => (message.kind === 'error' ? `${message.id} ${message.error.code}` : message.kind));
  assert.deepEqual(codes, ['1 busy', '2 unavailable', '3 unavailable']);
  assert.equal(memory.held().size, 0);
});
