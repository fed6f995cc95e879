/** Proposals to the leader and what became of them, as messages of protocols/peer/peer.proto. */

import type { WireReader } from '../../../protocols/grpc/wire-reader.js';
import type { WireWriter } from '../../../protocols/grpc/wire-writer.js';
import type { MembershipChange, Proposal, ProposalOutcome, RefusalReason } from '../../raft/messages.js';
import { bytesTag, intTag, readFields, readInt, readMessage, writeMessage } from './fields.js';
import { readCandidate, writeMember } from './members.js';
import type { RaftBody } from './raft.js';

/** Numbers of `RefusalReason`. */
const REASONS: Readonly<Record<RefusalReason, number>> = {
  noLeader: 1,
  busy: 2,
  tooLarge: 3,
  membershipPending: 4,
  membershipInvalid: 5,
  transferring: 6,
};

const REASON_OF = new Map(Object.entries(REASONS).map(([reason, number]) => [number, reason as RefusalReason]));

/** Fields 2 to 6 of `Propose`. */
export function writeProposal(writer: WireWriter, proposal: Proposal): void {
  if (proposal.kind === 'operation') writer.blob(2, proposal.bytes);
  else writeChange(writer, proposal.change);
}

function writeChange(writer: WireWriter, change: MembershipChange): void {
  switch (change.kind) {
    case 'addLearner':
      writeMessage(writer, 3, () => writeMember(writer, change.member));
      return;
    case 'promote':
      writer.int(4, change.peerId);
      return;
    case 'remove':
      writer.int(5, change.peerId);
      return;
    case 'announce':
      writeMessage(writer, 6, () => writeMember(writer, change.member));
      return;
    default:
      change satisfies never;
  }
}

/** Null when what is proposed is of an unknown kind. */
export function readPropose(reader: WireReader): RaftBody<'propose'> | null {
  let id = 0;
  let proposal: Proposal | null = null;
  readFields(reader, (tag) => {
    if (tag === intTag(1)) id = readInt(reader);
    else if (tag === bytesTag(2)) proposal = { kind: 'operation', bytes: reader.blob() };
    else if (tag === bytesTag(3)) proposal = changing({ kind: 'addLearner', member: readMessage(reader, readCandidate) });
    else if (tag === intTag(4)) proposal = changing({ kind: 'promote', peerId: readInt(reader) });
    else if (tag === intTag(5)) proposal = changing({ kind: 'remove', peerId: readInt(reader) });
    else if (tag === bytesTag(6)) proposal = changing({ kind: 'announce', member: readMessage(reader, readCandidate) });
    else return false;
    return true;
  });
  return proposal === null ? null : { kind: 'propose', id, proposal };
}

function changing(change: MembershipChange): Proposal {
  return { kind: 'membership', change };
}

/** Fields 2 and 3 of `ProposeReply`. */
export function writeProposalOutcome(writer: WireWriter, outcome: ProposalOutcome): void {
  if (outcome.kind === 'refused') {
    writer.int(3, REASONS[outcome.reason]);
    return;
  }
  writeMessage(writer, 2, () => {
    writer.int(2, outcome.term);
    writer.int(1, outcome.index);
  });
}

/** Null when the outcome, or the reason of a refusal, is not known. */
export function readProposeReply(reader: WireReader): RaftBody<'proposeReply'> | null {
  let id = 0;
  let outcome: ProposalOutcome | null = null;
  readFields(reader, (tag) => {
    if (tag === intTag(1)) id = readInt(reader);
    else if (tag === bytesTag(2)) outcome = readMessage(reader, readAccepted);
    else if (tag === intTag(3)) {
      const reason = REASON_OF.get(readInt(reader));
      if (reason !== undefined) outcome = { kind: 'refused', reason };
    } else return false;
    return true;
  });
  return outcome === null ? null : { kind: 'proposeReply', id, outcome };
}

function readAccepted(reader: WireReader): ProposalOutcome {
  let index = 0;
  let term = 0;
  readFields(reader, (tag) => {
    if (tag === intTag(1)) index = readInt(reader);
    else if (tag === intTag(2)) term = readInt(reader);
    else return false;
    return true;
  });
  return { kind: 'accepted', index, term };
}
