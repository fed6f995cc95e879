/** Raft's messages as those of protocols/peer/peer.proto. Who sends to whom is said once, in the hello of their stream. */

import type { WireReader } from '../../../protocols/grpc/wire-reader.js';
import type { WireWriter } from '../../../protocols/grpc/wire-writer.js';
import type { PeerId } from '../../../protocols/model/cluster.js';
import type { Entry } from '../../../protocols/model/consensus.js';
import type { RaftMessage } from '../../raft/messages.js';
import { bytesTag, intTag, readEmpty, readFields, readInt, readMessage, writeEach, writeEmpty, writeMessage } from './fields.js';
import { readEntry, readMembership, writeEntry, writeMembership } from './members.js';
import { readPropose, readProposeReply, writeProposal, writeProposalOutcome } from './proposals.js';

type Kind = RaftMessage['kind'];
type Of<K extends Kind> = Extract<RaftMessage, { kind: K }>;
/** A message without who sends it to whom in which term. Spread over the union, so that each kind keeps its fields. */
export type RaftBody<K extends Kind = Kind> = K extends Kind ? Omit<Of<K>, 'term' | 'to' | 'from'> : never;

/** Field of each kind in `Raft`. */
const FIELDS: Readonly<Record<Kind, number>> = {
  preVote: 2,
  preVoteReply: 3,
  vote: 4,
  voteReply: 5,
  append: 6,
  appendReply: 7,
  installSnapshot: 8,
  installSnapshotReply: 9,
  timeoutNow: 10,
  propose: 11,
  proposeReply: 12,
  readIndex: 13,
  readIndexReply: 14,
  requestSnapshot: 15,
  notMember: 16,
};

const READERS = new Map<number, (reader: WireReader) => RaftBody | null>([
  [FIELDS.preVote, (reader) => ({ kind: 'preVote', ...readCampaign(reader) })],
  [FIELDS.preVoteReply, (reader) => ({ kind: 'preVoteReply', granted: readGranted(reader) })],
  [FIELDS.vote, (reader) => ({ kind: 'vote', ...readCampaign(reader) })],
  [FIELDS.voteReply, (reader) => ({ kind: 'voteReply', granted: readGranted(reader) })],
  [FIELDS.append, readAppend],
  [FIELDS.appendReply, readAppendReply],
  [FIELDS.installSnapshot, readInstallSnapshot],
  [FIELDS.installSnapshotReply, readInstallSnapshotReply],
  [FIELDS.timeoutNow, (reader) => bare(reader, { kind: 'timeoutNow' })],
  [FIELDS.propose, readPropose],
  [FIELDS.proposeReply, readProposeReply],
  [FIELDS.readIndex, readReadIndex],
  [FIELDS.readIndexReply, readReadIndexReply],
  [FIELDS.requestSnapshot, (reader) => bare(reader, { kind: 'requestSnapshot' })],
  [FIELDS.notMember, (reader) => bare(reader, { kind: 'notMember' })],
]);

export function writeRaft(writer: WireWriter, message: RaftMessage): void {
  writeBody(writer, message);
  writer.int(1, message.term);
}

/** Null when its kind, or something in it, is not known. */
export function readRaft(reader: WireReader, from: PeerId, to: PeerId): RaftMessage | null {
  let term = 0;
  let body: RaftBody | null = null;
  readFields(reader, (tag) => {
    if (tag === intTag(1)) {
      term = readInt(reader);
      return true;
    }
    const read = (tag & 7) === 2 ? READERS.get(tag >>> 3) : undefined;
    if (read === undefined) return false;
    body = readMessage(reader, read);
    return true;
  });
  return body === null ? null : ({ from, to, term, ...(body as RaftBody) } as RaftMessage);
}

function writeBody(writer: WireWriter, message: RaftMessage): void {
  const field = FIELDS[message.kind];
  switch (message.kind) {
    case 'timeoutNow':
    case 'requestSnapshot':
    case 'notMember':
      writeEmpty(writer, field);
      return;
    default:
      writeMessage(writer, field, () => writeFields(writer, message));
  }
}

function writeFields(writer: WireWriter, message: Exclude<RaftMessage, { kind: 'timeoutNow' | 'requestSnapshot' | 'notMember' }>): void {
  switch (message.kind) {
    case 'preVote':
    case 'vote':
      writer.bool(3, message.transfer);
      writer.int(2, message.lastTerm);
      writer.int(1, message.lastIndex);
      return;
    case 'preVoteReply':
    case 'voteReply':
      writer.bool(1, message.granted);
      return;
    case 'append':
      writer.int(5, message.round);
      writer.int(4, message.commit);
      writeEach(writer, 3, message.entries, (entry) => writeEntry(writer, entry));
      writer.int(2, message.prevTerm);
      writer.int(1, message.prevIndex);
      return;
    case 'appendReply':
      writer.int(4, message.round);
      writer.int(3, message.logTerm);
      writer.int(2, message.index);
      writer.bool(1, message.matched);
      return;
    case 'installSnapshot':
      writer.int(8, message.round);
      writer.bool(7, message.forced);
      writer.blob(6, message.chunk);
      writer.int(5, message.totalBytes);
      writer.int(4, message.offset);
      writeMessage(writer, 3, () => writeMembership(writer, message.snapshot.membership));
      writer.int(2, message.snapshot.term);
      writer.int(1, message.snapshot.index);
      return;
    case 'installSnapshotReply':
      writer.int(4, message.round);
      writer.bool(3, message.done);
      writer.int(2, message.nextOffset);
      writer.int(1, message.index);
      return;
    case 'propose':
      writeProposal(writer, message.proposal);
      writer.int(1, message.id);
      return;
    case 'proposeReply':
      writeProposalOutcome(writer, message.outcome);
      writer.int(1, message.id);
      return;
    case 'readIndex':
      writer.int(1, message.id);
      return;
    case 'readIndexReply':
      if (message.index !== null) writer.int(2, message.index);
      writer.int(1, message.id);
      return;
    default:
      message satisfies never;
  }
}

