/** Payload texts of a new segment's rows, which lie anywhere in the sources: read ahead for many rows at once. */

import type { SegmentHandle } from '../segment/handle.js';
import { type PayloadTexts, payloadBytesOf } from '../segment/payload-file.js';
import type { PayloadSource } from './payload-source.js';
import type { Selection } from './select-rows.js';

/** Read ahead at once: of both what comes first. */
const AHEAD_ROWS = 1 << 16;
const AHEAD_BYTES = 1 << 23;
/** Rows of segments that take rows, whose payloads may be of any size: at first so many, then at most so many times as many as before. */
const UNKNOWN_ROWS = 256;
const UNKNOWN_GROWTH = 4;
/** The place of a row without a payload. */
const NOWHERE = 0xffff_ffff;
const NO_TEXT = new Uint8Array(0);

export class OrderedTexts {
  /** The rows from `from` below `to` are read ahead. */
  private from = 0;
  private to = 0;
  /** Of each of them: its place among those of its source. */
  private readonly placeOf = new Uint32Array(AHEAD_ROWS);
  /** By source; null: asked for one by one. */
  private texts: readonly (PayloadTexts | null)[] = [];
  /** Of rows whose payloads may be of any size: most that are read ahead, and the mean of those that were. */
  private readonly unknown = { rowsMax: UNKNOWN_ROWS, meanBytes: 0 };

  constructor(
    private readonly payloads: Pick<PayloadSource, 'text' | 'texts'>,
    private readonly sources: readonly SegmentHandle[],
    private readonly selection: Pick<Selection, 'rows' | 'sourceOf' | 'sourceRowOf'>,
  ) {}

  /** The text of a row; rows are asked for in order. Valid until the next call. Errors: `storage`. */
  of(row: number): Uint8Array {
    if (row >= this.to) this.readAhead(row);
    const { sourceOf, sourceRowOf } = this.selection;
    const place = this.placeOf[row - this.from] as number;
    if (place === NOWHERE) return NO_TEXT;
    const source = sourceOf[row] as number;
    const texts = this.texts[source] ?? null;
    return texts === null ? this.payloads.text(this.sources[source] as SegmentHandle, sourceRowOf[row] as number) : texts(place);
  }

  private readAhead(from: number): void {
    const { sources, unknown } = this;
    const { rows, sourceOf, sourceRowOf } = this.selection;
    const wanted: number[][] = sources.map(() => []);
    const last = Math.min(rows, from + AHEAD_ROWS);
    let to = from;
    let unknownRows = 0;
    for (let bytes = 0; to < last && bytes < AHEAD_BYTES && unknownRows < unknown.rowsMax; to++) {
      const source = sourceOf[to] as number;
      const sourceRow = sourceRowOf[to] as number;
      const handle = sources[source] as SegmentHandle;
      const own = wanted[source] as number[];
      const isKnown = handle.payloadOffsets !== null;
      const size = isKnown ? payloadBytesOf(handle, sourceRow) : unknown.meanBytes;
      if (!isKnown) unknownRows++;
      const isEmpty = isKnown && size === 0;
      this.placeOf[to - from] = isEmpty ? NOWHERE : own.length;
      if (isEmpty) continue;
      own.push(sourceRow);
      bytes += size;
    }
    this.from = from;
    this.to = to;
    this.texts = wanted.map((own, source) =>
      own.length === 0 ? null : this.payloads.texts(sources[source] as SegmentHandle, Uint32Array.from(own)),
    );
    if (unknownRows > 0) this.learn(wanted, unknownRows);
  }

  /** Learns of the rows that were read how large the next ones may be. */
  private learn(wanted: readonly (readonly number[])[], unknownRows: number): void {
    let bytes = 0;
    wanted.forEach((own, source) => {
      const texts = this.sources[source]?.payloadOffsets === null ? this.texts[source] : null;
      if (texts) for (let place = 0; place < own.length; place++) bytes += texts(place).length;
    });
    this.unknown.meanBytes = bytes / unknownRows;
    this.unknown.rowsMax = UNKNOWN_GROWTH * unknownRows;
  }
}
