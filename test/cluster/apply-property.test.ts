/** Any sequence of operations, whether it makes sense or not, keeps the rules of the cluster's state. */

import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { applyEntries, applyEntry } from '../../cluster/apply/apply.js';
import { decodeCommand, encodeCommand } from '../../cluster/state/command-codec.js';
import type { ClusterCommand, Placement, ProposedCommand } from '../../cluster/state/commands.js';
import { afterEvent, REPLICA_STATE_MOVES, type ReplicaEvent } from '../../cluster/state/replica-state.js';
import { type ClusterState, emptyState } from '../../cluster/state/state.js';
import { decodeState, encodeState } from '../../cluster/state/state-codec.js';
import { type PeerId, REPLICA_STATES, type ReplicaState, TRANSFER_METHODS } from '../../protocols/model/cluster.js';
import type { Entry, EntryPayload } from '../../protocols/model/consensus.js';
import { seeded } from '../query/property.js';
import { CUSTOM, configOf, membersOf } from './samples.js';

/** Plain objects, as decoding gives them. */
const record = <Shape>(model: { [Key in keyof Shape]: fc.Arbitrary<Shape[Key]> }): fc.Arbitrary<Shape> =>
  fc.record(model, { noNullPrototype: true }) as fc.Arbitrary<Shape>;

const PEERS = [1, 2, 3, 4];
const name = fc.constantFrom('a', 'b', '__proto__');
/** Where most happens. */
const sharded = fc.constantFrom('a', 'a', 'a', 'b');
const alias = fc.constantFrom('x', 'y', 'b');
const peer = fc.constantFrom(...PEERS);
const shardId = fc.nat(3);
const key = fc.constantFrom<string | number | bigint>('k', 7, 2n ** 63n);
const state = fc.constantFrom(...REPLICA_STATES);
const usual = fc.constantFrom<ReplicaState>('Active', 'Dead');
const placement: fc.Arbitrary<Placement> = fc.array(fc.uniqueArray(peer, { minLength: 1, maxLength: 3 }), { minLength: 1, maxLength: 3 });
const config = record({ custom: fc.boolean(), factor: fc.integer({ min: 1, max: 3 }) }).map(({ custom, factor }) => ({
  ...(custom ? CUSTOM : configOf({ replication_factor: factor })),
  metadata: { ['__proto__']: 2n ** 60n },
}));
const method = fc.constantFrom(...TRANSFER_METHODS);
const transfer = record({
  shardId: fc.nat(1),
  from: peer,
  to: peer,
  toShardId: fc.oneof({ weight: 20, arbitrary: fc.constant(null) }, { weight: 1, arbitrary: shardId }),
});
const action = fc.oneof(
  record({ kind: fc.constant('create' as const), alias, collection: name }),
  record({ kind: fc.constant('delete' as const), alias }),
  record({ kind: fc.constant('rename' as const), from: alias, to: alias }),
);
const term = fc.constantFrom(null, null, null, 0, 1, 2);
const change = record({
  collection: sharded,
  uid: fc.constantFrom(2, 2, 2, 3, 4, 5, 6),
  shardId: fc.nat(1),
  peerId: peer,
  from: fc.oneof({ weight: 4, arbitrary: fc.constant(null) }, { weight: 1, arbitrary: state }),
  to: fc.oneof({ weight: 5, arbitrary: usual }, { weight: 1, arbitrary: state }),
  term,
});

