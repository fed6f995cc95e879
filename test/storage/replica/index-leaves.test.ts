import assert from 'node:assert/strict';
import { test } from 'node:test';
import { initChecksum } from '../../../storage/disk/checksum.js';
import { Environment } from '../../../storage/disk/lmdb.js';
import { filedBytes, rowNumbers, writeFiled } from '../../../storage/replica/filed-terms.js';
import { fieldPrefix, leavesWithin, mergingFiled, verifyLeaves } from '../../../storage/replica/index-leaves.js';
import type { FiledTerms } from '../../../storage/replica/recent-filings.js';
import type { IsOver } from '../../../storage/replica/slices.js';
import { temporaryFolder } from './support.js';

const PREFIX = fieldPrefix(3, 1);
const TERM_BYTES = 1000;

await initChecksum();

/** One row for each term. */
function filed(terms: readonly number[], rowOf: (term: number) => number): FiledTerms {
  const bytes = Buffer.alloc(terms.length * filedBytes(TERM_BYTES, 1));
  const at: number[] = [];
  let end = 0;
  for (const term of terms) {
    at.push(end);
    end = writeFiled(bytes, end, termBytes(term), [rowOf(term)]);
  }
  return { bytes, at };
}

function termBytes(term: number): Buffer {
  return Buffer.from(String(term).padStart(TERM_BYTES, '0'));
}

test('new terms are merged into any number of leaves in portions, between which one leaf is written at a time', async (t) => {
  const environment = Environment.open(temporaryFolder(t), () => {});
  const write = environment.begin();
  t.after(() => {
    write.abort();
    return environment.close();
  });
  const merge = (terms: FiledTerms, beginPortion: () => IsOver): number => {
    const merging = mergingFiled(environment, PREFIX, terms, beginPortion);
    let most = 0;
    for (let isDone = false; !isDone; ) {
      const puts = t.mock.method(environment, 'put');
      isDone = merging.next().done === true;
      most = Math.max(most, puts.mock.callCount());
      puts.mock.restore();
    }
    return most;
  };
  const evens = Array.from({ length: 900 }, (_, at) => 2 * at);
  const written = merge(
    filed(evens.toReversed(), (term) => term),
    () => () => false,
  );
  assert.ok(written > 3 * 64, `${written} leaves: more than are read at once, several times`);
  // Each leaf gets some and is split; the last ones lie behind all that there is, and some terms have further rows.
  const others = [...Array.from({ length: 905 }, (_, at) => 2 * at + 1), 0, 600, 1798];
  const most = merge(
    filed(others, (term) => 10_000 + term),
    () => () => true,
  );
  assert.ok(most <= 5, `${most} writes of one leaf and those that it is split into`);
  write.commit();
  verifyLeaves(environment, PREFIX);
  const found = [...leavesWithin(environment, PREFIX, Buffer.alloc(0), Buffer.from('1'))].map(({ rows, term }) => [
    Number(Buffer.from(term).toString()),
    [...rowNumbers(rows)],
  ]);
  const expected = Array.from({ length: 1810 }, (_, term): [number, number[]] => {
    const rows = term % 2 === 0 && term < 1800 ? [term] : [];
    return [term, others.includes(term) ? [...rows, 10_000 + term] : rows];
  });
  assert.deepEqual(
    found,
    expected.filter(([, rows]) => rows.length > 0),
  );
});
