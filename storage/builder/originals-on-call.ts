/**
 * Build-B2. Large originals of a vector that a build brings to their place in the new segment's memory only while it reads them: samples,
 * and parts one after the other. Their graph is built of 8-bit codes, so that for most of a build nothing needs them, and they stay in the
 * sources.
 */

import type { FilePages } from '../memory/system-calls.js';
import type { SegmentHandle } from '../segment/handle.js';
import { residentOffset, type VectorLayout } from '../segment/layout.js';
import { originalsOffset, readOriginals } from '../segment/originals.js';
import type { SegmentDraft } from './build-vectors.js';
import { letGoOf } from './control.js';
import type { Selection } from './select-rows.js';

/** Bytes that are brought at once, more or less. */
const PART_BYTES = 1 << 22;
/** A part is a multiple of so many bytes: of the blocks that have checksums. */
const BLOCK_BYTES = 1 << 16;
/** Rows here and there in a source, after which it is let go of: the system maps 64 kB around each. */
const SCATTERED_ROWS = 128;

/** Where they come from. */
export interface OriginalsOrigin {
  readonly sources: readonly SegmentHandle[];
  readonly selection: Pick<Selection, 'sourceOf' | 'sourceRowOf'>;
  readonly pages: Pick<FilePages, 'letGo'>;
  /** Called when some of a source was read. */
  readonly letGoSources: () => void;
}

export class OriginalsOnCall {
  /** They are all in their place, and stay there. */
  kept = false;
  private readonly columns: readonly (SourceColumn | null)[];

  /** vector: a dense one with its place in memory. */
  constructor(
    private readonly draft: Pick<SegmentDraft, 'memory' | 'rows'>,
    private readonly vector: VectorLayout,
    private readonly origin: OriginalsOrigin,
  ) {
    this.columns = origin.sources.map((source) => columnOf(source, vector.name));
  }

  /** Has some rows in their place. Those that were brought before are let go of. */
  bringRows(rows: Uint32Array): void {
    if (this.kept) return;
    this.letGo();
    this.copy(rows);
  }

  /** As `bringRows`, of rows that follow each other. */
  bringRange(from: number, count: number): void {
    this.bringRows(Uint32Array.from({ length: count }, (_, i) => from + i));
  }

  letGo(): void {
    if (this.kept) return;
    const { memory, rows } = this.draft;
    letGoOf(this.origin.pages, memory, residentOffset(this.vector), rows * this.vector.stride);
  }

  /** Brings all of them, for good. */
  keep(): void {
    if (this.kept) return;
    for (const { from, count } of this.ranges()) this.copy(Uint32Array.from({ length: count }, (_, i) => from + i));
    this.kept = true;
  }

  /** All rows in parts that are brought one after the other. */
  *parts(): Generator<{ readonly from: number; readonly count: number }> {
    for (const range of this.ranges()) {
      this.bringRange(range.from, range.count);
      yield range;
    }
    this.letGo();
  }

  /** The bytes of all rows, each piece as long as it is looked at. All but the last are multiples of 64 kB. */
  *pieces(): Generator<Uint8Array> {
    const { stride } = this.vector;
    for (const { from, count } of this.parts())
      yield new Uint8Array(this.draft.memory.buffer, residentOffset(this.vector) + from * stride, count * stride);
  }

  private *ranges(): Generator<{ readonly from: number; readonly count: number }> {
    const { rows } = this.draft;
    const count = partRows(this.vector.stride);
    for (let from = 0; from < rows; from += count) yield { from, count: Math.min(count, rows - from) };
  }

  private copy(rows: Uint32Array): void {
    const { letGoSources, selection } = this.origin;
    const { sourceOf, sourceRowOf } = selection;
    const { stride } = this.vector;
    const place = new Uint8Array(this.draft.memory.buffer, residentOffset(this.vector), this.draft.rows * stride);
    const sorted = bySource(rows, selection);
    let read = 0;
    for (let at = 0; at < sorted.length; ) {
      const row = sorted[at] as number;
      let count = 1;
      while (at + count < sorted.length && follows(sorted, at, count, selection)) count++;
      readColumn(
        this.columns[sourceOf[row] as number] ?? null,
        sourceRowOf[row] as number,
        place.subarray(row * stride, (row + count) * stride),
      );
      at += count;
      if (++read % SCATTERED_ROWS === 0) letGoSources();
    }
    letGoSources();
  }
}

/** A source's originals of the vector. */
interface SourceColumn {
  readonly source: SegmentHandle;
  readonly vector: VectorLayout;
  /** All of the source's memory. */
  readonly bytes: Uint8Array;
}

/** Null where the source does not have the vector. */
function columnOf(source: SegmentHandle, name: string): SourceColumn | null {
  const vector = source.layout.vectors.find((candidate) => candidate.name === name);
  return vector === undefined ? null : { source, vector, bytes: new Uint8Array(source.memory.buffer) };
}

/** Fills `target` with whole rows from `row` on. Errors: `storage` where they are in a file. */
function readColumn(column: SourceColumn | null, row: number, target: Uint8Array): void {
  if (column === null) {
    target.fill(0);
    return;
  }
  const { bytes, source, vector } = column;
  const start = originalsOffset(source.memory, vector);
  if (start === null) readOriginals(source, vector, row, target);
  else target.set(bytes.subarray(start + row * vector.stride, start + row * vector.stride + target.length));
}

/** Rows of a part of about 4 MB whose bytes are a multiple of those of a block. stride: a multiple of 16. */
function partRows(stride: number): number {
  let step = BLOCK_BYTES;
  for (let rest = stride; rest % 2 === 0 && step > 1; rest /= 2) step /= 2;
  return step * Math.max(1, Math.round(PART_BYTES / (step * stride)));
}

/** The rows in the order in which they lie in the sources. */
function bySource(rows: Uint32Array, { sourceOf, sourceRowOf }: OriginalsOrigin['selection']): Uint32Array {
  const place = (row: number) => (sourceOf[row] as number) * 2 ** 32 + (sourceRowOf[row] as number);
  for (let at = 1; at < rows.length; at++)
    if (place(rows[at] as number) < place(rows[at - 1] as number)) return rows.slice().sort((a, b) => place(a) - place(b));
  return rows;
}

/** Whether the row behind the first `count` from `at` on lies behind them in the source, too. */
function follows(rows: Uint32Array, at: number, count: number, { sourceOf, sourceRowOf }: OriginalsOrigin['selection']): boolean {
  const first = rows[at] as number;
  const row = rows[at + count] as number;
  return row === first + count && sourceOf[row] === sourceOf[first] && sourceRowOf[row] === (sourceRowOf[first] as number) + count;
}