const operation: fc.Arbitrary<ClusterCommand> = fc.oneof(
  {
    weight: 3,
    arbitrary: record({ kind: fc.constant('createCollection' as const), name, config, placement }).map((made) => {
      return made.config.params.sharding_method === 'custom' ? { ...made, placement: [] } : made;
    }),
  },
  record({ kind: fc.constant('updateCollection' as const), name, config, basedOn: fc.integer({ min: 1, max: 12 }) }),
  record({ kind: fc.constant('deleteCollection' as const), name: fc.constantFrom('a', 'b', 'b', '__proto__') }),
  record({ kind: fc.constant('changeAliases' as const), actions: fc.array(action, { maxLength: 3 }) }),
  record({
    kind: fc.constant('createShardKey' as const),
    collection: name,
    key,
    placement,
    initialState: fc.option(state, { nil: null }),
    closed: fc.boolean(),
  }),
  record({ kind: fc.constant('dropShardKey' as const), collection: name, key }),
  record({
    kind: fc.constant('setPayloadIndex' as const),
    collection: name,
    uid: fc.integer({ min: 2, max: 6 }),
    field: alias,
    schema: fc.constantFrom({ type: 'keyword' as const }, { type: 'text' as const, params: { type: 'text' } }, null),
  }),
  record({ kind: fc.constant('setMetadata' as const), key: name, value: fc.constantFrom('1', '{}', null) }),
  record({
    kind: fc.constant('startKeyCopy' as const),
    collection: name,
    source: key,
    target: key,
    filter: fc.constantFrom(null, '{}'),
  }),
  { weight: 6, arbitrary: record({ kind: fc.constant('setReplicaStates' as const), changes: fc.array(change, { maxLength: 4 }) }) },
  record({ kind: fc.constant('dropReplica' as const), collection: sharded, shardId, peerId: peer }),
  {
    weight: 4,
    arbitrary: record({ kind: fc.constant('startTransfer' as const), collection: sharded, transfer, method, sync: fc.boolean() }),
  },
  { weight: 2, arbitrary: record({ kind: fc.constant('restartTransfer' as const), collection: sharded, transfer, method, term }) },
  { weight: 2, arbitrary: record({ kind: fc.constant('finishTransfer' as const), collection: sharded, transfer, term }) },
  {
    weight: 2,
    arbitrary: record({ kind: fc.constant('abortTransfer' as const), collection: sharded, transfer, reason: fc.string(), term }),
  },
  record({
    kind: fc.constant('markPeer' as const),
    peerId: peer,
    listens: fc.option(fc.boolean(), { nil: null }),
    leaving: fc.constantFrom(null, null, 'removal' as const, 'drain' as const, 'stays' as const),
  }),
  record({
    kind: fc.constant('planMoves' as const),
    moves: fc.array(
      record({
        collection: sharded,
        uid: fc.constantFrom(2, 3),
        shardId: fc.nat(1),
        from: fc.option(peer, { nil: null }),
        to: fc.option(peer, { nil: null }),
      }),
      { maxLength: 3 },
    ),
  }),
  record({ kind: fc.constant('recreateShard' as const), collection: sharded, shardId: fc.nat(1), peerId: peer }),
  record({ kind: fc.constant('setAutoReplication' as const), collection: sharded, enabled: fc.boolean() }),
  {
    weight: 6,
    arbitrary: record({
      kind: fc.constant('changeLeader' as const),
      collection: sharded,
      uid: fc.constantFrom(2, 2, 2, 2, 2, 3),
      shardId: fc.nat(1),
      to: peer,
      term: fc.constantFrom(1, 1, 2),
    }),
  },
  fc.constant({ kind: 'electLeaders' as const }),
  fc.constant({ kind: 'noop' as const }),
);

const proposal: fc.Arbitrary<ProposedCommand> = record({
  origin: peer,
  session: fc.constantFrom(1, 1, 1, 1, 2),
  sequence: fc.integer({ min: 1, max: 99 }),
  doneBelow: fc.integer({ min: 1, max: 20 }),
  command: operation,
});

const payload: fc.Arbitrary<EntryPayload> = fc.oneof(
  { weight: 50, arbitrary: proposal.map(payloadOf) },
  fc.constant({ kind: 'empty' as const }),
  fc.uniqueArray(peer, { minLength: 3, maxLength: 4 }).map(membershipOf),
);

function payloadOf(proposed: ProposedCommand): EntryPayload {
  return { kind: 'operation', bytes: encodeCommand(proposed) };
}

function membershipOf(peers: readonly PeerId[]): EntryPayload {
  return { kind: 'membership', membership: membersOf([...peers].sort()) };
}

