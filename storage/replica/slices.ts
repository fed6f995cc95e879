/**
 * The work of an operation that may touch many points: first its points are found, in portions; then they are changed in slices, each of
 * which is one transaction of bounded memory, filled in portions. The caller decides what happens between portions and slices.
 *
 * The rules are Slice-S1 to Slice-S6 in storage/README.md.
 */

import type { PointBatch, UpdateOperation } from '../../protocols/model/update.js';
import { mustBeThere, narrowSelection, type Part } from './apply.js';
import type { SegmentRows } from './segment-rows.js';
import { PointSelection } from './selection.js';
import type { Location, Transaction } from './transaction.js';
import type { Cursor, Unfinished } from './unfinished.js';

/** Most points, and about the most bytes of vectors and payloads, of a slice. */
const SLICE_POINTS_MAX = 20_000;
const SLICE_BYTES_MAX = 8 * 2 ** 20;
/** Points between two looks at the clock. */
const POINTS_PER_LOOK = 8;
/** Points that a portion of the search reads. */
const PORTION_POINTS = 512;

/** Says whether the time of a portion or slice is over. */
export type IsOver = () => boolean;

/** An operation and how much of it is left. */
export interface WideWork {
  /** Finds points until its time is over. Returns whether all are found. Errors: `notFound` for an id that must exist; `storage`. */
  find(isOver: IsOver): boolean;
  /** All points, when they are found and none is changed yet, if one transaction can take them; otherwise null. */
  whole(): Part | null;
  /** Where the next slice begins; null: nothing is left. */
  readonly next: Cursor | null;
  /** The next points of the slice, until its portion is over. `next` moves as they are taken. */
  portion(bounds: SliceBounds): Part;
}

/** The work of an operation. view: the replica before its next slice. */
export function wideWork(view: Transaction, operation: UpdateOperation): WideWork {
  const { unfinished } = view;
  if ('batch' in operation) return new BatchWork(view, operation, unfinished);
  if ('selector' in operation) return new SelectedWork(view, operation, unfinished);
  throw new Error(`operation ${operation.kind} has no points`);
}

type OfSelector = Extract<UpdateOperation, { selector: unknown }>;
type OfBatch = Extract<UpdateOperation, { batch: unknown }>;

class SelectedWork implements WideWork {
  next: Cursor | null;
  private readonly selection: PointSelection;

  constructor(view: Transaction, { kind, selector }: OfSelector, unfinished: Unfinished | null) {
    this.selection = new PointSelection(view, selector, unfinished?.closed ?? null, kind === 'deletePoints' || unfinished !== null);
    this.next = unfinished?.next ?? { segment: view.segments[0]?.id ?? 0, row: 0 };
  }

  find(isOver: IsOver): boolean {
    while (!this.selection.decide(PORTION_POINTS)) if (isOver()) return false;
    return true;
  }

  whole(): Part | null {
    return narrowSelection(this.selection);
  }

  portion(bounds: SliceBounds): Part {
    return { locations: this.locations(bounds), points: [] };
  }

  private *locations(bounds: SliceBounds): Generator<Location> {
    const { next } = this;
    if (next === null || 'point' in next) return;
    let segment: SegmentRows | null = null;
    let rowBytes = 0;
    for (const location of this.selection.from(next.segment, next.row)) {
      if (location.segment !== segment) {
        segment = location.segment;
        rowBytes = segment.vectorBytes / segment.rows;
      }
      if (bounds.areReached(rowBytes)) {
        this.next = { segment: segment.id, row: location.row };
        return;
      }
      yield location;
    }
    this.next = null;
  }
}

class BatchWork implements WideWork {
  next: Cursor | null;
  /** The first point that was not looked for yet. */
  private sought: number;

  constructor(
    private readonly view: Transaction,
    private readonly operation: OfBatch,
    unfinished: Unfinished | null,
  ) {
    this.next = unfinished?.next ?? { point: 0 };
    // Of what was begun all points were there.
    this.sought = operation.kind === 'updateVectors' && unfinished === null ? 0 : operation.batch.ids.length;
  }

  find(isOver: IsOver): boolean {
    const { ids } = this.operation.batch;
    while (this.sought < ids.length) {
      const end = this.sought + PORTION_POINTS;
      mustBeThere(this.view, ids.slice(this.sought, end));
      this.sought = end;
      if (isOver()) return this.sought >= ids.length;
    }
    return true;
  }

  whole(): null {
    return null;
  }

  portion(bounds: SliceBounds): Part {
    return { locations: [], points: this.points(bounds) };
  }

  private *points(bounds: SliceBounds): Generator<number> {
    const { next, operation } = this;
    if (next === null || !('point' in next)) return;
    const { batch } = operation;
    const bytes = bytesOf(batch) / batch.ids.length;
    for (let { point } = next; point < batch.ids.length; point++) {
      if (bounds.areReached(bytes)) {
        this.next = { point };
        return;
      }
      yield point;
    }
    this.next = null;
  }
}

/** Bytes of a batch's vectors. */
function bytesOf({ vectors }: PointBatch): number {
  return vectors.reduce((sum, { values }) => sum + values.byteLength, 0);
}

/** The bounds of one slice and of its portions, each of which has one point at least. */
export class SliceBounds {
  /** The slice takes no further point. */
  isFull = false;
  private points = 0;
  private portionPoints = 0;
  private vectorBytes = 0;
  private isPortionOver: IsOver = () => false;
  private readonly payloadBytes: number;

  /** isSliceOver: whether its time is over. */
  constructor(
    private readonly transaction: Transaction,
    private readonly isSliceOver: IsOver,
  ) {
    this.payloadBytes = transaction.payloadBytes;
  }

  /** Begins the next portion. isOver: whether its time is over. */
  begin(isOver: IsOver): this {
    this.isPortionOver = isOver;
    this.portionPoints = 0;
    return this;
  }

  /** Asked before each point. vectorBytes: those that the point is about to bring. */
  areReached(vectorBytes: number): boolean {
    if (this.portionPoints > 0) {
      const bytes = this.vectorBytes + this.transaction.payloadBytes - this.payloadBytes;
      const looks = this.portionPoints % POINTS_PER_LOOK === 0;
      this.isFull = this.points >= SLICE_POINTS_MAX || bytes >= SLICE_BYTES_MAX || (looks && this.isSliceOver());
      if (this.isFull || (looks && this.isPortionOver())) return true;
    }
    this.points++;
    this.portionPoints++;
    this.vectorBytes += vectorBytes;
    return false;
  }
}
