/** Messages of every kind, at random, and how they look as protobuf objects. */

import fc from 'fast-check';
import type { PeerMessage, PeerReply, PeerRequest } from '../../../../cluster/peer-messages.js';
import type { Proposal, RaftMessage } from '../../../../cluster/raft/messages.js';
import type { Member } from '../../../../protocols/model/cluster.js';
import type { Entry } from '../../../../protocols/model/consensus.js';

export const FROM = 11;
export const TO = 22;

const int = fc.maxSafeNat();
const bool = fc.boolean();
const bytes = fc.uint8Array({ maxLength: 40 });
const text = fc.string({ unit: 'binary', maxLength: 12 });

export const member: fc.Arbitrary<Member> = fc.record({ peerId: int, uri: text, version: text, voter: bool });
const candidate = fc.record({ peerId: int, uri: text, version: text });
const membership = fc.array(member, { maxLength: 4 });

const entry: fc.Arbitrary<Entry> = fc.record({
  index: int,
  term: int,
  payload: fc.oneof(
    fc.constant({ kind: 'empty' as const }),
    fc.record({ kind: fc.constant('membership' as const), membership }),
    fc.record({ kind: fc.constant('operation' as const), bytes }),
  ),
});

const proposal: fc.Arbitrary<Proposal> = fc.oneof(
  fc.record({ kind: fc.constant('operation' as const), bytes }),
  fc.record({
    kind: fc.constant('membership' as const),
    change: fc.oneof(
      fc.record({ kind: fc.constantFrom('addLearner' as const, 'announce' as const), member: candidate }),
      fc.record({ kind: fc.constantFrom('promote' as const, 'remove' as const), peerId: int }),
    ),
  }),
);

const head = { from: fc.constant(FROM), to: fc.constant(TO), term: int };

export const raftMessage: fc.Arbitrary<RaftMessage> = fc.oneof(
  fc.record({ ...head, kind: fc.constantFrom('preVote' as const, 'vote' as const), lastIndex: int, lastTerm: int, transfer: bool }),
  fc.record({ ...head, kind: fc.constantFrom('preVoteReply' as const, 'voteReply' as const), granted: bool }),
  fc.record({
    ...head,
    kind: fc.constant('append' as const),
    prevIndex: int,
    prevTerm: int,
    entries: fc.array(entry, { maxLength: 4 }),
    commit: int,
    round: int,
  }),
  fc.record({ ...head, kind: fc.constant('appendReply' as const), matched: bool, index: int, logTerm: int, round: int }),
  fc.record({
    ...head,
    kind: fc.constant('installSnapshot' as const),
    snapshot: fc.record({ index: int, term: int, membership }),
    offset: int,
    totalBytes: int,
    chunk: bytes,
    forced: bool,
    round: int,
  }),
  fc.record({ ...head, kind: fc.constant('installSnapshotReply' as const), index: int, nextOffset: int, done: bool, round: int }),
  fc.record({ ...head, kind: fc.constantFrom('timeoutNow' as const, 'requestSnapshot' as const, 'notMember' as const) }),
  fc.record({ ...head, kind: fc.constant('propose' as const), id: int, proposal }),
  fc.record({
    ...head,
    kind: fc.constant('proposeReply' as const),
    id: int,
    outcome: fc.oneof(
      fc.record({ kind: fc.constant('accepted' as const), index: int, term: int }),
      fc.record({
        kind: fc.constant('refused' as const),
        reason: fc.constantFrom(
          'noLeader' as const,
          'busy' as const,
          'tooLarge' as const,
          'membershipPending' as const,
          'membershipInvalid' as const,
          'transferring' as const,
        ),
      }),
    ),
  }),
  fc.record({ ...head, kind: fc.constant('readIndex' as const), id: int }),
  fc.record({ ...head, kind: fc.constant('readIndexReply' as const), id: int, index: fc.option(int) }),
);