const FIRST_PLACEMENT = [
  [1, 2],
  [2, 3],
];
const ACTIVE = [
  [0, 1],
  [0, 2],
  [1, 3],
] as const;
const FIRST: ClusterCommand = { kind: 'createCollection', name: 'a', config: configOf({ shard_number: 2 }), placement: FIRST_PLACEMENT };

/** A collection whose shards have an Active replica each, and whatever happens to it. */
const entries: fc.Arbitrary<Entry[]> = fc.array(payload, { minLength: 10, maxLength: 60 }).map((payloads) => {
  const changes = ACTIVE.map(([shard, peerId]) => ({
    collection: 'a',
    uid: 2,
    shardId: shard,
    peerId,
    from: null,
    to: 'Active' as const,
    term: null,
  }));
  const first: ClusterCommand[] = [FIRST, { kind: 'setReplicaStates', changes }];
  const proposed = first.map((each, at) => payloadOf({ origin: 1, session: 1, sequence: 100 + at, doneBelow: 1, command: each }));
  return [membershipOf(PEERS), ...proposed, ...payloads].map((each, at) => ({ index: at + 1, term: 1, payload: each }));
});

function replay(from: ClusterState, log: readonly Entry[]): ClusterState {
  return log.reduce((reached, entry) => applyEntry(reached, entry).state, from);
}

test('operations and states are the same after encoding and decoding, and equal ones have equal bytes', () => {
  fc.assert(
    fc.property(proposal, (proposed) => {
      const bytes = encodeCommand(proposed);
      assert.deepEqual(decodeCommand(bytes), proposed);
      assert.deepEqual(encodeCommand(decodeCommand(bytes)), bytes);
    }),
    seeded(500),
  );
  fc.assert(
    fc.property(entries, (log) => {
      const reached = replay(emptyState('c1'), log);
      const bytes = encodeState(reached);
      assert.deepEqual(decodeState(bytes), reached);
      assert.deepEqual(encodeState(decodeState(bytes)), bytes);
    }),
    seeded(200),
  );
});

test('a snapshot in the middle and the rest of the log lead where the whole log does, and applying twice changes nothing', () => {
  fc.assert(
    fc.property(entries, fc.nat(60), (log, cut) => {
      const whole = encodeState(replay(emptyState('c1'), log));
      const half = decodeState(encodeState(replay(emptyState('c1'), log.slice(0, cut))));
      assert.deepEqual(encodeState(replay(half, log)), whole);
      const twice = replay(
        emptyState('c1'),
        log.flatMap((entry) => [entry, entry]),
      );
      assert.deepEqual(encodeState(twice), whole);
    }),
    seeded(200),
  );
});

test('entries that are applied together lead where they lead one after the other, and leave the state before them as it was', () => {
  fc.assert(
    fc.property(entries, fc.nat(60), (log, cut) => {
      const before = replay(emptyState('c1'), log.slice(0, cut));
      const bytes = encodeState(before);
      const { outcomes, state: together } = applyEntries(before, log.slice(cut));
      assert.deepEqual(encodeState(together), encodeState(replay(before, log.slice(cut))));
      assert.deepEqual(encodeState(before), bytes);
      let reached = before;
      const single = log.slice(cut).flatMap((entry) => {
        const { outcome, state: next } = applyEntry(reached, entry);
        reached = next;
        return outcome === null ? [] : [{ ...outcome, index: entry.index }];
      });
      assert.deepEqual(outcomes, single);
    }),
    seeded(300),
  );
});

