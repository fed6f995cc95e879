/**
 * One change of a replica: rows and marks in shared memory and records in LMDB, made together or not at all.
 *
 * The order keeps readers right without a lock. Memory is filled first, where no reader looks yet: rows lie after the counts of the state
 * record, and deletion marks carry the sequence of a commit that has not happened yet. The LMDB commit then shows everything at once. If it
 * fails, `undo` restores the memory.
 */

import { TroupeError } from '../../protocols/errors.js';
import { invariant } from '../../protocols/invariant.js';
import { parseStored, parseValues } from '../../protocols/json.js';
import { type FieldSchema, sameSchema } from '../../protocols/model/collection.js';
import type { Condition, Filter } from '../../protocols/model/filter.js';
import type { Payload } from '../../protocols/model/payload.js';
import type { PointId } from '../../protocols/model/point-id.js';
import { matchesPayload } from '../../query/filter/predicate.js';
import type { FieldIndex, FilterSource } from '../../query/filter/source.js';
import type { AppendFolder } from '../disk/append-file.js';
import type { Environment } from '../disk/lmdb.js';
import { afterPrefix } from '../disk/lmdb-tables.js';
import { spend } from '../disk/meter.js';
import type { SegmentSet } from '../segment/handle.js';
import { findRow } from '../segment/ids.js';
import { openIndexOf } from '../segment/index/open.js';
import type { VectorPlan } from '../segment/layout.js';
import { readPayloadText } from '../segment/payload-file.js';
import {
  damagedRecord,
  encodeReplicaState,
  ID_KEY_BYTES,
  MANIFEST_KEY,
  rowKey,
  STATE_KEY,
  type StateRecord,
  segmentPrefix,
  writeIdKey,
} from '../wal/records.js';
import { AddedRows } from './added-rows.js';
import { appendableFieldIndex, IndexWriter } from './appendable-index.js';
import { bucketOfId, bucketOfRow, type RowChange } from './digest.js';
import { fieldPrefix } from './index-leaves.js';
import { encodeManifest, type Manifest, type ManifestField, type ManifestSegment } from './manifest.js';
import { EMPTY_PAYLOAD, PayloadReader } from './payload-records.js';
import type { RowItems, SegmentRows } from './segment-rows.js';
import type { IsOver } from './slices.js';
import { encodeStale, isStale, STALE_KEY, type StaleBuckets } from './stale.js';
import { UndoLog } from './undo-log.js';
import { type Cursor, encodeUnfinished, UNFINISHED_KEY, type Unfinished } from './unfinished.js';

/** The place of a point's row. */
export interface Location {
  readonly segment: SegmentRows;
  readonly row: number;
}

/** The state that a transaction starts from and, if it succeeds, the state after it. */
export interface ReplicaShape {
  readonly segments: readonly SegmentRows[];
  readonly manifest: Manifest;
  readonly generation: number;
  readonly commit: number;
  readonly appliedOperation: number;
  readonly stale: StaleBuckets;
  /** The operation of which some slices are applied; null if there is none. */
  readonly unfinished: Unfinished | null;
}

/** Counts filters for which payloads are read, as no index has their fields. */
export interface FilterScans {
  /** What follows belongs to another operation. */
  next(): void;
  /** Called before `rows` payloads are read for these conditions; the answer is called when they are read. Undefined: nothing is to be told. */
  begin(conditions: readonly Condition[], schemaOf: (field: string) => FieldSchema | undefined, rows: number): (() => void) | undefined;
}

