/** What undoes a transaction's changes of the memory, in reverse order. Rows by the thousand take 9 bytes each, not an object. */

import type { SegmentRows } from './segment-rows.js';

/** A change of one row, by what it was. */
type RowUndo = 'deleted' | 'deletedHeld' | 'held';

const KINDS: readonly RowUndo[] = ['deleted', 'deletedHeld', 'held'];
/** The entry is a function. */
const OTHER = KINDS.length;

export class UndoLog {
  private kinds = new Uint8Array(64);
  private rows = new Uint32Array(64);
  /** Places in `segments`. */
  private places = new Uint32Array(64);
  private count = 0;
  private readonly segments: SegmentRows[] = [];
  private readonly others: (() => void)[] = [];

  add(undo: () => void): void {
    this.others.push(undo);
    this.push(OTHER, 0, 0);
  }

  addRow(kind: RowUndo, segment: SegmentRows, row: number): void {
    let place = this.segments.lastIndexOf(segment);
    if (place === -1) place = this.segments.push(segment) - 1;
    this.push(KINDS.indexOf(kind), row, place);
  }

  /** Undoes everything, the last change first. */
  run(): void {
    while (this.count > 0) {
      const at = --this.count;
      const kind = KINDS[this.kinds[at] as number];
      if (kind === undefined) this.others.pop()?.();
      else undoRow(kind, this.segments[this.places[at] as number] as SegmentRows, this.rows[at] as number);
    }
  }

  private push(kind: number, row: number, place: number): void {
    const at = this.count++;
    if (at === this.kinds.length) {
      this.kinds = doubled(this.kinds, new Uint8Array(at * 2));
      this.rows = doubled(this.rows, new Uint32Array(at * 2));
      this.places = doubled(this.places, new Uint32Array(at * 2));
    }
    this.kinds[at] = kind;
    this.rows[at] = row;
    this.places[at] = place;
  }
}

function undoRow(kind: RowUndo, segment: SegmentRows, row: number): void {
  if (kind === 'held') {
    segment.unhold(row);
    return;
  }
  segment.unmarkDeleted(row);
  if (kind === 'deletedHeld') segment.hold(row);
}

function doubled<Values extends Uint8Array | Uint32Array>(from: Values, to: Values): Values {
  to.set(from);
  return to;
}
