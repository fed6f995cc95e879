import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { ConsensusEffect, ConsensusMessage } from '../../../actors/consensus/messages.js';
import type { ConsensusState, MemberConsensus } from '../../../actors/consensus/state.js';
import { startConsensus, stepConsensus } from '../../../actors/consensus/step.js';
import type { RaftMessage } from '../../../cluster/raft/messages.js';
import { decodeState, encodeState } from '../../../cluster/state/state-codec.js';
import type { ErrorFacts } from '../../../protocols/errors.js';
import { NOTHING_STORED, type StoredConsensus } from '../../../protocols/model/consensus.js';
import { sampleConfig } from '../samples.js';
import { after, DRAWN, founder, settings, settle } from './one-member.js';

const FULL: ErrorFacts = { code: 'storage', detail: 'no space left' };

function kinds(effects: readonly ConsensusEffect[]): string {
  return effects.map(({ kind }) => kind).join(' ');
}

function effectsOf<Kind extends ConsensusEffect['kind']>(effects: readonly ConsensusEffect[], kind: Kind) {
  return effects.filter((effect): effect is Extract<ConsensusEffect, { kind: Kind }> => effect.kind === kind);
}

/** A follower of peer 22, by an entry at index 2. */
function follower(): MemberConsensus {
  const members = [
    { peerId: 11, uri: 'http://one:6335', version: '1.0.0', voter: true },
    { peerId: 22, uri: 'http://two:6335', version: '1.0.0', voter: true },
  ];
  const data = (founder().state.raft.log.snapshot as { data: Uint8Array }).data;
  const stored: StoredConsensus = {
    identity: { peerId: 11, clusterId: 'c', starts: 3, removed: false },
    hardState: { term: 1, votedFor: null, commit: 2 },
    snapshot: { index: 1, term: 1, membership: members.slice(0, 1), data },
    entries: [{ index: 2, term: 1, payload: { kind: 'membership', membership: members } }],
    applied: 1,
  };
  const begun = after(startConsensus(settings()).state, { kind: 'loaded', stored, drawn: DRAWN });
  return settle(begun.state, begun.effects).state as MemberConsensus;
}

function heartbeat(over: Partial<Extract<RaftMessage, { kind: 'append' }>> = {}): ConsensusMessage {
  const message = {
    kind: 'append',
    from: 22,
    to: 11,
    term: 5,
    prevIndex: 2,
    prevTerm: 1,
    entries: [],
    commit: 2,
    round: 1,
    ...over,
  } as const;
  return { kind: 'received', from: 22, messages: [{ kind: 'raft', message }] };
}

test('a founder adopts what the node has before its first state is written, as one write that says who it is', () => {
  const begun = after(startConsensus(settings()).state, { kind: 'loaded', stored: NOTHING_STORED, drawn: DRAWN });
  assert.equal(kinds(begun.effects), 'adopt');
  const founded = after(begun.state, { kind: 'adopted' });
  const { identity, reset, snapshot } = effectsOf(founded.effects, 'write')[0]?.write ?? assert.fail('no write');
  assert.deepEqual([reset, identity, snapshot?.index], [true, { peerId: 11, clusterId: 'c', starts: 1, removed: false }, 1]);
  assert.deepEqual(effectsOf(founded.effects, 'desire'), []);
});

test('a founder alone leads as soon as its vote is on disk', () => {
  const { state } = founder();
  assert.equal(state.raft.role.kind, 'Leader');
  assert.equal(state.agreed.appliedIndex, 2);
});

test('a node that founds a cluster without an address is told what it lacks', () => {
  const { state } = after(startConsensus(settings({ uri: null })).state, { kind: 'loaded', stored: NOTHING_STORED, drawn: DRAWN });
  assert.equal(
    state.kind === 'Broken' && state.error.detail,
    'a node that founds a cluster needs --uri: the address at which other nodes will find it',
  );
});

