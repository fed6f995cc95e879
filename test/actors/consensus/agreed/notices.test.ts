import assert from 'node:assert/strict';
import { test } from 'node:test';
import { noticesOf } from '../../../../actors/consensus/agreed/notices.js';
import type { PeerId } from '../../../../protocols/model/cluster.js';
import { membersOf } from '../../../cluster/samples.js';

type Known = Parameters<typeof noticesOf>[0];

function known(
  leader: PeerId | null,
  more: { term?: number; leaderlessTicks?: number; connected?: PeerId[]; members?: PeerId[]; full?: PeerId[] } = {},
): Known {
  const membership = membersOf(more.members ?? [1, 2, 3]);
  return {
    identity: { peerId: 1 },
    raft: { leader, term: more.term ?? 2 },
    leaderlessTicks: more.leaderlessTicks ?? 0,
    connected: new Set(more.connected ?? []),
    agreed: { membership },
    fullTicks: new Map((more.full ?? []).map((peer) => [peer, 1])),
  } as unknown as Known;
}

function told(before: Known, after: Known): string[] {
  return noticesOf(before, after).map((effect) => (effect.kind === 'log' ? `${effect.level}: ${effect.text}` : effect.kind));
}

test('the log of a node tells who leads, and once when nobody does', () => {
  const follows = known(2);
  assert.deepEqual(told(known(null), follows), ['info: peer 2 leads in term 2']);
  assert.deepEqual(told(follows, known(1, { term: 3 })), ['info: this peer leads in term 3']);
  const waiting = known(null, { leaderlessTicks: 29 });
  assert.deepEqual(told(follows, waiting), []);
  const alone = known(null, { leaderlessTicks: 30 });
  assert.match(told(waiting, alone).join(), /^warn: there is no leader: .*more than half/);
  assert.deepEqual(told(alone, known(null, { leaderlessTicks: 31 })), []);
});

test('the log of a node tells which peers come, go, and are connected', () => {
  const two = known(2, { members: [1, 2] });
  const three = known(2, { connected: [2] });
  assert.deepEqual(told(two, three), [
    `info: peer 3 was added at ${membersOf([3])[0]?.uri}`,
    'info: peer 3 has a vote',
    'info: peer 2 is connected',
  ]);
  assert.deepEqual(told(three, two), ['info: peer 3 was removed', 'info: peer 2 is not connected any more']);
  assert.match(told(known(2, { members: [] }), known(2)).join(), /^info: other peers of the cluster: 2 \(.*\), 3 \(.*\)$/);
});

test('the log of a node warns of a peer that came back as another one and still counts as who it was', () => {
  const before = known(2);
  const [, , third] = before.agreed.membership;
  const after = { ...before, agreed: { ...before.agreed, membership: [...before.agreed.membership, { ...third, peerId: 4 }] } } as Known;
  // Who catches up hears of both at once, and not who was first.
  assert.deepEqual(
    told(known(2, { members: [1, 2] }), after).filter((text) => text.startsWith('warn')),
    [],
  );
  assert.match(told(before, after).at(-1) ?? '', /^warn: peer 4 has joined at the address of peer 3, .* DELETE \/cluster\/peer\/3$/);
});

test('the log of a node tells which peers come to have a full disk and which have room again, but not its own', () => {
  const both = known(2, { full: [1, 2] });
  assert.deepEqual(told(known(2), both), ['info: the disk of peer 2 is nearly full: others lead its shards where they can']);
  assert.deepEqual(told(both, known(2)), ['info: peer 2 does not say any more that its disk is nearly full']);
});
