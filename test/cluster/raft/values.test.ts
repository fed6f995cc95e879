import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import {
  compacted,
  firstIndex,
  isSettled,
  lastIndex,
  lastOfTerm,
  lastTerm,
  membershipAt,
  termAt,
  withEntries,
  withSnapshot,
} from '../../../cluster/raft/log.js';
import { reachedByMajority, tally } from '../../../cluster/raft/quorum.js';
import { draw } from '../../../cluster/raft/random.js';
import type { RaftLog } from '../../../cluster/raft/state.js';
import { entry, voters } from './peers.js';

const EMPTY: RaftLog = { snapshot: null, entries: [], termBefore: 0 };
const LOG = withEntries(EMPTY, [entry(1, 1), entry(2, 1), entry(3, 3), entry(4, 3), entry(5, 6)]);

test('an empty log ends at 0, in term 0', () => {
  assert.deepEqual([firstIndex(EMPTY), lastIndex(EMPTY), lastTerm(EMPTY), termAt(EMPTY, 0), termAt(EMPTY, 1)], [1, 0, 0, 0, null]);
});

test('terms are known for entries, the one before the first, and no others', () => {
  const log = compacted(LOG, { index: 4, term: 3, membership: [], data: new Uint8Array(0) }, 2);
  assert.deepEqual(
    [0, 1, 2, 3, 4, 5, 6].map((index) => termAt(log, index)),
    [null, null, 1, 3, 3, 6, null],
  );
});

test('a compacted log is the same from there on, however many entries it keeps', () => {
  for (let kept = 0; kept < 9; kept++) {
    for (let index = 1; index <= 5; index++) {
      const log = compacted(LOG, { index, term: termAt(LOG, index) as number, membership: voters(1), data: new Uint8Array(0) }, kept);
      assert.equal(firstIndex(log), Math.max(1, index + 1 - kept));
      assert.equal(lastIndex(log), 5);
      assert.equal(lastTerm(log), 6);
      assert.deepEqual(membershipAt(log, 5), { membership: voters(1), index });
    }
  }
});

test('a snapshot keeps what is behind an entry that it agrees with, and nothing else', () => {
  const at = (index: number, term: number) => withSnapshot(LOG, { index, term, membership: [], data: new Uint8Array(0) });
  assert.deepEqual([at(3, 3).contradicts, at(3, 3).log.entries], [false, [entry(4, 3), entry(5, 6)]]);
  assert.deepEqual([at(5, 6).contradicts, lastIndex(at(5, 6).log)], [false, 5]);
  for (const other of [at(3, 2), at(9, 9)]) assert.deepEqual([other.contradicts, other.log.entries], [true, []]);
});

test('the last entry with a term that is not higher', () => {
  assert.deepEqual(
    [0, 1, 2, 3, 5, 6, 9].map((term) => lastOfTerm(LOG, 9, term)),
    [0, 2, 2, 4, 4, 5, 5],
  );
});

test('an entry is settled when the committed log has it, or has a later term', () => {
  const ends = [
    [2, 1, 2, true],
    [2, 1, 3, false],
    [3, 1, 9, true],
    [3, 3, 4, false],
    [4, 3, 4, true],
    [4, 5, 1, false],
  ] as const;
  for (const [end, lastTerm, last, settled] of ends)
    assert.equal(isSettled(LOG, end, { lastTerm, lastIndex: last }), settled, `${end}: ${last}/${lastTerm}`);
});

test('more than half reach the median, rounded to the lower half', () => {
  fc.assert(
    fc.property(fc.array(fc.nat(20), { minLength: 1, maxLength: 9 }), (values) => {
      const reached = reachedByMajority([...values]);
      const atLeast = (index: number) => values.filter((value) => value >= index).length;
      assert.ok(atLeast(reached) > values.length / 2);
      assert.ok(atLeast(reached + 1) <= values.length / 2);
    }),
  );
});

test('a vote is won by more than half, and lost when they cannot be reached any more', () => {
  for (let voters_ = 1; voters_ < 8; voters_++) {
    for (let yes = 0; yes <= voters_; yes++) {
      for (let no = 0; no <= voters_ - yes; no++) {
        const left = voters_ - yes - no;
        const expected = yes > voters_ / 2 ? 'won' : yes + left > voters_ / 2 ? 'open' : 'lost';
        assert.equal(tally(yes, no, voters_), expected, `${yes} ${no} of ${voters_}`);
      }
    }
  }
});

test('drawn numbers spread over their range', () => {
  const counts = new Array<number>(7).fill(0);
  let state = 1;
  for (let times = 0; times < 7000; times++) {
    const { value, next } = draw(state, 7);
    counts[value] = (counts[value] ?? 0) + 1;
    state = next;
  }
  for (const count of counts) assert.ok(count > 850 && count < 1150, String(counts));
});
