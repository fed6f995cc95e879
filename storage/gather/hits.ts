/** Points that shards answered with, and what is shown of them. */

import type { ShardId } from '../../protocols/model/cluster.js';
import type { PointId } from '../../protocols/model/point-id.js';
import type { GroupValue } from '../../query/group.js';
import type { RankedPoint } from '../../query/merge.js';
import type { OrderValue } from '../../query/order.js';
import type { Extras, Hits, ShardPoints, ShownParts } from '../threads/portion.js';
import type { GatherContext } from './context.js';

export interface GatheredHit extends RankedPoint {
  readonly shard: ShardId;
  readonly orderValue?: OrderValue;
  /** Undefined: not asked for yet. */
  readonly shown?: ShownParts;
  readonly groups?: readonly GroupValue[];
}

export function hitsFrom({ shards, ids, scores, versions, orderValues, shown, groups }: Hits): GatheredHit[] {
  if (orderValues === null && shown === null && groups === null) {
    return ids.map((id, at) => ({ id, shard: shards[at] as ShardId, score: scores[at] as number, version: versions[at] as number }));
  }
  return ids.map((id, at) => ({
    id,
    shard: shards[at] as ShardId,
    score: scores[at] as number,
    version: versions[at] as number,
    ...(orderValues === null ? {} : { orderValue: orderValues[at] as OrderValue }),
    ...(shown === null ? {} : { shown: shown[at] as ShownParts }),
    ...(groups === null ? {} : { groups: groups[at] as readonly GroupValue[] }),
  }));
}

/** The points of some hits, each once, by shard. */
export function pointsOf(hits: Iterable<Pick<GatheredHit, 'id' | 'shard'>>): ShardPoints[] {
  const byShard = new Map<ShardId, Set<PointId>>();
  for (const { id, shard } of hits) {
    const known = byShard.get(shard);
    if (known === undefined) byShard.set(shard, new Set([id]));
    else known.add(id);
  }
  return [...byShard].map(([shard, ids]) => ({ shard, ids: [...ids] }));
}

/** Ascending, so that questions to the same shards go together. */
export function shardIdsOf(points: readonly ShardPoints[]): ShardId[] {
  return points.flatMap(({ shard }) => shard ?? []).sort((a, b) => a - b);
}

/** Something about points that shards have told, found by the point. */
export class PointTable<Fact> {
  private readonly byShard = new Map<ShardId, Map<PointId, Fact>>();

  set(shard: ShardId, id: PointId, fact: Fact): void {
    const known = this.byShard.get(shard);
    if (known === undefined) this.byShard.set(shard, new Map([[id, fact]]));
    else known.set(id, fact);
  }

  get({ shard, id }: Pick<GatheredHit, 'id' | 'shard'>): Fact | undefined {
    return this.byShard.get(shard)?.get(id);
  }
}

/** The hits with all that is to be shown of them; null for a point that is gone since it was found. */
export async function completeHits(
  { portions, source }: GatherContext,
  hits: readonly GatheredHit[],
  extras: Extras,
): Promise<readonly (GatheredHit | null)[]> {
  const lacking = hits.filter((hit) => isLacking(hit, extras));
  if (lacking.length === 0) return hits;
  const points = pointsOf(lacking);
  const answers = await portions.ask(source, { kind: 'points', points, extras }, shardIdsOf(points));
  const told = new PointTable<GatheredHit>();
  for (const hit of answers.flatMap(hitsFrom)) told.set(hit.shard, hit.id, hit);
  return hits.map((hit) => {
    if (!isLacking(hit, extras)) return hit;
    const known = told.get(hit);
    if (known === undefined) return null;
    const { shown = hit.shown, groups = hit.groups } = known;
    return { ...hit, ...(shown === undefined ? {} : { shown }), ...(groups === undefined ? {} : { groups }) };
  });
}

function isLacking({ shown, groups }: GatheredHit, { withPayload, withVector, groupBy }: Extras): boolean {
  const shows = withPayload.kind !== 'none' || withVector.kind !== 'none';
  return (shows && shown === undefined) || (groupBy !== null && groups === undefined);
}
