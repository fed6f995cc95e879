/**
 * Records of the consensus log's LMDB environment. One transaction writes what one `ConsensusWrite` changes.
 *
 * | database   | key          | record |
 * |------------|--------------|--------|
 * | `meta`     | `identity`   | 0, or 1, peer id, 0 or 1 and the cluster's id, starts, removed |
 * | `meta`     | `hardState`  | term, 0 or 1 and whom the vote went to, commit |
 * | `meta`     | `applied`    | index |
 * | `meta`     | `range`      | index of the first and of the last entry; 0 and 0: there is none |
 * | `entries`  | index u64 BE | index, term, kind, payload |
 * | `snapshot` | `snapshot`   | index, term, membership, data |
 *
 * Each record: u64 LE xxHash64 of what follows, u8 format of the record, then its fields (`bytes.ts`). An entry repeats its
 * index, so that a record in a wrong place is found; `range` says which entries must be there, so that a missing one is.
 */

import { TroupeError } from '../../protocols/errors.js';
import type { Member, Membership } from '../../protocols/model/cluster.js';
import type { Entry, EntryPayload, HardState, PeerIdentity, Snapshot } from '../../protocols/model/consensus.js';
import { damagedRecord, SEAL_BYTES, seal, unseal } from '../wal/records.js';
import { ByteReader, ByteWriter, MalformedBytes } from './bytes.js';

export const CONSENSUS_DATABASES = ['meta', 'entries', 'snapshot'] as const;

export type ConsensusDatabase = (typeof CONSENSUS_DATABASES)[number];

export const IDENTITY_KEY = Buffer.from('identity');
export const HARD_STATE_KEY = Buffer.from('hardState');
export const APPLIED_KEY = Buffer.from('applied');
export const RANGE_KEY = Buffer.from('range');
export const SNAPSHOT_KEY = Buffer.from('snapshot');

/** Entries `first` to `last`, both of them included; 0 and 0: none. */
export interface EntryRange {
  readonly first: number;
  readonly last: number;
}

export const NO_ENTRIES: EntryRange = { first: 0, last: 0 };

/** Format of each record. One that changes gets the next number, and its reader goes on to read the others. */
const FORMAT = 1;

const EMPTY = 0;
const MEMBERSHIP = 1;
const OPERATION = 2;

export function entryKey(index: number): Buffer {
  const key = Buffer.allocUnsafe(8);
  key.writeBigUInt64BE(BigInt(index), 0);
  return key;
}

export function indexOfKey(key: Uint8Array): number {
  return Number(new DataView(key.buffer, key.byteOffset, 8).getBigUint64(0));
}

export function encodeEntry({ index, term, payload }: Entry): Uint8Array {
  return record(
    (writer) => {
      writer.integer(index);
      writer.integer(term);
      writePayload(writer, payload);
    },
    payload.kind === 'operation' ? payload.bytes.length : 0,
  );
}

/** Errors of this and all others: `storage`, naming the record. */
export function decodeEntry(bytes: Uint8Array, index: number): Entry {
  const name = entryName(index);
  return read(bytes, name, (reader) => {
    const entry = { index: reader.integer(), term: reader.integer(), payload: readPayload(reader) };
    if (entry.index !== index) throw new MalformedBytes('is another entry');
    return entry;
  });
}

export function entryName(index: number): string {
  return `entries/${index}`;
}

export function encodeHardState({ term, votedFor, commit }: HardState): Uint8Array {
  return record((writer) => {
    writer.integer(term);
    writer.byte(votedFor === null ? 0 : 1);
    if (votedFor !== null) writer.integer(votedFor);
    writer.integer(commit);
  });
}

export function decodeHardState(bytes: Uint8Array): HardState {
  return read(bytes, 'meta/hardState', (reader) => ({
    term: reader.integer(),
    votedFor: reader.flag() ? reader.integer() : null,
    commit: reader.integer(),
  }));
}

export function encodeIdentity(identity: PeerIdentity | null): Uint8Array {
  return record((writer) => {
    writer.byte(identity === null ? 0 : 1);
    if (identity === null) return;
    writer.integer(identity.peerId);
    writer.byte(identity.clusterId === null ? 0 : 1);
    if (identity.clusterId !== null) writer.text(identity.clusterId);
    writer.integer(identity.starts);
    writer.byte(identity.removed ? 1 : 0);
  });
}