/** The part of a replica that a transaction uses. */
export interface TransactionHost {
  readonly environment: Environment;
  /** The files of appendable segments' rows, by segment id; the host syncs them before the commit. */
  readonly rowFiles: AppendFolder;
  readonly openCommit: number;
  /** Whether `rowChanges` are collected. */
  readonly keepsDigest: boolean;
  /** A number that no earlier set had, committed or not. */
  nextGeneration(): number;
  /** Segments that rows are shared out to as long as there are fewer (`default_segment_number`); 1 where the collection says nothing. */
  readonly segmentsWanted: number;
  /** A new empty appendable segment beside these, with an id that was never used, with room for a row with these items. */
  makeSegment(segments: readonly SegmentRows[], items?: RowItems): SegmentRows;
  /** Whether new rows are deferred, given these segments. */
  defers(segments: readonly SegmentRows[], manifest: Manifest): boolean;
  /** Absent: filters that read payloads are not counted. */
  readonly scans?: FilterScans | undefined;
  /** Called before the commit that makes the set current. */
  publish(set: SegmentSet, fields: ReadonlyMap<string, FieldSchema>): void;
}

/** Rows to index between two looks at the clock. */
const ROWS_PER_LOOK = 16;
const REMOVE_AT_ONCE = 4096;

export class Transaction {
  /** Commit sequence for the deletion marks of this transaction. */
  readonly seq: number;
  segments: readonly SegmentRows[];
  manifest: Manifest;
  appliedOperation: number;
  stale: StaleBuckets;
  unfinished: Unfinished | null;
  /** Bytes of the payloads that were set. */
  payloadBytes = 0;
  private generation: number;
  private commit: number;
  private reshaped = false;
  private readonly index = new IndexWriter();
  private readonly added: AddedRows;
  private readonly payloads: PayloadReader;
  private readonly deletedBlocks = new Map<SegmentRows, Set<number>>();
  private readonly undos = new UndoLog();
  /** Rows that became live or are live no more; collected if a digest is kept. */
  readonly rowChanges: RowChange[] = [];
  /** Segments that this transaction removes because they have no point any more. */
  readonly emptied: SegmentRows[] = [];
  private readonly idKey = Buffer.alloc(ID_KEY_BYTES);
  private readonly idValue = Buffer.alloc(4);

  constructor(
    private readonly host: TransactionHost,
    private readonly before: ReplicaShape,
  ) {
    this.added = new AddedRows(host);
    this.payloads = new PayloadReader(host.environment);
    this.segments = before.segments;
    this.manifest = before.manifest;
    this.generation = before.generation;
    this.appliedOperation = before.appliedOperation;
    this.stale = before.stale;
    this.unfinished = before.unfinished;
    this.commit = before.commit + 1;
    this.seq = this.commit - host.openCommit;
  }

  get environment(): Environment {
    return this.host.environment;
  }

  get shape(): ReplicaShape {
    const { segments, manifest, generation, commit, appliedOperation, stale, unfinished } = this;
    return { segments, manifest, generation, commit, appliedOperation, stale, unfinished };
  }

  // ---------------------------------------------------------------- points

  /** The newest row of a point. */
  find(id: PointId, among: (segment: SegmentRows) => boolean = () => true): Location | undefined {
    for (let at = this.segments.length - 1; at >= 0; at--) {
      const segment = this.segments[at] as SegmentRows;
      if (segment.live === 0 || !among(segment)) continue;
      const row = this.rowOf(segment, id);
      if (row !== undefined && segment.isLive(row)) return { segment, row };
    }
    return undefined;
  }

  /** The newest row of a point that must exist. Errors: `notFound` if it does not, unless only the leader may have it (Bucket-B2). */
  findNeeded(id: PointId): Location | undefined {
    const location = this.find(id);
    if (location === undefined && !isStale(this.stale, bucketOfId(id))) throw new TroupeError('notFound', `No point with id ${id} found`);
    return location;
  }

  /** Whether a point may be older than an operation assumes (Bucket-B1). */
  isStale({ row, segment }: Location): boolean {
    return this.stale !== null && isStale(this.stale, bucketOfRow(segment, row));
  }

  /** Whether a point passes a filter. */
  matches(filter: Filter, location: Location): boolean {
    const { segment, row } = location;
    const point = {
      id: segment.idAt(row),
      payload: this.payload(location),
      hasVector: (name: string) => hasVectorNamed(segment, name, row),
    };
    return matchesPayload(filter, point, (key) => this.fieldSchema(key));
  }

