import assert from 'node:assert/strict';
import { test } from 'node:test';
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
    applied: () => {},
    warn: (message) => warnings.push(message),
    warnings,
  };
}

test('a bug in an operation is the fault of that operation', () => {
  const failing = hostOf(new Error('no such row'));
  let transactions = 0;
  // The group, then the operation alone; a third transaction notes that it is passed over.
  const host = {
    ...failing,
    transact: <T>(change: (transaction: Transaction) => T) => (++transactions < 3 ? failing.transact(change) : (undefined as T)),
  };
  const outcomes = new Operations(host).apply([{ operation: 5, by: BY, logged: LOGGED }]);
  assert.match(String(outcomes[0]?.error), /the operation cannot be applied: Error: no such row/);
  assert.equal(host.warnings.length, 2);
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