export function decodeIdentity(bytes: Uint8Array): PeerIdentity | null {
  return read(bytes, 'meta/identity', (reader) => {
    if (!reader.flag()) return null;
    return {
      peerId: reader.integer(),
      clusterId: reader.flag() ? reader.text() : null,
      starts: reader.integer(),
      removed: reader.flag(),
    };
  });
}

export function encodeApplied(index: number): Uint8Array {
  return record((writer) => writer.integer(index));
}

export function decodeApplied(bytes: Uint8Array): number {
  return read(bytes, 'meta/applied', (reader) => reader.integer());
}

export function encodeRange({ first, last }: EntryRange): Uint8Array {
  return record((writer) => {
    writer.integer(first);
    writer.integer(last);
  });
}

export function decodeRange(bytes: Uint8Array): EntryRange {
  return read(bytes, 'meta/range', (reader) => ({ first: reader.integer(), last: reader.integer() }));
}

export function encodeSnapshot({ index, term, membership, data }: Snapshot): Uint8Array {
  return record((writer) => {
    writer.integer(index);
    writer.integer(term);
    writeMembership(writer, membership);
    writer.raw(data);
  }, data.length);
}

export function decodeSnapshot(bytes: Uint8Array): Snapshot {
  return read(bytes, 'snapshot/snapshot', (reader) => ({
    index: reader.integer(),
    term: reader.integer(),
    membership: readMembership(reader),
    data: reader.rest(),
  }));
}

// ------------------------------------------------------------------ parts

function writePayload(writer: ByteWriter, payload: EntryPayload): void {
  switch (payload.kind) {
    case 'empty':
      writer.byte(EMPTY);
      return;
    case 'membership':
      writer.byte(MEMBERSHIP);
      writeMembership(writer, payload.membership);
      return;
    case 'operation':
      writer.byte(OPERATION);
      writer.raw(payload.bytes);
      return;
    default:
      payload satisfies never;
  }
}

function readPayload(reader: ByteReader): EntryPayload {
  const kind = reader.byte();
  if (kind === EMPTY) return { kind: 'empty' };
  if (kind === MEMBERSHIP) return { kind: 'membership', membership: readMembership(reader) };
  if (kind === OPERATION) return { kind: 'operation', bytes: reader.rest() };
  throw new MalformedBytes('is of a kind that nobody knows');
}

function writeMembership(writer: ByteWriter, membership: Membership): void {
  writer.integer(membership.length);
  for (const { peerId, uri, version, voter } of membership) {
    writer.integer(peerId);
    writer.text(uri);
    writer.text(version);
    writer.byte(voter ? 1 : 0);
  }
}

function readMembership(reader: ByteReader): Membership {
  const members: Member[] = [];
  const count = reader.integer();
  for (let i = 0; i < count; i++) {
    const member = { peerId: reader.integer(), uri: reader.text(), version: reader.text(), voter: reader.flag() };
    if (i > 0 && member.peerId <= (members[i - 1] as Member).peerId) throw new MalformedBytes('has peers out of order');
    members.push(member);
  }
  return members;
}

function record(write: (writer: ByteWriter) => void, bytes = 0): Uint8Array {
  const writer = new ByteWriter(SEAL_BYTES, SEAL_BYTES + 64 + bytes);
  writer.byte(FORMAT);
  write(writer);
  return seal(writer.finish());
}

function read<T>(bytes: Uint8Array, name: string, parse: (reader: ByteReader) => T): T {
  const reader = new ByteReader(unseal(bytes, name));
  try {
    const format = reader.byte();
    if (format !== FORMAT)
      throw new TroupeError('storage', `lmdb/data.mdb: record \`${name}\` is of format ${format}; this release reads format ${FORMAT}`);
    const value = parse(reader);
    reader.end();
    return value;
  } catch (error) {
    if (error instanceof MalformedBytes) throw damagedRecord(`${name} (it ${error.message})`);
    throw error;
  }
}