  /** A new row for a point, without vectors and payload, in a segment with room for its items. Call `remove` for its old row afterwards. */
  append(id: PointId, version: number, items: RowItems): Location {
    const segment = this.writableSegment(items);
    this.added.begin(segment);
    const row = segment.append(id, version);
    writeIdKey(segment.id, id, this.idKey);
    this.idValue.writeUInt32LE(row, 0);
    this.environment.put('ids', this.idKey, this.idValue);
    this.noteRow(segment, row, 1);
    return { segment, row };
  }

  private noteRow(segment: SegmentRows, row: number, sign: 1 | -1): void {
    if (this.host.keepsDigest) this.rowChanges.push({ segment, row, sign });
  }

  /**
   * Removes a point's newest row. replacement: the point's new row. If the new row is deferred, readers keep the row that they see. If the
   * removed row is deferred and the new one is not, the row that readers see is marked deleted too (Defer-D2).
   */
  remove(location: Location, replacement?: Location): void {
    const { segment, row } = location;
    const staysDeferred = replacement?.segment.deferred === true;
    if (!segment.deferred && staysDeferred) {
      this.hold(location);
      return;
    }
    this.markDeleted(location, replacement);
    if (!segment.deferred) return;
    const id = segment.idAt(row);
    if (staysDeferred) {
      if (segment.building) this.setOutrun(segment, id, row);
      const isShownByBuild = segment.building && !this.segments.some((other) => !other.building && other.held.has(id));
      if (!isShownByBuild) this.inheritFrom(segment, replacement.segment);
      return;
    }
    for (const known of this.segments) {
      const older = known.held.get(id);
      if (older !== undefined) this.markDeleted({ segment: known, row: older }, replacement);
      if (known.outrun.has(id)) this.setOutrun(known, id, undefined);
    }
  }

  /** Whoever waits for the replaced row of a deferred segment waits for the new one, as reads see the point's older row until then. */
  private inheritFrom(replaced: SegmentRows, segment: SegmentRows): void {
    const { deferredFrom } = segment;
    if (replaced.deferredFrom >= deferredFrom) return;
    segment.deferredFrom = replaced.deferredFrom;
    this.onUndo(() => {
      segment.deferredFrom = deferredFrom;
    });
  }

  private setOutrun(segment: SegmentRows, id: PointId, row: number | undefined): void {
    const before = segment.outrun.get(id);
    const put = (value: number | undefined): unknown => (value === undefined ? segment.outrun.delete(id) : segment.outrun.set(id, value));
    put(row);
    this.onUndo(() => put(before));
  }

  /** Holds a live row, so that only readers see it. */
  hold({ segment, row }: Location): void {
    segment.hold(row);
    this.noteRow(segment, row, -1);
    this.undos.addRow('held', segment, row);
  }

  /** Marks a row deleted, whatever other rows its point has. */
  markDeleted({ segment, row }: Location, replacement?: Location): void {
    const wasHeld = !segment.isLive(row);
    const block = segment.markDeleted(row, this.seq);
    if (!wasHeld) this.noteRow(segment, row, -1);
    this.undos.addRow(wasHeld ? 'deletedHeld' : 'deleted', segment, row);
    const blocks = this.deletedBlocks.get(segment);
    if (blocks === undefined) this.deletedBlocks.set(segment, new Set([block]));
    else blocks.add(block);
    if (!segment.isAppendable || replacement?.segment === segment) return;
    // Readers still find the row by its id until the operation ends (Slice-S3).
    if (this.unfinished?.closed.has(segment.id) === true) return;
    writeIdKey(segment.id, segment.idAt(row), this.idKey);
    this.environment.remove('ids', this.idKey);
  }

  /** JSON text of a row's payload, `{}` for an empty one. */
  payloadText(location: Location): Uint8Array {
    const text = this.storedPayload(location);
    if (text.length > EMPTY_PAYLOAD.length) spend('payload_io_read', text.length);
    return text;
  }

