/**
 * The process that checks LMDB files (`verify-lmdb.ts` starts it): it walks every database of a file, and every checksum that must hold for the
 * replica or the consensus log to be opened. It ends when nobody has anything more for it.
 */

import { errorFacts, TroupeError } from '../../protocols/errors.js';
import { readConsensus } from '../consensus-log/environment.js';
import { CONSENSUS_DATABASES } from '../consensus-log/records.js';
import { initChecksum } from '../disk/checksum.js';
import { damagedPages } from '../disk/lmdb-meta.js';
import { SnapshotReader } from '../disk/lmdb-reader.js';
import { DATABASES, type DatabaseName, loadLmdb } from '../disk/lmdb-tables.js';
import { decodeManifest } from '../replica/manifest.js';
import { mayLieAt } from '../replica/payload-records.js';
import { decodeStale, STALE_KEY } from '../replica/stale.js';
import { decodeUnfinished, UNFINISHED_KEY } from '../replica/unfinished.js';
import {
  damagedRecord,
  decodeReplicaState,
  MANIFEST_KEY,
  operationOfKey,
  rowOfKey,
  STATE_KEY,
  segmentOfKey,
  uncheck,
  unseal,
} from '../wal/records.js';
import { CAN_BEGIN, CHILD_ARGUMENTS, dataFile, type FileVerdict, HAS_OPENED, lmdbFolder } from './check-messages.js';

if (process.send !== undefined) {
  const verify = process.argv[2] === CHILD_ARGUMENTS.consensus ? verifyLog : verifyReplica;
  loadLmdb();
  process.send(CAN_BEGIN);
  let last: Promise<unknown> = initChecksum();
  process.on('message', (folder: string) => {
    last = last.then(async () => {
      const verdict = await verify(folder);
      await new Promise((resolve) => process.send?.(verdict, resolve));
    });
  });
}

function verifyReplica(folder: string): Promise<FileVerdict> {
  return verdictOf(folder, DATABASES, walk);
}

function verifyLog(folder: string): Promise<FileVerdict> {
  return verdictOf(folder, CONSENSUS_DATABASES, (reader) => void readConsensus(reader));
}

async function verdictOf<Name extends string>(
  folder: string,
  databases: readonly Name[],
  read: (reader: SnapshotReader<Name>) => void,
): Promise<FileVerdict> {
  let reader: SnapshotReader<Name> | null = null;
  try {
    const damaged = damagedPages(dataFile(folder));
    if (damaged !== null) return { damaged: `${dataFile(folder)}: ${damaged}` };
    reader = SnapshotReader.openReadOnly(lmdbFolder(folder), databases, () => process.send?.(HAS_OPENED));
    reader.refresh();
    read(reader);
    return { damaged: null };
  } catch (error) {
    if (isLack(error)) return { lacking: errorFacts(error).detail };
    return { damaged: `${error instanceof TroupeError ? folder : dataFile(folder)}: ${errorFacts(error).detail}` };
  } finally {
    await reader?.close();
  }
}

/** What the system refuses says nothing about the file. */
function isLack(error: unknown): boolean {
  return errorFacts(error).outcome === 'none' || (error as NodeJS.ErrnoException).syscall !== undefined;
}

function walk(reader: SnapshotReader): void {
  const state = decodeReplicaState(reader.get('meta', STATE_KEY) ?? missing('meta/state'));
  const manifest = decodeManifest(reader.get('meta', MANIFEST_KEY) ?? missing('meta/manifest'));
  decodeStale(reader.get('meta', STALE_KEY));
  decodeUnfinished(reader.get('meta', UNFINISHED_KEY));
  const known = new Set([...manifest.segments.map(({ id }) => id), ...manifest.dropped]);
  for (const database of DATABASES) {
    let entries = 0;
    let last: Uint8Array | null = null;
    const isMadeAnew = database === 'ids' || database === 'index';
    for (const { key, value } of reader.range(database, FIRST_KEY, LAST_KEY)) {
      verifyRecord(database, key, value, state.appliedOperation);
      // Checksums are of values: a damaged key makes a record another one's, and its own is missing.
      const isOutOfOrder = last !== null && Buffer.compare(last, key) >= 0;
      if (!isMadeAnew && (isOutOfOrder || !isOfSegment(database, key, known))) missing(nameOf(database, key));
      last = key;
      entries++;
    }
    // A damaged page can hide records without any other sign: deleted points would come back, filters find less. The store makes ids anew.
    if (database !== 'ids' && entries !== reader.entryCount(database)) missing(database);
  }
}

const FIRST_KEY = Uint8Array.of(0);
const LAST_KEY = Buffer.alloc(64, 0xff);

function verifyRecord(database: DatabaseName, key: Uint8Array, value: Uint8Array, applied: number): void {
  const name = (): string => nameOf(database, key);
  if (database === 'rows') unseal(value, name);
  else if (database === 'deleted') uncheck(value, name);
  else if (database === 'payload') {
    if (key.length === SEGMENT_KEY_BYTES && !mayLieAt(segmentOfKey(key), rowOfKey(key), value)) missing(name());
  }
  // What is applied is kept for other replicas only.
  else if (database === 'wal' && operationOfKey(key) > applied) unseal(value, name);
}

/** Whether a record of rows belongs to a segment that is there, or is being removed; other records do not say. */
function isOfSegment(database: DatabaseName, key: Uint8Array, segments: ReadonlySet<number>): boolean {
  if (database === 'meta' || database === 'wal') return true;
  return key.length === SEGMENT_KEY_BYTES && segments.has(segmentOfKey(key));
}

/** Of keys in `rows`, `payload` and `deleted`. */
const SEGMENT_KEY_BYTES = 8;

function nameOf(database: DatabaseName, key: Uint8Array): string {
  return `${database}/${Buffer.from(key).toString('hex')}`;
}

function missing(name: string): never {
  throw damagedRecord(name);
}
