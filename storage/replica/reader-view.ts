/** The LMDB environment of a replica for threads that do not write it: the state, and the appendable segments' records. */

import path from 'node:path';
import { rethrowBroken } from '../../protocols/invariant.js';
import type { PointId } from '../../protocols/model/point-id.js';
import type { FieldIndex } from '../../query/filter/source.js';
import { SnapshotReader } from '../disk/lmdb-reader.js';
import { afterPrefix, type LmdbEntry } from '../disk/lmdb-tables.js';
import {
  damagedRecord,
  decodeReplicaState,
  ID_KEY_BYTES,
  isLeftState,
  MANIFEST_KEY,
  STATE_KEY,
  type StateRecord,
  segmentPrefix,
  writeIdKey,
} from '../wal/records.js';
import { appendableFieldIndex } from './appendable-index.js';
import { decodeManifest, type ManifestField } from './manifest.js';
import { PayloadReader, type PayloadSegment } from './payload-records.js';

const SCAN_PAGE_ENTRIES = 256;

/** Reads of a replica. All reads between a `refresh` and the next one (or `release`) use one snapshot. */
export interface ReplicaView {
  /**
   * Moves to the newest commit and returns its state. commits: the writer's count (`Environment.commits`). While it stays the same, the snapshot may be
   * the one of a moment before. Errors: `storage`.
   */
  refresh(commits?: Int32Array): StateRecord;
  /** Releases the snapshot, now or soon. Call it when a request is done, as a held snapshot keeps LMDB from reusing old pages. */
  release(): void;
  /** JSON text of the payload of an appendable segment's row, `{}` for an empty one. Errors: `storage` if it is damaged. */
  payloadText(segment: PayloadSegment, row: number): Uint8Array;
  /** The row of an appendable segment that holds a point now. */
  findRow(segment: number, id: PointId): number | undefined;
  /** Rows of an appendable segment's points in id order, from an id on; null to start with the first. */
  scanIds(segment: number, from: PointId | null): IterableIterator<number>;
  /**
   * An appendable segment's index of a field over its first `rows` rows; undefined if the field has none. Valid until the snapshot is
   * released.
   */
  fieldIndex(segment: number, field: string, rows: number): FieldIndex | undefined;
  /** Lets go of a file that another one has replaced (Room-R10), which keeps its room on the disk until then. */
  leaveReplaced(): void;
  close(): Promise<void>;
}

/**
 * Opens the view. folder: the replica's, or its `lmdb` folder. The replica's writer, in this process, must have opened it before.
 * `initChecksum` must have been awaited in this thread. Errors: `storage`.
 */
export function openReplicaView(folder: string): ReplicaView {
  return new LmdbReplicaView(path.basename(folder) === 'lmdb' ? folder : path.join(folder, 'lmdb'));
}

/** A snapshot is held for so long while no commit comes (View-V7). */
const HELD_MS = 10;

/** The newest state, as long as no commit comes. */
interface HeldState {
  readonly state: StateRecord;
  readonly commits: Int32Array;
  readonly count: number;
  /** Null: LMDB has no row of it, so it needs no snapshot, and is the newest for as long as nothing is committed. */
  readonly snapshot: { readonly untilMs: number; readonly ends: NodeJS.Timeout } | null;
}

class LmdbReplicaView implements ReplicaView {
  private reader: SnapshotReader;
  private readonly payloads = new PayloadReader({ get: (...key) => this.reader.get(...key), peek: (...key) => this.reader.peek(...key) });
  private held: HeldState | null = null;
  private readonly idKey = Buffer.alloc(ID_KEY_BYTES);
  private generation = -1;
  private fieldsGeneration = -1;
  private fields: ReadonlyMap<string, ManifestField> = new Map();

  constructor(private readonly folder: string) {
    this.reader = SnapshotReader.openReadOnly(folder);
  }

