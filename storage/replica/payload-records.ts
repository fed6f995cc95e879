/**
 * Payload texts of appendable segments' rows, in LMDB. Rows that a transaction adds one after the other share a record of up to a page: with a
 * record for each of them, putting and removing records was a fifth of what a writer does in a stream of points with payloads.
 *
 * The key has the record's first row. A row whose text is the only one: checked JSON text. Several rows, a chunk:
 *
 * | bytes      | content                                                      |
 * |------------|--------------------------------------------------------------|
 * | 0..4       | xxHash32 of what follows up to the texts, u32 LE             |
 * | 4..6       | 0, as no JSON text begins with                               |
 * | 6..8       | rows, u16 LE                                                 |
 * | 8..16      | segment and first row, u32 LE each                           |
 * | 16..       | per row: end of its text, and the text's xxHash32, u32 LE each; ends count from the first text's start |
 * | then       | texts (JSON, UTF-8), none for an empty payload               |
 */

import { checksum32 } from '../disk/checksum.js';
import type { Reading } from '../disk/lmdb-tables.js';
import type { SegmentHandle } from '../segment/handle.js';
import { CHECK_BYTES, checkInRoom, damagedRecord, rowKey, uncheck } from '../wal/records.js';

export const EMPTY_PAYLOAD: Uint8Array = new TextEncoder().encode('{}');

/** A page of LMDB without its head: a larger record takes two. */
const CHUNK_BYTES_MAX = 4080;
const HEAD_BYTES = 16;
const ROW_BYTES = 8;
/** More rows have another record, though nearly all of their payloads may be empty: see `SegmentLayout.payloadRecords`. */
export const RECORD_ROWS_MAX = 256;
const NO_TEXT = new Uint8Array(0);

/** The rows of a segment that make the next record. */
export class OpenPayloads {
  private readonly texts: Uint8Array[] = [];
  private bytes = 0;

  /** from: the first row; its text comes first. */
  constructor(
    private readonly segment: number,
    readonly from: number,
  ) {}

  /** Whether the record takes this text of a later row too. */
  fits(row: number, text: Uint8Array): boolean {
    const rows = row - this.from + 1;
    return rows <= RECORD_ROWS_MAX && HEAD_BYTES + rows * ROW_BYTES + this.bytes + text.length <= CHUNK_BYTES_MAX;
  }

  /** text: nobody changes it any more. */
  add(row: number, text: Uint8Array): void {
    while (this.from + this.texts.length < row) this.texts.push(NO_TEXT);
    this.texts.push(text);
    this.bytes += text.length;
  }

  /** The text of a row from `from` on, `{}` for an empty payload. */
  text(row: number): Uint8Array {
    const text = this.texts[row - this.from] ?? NO_TEXT;
    return text.length === 0 ? EMPTY_PAYLOAD : text;
  }

  /** The record; valid until the next one is encoded. */
  encode(): Uint8Array {
    const { bytes, from, segment, texts } = this;
    if (texts.length === 1) return checkInRoom(texts[0] as Uint8Array);
    const start = HEAD_BYTES + texts.length * ROW_BYTES;
    const record = room.subarray(0, start + bytes);
    room.writeUInt16LE(0, 4);
    room.writeUInt16LE(texts.length, 6);
    room.writeUInt32LE(segment, 8);
    room.writeUInt32LE(from, 12);
    let end = 0;
    for (const [at, text] of texts.entries()) {
      record.set(text, start + end);
      end += text.length;
      room.writeUInt32LE(end, HEAD_BYTES + at * ROW_BYTES);
      room.writeUInt32LE(text.length === 0 ? 0 : checksum32(text), HEAD_BYTES + at * ROW_BYTES + 4);
    }
    room.writeUInt32LE(checksum32(record.subarray(CHECK_BYTES, start)), 0);
    return record;
  }
}

/** LMDB copies what it is given. */
const room = Buffer.alloc(CHUNK_BYTES_MAX);

/** Which rows' texts a record has. */
interface RecordRows {
  readonly segment: number;
  readonly from: number;
  readonly rows: number;
}

interface PayloadChunk extends RecordRows {
  readonly kind: 'chunk';
  readonly view: DataView;
}

interface SinglePayload extends RecordRows {
  readonly kind: 'single';
  readonly text: Uint8Array;
}

/** A record that was read. */
type PayloadRecord = PayloadChunk | SinglePayload;

