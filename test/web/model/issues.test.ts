import assert from 'node:assert/strict';
import { test } from 'node:test';
import { gravestFirst, type ShownIssue, titleOf, toneOfIssue } from '../../../web/model/issues.js';

const issue = (id: string, count?: number): ShownIssue => ({ id, description: '', solution: '', timestamp: '', ...(count && { count }) });

test('the gravest issues come first, then those that more requests had; kinds of later releases come last', () => {
  const issues = [
    issue('LATER/x'),
    issue('UNKNOWN_FIELD/a', 1),
    issue('UNKNOWN_FIELD/b', 5),
    issue('DISK'),
    issue('UNINDEXED_FIELD/c/d', 2),
  ];
  assert.deepEqual(
    gravestFirst(issues).map(({ id }) => id),
    ['DISK', 'UNINDEXED_FIELD/c/d', 'UNKNOWN_FIELD/b', 'UNKNOWN_FIELD/a', 'LATER/x'],
  );
});

test('each kind has a title in words and a colour', () => {
  assert.equal(titleOf(issue('DEAD_REPLICA/c/0/7')), 'A replica is Dead');
  assert.equal(toneOfIssue(issue('MEMORY/c')), 'bad');
  assert.equal(titleOf(issue('LATER/x')), 'LATER');
});