test('a node asks to join once it is on disk who it is, and keeps that id', () => {
  const joining = after(startConsensus(settings({ bootstrap: 'http://two:6335' })).state, {
    kind: 'loaded',
    stored: NOTHING_STORED,
    drawn: DRAWN,
  });
  assert.equal(kinds(joining.effects), 'listen write');
  const asked = after(joining.state, { kind: 'written', number: 1 });
  const request = { kind: 'join', peerId: 11, uri: 'http://one:6335', port: 6335, version: '1.0.0' } as const;
  assert.deepEqual(asked.effects, [{ kind: 'join', uri: 'http://two:6335', request }]);
  const identity = { peerId: 7, clusterId: null, starts: 1, removed: false };
  const again = after(startConsensus(settings({ bootstrap: 'http://two:6335' })).state, {
    kind: 'loaded',
    stored: { ...NOTHING_STORED, identity },
    drawn: DRAWN,
  });
  assert.equal(again.state.kind === 'Joining' && again.state.identity.peerId, 7);
});

test('a removed peer stays removed, unless it is told where to join', () => {
  const identity = { peerId: 7, clusterId: 'c', starts: 4, removed: true };
  const loaded: ConsensusMessage = { kind: 'loaded', stored: { ...NOTHING_STORED, identity }, drawn: DRAWN };
  assert.equal(after(startConsensus(settings()).state, loaded).state.kind, 'Removed');
  const { state, effects } = after(startConsensus(settings({ bootstrap: 'http://two:6335' })).state, loaded);
  assert.equal(state.kind === 'Joining' && state.identity.peerId, 11);
  assert.equal(effectsOf(effects, 'write')[0]?.write.reset, true);
});

test('each start is another session, which is on disk before anything is said in it', () => {
  const state = follower();
  assert.equal(state.identity.starts, 4);
  const stored: StoredConsensus = {
    ...NOTHING_STORED,
    identity: { ...state.identity, starts: 4 },
    snapshot: state.raft.log.snapshot,
    applied: 1,
  };
  const { effects } = after(startConsensus(settings()).state, { kind: 'loaded', stored, drawn: DRAWN });
  assert.equal(effectsOf(effects, 'write')[0]?.write.identity?.starts, 5);
  assert.equal(kinds(effects.slice(0, 2)), 'listen write');
});

test('a session that a crash could make forgotten proposes nothing: its number would be given again', () => {
  const known = follower();
  const { snapshot, entries } = known.raft.log;
  const hardState = { term: 5, votedFor: null, commit: 2 };
  const stored: StoredConsensus = { identity: known.identity, hardState, snapshot, entries, applied: 2 };
  const begun = after(startConsensus(settings()).state, { kind: 'loaded', stored, drawn: DRAWN }, heartbeat());
  const operation = { kind: 'deleteCollection', name: 'a' } as const;
  const asked: ConsensusMessage = {
    kind: 'submit',
    settles: true,
    submission: { kind: 'operation', operation },
    timeoutMs: 1000,
    replyTo: 9,
  };
  const early = after(begun.state, asked);
  const proposals = (effects: readonly ConsensusEffect[]) =>
    effectsOf(effects, 'send').flatMap(({ messages }) =>
      messages.filter((each) => each.kind === 'raft' && each.message.kind === 'propose'),
    );
  assert.deepEqual(proposals(early.effects), []);
  const written = after(early.state, { kind: 'written', number: 1 });
  assert.equal(proposals(written.effects).length, 1);
});

test('Raft-R1: a follower answers when what it answers for is on disk', () => {
  const started = { ...follower(), catchUp: null };
  const { state, effects } = after(started, heartbeat({ entries: [{ index: 3, term: 5, payload: { kind: 'empty' } }] }));
  assert.equal(kinds(effects), 'write log');
  const { number } = effectsOf(effects, 'write')[0] as { number: number };
  const written = after(state, { kind: 'written', number });
  const [sent] = effectsOf(written.effects, 'send');
  assert.deepEqual(
    sent?.messages.map((each) => each.kind === 'raft' && each.message.kind),
    ['appendReply'],
  );
});