  private storedPayload({ row, segment }: Location): Uint8Array {
    if (!segment.isAppendable) return readPayloadText(segment.handle, row);
    const open = this.added.openPayloads(segment);
    return open !== null && row >= open.from ? open.text(row) : this.payloads.text(segment.handle, row);
  }

  payload(location: Location): Payload {
    const text = this.payloadText(location);
    return text.length === 2 ? {} : (parseStored(text) as Payload);
  }

  /**
   * Sets the payload of a row that this transaction added. text: nobody changes it any more. payload: if absent, it is parsed from `text` where it is
   * needed.
   */
  setPayload({ segment, row }: Location, text: Uint8Array, payload?: Payload): void {
    if (text.length <= 2) return;
    spend('payload_io_write', text.length);
    this.payloadBytes += text.length;
    this.added.addPayload(segment, row, text);
    if (this.manifest.fields.length === 0) return;
    const value = payload ?? (parseValues(text) as Payload);
    for (const field of this.manifest.fields) if (this.index.add(segment.id, field, row, value)) segment.setIndexed(field.name, row, true);
  }

  /** Writes collected index records, so that filters find what was added. */
  flushIndex(): void {
    for (const _ of this.flushingIndex(() => () => false));
  }

  /** As `flushIndex`, in portions, between which nothing is added. */
  *flushingIndex(beginPortion: () => IsOver): Generator<null, void> {
    const isField = (fieldNumber: number): boolean => this.manifest.fields.some(({ number }) => number === fieldNumber);
    yield* this.index.flushing(this.environment, isField, beginPortion);
  }

  /** Whether it is time to write the collected index records, within an operation that touches many points. */
  get isIndexFull(): boolean {
    return this.index.isFull;
  }

  // ---------------------------------------------------------------- slices

  /** Begins the first slice of an operation: from now on its new rows go to other segments than those that have rows (Slice-S3). */
  beginSlices(operation: number, next: Cursor): void {
    const closed = new Set(this.segments.filter(({ rows }) => rows > 0).map(({ id }) => id));
    this.unfinished = { operation, shownCommit: this.commit - 1, closed, next };
  }

  /** Ends a slice that is not the last one. */
  endSlice(next: Cursor): void {
    if (this.unfinished !== null) this.unfinished = { ...this.unfinished, next };
  }

  /**
   * Ends the last slice, or gives the operation up: readers see what is there. The segments that took no rows meanwhile take none afterwards,
   * so that they are sealed as full ones are; those without any point go.
   */
  endSlices(): void {
    const { unfinished } = this;
    this.unfinished = null;
    if (unfinished === null) return;
    const closed = this.segments.filter((segment) => segment.isAppendable && unfinished.closed.has(segment.id));
    const empty = closed.filter(({ building, deferred, held, live }) => live === 0 && held.size === 0 && !deferred && !building);
    if (empty.length > 0) this.removeSegments(empty.map(({ id }) => id));
    this.emptied.push(...empty);
    const hasOthers = this.segments.some(({ id, isAppendable, rows }) => isAppendable && rows > 0 && !unfinished.closed.has(id));
    if (hasOthers) for (const segment of closed) this.freeze(segment);
  }

  // ---------------------------------------------------------------- shape

  addSegment(segment: SegmentRows): void {
    const isUsed = this.segments.some(({ id }) => id === segment.id) || this.manifest.dropped.includes(segment.id);
    invariant(!isUsed, 'Wal-W4', () => `segment ${segment.id} is added a second time`);
    for (const field of this.manifest.fields) if (segment.isAppendable) segment.trackField(field.name);
    this.reshape([...this.segments, segment], { nextSegment: Math.max(this.manifest.nextSegment, segment.id + 1) });
  }

  removeSegments(ids: readonly number[]): void {
    const kept = this.segments.filter((segment) => !ids.includes(segment.id));
    this.reshape(kept, { dropped: [...this.manifest.dropped, ...ids] });
  }

