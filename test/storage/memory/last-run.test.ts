import assert from 'node:assert/strict';
import { test } from 'node:test';
import { cautionAfter, judgeLastRun, parseRunMark, type RunMark } from '../../../storage/memory/last-run.js';

const MARK: RunMark = { kills: 0, oomKills: 3, limitBytes: 1000, peakBytes: 500, wasReady: true };

test('an orderly end takes the mark away, and nothing is careful after it', () => {
  const last = judgeLastRun(null, 7);
  assert.deepEqual(last, { kills: 0, whileStarting: false });
  assert.equal(cautionAfter(last), 1);
});

test('a run that the kernel has counted as killed for memory was killed for it', () => {
  assert.deepEqual(judgeLastRun(MARK, 4), { kills: 1, whileStarting: false });
  assert.deepEqual(judgeLastRun({ ...MARK, wasReady: false }, 4), { kills: 1, whileStarting: true });
  assert.deepEqual(judgeLastRun(MARK, 3), { kills: 0, whileStarting: false }, 'killed for another reason');
});

test('without a counter, or in a new container, a run that came close to its limit was killed for it', () => {
  for (const counted of [null, 0]) {
    assert.equal(judgeLastRun({ ...MARK, peakBytes: 800 }, counted).kills, 1);
    assert.equal(judgeLastRun({ ...MARK, peakBytes: 799 }, counted).kills, 0);
  }
});

test('each run in a row that was killed doubles the caution, up to a bound; another end in between keeps it', () => {
  assert.equal(judgeLastRun({ ...MARK, kills: 2 }, 4).kills, 3);
  assert.equal(judgeLastRun({ ...MARK, kills: 2 }, 3).kills, 2);
  assert.deepEqual(
    [1, 2, 3, 9].map((kills) => cautionAfter({ kills, whileStarting: false })),
    [2, 4, 8, 8],
  );
});

test('a mark is read as it was written, and anything else is none', () => {
  assert.deepEqual(parseRunMark(JSON.stringify(MARK)), MARK);
  assert.deepEqual(parseRunMark(JSON.stringify({ ...MARK, oomKills: null })), { ...MARK, oomKills: null });
  for (const text of ['', '{', 'null', '[]', '{"kills":1}', JSON.stringify({ ...MARK, peakBytes: 'much' })])
    assert.equal(parseRunMark(text), null);
});