test('a node that starts asks again how far its cluster is when nobody answers within half a second (Cons-C12)', () => {
  const questions = (effects: readonly ConsensusEffect[]) =>
    effectsOf(effects, 'send').flatMap(({ messages }) =>
      messages.filter((each) => each.kind === 'raft' && each.message.kind === 'readIndex'),
    ).length;
  const begun = after(follower(), heartbeat());
  const asked = settle(begun.state, begun.effects);
  assert.equal(questions(asked.effects), 1);
  let state: ConsensusState = asked.state;
  const counts = Array.from({ length: 6 }, () => {
    const ticked = after(state, { kind: 'tick' }, heartbeat());
    const settled = settle(ticked.state, ticked.effects);
    state = settled.state;
    return questions(settled.effects);
  });
  assert.deepEqual(counts, [0, 0, 0, 0, 1, 0]);
});

test('a state is desired when it is on disk that it was applied, and never an older one after a restart', () => {
  const { state } = founder();
  const operation = {
    kind: 'submit',
    settles: true,
    submission: { kind: 'createCollection', name: 'a', config: sampleConfig() },
    timeoutMs: 1000,
    replyTo: 9,
  } as const;
  const begun = after(state, operation);
  const settled = settle(begun.state, begun.effects);
  const order = settled.effects.flatMap((effect) => {
    if (effect.kind === 'write' && effect.write.applied !== null) return [`applied ${effect.write.applied}`];
    return effect.kind === 'desire' ? [`desire ${effect.desired.index} ${[...effect.desired.collections.keys()]}`] : [];
  });
  assert.deepEqual(order, ['applied 3', 'desire 3 a']);
  const { log } = (settled.state as MemberConsensus).raft;
  const stored: StoredConsensus = {
    identity: state.identity,
    hardState: { term: 2, votedFor: 11, commit: 1 },
    snapshot: log.snapshot,
    entries: log.entries,
    applied: 3,
  };
  const again = after(startConsensus(settings()).state, { kind: 'loaded', stored, drawn: DRAWN });
  const desired = effectsOf(settle(again.state, again.effects).effects, 'desire');
  assert.deepEqual(
    desired.map(({ desired: { index } }) => index),
    [3],
  );
});

test('a write that fails ends everything as a crash would; the log is read again after a pause that grows', () => {
  const waiting = after(founder().state, {
    kind: 'submit',
    settles: true,
    submission: { kind: 'createCollection', name: 'a', config: sampleConfig() },
    timeoutMs: 1000,
    replyTo: 9,
  });
  const { state, effects } = after(waiting.state, { kind: 'writeFailed', error: FULL });
  assert.equal(kinds(effects), 'log refuse retryLater');
  assert.deepEqual(effectsOf(effects, 'refuse')[0]?.error, { code: 'unavailable', detail: 'no space left', outcome: 'unknown' });
  let broken = state;
  const delays: number[] = [];
  for (let at = 0; at < 7; at++) {
    const step = after(broken, { kind: 'retry' }, { kind: 'loadFailed', error: FULL });
    delays.push(...effectsOf(step.effects, 'retryLater').map(({ delayMs }) => delayMs));
    broken = step.state;
  }
  assert.deepEqual(delays, [2000, 4000, 8000, 16_000, 30_000, 30_000, 30_000]);
});

test('what peers and callers say to a node that is no member is refused with the reason, or ignored', () => {
  const { state } = startConsensus(settings());
  const { effects } = after(state, { kind: 'barrier', timeoutMs: 1, replyTo: 3 }, heartbeat());
  assert.deepEqual(effects, [
    { kind: 'refuse', replyTo: 3, error: { code: 'unavailable', detail: 'the node is starting', retryAfterMs: 1000 } },
  ]);
});

test('an idle tick of a leader alone causes the next tick and nothing else', () => {
  const { state } = after(founder().state, { kind: 'carriedOut', index: 3, failures: [] });
  const ticks = after(state, { kind: 'tick' }, { kind: 'tick' }, { kind: 'tick' });
  assert.equal(kinds(ticks.effects), 'tickLater tickLater tickLater');
});

test('a peer that asks how far this node is hears it at once, and again when it is there', () => {
  const { state } = founder();
  const begun = after(state, { kind: 'received', from: 22, messages: [{ kind: 'awaitApplied', index: 2 }] });
  assert.deepEqual(begun.effects, [{ kind: 'send', to: 22, messages: [{ kind: 'applied', index: 0 }] }]);
  const { effects } = after(begun.state, { kind: 'carriedOut', index: 1, failures: [] });
  assert.deepEqual(effects, [{ kind: 'send', to: 22, messages: [{ kind: 'applied', index: 2 }] }]);
});