  /**
   * Publishes the segments with the vectors that the collection has now. Segments whose vectors differ take no more rows; empty ones among
   * these are dropped.
   */
  keepVectors(plans: readonly VectorPlan[]): void {
    for (const segment of this.segments) {
      const undo = segment.keepVectors(plans);
      if (undo !== null) this.onUndo(undo);
    }
    if (!this.removeUseless()) this.reshape(this.segments);
  }

  /** Replaces the set of segments, whenever a handle has changed or readers must be told of another change. */
  reshape(segments: readonly SegmentRows[], changes: Partial<Manifest> = {}): void {
    this.reshaped = true;
    this.segments = segments;
    this.manifest = {
      ...this.manifest,
      ...changes,
      segments: segments.map(describe),
    };
  }

  /** Adds a function that runs if the transaction fails, in reverse order. */
  onUndo(undo: () => void): void {
    this.undos.add(undo);
  }

  /** Writes all deletion bits of a segment that is new in the replica. */
  storeDeletions(segment: SegmentRows): void {
    this.deletedBlocks.set(segment, new Set(segment.deletedBlocks()));
  }

  // ---------------------------------------------------------------- payload indexes

  createField(name: string, schema: FieldSchema): void {
    for (const _ of this.creatingField(name, schema, () => () => false));
  }

  /** As `createField`, with pauses. beginPortion: begins what is done between two of them, and returns a function that says when that is over. */
  *creatingField(name: string, schema: FieldSchema, beginPortion: () => IsOver): Generator<null, void> {
    this.deleteField(name);
    const field: ManifestField = { name, number: this.manifest.nextField, schema };
    this.reshape(this.segments, { fields: [...this.manifest.fields, field], nextField: field.number + 1 });
    for (const segment of this.segments) if (segment.isAppendable) yield* this.indexingRows(segment, field, beginPortion);
  }

  deleteField(name: string): void {
    const field = this.manifest.fields.find((known) => known.name === name);
    if (field === undefined) return;
    for (const segment of this.segments) this.dropField(segment, field);
    this.reshape(this.segments, { fields: this.manifest.fields.filter((known) => known !== field) });
  }

  /** Makes the indexes of all fields in an appendable segment anew from its rows. */
  remakeIndexes(segment: SegmentRows): void {
    this.flushIndex();
    this.clearIndex(segmentPrefix(segment.id));
    for (const field of this.manifest.fields) for (const _ of this.indexingRows(segment, field, () => () => false));
  }

  /** Adds the live rows of an appendable segment to a field's index, in portions. */
  private *indexingRows(segment: SegmentRows, field: ManifestField, beginPortion: () => IsOver): Generator<null, void> {
    segment.trackField(field.name);
    this.onUndo(() => segment.indexed.delete(field.name));
    let isOver = beginPortion();
    for (let row = 0; row < segment.rows; row++) {
      if (segment.counts(row) && this.index.add(segment.id, field, row, this.payload({ segment, row })))
        segment.setIndexed(field.name, row, true);
      if (row % ROWS_PER_LOOK !== ROWS_PER_LOOK - 1) continue;
      const isFull = this.index.isFull;
      if (!isFull && !isOver()) continue;
      yield null;
      if (isFull) yield* this.flushingIndex(beginPortion);
      isOver = beginPortion();
    }
    yield* this.flushingIndex(beginPortion);
  }

  private clearIndex(prefix: Uint8Array): void {
    while (this.environment.removeRange('index', prefix, afterPrefix(prefix), REMOVE_AT_ONCE) === REMOVE_AT_ONCE);
  }

  private dropField(segment: SegmentRows, field: ManifestField): void {
    const tracked = segment.indexed.get(field.name);
    segment.indexed.delete(field.name);
    const { handle } = segment;
    segment.handle = { ...handle, fieldIndexes: handle.fieldIndexes.filter((index) => index.field !== field.name) };
    this.onUndo(() => {
      segment.handle = handle;
      if (tracked !== undefined) segment.indexed.set(field.name, tracked);
    });
    if (!segment.isAppendable) return;
    // The newest rows of the field stay in records that they share with other fields, and are left out when these are filed.
    this.flushIndex();
    this.clearIndex(fieldPrefix(segment.id, field.number));
  }

