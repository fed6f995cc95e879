/** The shards that a portion is asked of. */

import type { ShardId } from '../../../protocols/model/cluster.js';
import type { PointId } from '../../../protocols/model/point-id.js';
import { checkDeadline } from '../../threads/deadline.js';
import type { Hits, ShardPoints, TermSums } from '../../threads/portion.js';
import type { Candidates } from '../nearest/candidates.js';
import type { Hit } from '../nearest/hit.js';
import { type FoundRow, findPoint } from '../query/points.js';
import type { ReplicaSnapshot, SegmentView, TermFrequencies } from '../snapshot/snapshot-view.js';

/** Points looked up between two checks of the deadline. */
const CHECK_POINTS = 1024;

/** A point that is there. */
export interface FoundPoint extends FoundRow {
  readonly shard: ShardId;
  readonly id: PointId;
  /** Its place among those that were named. */
  readonly at: number;
}

export class Shards {
  private readonly byId = new Map<ShardId, ReplicaSnapshot>();
  private readonly ofView = new Map<SegmentView, ShardId>();

  constructor(readonly snapshots: readonly ReplicaSnapshot[]) {
    for (const snapshot of snapshots) {
      this.byId.set(snapshot.shardId, snapshot);
      for (const view of snapshot.segments) this.ofView.set(view, snapshot.shardId);
    }
  }

  shardOf(view: SegmentView): ShardId {
    return this.ofView.get(view) as ShardId;
  }

  /** The snapshots for scores with the frequencies that all shards of the read have together; null: those of these shards. */
  scoredWith(terms: TermSums | null): readonly ReplicaSnapshot[] {
    if (terms === null) return this.snapshots;
    const frequencies = frequenciesOf(terms);
    return this.snapshots.map((snapshot) => ({ ...snapshot, frequencies }));
  }

  /** Where a point of a shard (null: of any) is; undefined: nowhere in these. */
  find(shard: ShardId | null, id: PointId): FoundRow | undefined {
    if (shard === null) return findPoint(this.snapshots, id);
    const snapshot = this.byId.get(shard);
    return snapshot && findPoint([snapshot], id);
  }

  /** Those that are there, in the order in which they are named. Errors: `timeout`. */
  found(points: readonly ShardPoints[]): FoundPoint[] {
    const found: FoundPoint[] = [];
    let at = 0;
    for (const { shard, ids } of points) {
      if (shard !== null && !this.byId.has(shard)) {
        at += ids.length;
        continue;
      }
      for (const id of ids) {
        if (at % CHECK_POINTS === 0) checkDeadline(this.snapshots);
        const place = this.find(shard, id);
        if (place !== undefined) found.push({ ...place, shard: this.shardOf(place.view), id, at });
        at++;
      }
    }
    return found;
  }

  candidates(points: readonly ShardPoints[]): Candidates {
    const rows = new Map<SegmentView, Set<number>>();
    for (const { view, row } of this.found(points)) {
      const known = rows.get(view);
      if (known === undefined) rows.set(view, new Set([row]));
      else known.add(row);
    }
    return new Map([...rows].map(([view, some]) => [view, Uint32Array.from(some).sort()]));
  }

  /** The columns of hits that all kinds have. */
  columns(hits: readonly Hit[]): Pick<Hits, 'shards' | 'ids' | 'scores' | 'versions'> {
    const shards: ShardId[] = [];
    const ids: PointId[] = [];
    const scores = new Float64Array(hits.length);
    const versions = new Float64Array(hits.length);
    for (let at = 0; at < hits.length; at++) {
      const { id, score, version, view } = hits[at] as Hit;
      shards.push(this.shardOf(view));
      ids.push(id);
      scores[at] = score;
      versions[at] = version;
    }
    return { shards, ids, scores, versions };
  }
}

function frequenciesOf({ indices, rows, filled }: TermSums): TermFrequencies {
  const byIndex = new Map<number, number>();
  indices.forEach((index, at) => {
    byIndex.set(index, rows[at] as number);
  });
  return { filled, rowsWith: (index) => byIndex.get(index) ?? 0 };
}