  refresh(commits?: Int32Array): StateRecord {
    const { held } = this;
    if (held !== null && held.commits === commits && held.count === Atomics.load(commits, 0)) {
      if (held.snapshot === null || performance.now() < held.snapshot.untilMs) return held.state;
    }
    this.letGo();
    // Before the snapshot: a commit between the two counts as one that it does not have.
    const count = commits === undefined ? 0 : Atomics.load(commits, 0);
    let record = this.newestState();
    if (isLeftState(record)) {
      this.reopen();
      record = this.newestState();
    }
    const state = decodeReplicaState(record);
    this.generation = state.generation;
    if (commits !== undefined) this.held = { state, commits, count, snapshot: hasRows(state) ? this.holdSnapshot() : null };
    return state;
  }

  private holdSnapshot(): HeldState['snapshot'] {
    const ends = setTimeout(() => this.letGo(), HELD_MS);
    ends.unref();
    return { untilMs: performance.now() + HELD_MS, ends };
  }

  private letGo(): void {
    clearTimeout(this.held?.snapshot?.ends);
    this.held = null;
    this.reader.release();
  }

  private newestState(): Uint8Array {
    this.reader.refresh();
    const record = this.reader.peek('meta', STATE_KEY);
    if (record === undefined) throw damagedRecord('meta/state');
    return record;
  }

  /** A smaller file is in the place of the one that is read (Room-R10). */
  private reopen(): void {
    const { reader } = this;
    reader.release();
    this.reader = SnapshotReader.openReadOnly(this.folder);
    reader.close().catch(() => {});
  }

  release(): void {
    if (this.held?.snapshot == null) this.reader.release();
  }

  payloadText(segment: PayloadSegment, row: number): Uint8Array {
    return this.payloads.text(segment, row);
  }

  findRow(segment: number, id: PointId): number | undefined {
    writeIdKey(segment, id, this.idKey);
    return this.reader.getUint32('ids', this.idKey);
  }

  *scanIds(segment: number, from: PointId | null): IterableIterator<number> {
    const prefix = segmentPrefix(segment);
    const end = afterPrefix(prefix);
    let start: Uint8Array = prefix;
    if (from !== null) {
      start = Buffer.alloc(ID_KEY_BYTES);
      writeIdKey(segment, from, start as Buffer);
    }
    // Read in pages, so that a caller that stops early leaves no cursor that holds the snapshot.
    for (;;) {
      const page = this.reader.page('ids', start, end, SCAN_PAGE_ENTRIES);
      for (const { value } of page) yield new DataView(value.buffer, value.byteOffset, 4).getUint32(0, true);
      if (page.length < SCAN_PAGE_ENTRIES) return;
      start = Buffer.concat([(page.at(-1) as LmdbEntry).key, Uint8Array.of(0)]);
    }
  }

  fieldIndex(segment: number, field: string, rows: number): FieldIndex | undefined {
    const known = this.knownFields().get(field);
    return known && appendableFieldIndex(this.reader, segment, known.number, known.schema, rows);
  }

  leaveReplaced(): void {
    try {
      if (isLeftState(this.newestState())) this.reopen();
    } catch (error) {
      // Whoever reads next is told.
      rethrowBroken(error);
    }
    this.letGo();
  }

  async close(): Promise<void> {
    this.letGo();
    await this.reader.close();
  }

  /** The fields, read once for each generation, as they change only with it. */
  private knownFields(): ReadonlyMap<string, ManifestField> {
    if (this.fieldsGeneration !== this.generation) {
      const record = this.reader.get('meta', MANIFEST_KEY);
      if (record === undefined) throw damagedRecord('meta/manifest');
      this.fields = new Map(decodeManifest(record).fields.map((field) => [field.name, field]));
      this.fieldsGeneration = this.generation;
    }
    return this.fields;
  }
}

/** Whether LMDB has rows of the state: those of sealed segments are in their files. */
function hasRows({ appendable }: StateRecord): boolean {
  for (const rows of appendable.values()) if (rows > 0) return true;
  return false;
}
