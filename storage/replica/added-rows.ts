/** The rows that a transaction adds, which are stored in chunks. */

import { invariant } from '../../protocols/invariant.js';
import type { AppendFolder } from '../disk/append-file.js';
import type { Environment } from '../disk/lmdb.js';
import { rowKey, VALUE_HEAD_BYTES } from '../wal/records.js';
import { ROWS_INLINE_BYTES_MAX, storeValue, valueRoom } from '../wal/stored-value.js';
import { OpenPayloads } from './payload-records.js';
import type { SegmentRows } from './segment-rows.js';

/** Rows of so many bytes are stored before the transaction ends, where it pauses. */
const STORED_EARLY_BYTES = 2 ** 18;

/** Of its id and version. */
const ROW_COST_BYTES = 24;

/** What is added to one segment. */
interface Added {
  /** Rows before the transaction. */
  readonly from: number;
  payloadBytes: number;
  /** Rows that are stored. */
  stored: number;
  /** Payloads of rows that are not. */
  readonly waiting: { records: number; bytes: number };
  /** Payloads that are not written yet. */
  open: OpenPayloads | null;
}

export class AddedRows {
  private readonly added = new Map<SegmentRows, Added>();

  constructor(private readonly host: { readonly environment: Environment; readonly rowFiles: AppendFolder }) {}

  get isEmpty(): boolean {
    return this.added.size === 0;
  }

  /** Called before a row is added to a segment. */
  begin(segment: SegmentRows): void {
    const { rows } = segment;
    if (this.added.has(segment)) return;
    this.added.set(segment, { from: rows, payloadBytes: 0, stored: rows, waiting: { records: 0, bytes: 0 }, open: null });
  }

  /** The last row of a segment has this payload. text: nobody changes it any more. */
  addPayload(segment: SegmentRows, row: number, text: Uint8Array): void {
    const added = this.added.get(segment);
    if (added === undefined) throw new Error('payload of a row that is not new');
    added.payloadBytes += text.length;
    added.waiting.bytes += text.length;
    segment.payloadTextBytes += text.length;
    if (added.open?.fits(row, text) === false) this.writePayloads(segment, added);
    added.open ??= new OpenPayloads(segment.id, row);
    added.open.add(row, text);
    segment.setPayloadRecord(row, added.open.from);
  }

  /** The payloads of a segment that are not written yet; null: all are. */
  openPayloads(segment: SegmentRows): OpenPayloads | null {
    return this.added.get(segment)?.open ?? null;
  }

  private writePayloads(segment: SegmentRows, added: Added): void {
    const { open } = added;
    if (open === null) return;
    this.host.environment.put('payload', rowKey(segment.id, open.from), open.encode());
    added.waiting.records++;
    added.open = null;
  }

  /** Stores what is a chunk by now, so that less is left for the end. None of the rows so far is changed any more. */
  storeEarly(): void {
    for (const [segment, added] of this.added) {
      const rowBytes = ROW_COST_BYTES + segment.vectorBytes / segment.rows;
      if ((segment.rows - added.stored) * rowBytes >= STORED_EARLY_BYTES) this.store(segment, added);
    }
  }

  storeAll(): void {
    for (const [segment, added] of this.added) this.store(segment, added);
  }

  undo(): void {
    for (const [segment, { from, payloadBytes }] of this.added) {
      segment.dropRows(from);
      segment.payloadTextBytes -= payloadBytes;
    }
  }

  private store(segment: SegmentRows, added: Added): void {
    const { stored, waiting } = added;
    invariant(segment.rows >= stored, 'View-V1', () => `segment ${segment.id} shrinks from ${stored} rows to ${segment.rows}`);
    if (segment.rows === stored) return;
    this.writePayloads(segment, added);
    const { environment, rowFiles } = this.host;
    const chunk = segment.encodeChunk(stored, segment.rows, waiting, VALUE_HEAD_BYTES, (bytes) => valueRoom(bytes, ROWS_INLINE_BYTES_MAX));
    environment.put('rows', rowKey(segment.id, stored), storeValue(rowFiles, segment.id, chunk, ROWS_INLINE_BYTES_MAX));
    added.stored = segment.rows;
    waiting.records = 0;
    waiting.bytes = 0;
  }
}
