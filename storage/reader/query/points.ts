/** Reads that need no scoring: points by id, in id order, and how many there are. */

import type { Filter } from '../../../protocols/model/filter.js';
import { compareIds, type PointId } from '../../../protocols/model/point-id.js';
import type { RetrieveQuery } from '../../../protocols/model/query.js';
import { countBits, hasBit } from '../../../query/filter/bits.js';
import type { PointView } from '../../answers/result.js';
import { explaining } from '../../explain/explainer.js';
import { limitsOf } from '../../threads/deadline.js';
import { type Hit, hitOf } from '../nearest/hit.js';
import { filterBits } from '../snapshot/filter-source.js';
import type { ReplicaSnapshot, SegmentView } from '../snapshot/snapshot-view.js';
import { PointViews } from './point-view.js';

/** Rows looked at between two checks of the deadline. */
const CHECK_ROWS = 64;
/** Points whose memory is taken at once. */
const HELD_POINTS = 1024;

/** A row of a snapshot. */
export interface FoundRow {
  readonly view: SegmentView;
  readonly row: number;
}

/** Where the point is; undefined when it is nowhere. At most one row of all segments is live (see `snapshot-view.ts`). */
export function findPoint(snapshots: readonly ReplicaSnapshot[], id: PointId): FoundRow | undefined {
  for (const snapshot of snapshots) {
    for (const view of snapshot.segments) {
      const row = view.findLive(id);
      if (row !== undefined) return { view, row };
    }
  }
  return undefined;
}

/** The points in the order they are asked for; missing ones and repetitions are left out. */
export function retrievePoints(snapshots: readonly ReplicaSnapshot[], query: RetrieveQuery): PointView[] {
  const views = pointViews(snapshots, query);
  const limits = limitsOf(snapshots);
  limits?.claim(views.work(query.ids.length));
  const points: PointView[] = [];
  const ids = new Set(query.ids);
  let looked = 0;
  for (const id of ids) {
    if (++looked % CHECK_ROWS === 0) limits?.check();
    const found = findPoint(snapshots, id);
    if (found === undefined) continue;
    if (points.length % HELD_POINTS === 0) limits?.hold(views.bytes(Math.min(HELD_POINTS, ids.size - looked + 1)));
    points.push(views.record(found.view, found.row));
  }
  return points;
}

/** A page of the points in id order, from an id on (null: the first). They have no score of their own. */
export function listHits(
  snapshots: readonly ReplicaSnapshot[],
  from: PointId | null,
  filter: Filter | null,
  page: { readonly limit: number; readonly offset: number },
): Hit[] {
  const hits: Hit[] = [];
  if (page.limit === 0) return hits;
  let position = 0;
  for (const { view, row } of rowsInOrder(snapshots, from, filter, page.offset + page.limit)) {
    if (position++ < page.offset) continue;
    hits.push(hitOf(view, row, 1));
    if (hits.length === page.limit) break;
  }
  explaining()?.gave(hits);
  return hits;
}

/** How many points pass. Counted exactly in any case: bitsets are about as quick as estimates. */
export function countPoints(snapshots: readonly ReplicaSnapshot[], filter: Filter | null): number {
  let sum = 0;
  for (const snapshot of snapshots) for (const view of snapshot.segments) sum += countRows(view, filter);
  return sum;
}

function countRows(view: SegmentView, filter: Filter | null): number {
  if (view.rows === 0) return 0;
  const bits = filter === null ? null : filterBits(view, filter);
  const count = view.reader.kernels.countAdmitted(view.rows, view.admission(bits));
  const note = explaining()?.of(view);
  note?.way(
    'count',
    filter === null
      ? 'Rows that are not deleted are counted.'
      : 'The filter is evaluated for all rows at once, and those that pass are counted.',
  );
  note?.answered('count', count);
  return count;
}

/** Live rows that pass, one of each id, over all segments in id order, from the id `from` on (null: the first). wanted: so many are taken at most. */
export function* rowsInOrder(
  snapshots: readonly ReplicaSnapshot[],
  from: PointId | null,
  filter: Filter | null,
  wanted = Number.POSITIVE_INFINITY,
): Generator<FoundRow> {
  const heads: Head[] = [];
  for (const snapshot of snapshots) {
    for (const view of snapshot.segments) {
      const bits = filter === null ? null : filterBits(view, filter);
      // About as many rows are looked at for one that passes as there are for each.
      const looked = bits === null ? wanted : (wanted * view.rows) / Math.max(1, countBits(bits));
      view.reader.deadline.claim({ kind: 'entries', count: Math.min(view.rows, looked) });
      const head = new Head(view, from, bits);
      if (head.advance()) heads.push(head);
      const note = explaining()?.of(view);
      note?.way('list', 'Rows are gone through in the order of their ids, and those that pass are taken until there are enough.');
      note?.mark('list');
    }
  }
  let last: PointId | null = null;
  for (let yielded = 1; heads.length > 0; yielded++) {
    let first = 0;
    for (let i = 1; i < heads.length; i++) if (compareIds((heads[i] as Head).id, (heads[first] as Head).id) < 0) first = i;
    const head = heads[first] as Head;
    if (yielded % CHECK_ROWS === 0) head.view.reader.deadline.check();
    // Shards of several keys may each have a point of this id.
    if (head.id !== last) yield { view: head.view, row: head.row };
    last = head.id;
    if (!head.advance()) heads.splice(first, 1);
  }
}

/** The next row of one segment in id order. */
class Head {
  row = -1;
  id: PointId = 0;
  private readonly rows: Iterator<number>;

  constructor(
    readonly view: SegmentView,
    from: PointId | null,
    private readonly bits: Uint32Array | null,
  ) {
    this.rows = view.rowsFrom(from);
  }

  /** Moves to the next live row that passes; false at the end. */
  advance(): boolean {
    for (let looked = 1; ; looked++) {
      const next = this.rows.next();
      if (next.done === true) return false;
      if (looked % CHECK_ROWS === 0) this.view.reader.deadline.check();
      if (!this.view.isLive(next.value) || (this.bits !== null && !hasBit(this.bits, next.value))) continue;
      this.row = next.value;
      this.id = this.view.id(next.value);
      return true;
    }
  }
}

function pointViews(snapshots: readonly ReplicaSnapshot[], query: Pick<RetrieveQuery, 'withPayload' | 'withVector'>): PointViews {
  const { config, vectors } = snapshots[0] as ReplicaSnapshot;
  return new PointViews(config, vectors, query.withPayload, query.withVector);
}