  // ---------------------------------------------------------------- end

  /** See `AddedRows.storeEarly`. */
  storeEarly(): void {
    this.added.storeEarly();
  }

  /** Writes everything that was collected; the last step before the commit. */
  flush(): void {
    this.flushIndex();
    this.added.storeAll();
    for (const [segment, blocks] of this.deletedBlocks) {
      for (const block of blocks) this.environment.put('deleted', rowKey(segment.id, block), segment.deletedBlock(block));
    }
    if (this.reshaped) {
      const before = this.generation;
      this.generation = this.host.nextGeneration();
      invariant(this.generation > before, 'Wal-W4', () => `generation ${this.generation} comes after generation ${before}`);
      this.environment.put('meta', MANIFEST_KEY, encodeManifest(this.manifest));
    }
    if (this.stale !== this.before.stale) this.storeStale();
    this.storeState();
    if (this.reshaped) this.host.publish(this.segmentSet(), fieldsOf(this.manifest));
  }

  /** Whether all that would be written is there already; unless something was written by other ways. */
  get isAsBefore(): boolean {
    const { appliedOperation, before, manifest, stale, unfinished } = this;
    const isSame = appliedOperation === before.appliedOperation && stale === before.stale && unfinished === before.unfinished;
    if (!isSame || this.emptied.length > 0 || !this.added.isEmpty || this.deletedBlocks.size > 0 || !this.index.isEmpty) return false;
    return Buffer.compare(encodeManifest(manifest), encodeManifest(before.manifest)) === 0;
  }

  /** In the place of `flush` where everything `isAsBefore`: shows the segments as the set that the newest commit made current. */
  show(): void {
    this.commit = this.before.commit;
    this.host.publish(this.segmentSet(), fieldsOf(this.manifest));
  }

  private storeStale(): void {
    if (this.stale === null) this.environment.remove('meta', STALE_KEY);
    else this.environment.put('meta', STALE_KEY, encodeStale(this.stale));
  }

  get hasNewGeneration(): boolean {
    return this.reshaped;
  }

  /** Undoes all changes of the memory. */
  undo(): void {
    // A row may have been added and deleted by this transaction, so marks are undone first.
    this.undos.run();
    this.added.undo();
  }

  /** While an operation is unfinished, the state record says what readers see: the replica before it (Slice-S3). */
  private storeState(): void {
    const { appliedOperation, commit, generation, unfinished } = this;
    const appendable = this.segments.filter((segment) => segment.isAppendable);
    const counts = new Map(appendable.map(({ id, rows }) => [id, rows]));
    let state: StateRecord = { generation, commit, appliedOperation, appendable: counts };
    if (unfinished !== null) {
      this.environment.put('meta', UNFINISHED_KEY, encodeUnfinished(unfinished, state));
      const shown = new Map(appendable.map(({ id, rows }) => [id, unfinished.closed.has(id) ? rows : 0]));
      state = { generation, commit: unfinished.shownCommit, appliedOperation, appendable: shown };
    } else if (this.before.unfinished !== null) this.environment.remove('meta', UNFINISHED_KEY);
    this.environment.put('meta', STATE_KEY, encodeReplicaState(state));
  }

  private segmentSet(): SegmentSet {
    return { generation: this.generation, segments: this.segments.filter((segment) => !segment.deferred).map((segment) => segment.handle) };
  }

  private rowOf(segment: SegmentRows, id: PointId): number | undefined {
    if (!segment.isAppendable) return findRow(segment.handle, id);
    writeIdKey(segment.id, id, this.idKey);
    const row = this.environment.getUint32('ids', this.idKey);
    if (row === undefined) return undefined;
    if (row >= segment.rows || segment.idAt(row) !== id) throw damagedRecord(`ids/${segment.id}/${id}`);
    return row;
  }