const CREATE: ConsensusMessage = {
  kind: 'submit',
  settles: true,
  submission: { kind: 'createCollection', name: 'a', config: sampleConfig() },
  timeoutMs: 60_000,
  replyTo: 9,
};

function proposed(effects: readonly ConsensusEffect[]): number[] {
  return effectsOf(effects, 'send').flatMap(({ messages }) =>
    messages.flatMap((each) => (each.kind === 'raft' && each.message.kind === 'propose' ? [each.message.id] : [])),
  );
}

test('what an agreed state that came as a snapshot has swallowed may have been carried out: its caller is not told that nothing happened', () => {
  const asked = after(follower(), heartbeat(), CREATE);
  const [id = 0] = proposed(asked.effects);
  const accepted: RaftMessage = { kind: 'proposeReply', from: 22, to: 11, term: 5, id, outcome: { kind: 'accepted', index: 3, term: 5 } };
  const { data } = (asked.state as MemberConsensus).raft.log.snapshot as { data: Uint8Array };
  const state = { ...decodeState(data), appliedIndex: 10, membership: (asked.state as MemberConsensus).agreed.membership };
  const bytes = encodeState(state);
  const snapshot: RaftMessage = {
    kind: 'installSnapshot',
    from: 22,
    to: 11,
    term: 5,
    snapshot: { index: 10, term: 5, membership: state.membership },
    offset: 0,
    totalBytes: bytes.length,
    chunk: bytes,
    forced: false,
    round: 2,
  };
  const received = after(asked.state, {
    kind: 'received',
    from: 22,
    messages: [
      { kind: 'raft', message: accepted },
      { kind: 'raft', message: snapshot },
    ],
  });
  const { state: restored } = settle(received.state, received.effects);
  const [call] = (restored as MemberConsensus).calls.proposals;
  assert.deepEqual([(restored as MemberConsensus).agreed.appliedIndex, call?.uncertain], [10, true]);
});

test('a barrier waits while the state of the leader that is taken over is older than what was carried out here', () => {
  const { state } = founder();
  const read = { replyTo: 5, deadlineTick: 100, id: null, retryTick: 0, index: 8, next: { kind: 'answer' } as const };
  const back: MemberConsensus = {
    ...state,
    carrying: { ...state.carrying, asked: [], covers: 9, carriedOut: 9 },
    calls: { ...state.calls, reads: [read] },
  };
  const { effects } = after(back, { kind: 'carriedOut', index: 9, failures: [] });
  assert.deepEqual(effectsOf(effects, 'reply'), []);
});

test('a node that is slow is given what is agreed meanwhile as one state: it holds a few, however many are agreed', () => {
  let state: ConsensusState = founder().state;
  const desires: number[] = [];
  const take = (message: ConsensusMessage): void => {
    const step = stepConsensus(state, message);
    const settled = settle(step.state, step.effects);
    state = settled.state;
    desires.push(...effectsOf(settled.effects, 'desire').map(({ desired }) => desired.index));
  };
  take({ kind: 'carriedOut', index: 2, failures: [] });
  for (let at = 0; at < 100; at++) {
    const submission = { kind: 'createCollection', name: `c${at}`, config: sampleConfig() } as const;
    take({ kind: 'submit', settles: true, submission, timeoutMs: 60_000, replyTo: at });
  }
  const member = () => state as MemberConsensus;
  assert.deepEqual([desires.length, member().agreed.collections.size], [4, 100]);
  take({ kind: 'carriedOut', index: desires[0] ?? 0, failures: [] });
  assert.equal(desires.length, 5);
  assert.ok((desires.at(-1) ?? 0) >= 102, 'the newest of all that was agreed');
  while (member().carrying.asked.length > 0) take({ kind: 'carriedOut', index: desires.at(-1) ?? 0, failures: [] });
  assert.equal(member().carrying.carriedOut, member().agreed.appliedIndex);
});

