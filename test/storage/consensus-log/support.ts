/** Entries and writes for tests of the consensus log. */

import { type ConsensusWrite, type Entry, NO_WRITE } from '../../../protocols/model/consensus.js';

export function operation(index: number, term = 1, bytes = 40): Entry {
  return { index, term, payload: { kind: 'operation', bytes: new Uint8Array(bytes).fill(index & 0xff) } };
}

export function operations(first: number, last: number, term = 1, bytes = 40): Entry[] {
  return Array.from({ length: last - first + 1 }, (_, i) => operation(first + i, term, bytes));
}

export function writeOf(changes: Partial<ConsensusWrite>): ConsensusWrite {
  return { ...NO_WRITE, ...changes };
}

export const MEMBERSHIP = [
  { peerId: 7, uri: 'http://127.0.0.1:6335', version: '0.1.0', voter: true },
  { peerId: 140_737_488_355_327, uri: 'http://[::1]:6335', version: '0.1.0-ä', voter: false },
];
