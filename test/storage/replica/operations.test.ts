import assert from 'node:assert/strict';
import { test } from 'node:test';
import { TroupeError } from '../../../protocols/errors.js';
import { BrokenInvariant } from '../../../protocols/invariant.js';
import { Operations, type OperationsHost } from '../../../storage/replica/operations.js';
import type { Transaction } from '../../../storage/replica/transaction.js';
import type { WriteAheadLog } from '../../../storage/wal/wal.js';

const LOGGED = { operation: { kind: 'nothing' }, chained: false } as never;
const BY = { term: 1, peer: 1 } as never;

/** A replica whose transactions all end like this. */
function hostOf(error: Error): OperationsHost & { readonly warnings: string[] } {
  const warnings: string[] = [];
  return {
    wal: { last: { index: 4 } } as WriteAheadLog,
    walCapacity: 0,
    keepsLog: false,
    commit: () => undefined as never,
    transact: () => {
      throw error;
    },
    // biome-ignore lint/correctness/useYield: fails at once
    *transacting() {
      throw error;
    },
    view: () => undefined as never,
    unfinished: null,
    copying: null,
    beginSlice: () => () => false,
    beginPortion: () => () => false,
    holdStats: () => {},
    attempts: { begin: () => {}, end: () => {} },
    applied: () => {},
    warn: (message) => warnings.push(message),
    warnings,
  };
}

/** As `hostOf`, for so many transactions; the next ones do nothing. */
function hostThatRecovers(error: Error, failures: number) {
  const failing = hostOf(error);
  let transactions = 0;
  const transact = <T>(change: (transaction: Transaction) => T) =>
    ++transactions <= failures ? failing.transact(change) : ([{ operation: 5, error: null }] as T);
  return { ...failing, transact };
}

test('an operation of a leader that cannot be applied is refused alone, and the log has nothing in its place', () => {
  // The group, then the operation alone; a third transaction gives its place to nothing.
  const host = hostThatRecovers(new Error('no such row'), 2);
  const operations = new Operations(host);
  const [outcome] = operations.apply([{ operation: 5, by: BY, logged: LOGGED, isLeaders: true }]);
  assert.ok(outcome?.error instanceof TroupeError);
  assert.deepEqual(
    [outcome.error.detail, outcome.error.outcome, outcome.isNothing],
    ['the operation cannot be applied: no such row', 'none', true],
  );
  assert.equal(host.warnings.length, 2);
  assert.equal(operations.waiting, 0);
});

test('an operation of another leader that cannot be applied is not taken', () => {
  const host = hostOf(new Error('no such row'));
  const operations = new Operations(host);
  assert.throws(() => operations.apply([{ operation: 5, by: BY, logged: LOGGED }]), { code: 'storage', message: /no such row/ });
  assert.equal(operations.waiting, 0);
});

for (const [what, error] of [
  ['file descriptors', Object.assign(new Error('EMFILE: too many open files'), { code: 'EMFILE', errno: -24, syscall: 'open' })],
  ['memory', new RangeError('Array buffer allocation failed')],
  ['what nobody thought of', new Error('no such row')],
] as const) {
  test(`a lack of ${what} passes over nothing that is logged: it waits, and is applied later`, () => {
    // Twice the group, then the operation alone.
    const host = hostThatRecovers(error, 4);
    const operations = new Operations(host);
    operations.log([{ operation: 5, by: BY, logged: LOGGED }]);
    for (let tries = 0; tries < 2; tries++) {
      assert.throws(() => operations.apply(), { code: 'storage', message: /operation 5 is logged and cannot be applied now/ });
      assert.equal(operations.waiting, 1);
    }
    assert.deepEqual(operations.apply(), [{ operation: 5, error: null }]);
    assert.equal(operations.waiting, 0);
  });
}

test('damage refuses no operation alone, as the next one may meet it, too: it is thrown with its reason', () => {
  const damage = new TroupeError('storage', 'record `payload/3` is damaged', { reason: 'damaged' });
  const operations = new Operations(hostOf(damage));
  assert.throws(() => operations.apply([{ operation: 5, by: BY, logged: LOGGED, isLeaders: true }]), { reason: 'damaged' });
  operations.log([{ operation: 5, by: BY, logged: LOGGED }]);
  assert.throws(() => operations.apply(), { code: 'storage', reason: 'damaged', message: /operation 5 is logged/ });
  assert.equal(operations.waiting, 1);
});

for (const [what, act] of [
  ['an operation of a leader', (operations: Operations) => operations.apply([{ operation: 5, by: BY, logged: LOGGED }])],
  [
    'an operation that was logged before',
    (operations: Operations) => {
      operations.log([{ operation: 5, by: BY, logged: LOGGED }]);
      operations.apply();
    },
  ],
] as const) {
  test(`a broken invariant is no fault of ${what}: it is thrown`, () => {
    const host = hostOf(new BrokenInvariant('Wal-W2', 'out of order'));
    assert.throws(() => act(new Operations(host)), { name: 'BrokenInvariant', id: 'Wal-W2' });
    assert.deepEqual(host.warnings, []);
  });
}
