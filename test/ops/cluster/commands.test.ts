import assert from 'node:assert/strict';
import { test } from 'node:test';
import { parseClusterCommand } from '../../../ops/cluster/commands.js';
import type { ClusterAnswer } from '../../../ops/cluster/local-node.js';
import { stateLine } from '../../../ops/cluster/state-line.js';

const parse = (line: string) => parseClusterCommand(line, [1, 2, 3, 4]);

test('each command takes the nodes it is for', () => {
  assert.deepEqual(parse('kill 2'), { kind: 'kill', node: 2 });
  assert.deepEqual(parse('  start   4 '), { kind: 'start', node: 4 });
  assert.deepEqual(parse('remove 3'), { kind: 'remove', node: 3, force: false });
  assert.deepEqual(parse('remove 3 force'), { kind: 'remove', node: 3, force: true });
  assert.deepEqual(parse('cut 1 2'), { kind: 'cut', source: 1, target: 2 });
  for (const kind of ['add', 'heal', 'status', 'help', 'quit']) assert.deepEqual(parse(kind), { kind });
  assert.deepEqual(parse(''), { kind: 'nothing' });
});

test('a partition names groups, and those it leaves out are one more', () => {
  assert.deepEqual(parse('partition 1 2 | 3 4'), {
    kind: 'partition',
    groups: [
      [1, 2],
      [3, 4],
    ],
  });
  assert.deepEqual(parse('partition 1,2|3'), { kind: 'partition', groups: [[1, 2], [3], [4]] });
  assert.deepEqual(parse('partition 3'), { kind: 'partition', groups: [[3], [1, 2, 4]] });
});

test('what cannot be obeyed is said', () => {
  const lines = [
    'jump',
    'kill',
    'kill 9',
    'kill 1 2',
    'kill x',
    'add 1',
    'partition',
    'partition |',
    'partition 1 | 1',
    'partition 5',
    'cut 1',
    'cut 1 1',
  ];
  for (const line of lines) assert.equal(parse(line).kind, 'wrong', line);
});

test('a node’s state is one line', () => {
  const answer: ClusterAnswer = {
    status: 'enabled',
    peer_id: 11,
    peers: { 11: { uri: 'http://a:1' }, 12: { uri: 'http://b:1' } },
    raft_info: { term: 3, commit: 9, pending_operations: 0, leader: 12, role: 'Follower', is_voter: true },
    consensus_thread_status: { consensus_thread_status: 'working' },
    message_send_failures: {},
  };
  const numberOf = (peerId: number) => (peerId > 10 ? peerId - 10 : undefined);
  const state = { process: 'running' as const, exit: null, ready: true, answer };
  assert.equal(stateLine(state, numberOf), 'Follower in term 3, follows node 2, peers 1 2, ready');
  const lost = { ...answer, raft_info: { ...answer.raft_info, leader: null, role: 'Candidate', is_voter: false } };
  assert.equal(
    stateLine({ ...state, ready: false, answer: lost }, numberOf),
    'Candidate (no vote) in term 3, knows no leader, peers 1 2, not ready',
  );
  assert.equal(stateLine({ ...state, answer: null }, numberOf), 'running, does not answer yet');
  assert.equal(stateLine({ ...state, process: 'paused' }, numberOf), 'paused');
  assert.equal(stateLine({ ...state, process: 'ended', exit: 'SIGKILL' }, numberOf), 'ended (SIGKILL)');
});
