/**
 * Reads a replica from its folder: appendable segments from the chunks that LMDB points at, sealed ones from their files. Damage that can
 * be rebuilt is repaired in the first transaction; any other damage ends the opening with the name of the file or record.
 */

import { TroupeError } from '../../protocols/errors.js';
import type { AppendFolder } from '../disk/append-file.js';
import type { Environment } from '../disk/lmdb.js';
import { afterPrefix } from '../disk/lmdb-tables.js';
import { openIndexOf } from '../segment/index/open.js';
import { closeSegmentFiles } from '../segment/payload-file.js';
import { canArriveLater, staysOnDisk } from '../segment/residence.js';
import { loadSealed, segmentFolder } from '../segment/sealed.js';
import type { ReplicaSpec } from '../threads/messages.js';
import {
  damagedRecord,
  decodeReplicaState,
  encodeReplicaState,
  ID_KEY_BYTES,
  MANIFEST_KEY,
  rowKey,
  rowOfKey,
  STATE_KEY,
  type StateRecord,
  segmentPrefix,
  writeIdKey,
} from '../wal/records.js';
import { loadValue, passingRoom } from '../wal/stored-value.js';
import { verifyFieldIndex, visitIndexedRows } from './appendable-index.js';
import { decodeManifest, encodeManifest, type Manifest, type ManifestField, type ManifestSegment } from './manifest.js';
import { mayLieAt } from './payload-records.js';
import { appendableOf, loadedCapacity, SegmentRows } from './segment-rows.js';
import { decodeStale, STALE_KEY } from './stale.js';
import type { ReplicaShape, Transaction } from './transaction.js';
import { decodeUnfinished, UNFINISHED_KEY } from './unfinished.js';

/** That of all keys. */
const NO_PREFIX = new Uint8Array(0);
const EMPTY_MANIFEST: Manifest = { segments: [], fields: [], nextSegment: 1, nextField: 1, dropped: [] };

/** Writes the records of a new environment. */
export function writeFirstRecords(environment: Environment): void {
  environment.put('meta', STATE_KEY, encodeReplicaState({ generation: 0, commit: 0, appliedOperation: 0, appendable: new Map() }));
  environment.put('meta', MANIFEST_KEY, encodeManifest(EMPTY_MANIFEST));
}

export interface LoadEvents {
  /** Awaited between files: others of the thread can have their turn. */
  readonly pause: () => Promise<void>;
  readonly warn: (message: string) => void;
}

export interface LoadedReplica {
  readonly shape: ReplicaShape;
  /** Rebuild damaged records whose content other records have. */
  readonly repairs: readonly ((transaction: Transaction) => void)[];
}

/**
 * Reads a replica's segments and state. hasIndexes: the indexes of appendable segments have the form that this release reads; else they are made
 * anew. Errors: `storage`, naming the file or record; what `on.pause` rejects with.
 */
export async function loadReplica(
  environment: Environment,
  rowFiles: AppendFolder,
  spec: ReplicaSpec,
  hasIndexes: boolean,
  on: LoadEvents,
): Promise<LoadedReplica> {
  const record = environment.get('meta', STATE_KEY);
  if (record === undefined) throw damagedRecord('meta/state');
  const shown = decodeReplicaState(record);
  const unfinished = decodeUnfinished(environment.get('meta', UNFINISHED_KEY));
  const state = { ...shown, ...unfinished?.real };
  const manifest = decodeManifest(environment.get('meta', MANIFEST_KEY) ?? new Uint8Array(0));
  const segments: SegmentRows[] = [];
  const repairs: ((transaction: Transaction) => void)[] = [];
  // A damaged page can hide records without any other sign: filters would find less. New ones might be hidden there, too.
  if (environment.count('index', NO_PREFIX, afterPrefix(NO_PREFIX)) !== environment.entryCount('index')) throw damagedRecord('index');
  try {
    for (const described of manifest.segments) {
      if (described.kind === 'sealed') segments.push(await loadSealedSegment(environment, spec, described, manifest.fields, on));
      else {
        const segment = loadAppendable(environment, rowFiles, spec, described, state, repairs, on.warn);
        segments.push(segment);
        // The newest rows of all fields are in the same records.
        const areWell = manifest.fields.map((field) => hasIndexes && isIndexWell(environment, segment, field, on.warn));
        if (!areWell.every(Boolean)) repairs.push((transaction) => transaction.remakeIndexes(segment));
      }
      await on.pause();
    }
  } catch (error) {
    for (const segment of segments) if (!segment.isAppendable) closeSegmentFiles(segment.handle);
    throw error;
  }
  rowFiles.settle();
  const { generation, commit, appliedOperation } = state;
  return {
    shape: {
      segments,
      manifest,
      generation,
      commit,
      appliedOperation,
      stale: decodeStale(environment.get('meta', STALE_KEY)),
      unfinished: unfinished?.unfinished ?? null,
    },
    repairs,
  };
}

async function loadSealedSegment(
  environment: Environment,
  spec: ReplicaSpec,
  described: ManifestSegment,
  fields: readonly ManifestField[],
  { pause, warn }: LoadEvents,
): Promise<SegmentRows> {
  const { handle, damagedFiles, damages } = await loadSealed(segmentFolder(spec.folder, described.id), {
    readers: spec.readers,
    onDiskPayload: spec.config.params.on_disk_payload,
    onDisk: (plan, rows) => staysOnDisk(plan, rows, spec.config),
    later: canArriveLater,
    fields: new Map(fields.map((field) => [field.name, field.schema])),
    pause,
  });
  for (const damage of damages) warn(`${damage}; it is built again`);
  const { scratchLevel } = handle.layout;
  if (scratchLevel > 0)
    warn(
      `segment ${described.id} is so large that up to ${2 ** scratchLevel} of ${spec.readers} readers take turns at it; the next build splits it`,
    );
  const segment = new SegmentRows(handle, handle.rows);
  segment.damagedFiles = damagedFiles;
  segment.dropVectors(described.dropped ?? []);
  loadDeletions(environment, segment);
  trackSealedFields(segment, fields);
  return segment;
}

