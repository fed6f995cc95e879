/** Requests beside the streams, and their answers, as bytes of protocols/peer/peer.proto. Errors: `malformedBody`. */

import { type ErrorFacts, factsForPeer, factsFromPeer } from '../../../protocols/errors.js';
import { brokenMessage, WireReader } from '../../../protocols/grpc/wire-reader.js';
import { WireWriter } from '../../../protocols/grpc/wire-writer.js';
import type { Member } from '../../../protocols/model/cluster.js';
import type { PeerDetails, PeerReply, PeerRequest } from '../../peer-messages.js';
import { bytesTag, intTag, readEmpty, readFields, readInt, readMessage, writeEach, writeEmpty, writeMessage } from './fields.js';
import { readVersions, type VersionRange, writeVersions } from './frames.js';
import { readCandidate, readMember, writeMember } from './members.js';

export interface AskedRequest {
  readonly versions: VersionRange;
  /** Null when it is of an unknown kind. */
  readonly request: PeerRequest | null;
}

/** What was asked for, or why not. */
export type Answer = PeerReply | { readonly kind: 'failure'; readonly facts: ErrorFacts };

type Role = PeerDetails['role'];
type Replica = PeerDetails['replicas'][number];

/** Numbers of `Role`. */
const ROLES: Readonly<Record<Role, number>> = { Follower: 1, Candidate: 2, Leader: 3, PreCandidate: 4 };
const ROLE_OF = new Map(Object.entries(ROLES).map(([role, number]) => [number, role as Role]));

export function encodeRequest(request: PeerRequest, versions: VersionRange): Uint8Array {
  const writer = new WireWriter();
  switch (request.kind) {
    case 'join':
      writeMessage(writer, 2, () => {
        writer.string(4, request.version);
        writer.int(3, request.port);
        if (request.uri !== null) writer.string(2, request.uri);
        writer.int(1, request.peerId);
      });
      break;
    case 'announce':
      writeMessage(writer, 3, () => {
        writeMessage(writer, 2, () => writeMember(writer, request.member));
        writer.string(1, request.clusterId);
      });
      break;
    case 'describe':
      writeMessage(writer, 4, () => writer.string(1, request.clusterId));
      break;
    case 'pledge':
      writeMessage(writer, 5, () => {
        writer.int(2, request.peerId);
        writer.string(1, request.clusterId);
      });
      break;
    default:
      request satisfies never;
  }
  writeMessage(writer, 1, () => writeVersions(writer, versions));
  return writer.finish();
}

export function decodeRequest(bytes: Uint8Array): AskedRequest {
  const reader = new WireReader(bytes);
  let versions: VersionRange = { min: 0, max: 0 };
  let request: PeerRequest | null = null;
  readFields(reader, (tag) => {
    if (tag === bytesTag(1)) versions = readMessage(reader, readVersions);
    else if (tag === bytesTag(2)) request = readMessage(reader, readJoin);
    else if (tag === bytesTag(3)) request = readMessage(reader, readAnnounce);
    else if (tag === bytesTag(4)) request = { kind: 'describe', clusterId: readMessage(reader, readDescribe) };
    else if (tag === bytesTag(5)) request = readMessage(reader, readPledge);
    else return false;
    return true;
  });
  return { versions, request };
}

export function encodeAnswer(answer: Answer): Uint8Array {
  const writer = new WireWriter();
  switch (answer.kind) {
    case 'joined':
      writeMessage(writer, 1, () => {
        writeEach(writer, 3, answer.members, (member) => writeMember(writer, member));
        writer.string(2, answer.uri);
        writer.string(1, answer.clusterId);
      });
      break;
    case 'announced':
      writeEmpty(writer, 2);
      break;
    case 'described':
      writeMessage(writer, 3, () => writeDetails(writer, answer.details));
      break;
    case 'pledged':
      writeMessage(writer, 5, () => writer.bool(1, answer.granted));
      break;
    case 'failure':
      writeMessage(writer, 4, () => {
        const { code, detail, outcome, reason, retryAfterMs } = factsForPeer(answer.facts);
        if (outcome !== undefined) writer.string(5, outcome);
        if (reason !== undefined) writer.string(4, reason);
        if (retryAfterMs !== undefined) writer.int(3, whole(retryAfterMs));
        writer.string(2, detail);
        writer.string(1, code);
      });
      break;
    default:
      answer satisfies never;
  }
  return writer.finish();
}

export function decodeAnswer(bytes: Uint8Array): Answer {
  const reader = new WireReader(bytes);
  const found: Answer[] = [];
  readFields(reader, (tag) => {
    if (tag === bytesTag(1)) found.push(readMessage(reader, readJoined));
    else if (tag === bytesTag(2)) {
      readMessage(reader, readEmpty);
      found.push({ kind: 'announced' });
    } else if (tag === bytesTag(3)) found.push({ kind: 'described', details: readMessage(reader, readDetails) });
    else if (tag === bytesTag(4)) found.push({ kind: 'failure', facts: readMessage(reader, readFailure) });
    else if (tag === bytesTag(5)) found.push(readMessage(reader, readPledged));
    else return false;
    return true;
  });
  const last = found.at(-1);
  if (last === undefined) throw brokenMessage('an answer of an unknown kind');
  return last;
}

function readJoin(reader: WireReader): PeerRequest {
  let peerId = 0;
  let uri: string | null = null;
  let port = 0;
  let version = '';
  readFields(reader, (tag) => {
    if (tag === intTag(1)) peerId = readInt(reader);
    else if (tag === bytesTag(2)) uri = reader.string();
    else if (tag === intTag(3)) port = reader.uint32();
    else if (tag === bytesTag(4)) version = reader.string();
    else return false;
    return true;
  });
  return { kind: 'join', peerId, uri, port, version };
}

