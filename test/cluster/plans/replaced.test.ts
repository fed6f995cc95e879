import assert from 'node:assert/strict';
import { test } from 'node:test';
import { joiningAt } from '../../../cluster/plans/replaced.js';
import { configOf, Log } from '../samples.js';

const NEW = 99;

test('who joins at the address of a member replaces one without shards, and is refused while one with shards is there', () => {
  const log = new Log();
  log.propose({ kind: 'createCollection', name: 'a', config: configOf(), placement: [[11]] });
  const joining = (at: number, ...there: number[]) => {
    const { kind } = joiningAt(log.state, { peerId: NEW, uri: `http://peer${at}:6335/` }, (peer) => there.includes(peer));
    return kind;
  };
  assert.equal(joining(14, 11, 12, 13), 'joins', 'nobody is there');
  assert.equal(joining(11, 11, 12), 'taken');
  assert.equal(joining(11, 12), 'joins', 'a lost one is drained later');
  assert.equal(joining(12, 11, 12), 'replaces');
  assert.equal(joining(12, 11), 'replaces');
  assert.deepEqual(
    joiningAt(log.state, { peerId: 11, uri: 'http://peer11:6335' }, () => true),
    { kind: 'joins' },
    'who asks again',
  );
});

test('the only voter is never replaced', () => {
  const log = new Log([11]);
  const joining = joiningAt(log.state, { peerId: NEW, uri: 'http://peer11:6335' }, () => true);
  assert.deepEqual(joining, { kind: 'taken', by: 11 });
});