export const peerMessage: fc.Arbitrary<PeerMessage> = fc.oneof(
  { weight: 5, arbitrary: fc.record({ kind: fc.constant('raft' as const), message: raftMessage }) },
  { weight: 1, arbitrary: fc.record({ kind: fc.constantFrom('awaitApplied' as const, 'applied' as const), index: int }) },
  { weight: 1, arbitrary: fc.constant({ kind: 'diskFull' as const }) },
);

const uint32 = fc.nat({ max: 0xffff_ffff });

export const peerRequest: fc.Arbitrary<PeerRequest> = fc.oneof(
  fc.record({ kind: fc.constant('join' as const), peerId: int, uri: fc.option(text), port: uint32, version: text }),
  fc.record({ kind: fc.constant('announce' as const), clusterId: text, member: candidate }),
  fc.record({ kind: fc.constant('describe' as const), clusterId: text }),
  fc.record({ kind: fc.constant('pledge' as const), clusterId: text, peerId: int }),
);

export const peerReply: fc.Arbitrary<PeerReply> = fc.oneof(
  fc.record({ kind: fc.constant('joined' as const), clusterId: text, uri: text, members: membership }),
  fc.constant({ kind: 'announced' as const }),
  fc.record({ kind: fc.constant('pledged' as const), granted: bool }),
  fc.record({
    kind: fc.constant('described' as const),
    details: fc.record({
      version: text,
      role: fc.constantFrom('Follower' as const, 'Candidate' as const, 'Leader' as const, 'PreCandidate' as const),
      isVoter: bool,
      term: int,
      commit: int,
      pendingOperations: int,
      lastUpdateMs: int,
      replicas: fc.array(
        fc.record({
          collection: text,
          shardId: uint32,
          status: text,
          pointsCount: int,
          vectorsCount: int,
          bytes: int,
          payloadBytes: int,
          optimizedPoints: int,
        }),
        {
          maxLength: 3,
        },
      ),
    }),
  }),
);

/** The message as protobufjs takes it: field names of peer.proto in camel case. */
export function asProto(message: PeerMessage): Record<string, unknown> {
  if (message.kind === 'diskFull') return { diskFull: {} };
  if (message.kind !== 'raft') return { [message.kind]: message.index };
  const { from: _from, to: _to, term, kind, ...rest } = message.message;
  return { raft: { term, [kind]: raftFields(kind, rest) } };
}

function raftFields(kind: RaftMessage['kind'], rest: object): object {
  const fields = rest as Record<string, unknown>;
  switch (kind) {
    case 'append':
      return { ...fields, entries: (fields.entries as Entry[]).map(entryAsProto) };
    case 'installSnapshot': {
      const { snapshot, ...others } = fields as unknown as { snapshot: { index: number; term: number; membership: Member[] } };
      return { ...others, index: snapshot.index, logTerm: snapshot.term, membership: { members: snapshot.membership } };
    }
    case 'propose':
      return { id: fields.id, ...proposalAsProto(fields.proposal as Proposal) };
    case 'proposeReply': {
      const outcome = fields.outcome as { kind: string; index?: number; term?: number; reason?: string };
      if (outcome.kind === 'accepted') return { id: fields.id, accepted: { index: outcome.index, term: outcome.term } };
      return { id: fields.id, refused: constantName(outcome.reason as string) };
    }
    case 'readIndexReply':
      return fields.index === null ? { id: fields.id } : fields;
    default:
      return fields;
  }
}

function entryAsProto({ index, term, payload }: Entry): object {
  switch (payload.kind) {
    case 'empty':
      return { index, term, empty: {} };
    case 'membership':
      return { index, term, membership: { members: payload.membership } };
    default:
      return { index, term, operation: payload.bytes };
  }
}

function proposalAsProto(value: Proposal): object {
  if (value.kind === 'operation') return { operation: value.bytes };
  const { change } = value;
  return { [change.kind]: 'member' in change ? { ...change.member, voter: false } : change.peerId };
}

/** `noLeader` as `NO_LEADER`. */
export function constantName(name: string): string {
  return name.replace(/([a-z])([A-Z])/g, '$1_$2').toUpperCase();
}