  /**
   * The segment for a new row. A segment with too little room for the row's items takes no more rows at all: only a few smaller rows would
   * still fit. While there are fewer segments than wanted, another one is made, and of several that take rows the one with the fewest gets it.
   */
  private writableSegment(items: RowItems): SegmentRows {
    const defers = this.host.defers(this.segments, this.manifest);
    const wanted = this.host.segmentsWanted;
    let emptiest: SegmentRows | undefined;
    for (let at = this.segments.length - 1; at >= 0; at--) {
      const segment = this.segments[at] as SegmentRows;
      if (segment.room === 0 || this.unfinished?.closed.has(segment.id) === true) continue;
      // While rows are deferred, segments that readers see get no more rows.
      if (segment.fits(items) && (segment.deferred || !defers)) {
        if (wanted === 1) return segment;
        if (emptiest === undefined || segment.rows < emptiest.rows) emptiest = segment;
      } else this.freeze(segment);
    }
    if (emptiest !== undefined && (emptiest.rows === 0 || this.segments.length >= wanted)) return emptiest;
    const segment = this.host.makeSegment(this.segments, items);
    segment.deferred = defers;
    segment.deferredFrom = this.appliedOperation + 1;
    // Such as a small first one whose first row is large.
    this.removeUseless();
    this.addSegment(segment);
    return segment;
  }

  /** Lets a segment take no more rows. */
  private freeze(segment: SegmentRows): void {
    if (segment.frozen) return;
    segment.frozen = true;
    this.onUndo(() => {
      segment.frozen = false;
    });
  }

  /** Removes segments that have no rows and take none. Returns whether there are any. */
  private removeUseless(): boolean {
    const useless = this.segments.filter(({ building, isAppendable, room, rows }) => isAppendable && rows === 0 && room === 0 && !building);
    if (useless.length > 0) this.removeSegments(useless.map(({ id }) => id));
    return useless.length > 0;
  }

  /** The filters that follow are those of another operation. */
  nextFilter(): void {
    this.host.scans?.next();
  }

  /** A segment as filters see it. */
  filterSource(segment: SegmentRows): FilterSource {
    return {
      rows: segment.rows,
      fieldIndex: (key) => this.fieldIndex(segment, key),
      payload: (row) => this.payload({ segment, row }),
      rowsWithIds: (ids) =>
        ids.flatMap((id) => {
          const row = this.rowOf(segment, id);
          return row === undefined ? [] : [row];
        }),
      hasVector: (name, row) => hasVectorNamed(segment, name, row),
      fieldSchema: (key) => this.fieldSchema(key),
      beginScan: (conditions, rows) => this.host.scans?.begin(conditions, (key) => this.fieldSchema(key), rows),
    };
  }

  private fieldSchema(key: string): FieldSchema | undefined {
    return this.manifest.fields.find((field) => field.name === key)?.schema;
  }

  private fieldIndex(segment: SegmentRows, key: string): FieldIndex | undefined {
    const field = this.manifest.fields.find((known) => known.name === key);
    if (field === undefined) return undefined;
    if (segment.isAppendable) return appendableFieldIndex(this.environment, segment.id, field.number, field.schema, segment.rows);
    const sealed = segment.handle.fieldIndexes.find((index) => index.field === key && sameSchema(index, field.schema));
    return sealed && openIndexOf(segment.handle, sealed);
  }
}

function describe({ id, handle, plans, isAppendable, droppedVectors, deferred, statedCapacity }: SegmentRows): ManifestSegment {
  const described = { id, kind: handle.kind, capacity: statedCapacity, dropped: droppedVectors };
  return isAppendable ? { ...described, vectors: plans, ...(deferred ? { deferred } : {}) } : described;
}

/** Schemas by field name. */
export function fieldsOf(manifest: Manifest): ReadonlyMap<string, FieldSchema> {
  return new Map(manifest.fields.map((field) => [field.name, field.schema]));
}

function hasVectorNamed(segment: SegmentRows, name: string, row: number): boolean {
  const vector = segment.vectorIndex(name);
  return vector >= 0 && segment.hasVector(vector, row);
}
