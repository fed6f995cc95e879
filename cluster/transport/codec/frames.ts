/** Frames of a stream of two peers as bytes of protocols/peer/peer.proto, and back. Errors: `malformedBody`. */

import { WireReader } from '../../../protocols/grpc/wire-reader.js';
import { WireWriter } from '../../../protocols/grpc/wire-writer.js';
import type { PeerId } from '../../../protocols/model/cluster.js';
import type { PeerMessage } from '../../peer-messages.js';
import { bytesTag, intTag, readEmpty, readFields, readInt, readMessage, writeEach, writeEmpty, writeMessage } from './fields.js';
import { readRaft, writeRaft } from './raft.js';

/** Versions of the protocol that a side speaks, both ends included. */
export interface VersionRange {
  readonly min: number;
  readonly max: number;
}

/** The first frame of each side. */
export interface Hello {
  readonly versions: VersionRange;
  readonly clusterId: string;
  readonly from: PeerId;
  /** Whom the sender takes the receiver for. */
  readonly to: PeerId;
  /** Random for each start of the process. */
  readonly session: number;
  /** Troupe's version. */
  readonly release: string;
}

export interface Frame {
  readonly hello: Hello | null;
  readonly messages: readonly PeerMessage[];
  /** Messages of kinds that this release doesn't know; they count as lost. */
  readonly unknown: number;
}

/** Says that its sender is alive. */
export const EMPTY_FRAME = new Uint8Array(0);

const HELLO = 1;
const MESSAGES = 2;

export function encodeHello(hello: Hello): Uint8Array {
  const writer = new WireWriter();
  writeMessage(writer, HELLO, () => writeHello(writer, hello));
  return writer.finish();
}

export function encodeMessages(messages: readonly PeerMessage[]): Uint8Array {
  const writer = new WireWriter();
  writeEach(writer, MESSAGES, messages, (message) => writePeerMessage(writer, message));
  return writer.finish();
}

/** from, to: of the hellos that opened the stream; before them, messages cannot be attributed and are left out. */
export function decodeFrame(bytes: Uint8Array, stream: { readonly from: PeerId; readonly to: PeerId } | null): Frame {
  const reader = new WireReader(bytes);
  const messages: PeerMessage[] = [];
  let hello: Hello | null = null;
  let unknown = 0;
  readFields(reader, (tag) => {
    if (tag === bytesTag(HELLO)) hello = readMessage(reader, readHello);
    else if (tag === bytesTag(MESSAGES) && stream !== null) {
      const message = readMessage(reader, () => readPeerMessage(reader, stream.from, stream.to));
      if (message === null) unknown++;
      else messages.push(message);
    } else return false;
    return true;
  });
  return { hello, messages, unknown };
}

/** About what a message takes on the wire, for bounds of queues and frames. Cheap: the bytes it carries, and a bit for the rest. */
export function messageBytes(message: PeerMessage): number {
  if (message.kind !== 'raft') return SMALL_MESSAGE_BYTES;
  const { message: raft } = message;
  switch (raft.kind) {
    case 'append': {
      let bytes = SMALL_MESSAGE_BYTES;
      for (const { payload } of raft.entries) {
        bytes += SMALL_MESSAGE_BYTES;
        if (payload.kind === 'operation') bytes += payload.bytes.length;
        else if (payload.kind === 'membership') bytes += payload.membership.length * MEMBER_BYTES;
      }
      return bytes;
    }
    case 'installSnapshot':
      return SMALL_MESSAGE_BYTES + raft.chunk.length + raft.snapshot.membership.length * MEMBER_BYTES;
    case 'propose':
      return SMALL_MESSAGE_BYTES + (raft.proposal.kind === 'operation' ? raft.proposal.bytes.length : MEMBER_BYTES);
    default:
      return SMALL_MESSAGE_BYTES;
  }
}

const SMALL_MESSAGE_BYTES = 48;
const MEMBER_BYTES = 128;

export function writeHello(writer: WireWriter, hello: Hello): void {
  writer.string(6, hello.release);
  writer.int(5, hello.session);
  writer.int(4, hello.to);
  writer.int(3, hello.from);
  writer.string(2, hello.clusterId);
  writeMessage(writer, 1, () => writeVersions(writer, hello.versions));
}

export function writeVersions(writer: WireWriter, { min, max }: VersionRange): void {
  writer.int(2, max);
  writer.int(1, min);
}

export function readVersions(reader: WireReader): VersionRange {
  let min = 0;
  let max = 0;
  readFields(reader, (tag) => {
    if (tag === intTag(1)) min = reader.uint32();
    else if (tag === intTag(2)) max = reader.uint32();
    else return false;
    return true;
  });
  return { min, max };
}

export function readHello(reader: WireReader): Hello {
  let versions: VersionRange = { min: 0, max: 0 };
  let clusterId = '';
  let from = 0;
  let to = 0;
  let session = 0;
  let release = '';
  readFields(reader, (tag) => {
    if (tag === bytesTag(1)) versions = readMessage(reader, readVersions);
    else if (tag === bytesTag(2)) clusterId = reader.string();
    else if (tag === intTag(3)) from = readInt(reader);
    else if (tag === intTag(4)) to = readInt(reader);
    else if (tag === intTag(5)) session = readInt(reader);
    else if (tag === bytesTag(6)) release = reader.string();
    else return false;
    return true;
  });
  return { versions, clusterId, from, to, session, release };
}

function writePeerMessage(writer: WireWriter, message: PeerMessage): void {
  switch (message.kind) {
    case 'raft':
      writeMessage(writer, 1, () => writeRaft(writer, message.message));
      return;
    case 'awaitApplied':
      writer.int(2, message.index);
      return;
    case 'applied':
      writer.int(3, message.index);
      return;
    case 'diskFull':
      writeEmpty(writer, 4);
      return;
    default:
      message satisfies never;
  }
}

/** Null when it is of an unknown kind. */
function readPeerMessage(reader: WireReader, from: PeerId, to: PeerId): PeerMessage | null {
  let message: PeerMessage | null = null;
  readFields(reader, (tag) => {
    if (tag === bytesTag(1)) {
      const raft = readMessage(reader, () => readRaft(reader, from, to));
      message = raft === null ? null : { kind: 'raft', message: raft };
    } else if (tag === intTag(2)) message = { kind: 'awaitApplied', index: readInt(reader) };
    else if (tag === intTag(3)) message = { kind: 'applied', index: readInt(reader) };
    else if (tag === bytesTag(4)) {
      readMessage(reader, readEmpty);
      message = { kind: 'diskFull' };
    } else return false;
    return true;
  });
  return message;
}
