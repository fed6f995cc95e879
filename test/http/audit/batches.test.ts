import assert from 'node:assert/strict';
import { test } from 'node:test';
import { restAfter } from '../../../http/audit/batches.js';

const BATCH = { file: 'f', bytes: Buffer.from('one\ntwo\nthree\n'), records: 3 };

test('of a batch that was written in part, lines that are not whole are written again', () => {
  const rests = [0, 1, 3, 4, 6, 8, 13, 14].map((written) => restAfter(BATCH, written).bytes.toString());
  assert.deepEqual(rests, [
    'one\ntwo\nthree\n',
    'one\ntwo\nthree\n',
    'one\ntwo\nthree\n',
    'two\nthree\n',
    'two\nthree\n',
    'three\n',
    'three\n',
    '',
  ]);
  assert.deepEqual(
    [0, 4, 8, 14].map((written) => restAfter(BATCH, written).records),
    [3, 2, 1, 0],
  );
  assert.equal(restAfter(BATCH, -5).records, 3, 'less than what was ahead of it was written');
});