function readAnnounce(reader: WireReader): PeerRequest {
  let clusterId = '';
  let member: Omit<Member, 'voter'> = { peerId: 0, uri: '', version: '' };
  readFields(reader, (tag) => {
    if (tag === bytesTag(1)) clusterId = reader.string();
    else if (tag === bytesTag(2)) member = readMessage(reader, readCandidate);
    else return false;
    return true;
  });
  return { kind: 'announce', clusterId, member };
}

/** The cluster's id. */
function readDescribe(reader: WireReader): string {
  let clusterId = '';
  readFields(reader, (tag) => {
    if (tag !== bytesTag(1)) return false;
    clusterId = reader.string();
    return true;
  });
  return clusterId;
}

function readPledge(reader: WireReader): PeerRequest {
  let clusterId = '';
  let peerId = 0;
  readFields(reader, (tag) => {
    if (tag === bytesTag(1)) clusterId = reader.string();
    else if (tag === intTag(2)) peerId = readInt(reader);
    else return false;
    return true;
  });
  return { kind: 'pledge', clusterId, peerId };
}

function readPledged(reader: WireReader): PeerReply {
  let granted = false;
  readFields(reader, (tag) => {
    if (tag !== intTag(1)) return false;
    granted = reader.bool();
    return true;
  });
  return { kind: 'pledged', granted };
}

function readJoined(reader: WireReader): PeerReply {
  let clusterId = '';
  let uri = '';
  const members: Member[] = [];
  readFields(reader, (tag) => {
    if (tag === bytesTag(1)) clusterId = reader.string();
    else if (tag === bytesTag(2)) uri = reader.string();
    else if (tag === bytesTag(3)) members.push(readMessage(reader, readMember));
    else return false;
    return true;
  });
  return { kind: 'joined', clusterId, uri, members };
}

function readFailure(reader: WireReader): ErrorFacts {
  const said: Partial<Record<keyof ErrorFacts, unknown>> = {};
  readFields(reader, (tag) => {
    if (tag === bytesTag(1)) said.code = reader.string();
    else if (tag === bytesTag(2)) said.detail = reader.string();
    else if (tag === intTag(3)) said.retryAfterMs = readInt(reader);
    else if (tag === bytesTag(4)) said.reason = reader.string();
    else if (tag === bytesTag(5)) said.outcome = reader.string();
    else return false;
    return true;
  });
  return factsFromPeer(said);
}

function writeDetails(writer: WireWriter, details: PeerDetails): void {
  writeEach(writer, 8, details.replicas, (replica) => {
    writer.int(8, replica.optimizedPoints);
    writer.int(7, replica.payloadBytes);
    writer.int(6, replica.bytes);
    writer.int(5, replica.vectorsCount);
    writer.int(4, replica.pointsCount);
    writer.string(3, replica.status);
    writer.int(2, replica.shardId);
    writer.string(1, replica.collection);
  });
  writer.int(7, whole(details.lastUpdateMs));
  writer.int(6, details.pendingOperations);
  writer.int(5, details.commit);
  writer.int(4, details.term);
  writer.bool(3, details.isVoter);
  writer.int(2, ROLES[details.role]);
  writer.string(1, details.version);
}

function readDetails(reader: WireReader): PeerDetails {
  let version = '';
  let role: Role = 'Follower';
  let isVoter = false;
  let term = 0;
  let commit = 0;
  let pendingOperations = 0;
  let lastUpdateMs = 0;
  const replicas: Replica[] = [];
  readFields(reader, (tag) => {
    if (tag === bytesTag(1)) version = reader.string();
    else if (tag === intTag(2)) role = ROLE_OF.get(readInt(reader)) ?? 'Follower';
    else if (tag === intTag(3)) isVoter = reader.bool();
    else if (tag === intTag(4)) term = readInt(reader);
    else if (tag === intTag(5)) commit = readInt(reader);
    else if (tag === intTag(6)) pendingOperations = readInt(reader);
    else if (tag === intTag(7)) lastUpdateMs = readInt(reader);
    else if (tag === bytesTag(8)) replicas.push(readMessage(reader, readReplica));
    else return false;
    return true;
  });
  return { version, role, isVoter, term, commit, pendingOperations, lastUpdateMs, replicas };
}

function readReplica(reader: WireReader): Replica {
  let collection = '';
  let shardId = 0;
  let status = '';
  let pointsCount = 0;
  let vectorsCount = 0;
  let bytes = 0;
  let payloadBytes = 0;
  let optimizedPoints = 0;
  readFields(reader, (tag) => {
    if (tag === bytesTag(1)) collection = reader.string();
    else if (tag === intTag(2)) shardId = reader.uint32();
    else if (tag === bytesTag(3)) status = reader.string();
    else if (tag === intTag(4)) pointsCount = readInt(reader);
    else if (tag === intTag(5)) vectorsCount = readInt(reader);
    else if (tag === intTag(6)) bytes = readInt(reader);
    else if (tag === intTag(7)) payloadBytes = readInt(reader);
    else if (tag === intTag(8)) optimizedPoints = readInt(reader);
    else return false;
    return true;
  });
  return { collection, shardId, status, pointsCount, vectorsCount, bytes, payloadBytes, optimizedPoints };
}

function whole(milliseconds: number): number {
  return Math.max(0, Math.round(milliseconds));
}