test('requests that pile up are refused beyond a bound of their number and their bytes, and nobody waits for it', () => {
  let state: ConsensusState = after(follower(), heartbeat()).state;
  const refusals: number[] = [];
  const take = (message: ConsensusMessage): void => {
    const step = stepConsensus(state, message);
    state = step.state;
    refusals.push(...effectsOf(step.effects, 'refuse').flatMap(({ error, replyTo }) => (error.code === 'busy' ? [replyTo] : [])));
  };
  const metadata = { note: 'x'.repeat(4 << 20) };
  for (let at = 0; at < 20; at++) {
    const submission = { kind: 'createCollection', name: `c${at}`, config: { ...sampleConfig(), metadata } } as const;
    take({ kind: 'submit', settles: true, submission, timeoutMs: 60_000, replyTo: at });
  }
  assert.deepEqual(refusals, [16, 17, 18, 19]);
  state = after(follower(), heartbeat()).state;
  refusals.length = 0;
  for (let at = 0; at < 4100; at++) take({ kind: 'barrier', timeoutMs: 60_000, replyTo: at });
  assert.deepEqual(refusals, [4096, 4097, 4098, 4099]);
});

test('many new replicas become Active in several proposals: one of them all could be larger than an entry may be', () => {
  const config = sampleConfig();
  const submission = {
    kind: 'createCollection',
    name: 'a',
    config: { ...config, params: { ...config.params, shard_number: 2500 } },
  } as const;
  const begun = after(founder().state, { kind: 'submit', settles: true, submission, timeoutMs: 60_000, replyTo: 9 });
  const created = settle(begun.state, begun.effects);
  const index = (created.state as MemberConsensus).agreed.appliedIndex;
  const done = after(created.state, { kind: 'carriedOut', index, failures: [] });
  const { state } = settle(done.state, done.effects);
  const { agreed } = state as MemberConsensus;
  const states = [...(agreed.collections.get('a')?.shards.values() ?? [])].flatMap(({ replicas }) => [...replicas.values()]);
  assert.deepEqual([states.length, new Set(states), agreed.appliedIndex], [2500, new Set(['Active']), index + 2]);
});

test('a replica that is made anew under its number is Active when its node has made this one, not for the one before', () => {
  const take = (state: ConsensusState, ...messages: ConsensusMessage[]) => {
    const step = after(state, ...messages);
    return settle(step.state, step.effects).state as MemberConsensus;
  };
  const { config, ...rest } = { config: sampleConfig(), settles: true, timeoutMs: 60_000, replyTo: 9 };
  const created = take(founder().state, { kind: 'submit', submission: { kind: 'createCollection', name: 'a', config }, ...rest });
  const made = take(created, { kind: 'carriedOut', index: created.agreed.appliedIndex, failures: [] });
  const stateOf = ({ agreed }: MemberConsensus) => agreed.collections.get('a')?.shards.get(0)?.replicas.get(11);
  assert.equal(stateOf(made), 'Active');
  const operation = { kind: 'recreateShard', collection: 'a', shardId: 0, peerId: 11 } as const;
  const recreated = take(made, { kind: 'submit', submission: { kind: 'operation', operation }, ...rest });
  assert.equal(stateOf(recreated), 'Initializing');
  const reported = take(recreated, { kind: 'carriedOut', index: made.agreed.appliedIndex, failures: [] });
  assert.equal(stateOf(reported), 'Initializing');
  const again = take(reported, { kind: 'carriedOut', index: recreated.agreed.appliedIndex, failures: [] });
  assert.equal(stateOf(again), 'Active');
});

test('an operation that the leader cannot read does not get into the log, where it would stop every node for good', () => {
  const leader = founder().state;
  const bytes = Buffer.from('{"version":99,"operation":{"kind":"of a later release"}}');
  const message: RaftMessage = { kind: 'propose', from: 22, to: 11, term: 2, id: 1, proposal: { kind: 'operation', bytes } };
  const received = after(leader, { kind: 'received', from: 22, messages: [{ kind: 'raft', message }] });
  const { state, effects } = settle(received.state, received.effects);
  assert.deepEqual([state.kind, kinds(effects)], ['Member', 'log']);
  assert.equal((state as MemberConsensus).agreed.appliedIndex, leader.agreed.appliedIndex);
});