function bare<T>(reader: WireReader, body: T): T {
  readEmpty(reader);
  return body;
}

function readCampaign(reader: WireReader) {
  let lastIndex = 0;
  let lastTerm = 0;
  let transfer = false;
  readFields(reader, (tag) => {
    if (tag === intTag(1)) lastIndex = readInt(reader);
    else if (tag === intTag(2)) lastTerm = readInt(reader);
    else if (tag === intTag(3)) transfer = reader.bool();
    else return false;
    return true;
  });
  return { lastIndex, lastTerm, transfer };
}

function readGranted(reader: WireReader): boolean {
  let granted = false;
  readFields(reader, (tag) => {
    if (tag !== intTag(1)) return false;
    granted = reader.bool();
    return true;
  });
  return granted;
}

/** Null when an entry is of an unknown kind: without it the rest is of no use. */
function readAppend(reader: WireReader): RaftBody<'append'> | null {
  let prevIndex = 0;
  let prevTerm = 0;
  let commit = 0;
  let round = 0;
  const entries: (Entry | null)[] = [];
  readFields(reader, (tag) => {
    if (tag === intTag(1)) prevIndex = readInt(reader);
    else if (tag === intTag(2)) prevTerm = readInt(reader);
    else if (tag === bytesTag(3)) entries.push(readMessage(reader, readEntry));
    else if (tag === intTag(4)) commit = readInt(reader);
    else if (tag === intTag(5)) round = readInt(reader);
    else return false;
    return true;
  });
  return areKnown(entries) ? { kind: 'append', prevIndex, prevTerm, entries, commit, round } : null;
}

function areKnown(entries: readonly (Entry | null)[]): entries is readonly Entry[] {
  return entries.every((entry) => entry !== null);
}

function readAppendReply(reader: WireReader): RaftBody<'appendReply'> {
  let matched = false;
  let index = 0;
  let logTerm = 0;
  let round = 0;
  readFields(reader, (tag) => {
    if (tag === intTag(1)) matched = reader.bool();
    else if (tag === intTag(2)) index = readInt(reader);
    else if (tag === intTag(3)) logTerm = readInt(reader);
    else if (tag === intTag(4)) round = readInt(reader);
    else return false;
    return true;
  });
  return { kind: 'appendReply', matched, index, logTerm, round };
}

function readInstallSnapshot(reader: WireReader): RaftBody<'installSnapshot'> {
  let index = 0;
  let term = 0;
  let membership: Of<'installSnapshot'>['snapshot']['membership'] = [];
  let offset = 0;
  let totalBytes = 0;
  let chunk: Uint8Array = new Uint8Array(0);
  let forced = false;
  let round = 0;
  readFields(reader, (tag) => {
    if (tag === intTag(1)) index = readInt(reader);
    else if (tag === intTag(2)) term = readInt(reader);
    else if (tag === bytesTag(3)) membership = readMessage(reader, readMembership);
    else if (tag === intTag(4)) offset = readInt(reader);
    else if (tag === intTag(5)) totalBytes = readInt(reader);
    else if (tag === bytesTag(6)) chunk = reader.blob();
    else if (tag === intTag(7)) forced = reader.bool();
    else if (tag === intTag(8)) round = readInt(reader);
    else return false;
    return true;
  });
  return { kind: 'installSnapshot', snapshot: { index, term, membership }, offset, totalBytes, chunk, forced, round };
}

function readInstallSnapshotReply(reader: WireReader): RaftBody<'installSnapshotReply'> {
  let index = 0;
  let nextOffset = 0;
  let done = false;
  let round = 0;
  readFields(reader, (tag) => {
    if (tag === intTag(1)) index = readInt(reader);
    else if (tag === intTag(2)) nextOffset = readInt(reader);
    else if (tag === intTag(3)) done = reader.bool();
    else if (tag === intTag(4)) round = readInt(reader);
    else return false;
    return true;
  });
  return { kind: 'installSnapshotReply', index, nextOffset, done, round };
}

function readReadIndex(reader: WireReader): RaftBody<'readIndex'> {
  return { kind: 'readIndex', id: readReadIndexReply(reader).id };
}

function readReadIndexReply(reader: WireReader): RaftBody<'readIndexReply'> {
  let id = 0;
  let index: number | null = null;
  readFields(reader, (tag) => {
    if (tag === intTag(1)) id = readInt(reader);
    else if (tag === intTag(2)) index = readInt(reader);
    else return false;
    return true;
  });
  return { kind: 'readIndexReply', id, index };
}
