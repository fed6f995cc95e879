/** The consensus log's LMDB environment: opening it, reading it whole, changing it. */

import { mkdirSync, rmSync } from 'node:fs';
import path from 'node:path';
import { TroupeError } from '../../protocols/errors.js';
import { type Entry, NOTHING_STORED, type StoredConsensus } from '../../protocols/model/consensus.js';
import { syncFolderNow } from '../disk/file.js';
import { checkFormat, isMarkedMade, markMade } from '../disk/format-marker.js';
import { Environment } from '../disk/lmdb.js';
import type { Reading } from '../disk/lmdb-tables.js';
import { damagedRecord } from '../wal/records.js';
import { unpackChanges } from './changes.js';
import {
  APPLIED_KEY,
  CONSENSUS_DATABASES,
  type ConsensusDatabase,
  decodeApplied,
  decodeEntry,
  decodeHardState,
  decodeIdentity,
  decodeRange,
  decodeSnapshot,
  encodeApplied,
  encodeHardState,
  encodeIdentity,
  encodeRange,
  entryKey,
  entryName,
  HARD_STATE_KEY,
  IDENTITY_KEY,
  indexOfKey,
  NO_ENTRIES,
  RANGE_KEY,
  SNAPSHOT_KEY,
} from './records.js';

/** Format of the folder. */
const FORMAT = 1;
const REMOVED_AT_ONCE = 4096;

/** Opens the log in `folder`, or makes it. `initChecksum` must have been awaited. Errors: `storage`. */
export function openConsensus(folder: string): Environment<ConsensusDatabase> {
  const lmdb = path.join(folder, 'lmdb');
  checkFormat(folder, FORMAT);
  const isMade = isMarkedMade(folder);
  if (!isMade) {
    // One that was never made to the end holds nothing that anybody was told of (Room-R2).
    rmSync(lmdb, { recursive: true, force: true });
    mkdirSync(folder, { recursive: true });
    syncFolderNow(path.dirname(folder));
  }
  const environment = Environment.open<ConsensusDatabase>(lmdb, writeFirstRecords, CONSENSUS_DATABASES);
  if (environment.isNew && isMade) {
    void environment.close();
    throw new TroupeError('storage', 'lmdb/data.mdb is missing or empty');
  }
  if (!isMade) {
    syncFolderNow(lmdb);
    markMade(folder, FORMAT);
  }
  return environment;
}

/** All of them are there from the first commit on, so that one which is missing is damage. */
function writeFirstRecords(environment: Environment<ConsensusDatabase>): void {
  environment.put('meta', IDENTITY_KEY, encodeIdentity(null));
  environment.put('meta', HARD_STATE_KEY, encodeHardState(NOTHING_STORED.hardState));
  environment.put('meta', APPLIED_KEY, encodeApplied(0));
  environment.put('meta', RANGE_KEY, encodeRange(NO_ENTRIES));
}

/** Everything that is stored, checked. Errors: `storage`, naming the record that is damaged. */
export function readConsensus(reading: Reading<ConsensusDatabase>): StoredConsensus {
  const meta = (key: Buffer): Uint8Array => {
    const value = reading.get('meta', key);
    if (value === undefined) throw damagedRecord(`meta/${key.toString()}`);
    return value;
  };
  const snapshotRecord = reading.get('snapshot', SNAPSHOT_KEY);
  const snapshot = snapshotRecord === undefined ? null : decodeSnapshot(snapshotRecord);
  const entries = readEntries(reading, decodeRange(meta(RANGE_KEY)));
  const applied = Math.max(decodeApplied(meta(APPLIED_KEY)), snapshot?.index ?? 0);
  const first = entries[0]?.index ?? applied + 1;
  if (first > (snapshot?.index ?? 0) + 1) throw damagedRecord(snapshot === null ? 'snapshot/snapshot' : entryName(snapshot.index + 1));
  return { identity: decodeIdentity(meta(IDENTITY_KEY)), hardState: decodeHardState(meta(HARD_STATE_KEY)), snapshot, entries, applied };
}

function readEntries(reading: Reading<ConsensusDatabase>, { first, last }: { readonly first: number; readonly last: number }): Entry[] {
  const entries: Entry[] = [];
  let index = first;
  for (const { key, value } of reading.range('entries', entryKey(0), ALL_ENTRIES)) {
    if (key.length !== 8 || first === 0 || indexOfKey(key) !== index || index > last)
      throw damagedRecord(entryName(first === 0 ? 1 : index));
    const entry = decodeEntry(value, index);
    if (entry.term < (entries.at(-1)?.term ?? 0)) throw damagedRecord(entryName(index));
    entries.push(entry);
    index++;
  }
  if (first !== 0 && index !== last + 1) throw damagedRecord(entryName(index));
  return entries;
}

const ALL_ENTRIES = Buffer.alloc(9, 0xff);

/** Makes packed changes in one transaction, which is on disk on return. Errors: `storage`; nothing has changed then. */
export function commitChanges(environment: Environment<ConsensusDatabase>, packed: readonly Uint8Array[]): void {
  environment.write(() => {
    for (const changes of packed) {
      for (const change of unpackChanges(changes)) {
        if (change.kind === 'put') environment.put(change.database, change.key, change.value);
        else if (change.kind === 'removeSnapshot') environment.remove('snapshot', SNAPSHOT_KEY);
        else removeEntries(environment, change.from, change.to);
      }
    }
  });
}

function removeEntries(environment: Environment<ConsensusDatabase>, from: number, to: number): void {
  while (environment.removeRange('entries', entryKey(from), entryKey(to), REMOVED_AT_ONCE) === REMOVED_AT_ONCE);
}
