import assert from 'node:assert/strict';
import { test } from 'node:test';
import { some, spread } from '../../../actors/requests/spread.js';

test('a node asks itself for what it has, and as few others as it can for the rest', () => {
  const candidates = new Map([
    [0, [1, 2]],
    [1, [2, 3]],
    [2, [3, 1]],
    [3, [2, 3]],
    [4, [3, 4]],
  ]);
  assert.deepEqual(
    spread(candidates, 1, () => 0),
    [
      { peer: 1, shards: [0, 2] },
      { peer: 3, shards: [1, 3, 4] },
    ],
  );
});

test('equals take turns by what is drawn, and each shard is asked for once', () => {
  const candidates = new Map([
    [0, [2, 3]],
    [1, [2, 3]],
  ]);
  const of = (drawn: number) => spread(candidates, 1, () => drawn);
  assert.deepEqual(of(0), [{ peer: 2, shards: [0, 1] }]);
  assert.deepEqual(of(0.9), [{ peer: 3, shards: [0, 1] }]);
});

test('some are drawn without anyone twice', () => {
  assert.deepEqual(
    some([1, 2, 3], 2, () => 0.99),
    [3, 2],
  );
  assert.deepEqual(
    some([1, 2], 5, () => 0),
    [1, 2],
  );
});