test('each state that entries lead to keeps the rules of shards and transfers, and a refusal changes nothing (State-S3, State-S4, State-S5)', () => {
  const seen = { transfers: 0, refused: 0, givenAway: 0 };
  fc.assert(
    fc.property(entries, (log) => {
      let reached = emptyState('c1');
      for (const entry of log) {
        const { outcome, state: next } = applyEntry(reached, entry);
        if (outcome?.outcome.kind === 'refused') {
          seen.refused += 1;
          assert.equal(next.collections, reached.collections);
          assert.equal(next.aliases, reached.aliases);
        }
        checkRules(next);
        const givenAway = entry.payload.kind === 'operation' && decodeCommand(entry.payload.bytes).command.kind === 'changeLeader';
        checkLeaders(reached, next, givenAway);
        if (givenAway && outcome?.outcome.kind === 'done' && outcome.outcome.changed) seen.givenAway += 1;
        checkMoves(reached, next);
        for (const record of next.collections.values()) seen.transfers += record.transfers.length;
        reached = next;
      }
    }),
    seeded(500),
  );
  assert.ok(seen.transfers > 50, `only ${seen.transfers} transfers were seen`);
  assert.ok(seen.refused > 1000);
  assert.ok(seen.givenAway > 5, `the lead was given away ${seen.givenAway} times`);
});

function checkRules({ aliases, collections, marks, membership }: ClusterState): void {
  const members = new Set<PeerId>(membership.map(({ peerId }) => peerId));
  for (const peerId of marks.keys()) assert.ok(members.has(peerId), `peer ${peerId} has left and a mark`);
  for (const collection of aliases.values()) assert.ok(collections.has(collection), `an alias names ${collection}, which is gone`);
  for (const { nextShardId, shards, transfers } of collections.values()) {
    for (const [id, { replicas }] of shards) {
      assert.ok(id < nextShardId);
      for (const peerId of replicas.keys()) assert.ok(members.has(peerId), `peer ${peerId} has left and holds shard ${id}`);
    }
    const targets = transfers.map((each) => `${each.shardId} to ${each.to}`);
    assert.equal(new Set(targets).size, targets.length, `two transfers of one shard to one peer: ${targets.join(', ')}`);
    for (const each of transfers) {
      const replicas = shards.get(each.shardId)?.replicas;
      assert.equal(replicas?.get(each.from), 'Active', 'a transfer has an Active source');
      assert.ok(['Partial', 'PartialSnapshot', 'Recovery'].includes(replicas?.get(each.to) ?? ''), 'a target waits for its transfer');
    }
  }
}

/** State-S7: leaders are Active, stay unless they give the lead away, and terms tell them apart. A replica knows the entry that made it. */
function checkLeaders(before: ClusterState, after: ClusterState, givenAway: boolean): void {
  for (const [collection, record] of after.collections) {
    const known = before.collections.get(collection);
    for (const [id, { leader, replicas, since, term }] of record.shards) {
      assert.deepEqual([...since.keys()].sort(), [...replicas.keys()].sort());
      for (const index of since.values()) assert.ok(index <= after.appliedIndex);
      if (leader !== null) assert.equal(replicas.get(leader), 'Active', `peer ${leader} leads and is not Active`);
      const earlier = known?.uid === record.uid ? known.shards.get(id) : undefined;
      if (earlier === undefined) continue;
      assert.ok(term >= earlier.term);
      if (leader !== null && leader !== earlier.leader) assert.ok(term > earlier.term, `term ${term} has had two leaders`);
      if (!givenAway && earlier.leader !== null && replicas.get(earlier.leader) === 'Active') assert.equal(leader, earlier.leader);
    }
  }
}

/** State-S6: a replica that is in both states got from one to the other by a move of the table. */
function checkMoves(before: ClusterState, after: ClusterState): void {
  for (const [collection, record] of after.collections) {
    const known = before.collections.get(collection);
    if (known === undefined || known.uid !== record.uid || known === record) continue;
    for (const [id, { replicas, since }] of record.shards) {
      for (const [peerId, to] of replicas) {
        const from = known.shards.get(id)?.replicas.get(peerId);
        // One that was made anew is another one.
        const isSame = known.shards.get(id)?.since.get(peerId) === since.get(peerId);
        if (from === undefined || from === to || !isSame) continue;
        const events = Object.keys(REPLICA_STATE_MOVES.Active) as ReplicaEvent[];
        assert.ok(
          events.some((event) => afterEvent(from, event) === to),
          `${from} became ${to}`,
        );
      }
    }
  }
}
