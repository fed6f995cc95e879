/** Members and entries of Raft's log as messages of protocols/peer/peer.proto. */

import type { WireReader } from '../../../protocols/grpc/wire-reader.js';
import type { WireWriter } from '../../../protocols/grpc/wire-writer.js';
import type { Member, Membership } from '../../../protocols/model/cluster.js';
import type { Entry, EntryPayload } from '../../../protocols/model/consensus.js';
import { bytesTag, intTag, readEmpty, readFields, readInt, readMessage, writeEach, writeEmpty, writeMessage } from './fields.js';

export function writeMember(writer: WireWriter, member: Omit<Member, 'voter'> & Partial<Member>): void {
  writer.bool(4, member.voter ?? false);
  writer.string(3, member.version);
  writer.string(2, member.uri);
  writer.int(1, member.peerId);
}

export function readMember(reader: WireReader): Member {
  let peerId = 0;
  let uri = '';
  let version = '';
  let voter = false;
  readFields(reader, (tag) => {
    if (tag === intTag(1)) peerId = readInt(reader);
    else if (tag === bytesTag(2)) uri = reader.string();
    else if (tag === bytesTag(3)) version = reader.string();
    else if (tag === intTag(4)) voter = reader.bool();
    else return false;
    return true;
  });
  return { peerId, uri, version, voter };
}

/** A member without its vote, as changes name it. */
export function readCandidate(reader: WireReader): Omit<Member, 'voter'> {
  const { peerId, uri, version } = readMember(reader);
  return { peerId, uri, version };
}

export function writeMembership(writer: WireWriter, membership: Membership): void {
  writeEach(writer, 1, membership, (member) => writeMember(writer, member));
}

export function readMembership(reader: WireReader): Membership {
  const members: Member[] = [];
  readFields(reader, (tag) => {
    if (tag !== bytesTag(1)) return false;
    members.push(readMessage(reader, readMember));
    return true;
  });
  return members;
}

export function writeEntry(writer: WireWriter, { index, term, payload }: Entry): void {
  switch (payload.kind) {
    case 'empty':
      writeEmpty(writer, 3);
      break;
    case 'membership':
      writeMessage(writer, 4, () => writeMembership(writer, payload.membership));
      break;
    case 'operation':
      writer.blob(5, payload.bytes);
      break;
    default:
      payload satisfies never;
  }
  writer.int(2, term);
  writer.int(1, index);
}

/** Null when its payload is of an unknown kind. */
export function readEntry(reader: WireReader): Entry | null {
  let index = 0;
  let term = 0;
  let payload: EntryPayload | null = null;
  readFields(reader, (tag) => {
    if (tag === intTag(1)) index = readInt(reader);
    else if (tag === intTag(2)) term = readInt(reader);
    else if (tag === bytesTag(3)) {
      readMessage(reader, readEmpty);
      payload = { kind: 'empty' };
    } else if (tag === bytesTag(4)) payload = { kind: 'membership', membership: readMessage(reader, readMembership) };
    else if (tag === bytesTag(5)) payload = { kind: 'operation', bytes: reader.blob() };
    else return false;
    return true;
  });
  return payload === null ? null : { index, term, payload };
}
