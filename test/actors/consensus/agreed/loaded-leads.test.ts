import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { ConsensusMessage } from '../../../../actors/consensus/messages.js';
import type { MemberConsensus } from '../../../../actors/consensus/state.js';
import { startConsensus } from '../../../../actors/consensus/step.js';
import { encodeState } from '../../../../cluster/state/state-codec.js';
import type { PeerId } from '../../../../protocols/model/cluster.js';
import type { Entry } from '../../../../protocols/model/consensus.js';
import { configOf, Log, membersOf, PEERS } from '../../../cluster/samples.js';
import { after, DRAWN, settings, settle } from '../one-member.js';

const [A, B, C] = PEERS as [PeerId, PeerId, PeerId];

/** A shard on all peers, whose leader then becomes Dead until one peer is left. */
function story() {
  const log = new Log();
  log.propose({ kind: 'createCollection', name: 'a', config: configOf({ shard_number: 1 }), placement: [[A, B, C]] });
  const shard = () => log.state.collections.get('a')?.shards.get(0);
  const become = (peerId: PeerId, to: 'Active' | 'Dead') =>
    log.propose({ kind: 'setReplicaStates', changes: [{ collection: 'a', uid: 2, shardId: 0, peerId, from: null, to, term: null }] });
  for (const peerId of PEERS) become(peerId, 'Active');
  const begun = { state: log.state, entries: log.entries.length };
  const leaders = [shard()?.leader as PeerId];
  for (let left = PEERS.length; left > 1; left--) {
    become(shard()?.leader as PeerId, 'Dead');
    leaders.push(shard()?.leader as PeerId);
  }
  return { begun, leaders: leaders as [PeerId, PeerId, PeerId], later: log.entries.slice(begun.entries) };
}

/** A follower whose log ends with `inLog`, after a leader has sent the rest and said that all is committed. */
function followed(self: PeerId, leader: PeerId, { begun, later }: ReturnType<typeof story>, inLog: readonly Entry[]): MemberConsensus {
  const index = begun.state.appliedIndex;
  const snapshot = { index, term: 1, membership: membersOf(PEERS), data: encodeState(begun.state) };
  const hardState = { term: 1, votedFor: null, commit: index };
  const identity = { peerId: self, clusterId: begun.state.clusterId, starts: 3, removed: false };
  const stored = { identity, hardState, snapshot, entries: inLog, applied: index };
  const loaded = after(startConsensus(settings()).state, { kind: 'loaded', stored, drawn: DRAWN });
  const waiting = settle(loaded.state, loaded.effects).state;
  const end = inLog.at(-1)?.index ?? index;
  const message = {
    kind: 'append',
    from: leader,
    to: self,
    term: 1,
    prevIndex: end,
    prevTerm: 1,
    entries: later.slice(inLog.length),
    commit: later.at(-1)?.index ?? end,
    round: 1,
  } as const;
  const received: ConsensusMessage = { kind: 'received', from: leader, messages: [{ kind: 'raft', message }] };
  const heard = after(waiting, received);
  return settle(heard.state, heard.effects).state as MemberConsensus;
}

test('a node knows who led a shard at the end of the log that it found, also where later entries are applied together with those', () => {
  const told = story();
  const [first, second, last] = told.leaders;
  const known = (inLog: readonly Entry[]) => {
    const { agreed, loadedLeads } = followed(last, first, told, inLog);
    assert.equal(agreed.collections.get('a')?.shards.get(0)?.leader, last);
    return loadedLeads?.get('2/0')?.leader;
  };
  assert.equal(known([]), first);
  assert.equal(known(told.later.slice(0, 1)), second);
  // Its earlier process may have led: nobody else is known to have led before.
  assert.equal(known(told.later), undefined);
});
