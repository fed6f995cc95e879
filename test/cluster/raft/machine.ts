/** The state machine of Raft's tests: a digest of all entries in their order, so that two that differ anywhere differ at the end. */

import assert from 'node:assert/strict';
import type { Entry, EntryPayload, Snapshot } from '../../../protocols/model/consensus.js';

export interface Machine {
  /** Of the last entry that was applied. */
  readonly index: number;
  /** 32 bits. */
  readonly digest: number;
}

/** Before the first entry. */
export const BLANK: Machine = { index: 0, digest: 0 };

const encoder = new TextEncoder();
const decoder = new TextDecoder();

/** Fails unless `entry` comes next. */
export function machineAfter(machine: Machine, entry: Entry): Machine {
  assert.equal(entry.index, machine.index + 1, 'applied entries are consecutive');
  return { index: entry.index, digest: mixed(mixed(machine.digest, entry.term), hashOf(entry.payload)) };
}

export function snapshotData(machine: Machine): Uint8Array {
  return encoder.encode(`after ${machine.index}: ${machine.digest}`);
}

export function machineOf(snapshot: Snapshot): Machine {
  const text = decoder.decode(snapshot.data);
  const match = /^after (\d+): (\d+)$/.exec(text);
  assert.ok(match !== null && Number(match[1]) === snapshot.index, `the snapshot of ${snapshot.index} holds «${text}»`);
  return { index: snapshot.index, digest: Number(match[2]) };
}

export function hashOf(payload: EntryPayload): number {
  switch (payload.kind) {
    case 'empty':
      return 1;
    case 'membership':
      return payload.membership.reduce((hash, member) => mixed(mixed(hash, member.peerId), member.voter ? 1 : 0), 2);
    case 'operation':
      return payload.bytes.reduce(mixed, 3);
    default:
      return payload satisfies never;
  }
}

function mixed(hash: number, value: number): number {
  const sum = Math.imul(hash ^ value, 0x9e3779b1);
  return (sum ^ (sum >>> 15)) >>> 0;
}