/** What is read of an appendable segment. */
export type PayloadSegment = Pick<SegmentHandle, 'id' | 'layout' | 'memory'>;

/**
 * Reads payloads. A chunk that two rows in a row are read of is kept, so that rows one after the other cost two searches in LMDB for each chunk. Of
 * others only the text is copied: rows in the order of their scores lie all over the segment, and an answer would hold a chunk for each of them. What
 * is committed does not change, and a transaction that may be undone has a reader of its own.
 */
export class PayloadReader {
  private kept: PayloadChunk | null = null;
  /** Of the record that was looked at last. */
  private last: Pick<RecordRows, 'segment' | 'from'> | null = null;

  constructor(private readonly reading: Pick<Reading, 'get' | 'peek'>) {}

  /** JSON text of a row's payload, `{}` for an empty one; nobody may change it. Errors: `storage` if it is damaged. */
  text(segment: PayloadSegment, row: number): Uint8Array {
    const { kept } = this;
    return kept !== null && kept.segment === segment.id && holds(kept, row) ? textIn(kept, row) : this.find(segment, row);
  }

  private find({ id, layout, memory }: PayloadSegment, row: number): Uint8Array {
    const from = row - (new Uint8Array(memory.buffer, layout.payloadRecords + row, 1)[0] as number);
    const isAgain = this.last?.segment === id && this.last.from === from;
    if (!isAgain) this.last = { segment: id, from };
    const key = rowKey(id, from);
    const bytes = isAgain ? this.reading.get('payload', key) : this.reading.peek('payload', key);
    if (bytes === undefined) return EMPTY_PAYLOAD;
    const record = decodeRecord(id, from, bytes);
    if (!holds(record, row)) return EMPTY_PAYLOAD;
    if (isAgain && record.kind === 'chunk') this.kept = record;
    const text = textIn(record, row);
    return isAgain || text === EMPTY_PAYLOAD ? text : text.slice();
  }
}

function holds({ from, rows }: RecordRows, row: number): boolean {
  return row >= from && row < from + rows;
}

/** Whether a record may lie under this key: a chunk says where it belongs, unless it is damaged; a text that is alone does not. */
export function mayLieAt(segment: number, from: number, record: Uint8Array): boolean {
  const head = record[CHECK_BYTES] === 0 ? chunkHead(record) : null;
  return head === null || (head.segment === segment && head.from === from);
}

/** Errors: `storage`; whether the texts of a chunk are damaged is not looked at. */
function decodeRecord(segment: number, from: number, record: Uint8Array): PayloadRecord {
  if (record[CHECK_BYTES] !== 0) return { kind: 'single', segment, from, rows: 1, text: uncheck(record, () => nameOf(segment, from)) };
  const chunk = chunkHead(record);
  if (chunk === null || chunk.segment !== segment || chunk.from !== from) throw damagedRecord(nameOf(segment, from));
  return chunk;
}

/** Null: it is damaged. */
function chunkHead(record: Uint8Array): PayloadChunk | null {
  if (record.length < HEAD_BYTES) return null;
  const view = new DataView(record.buffer, record.byteOffset, record.length);
  const rows = view.getUint16(6, true);
  const start = HEAD_BYTES + rows * ROW_BYTES;
  if (rows < 2 || start > record.length || view.getUint32(0, true) !== checksum32(record.subarray(CHECK_BYTES, start))) return null;
  if (start + endOf(view, rows - 1) !== record.length) return null;
  return { kind: 'chunk', segment: view.getUint32(8, true), from: view.getUint32(12, true), rows, view };
}

function textIn(record: PayloadRecord, row: number): Uint8Array {
  if (record.kind === 'single') return record.text;
  const { from, rows, segment, view } = record;
  const at = row - from;
  const start = at === 0 ? 0 : endOf(view, at - 1);
  const end = endOf(view, at);
  if (start === end) return EMPTY_PAYLOAD;
  const texts = view.byteOffset + HEAD_BYTES + rows * ROW_BYTES;
  const text = new Uint8Array(view.buffer, texts + start, end - start);
  if (view.getUint32(HEAD_BYTES + at * ROW_BYTES + 4, true) !== checksum32(text)) throw damagedRecord(nameOf(segment, row));
  return text;
}

function endOf(view: DataView, at: number): number {
  return view.getUint32(HEAD_BYTES + at * ROW_BYTES, true);
}

function nameOf(segment: number, row: number): string {
  return `payload/${segment}/${row}`;
}
