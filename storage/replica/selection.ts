/**
 * The points that an operation by filter or by ids works on. They are fixed before its first change: those whose newest rows pass. As rows
 * never change (View-V2), and what the operation writes are rows in other segments, it does not matter into how many slices the work falls,
 * nor whether the filter asks for what the operation changes (Slice-S2).
 */

import type { PointsSelector } from '../../protocols/model/update.js';
import { emptyBits, hasBit, setBit } from '../../query/filter/bits.js';
import { PortionedFilter } from '../../query/filter/evaluate.js';
import { ringOf, shardIndexOf } from '../sharding/ring.js';
import type { SegmentRows } from './segment-rows.js';
import type { Location, Transaction } from './transaction.js';

/** What is selected in one segment. */
interface Chosen {
  readonly segment: SegmentRows;
  /** Bits [rowCount]; deleted rows are among them. */
  readonly rows: Uint32Array;
  readonly rowCount: number;
  /** Null: the selector has ids. */
  readonly filter: PortionedFilter | null;
}

export class PointSelection {
  private readonly chosen: Chosen[];
  /** The next segment, or id, to be decided. */
  private next = 0;

  /**
   * transaction: for reading; its segments must stay as they are. among: the segments whose points are meant, null for all. mayLack: ids
   * need not exist.
   */
  constructor(
    private readonly transaction: Transaction,
    private readonly selector: PointsSelector,
    among: ReadonlySet<number> | null = null,
    private readonly mayLack = false,
  ) {
    if (selector.kind === 'filter') transaction.nextFilter();
    const segments = transaction.segments.filter(({ id, live }) => live > 0 && (among === null || among.has(id)));
    this.chosen = segments.map((segment): Chosen => {
      const rowCount = segment.rows;
      if (selector.kind === 'ids') return { segment, rows: emptyBits(rowCount), rowCount, filter: null };
      const filter = new PortionedFilter(selector.filter, transaction.filterSource(segment));
      return { segment, rows: filter.passed, rowCount, filter };
    });
  }

  /** A bound on the number of points, before anything is decided. */
  get countMax(): number {
    if (this.selector.kind === 'ids') return this.selector.ids.length;
    const countIn = ({ filter, rows, segment }: Chosen): number => (filter?.undecidedRows ?? 0) + segment.countAmong(rows);
    return this.chosen.reduce((sum, chosen) => sum + Math.min(chosen.segment.live, countIn(chosen)), 0);
  }

  /** Decides up to `countMax` further points. Returns whether all are decided. Errors: `notFound` for an id that must exist; `storage`. */
  decide(countMax: number): boolean {
    if (this.selector.kind === 'ids') return this.decideIds(this.selector.ids, countMax);
    for (; this.next < this.chosen.length; this.next++) {
      const { filter, segment } = this.chosen[this.next] as Chosen;
      if (filter?.decide(countMax, (row) => segment.isLive(row)) === false) return false;
    }
    return true;
  }

  private decideIds(ids: Extract<PointsSelector, { kind: 'ids' }>['ids'], countMax: number): boolean {
    const end = Math.min(ids.length, this.next + countMax);
    const bySegment = new Map(this.chosen.map(({ rows, segment }) => [segment, rows]));
    for (; this.next < end; this.next++) {
      const id = ids[this.next] as (typeof ids)[number];
      const location = this.mayLack ? this.transaction.find(id) : this.transaction.findNeeded(id);
      if (location === undefined) continue;
      const rows = bySegment.get(location.segment);
      if (rows !== undefined) setBit(rows, location.row);
    }
    return end === ids.length;
  }

  /** Number of selected points that are not deleted; rows that readers keep for deferred ones are among them. */
  get count(): number {
    return this.chosen.reduce((sum, { rows, segment }) => sum + segment.countAmong(rows), 0);
  }

  /** Bytes of the vectors of the selected points, about. */
  get vectorBytes(): number {
    return this.chosen.reduce((sum, { rows, segment }) => sum + (segment.countAmong(rows) * segment.vectorBytes) / segment.rows, 0);
  }

  /** The selected points from a place on, in the order of segments and rows; those that are deleted by then are left out. */
  *from(segmentId: number | null, row: number): Generator<Location> {
    const first = segmentId === null ? 0 : this.chosen.findIndex(({ segment }) => segment.id === segmentId);
    const isMeant = ownerOf(this.selector);
    for (let at = Math.max(first, 0); at < this.chosen.length; at++) {
      const { rowCount, rows, segment } = this.chosen[at] as Chosen;
      for (let next = at === first ? row : 0; next < rowCount; next++) {
        if ((next & 31) === 0 && rows[next >>> 5] === 0) next += 31;
        else if (hasBit(rows, next) && segment.isLive(next) && isMeant(segment, next)) yield { segment, row: next };
      }
    }
  }
}

/** Whether a row's point belongs to the part of the ring that the selector means. */
function ownerOf(selector: PointsSelector): (segment: SegmentRows, row: number) => boolean {
  if (selector.kind === 'ids' || selector.of === undefined) return () => true;
  const ring = ringOf(selector.of.ring);
  const own = ring.shards.indexOf(selector.of.shardId);
  return (segment, row) => shardIndexOf(ring, segment.idAt(row)) === own;
}
