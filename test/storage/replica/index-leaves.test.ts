import assert from 'node:assert/strict';
import { test } from 'node:test';
import { seededRandom } from '../../../ops/random.js';
import { initChecksum } from '../../../storage/disk/checksum.js';
import { Environment } from '../../../storage/disk/lmdb.js';
import { type FiledRange, filedBytes, rowNumbers, writeFiled } from '../../../storage/replica/filed-terms.js';
import { fieldPrefix, mergingFiled, verifyLeaves, visitLeaves } from '../../../storage/replica/index-leaves.js';
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
  const found = filedIn(environment, [{ from: Buffer.alloc(0), to: Buffer.from('1') }]);
  const expected = Array.from({ length: 1810 }, (_, term): [number, number[]] => {
    const rows = term % 2 === 0 && term < 1800 ? [term] : [];
    return [term, others.includes(term) ? [...rows, 10_000 + term] : rows];
  });
  assert.deepEqual(
    found,
    expected.filter(([, rows]) => rows.length > 0),
  );
});

/** Numbers of terms that are filed in some ranges, with their rows. */
function filedIn(environment: Environment, ranges: readonly FiledRange[]): [number, number[]][] {
  const found: [number, number[]][] = [];
  visitLeaves(environment, PREFIX, ranges, ({ rows, term }) => {
    found.push([Number(Buffer.from(term).toString()), [...rowNumbers(rows)]]);
    return true;
  });
  return found;
}

/** Terms `from` to `to`, without the last. */
function between(from: number, to: number): FiledRange {
  return { from: termBytes(from), to: termBytes(to) };
}

test('a condition of thousands of values reads each leaf once, wherever its ranges lie', (t) => {
  const environment = Environment.open(temporaryFolder(t), () => {});
  const write = environment.begin();
  t.after(() => {
    write.abort();
    return environment.close();
  });
  const evens = Array.from({ length: 400 }, (_, at) => 2 * at + 100);
  const terms = filed(evens, (term) => term);
  for (const merging = mergingFiled(environment, PREFIX, terms, () => () => false); merging.next().done !== true; );
  const random = seededRandom(3);
  for (let round = 0; round < 60; round++) {
    // Before, between, at and behind the terms; some hold none, some follow one another at once.
    const bounds = [...new Set(Array.from({ length: 2 + random.integer(round * 12 + 2) }, () => random.integer(1000)))].sort(
      (a, b) => a - b,
    );
    const ranges: FiledRange[] = [];
    const expected: number[] = [];
    for (let at = 0; at + 1 < bounds.length; at++) {
      const [from, to] = [bounds[at] as number, bounds[at + 1] as number];
      if (random.integer(3) === 0) continue;
      ranges.push(between(from, random.integer(2) === 0 ? to : from + 1));
      expected.push(...evens.filter((term) => Buffer.compare(termBytes(term), (ranges.at(-1) as FiledRange).to) < 0 && term >= from));
    }
    if (ranges.length === 0) continue;
    const found = filedIn(environment, ranges);
    assert.deepEqual(
      found,
      expected.map((term) => [term, [term]]),
    );
  }
  const values = t.mock.method(environment, 'floor');
  assert.equal(
    filedIn(
      environment,
      Array.from({ length: 1000 }, (_, term) => between(term, term + 1)),
    ).length,
    evens.length,
  );
  assert.equal(values.mock.callCount(), 1, 'where every leaf has some, they are read one after the other');
  values.mock.resetCalls();
  assert.equal(filedIn(environment, [between(100, 101), between(898, 899)]).length, 2);
  assert.ok(values.mock.callCount() <= 3, 'the leaves between two values are passed over');
  let visits = 0;
  assert.equal(
    visitLeaves(environment, PREFIX, [between(0, 1000)], () => ++visits < 5),
    false,
  );
  assert.equal(visits, 5);
});