function loadAppendable(
  environment: Environment,
  rowFiles: AppendFolder,
  spec: ReplicaSpec,
  described: ManifestSegment,
  state: StateRecord,
  repairs: ((transaction: Transaction) => void)[],
  warn: (message: string) => void,
): SegmentRows {
  const rows = state.appendable.get(described.id);
  const capacity = loadedCapacity(described.capacity, rows ?? 0);
  const segment = appendableOf(described.id, described.vectors ?? [], capacity, spec.readers);
  segment.statedCapacity = described.capacity;
  segment.deferred = described.deferred ?? false;
  const prefix = segmentPrefix(described.id);
  let records = 0;
  for (const { key, value } of environment.range('rows', prefix, afterPrefix(prefix))) {
    const name = `rows/${described.id}/${segment.rows}`;
    if (Buffer.compare(key, rowKey(described.id, segment.rows)) !== 0) throw damagedRecord(name);
    const holds = `rows of segment ${described.id} from ${segment.rows} on`;
    // Buffers of their own would be garbage that counts until the collector comes by: on a node that is nearly full, it is ended for that.
    const added = segment.loadChunk(loadValue(rowFiles, value, name, holds, passingRoom));
    if (added === null) throw damagedRecord(name);
    records += added;
  }
  if (segment.rows !== rows) throw damagedRecord(`rows/${described.id}/${segment.rows}`);
  // A key that was damaged may name a row that the segment does not have, or another one.
  const firsts: number[] = [];
  for (const { key, value } of environment.range('payload', prefix, rowKey(described.id, segment.rows)))
    if (mayLieAt(described.id, rowOfKey(key), value)) firsts.push(rowOfKey(key));
  if (records !== firsts.length) throw damagedRecord(`payload/${described.id}`);
  segment.loadPayloadRecords(firsts);
  segment.dropVectors(described.dropped ?? []);
  loadDeletions(environment, segment);
  if (!idsAgree(environment, segment)) {
    warn(`ids of segment ${segment.id} are damaged and made anew from its rows`);
    repairs.push((transaction) => remakeIds(transaction, segment));
  }
  return segment;
}

function loadDeletions(environment: Environment, segment: SegmentRows): void {
  const prefix = segmentPrefix(segment.id);
  for (const { key, value } of environment.range('deleted', prefix, afterPrefix(prefix))) {
    segment.loadDeletedBlock(rowOfKey(key), value);
  }
}

/**
 * Whether the live rows of an appendable segment have their id records, and a walk meets these and those of deleted rows (Slice-S3), no more
 * and no fewer: a record whose key is damaged can end a walk, and hide what lies behind it from everybody who lists ids.
 */
function idsAgree(environment: Environment, segment: SegmentRows): boolean {
  const prefix = segmentPrefix(segment.id);
  const key = Buffer.alloc(ID_KEY_BYTES);
  let records = 0;
  for (let row = 0; row < segment.rows; row++) {
    writeIdKey(segment.id, segment.idAt(row), key);
    if (environment.getUint32('ids', key) === row) records++;
    else if (segment.isLive(row)) return false;
  }
  return environment.count('ids', prefix, afterPrefix(prefix)) === records;
}

/** Deleted rows have theirs, too: readers may be at a time when they were live (Slice-S3). The last row of a point counts. */
function remakeIds(transaction: Transaction, segment: SegmentRows): void {
  const { environment } = transaction;
  const prefix = segmentPrefix(segment.id);
  environment.removeRange('ids', prefix, afterPrefix(prefix), Number.MAX_SAFE_INTEGER);
  const key = Buffer.alloc(ID_KEY_BYTES);
  const value = Buffer.alloc(4);
  for (let row = 0; row < segment.rows; row++) {
    writeIdKey(segment.id, segment.idAt(row), key);
    value.writeUInt32LE(row, 0);
    environment.put('ids', key, value);
  }
  // Damage may have moved a key out of its order; such a key cannot be found, and so not removed.
  if (!idsAgree(environment, segment)) throw damagedRecord(`ids/${segment.id}`);
}

/** Reads the index of a field in an appendable segment, and notes which rows have a value in it. Returns whether it is undamaged. */
function isIndexWell(environment: Environment, segment: SegmentRows, field: ManifestField, warn: (message: string) => void): boolean {
  segment.trackField(field.name);
  try {
    verifyFieldIndex(environment, segment.id, field.number);
    visitIndexedRows(environment, segment.id, field.number, (row) => segment.setIndexed(field.name, row, true));
    return true;
  } catch (error) {
    if (!(error instanceof TroupeError)) throw error;
    warn(`index of \`${field.name}\` in segment ${segment.id} is made anew: ${error.detail}`);
    return false;
  }
}

/** Counts, for each index of the segment, the live rows with a value. */
export function trackSealedFields(segment: SegmentRows, fields: readonly ManifestField[]): void {
  for (const handle of segment.handle.fieldIndexes) {
    const { field } = handle;
    if (segment.indexed.has(field) || !fields.some((known) => known.name === field)) continue;
    segment.trackField(field, openIndexOf(segment.handle, handle).indexedRows());
  }
}
