/** Answers of the simulation's engine to parts of distributed reads: lists by id, points, counts, searches by the dot product, and what resharding asks. */

import type { ShardId } from '../../protocols/model/cluster.js';
import { compareIds, type PointId } from '../../protocols/model/point-id.js';
import type { Ask, Extras, Hits, LevelAsk, Portion, PortionAnswer, ShardAnswer, ShardPoints } from '../../storage/threads/portion.js';
import { goneIds, leavingPoints, ownedIds, ownerOf, strayIds } from './engine-leaving.js';
import type { StoredPoint, StoredReplica } from './replica-files.js';

export interface AskedReplica {
  readonly shard: ShardId;
  readonly stored: StoredReplica;
  /** Points that it gives to another shard do not count; null: all do. */
  readonly ring: readonly ShardId[] | null;
}

interface Hit {
  readonly shard: ShardId;
  readonly id: PointId;
  readonly point: StoredPoint;
  readonly score: number;
}

export function answerPortion({ asks }: Portion, replicas: readonly AskedReplica[]): PortionAnswer {
  return { answers: asks.map((ask) => answerAsk(ask, replicas)) };
}

function answerAsk(ask: Ask, replicas: readonly AskedReplica[]): ShardAnswer {
  switch (ask.kind) {
    case 'level':
      return hitsOf(bestOf(ask, replicas), ask.extras);
    case 'points':
      return hitsOf(
        ask.points.flatMap((asked) => namedPoints(asked, replicas)),
        ask.extras,
      );
    case 'count':
      if (ask.filter !== null) throw new Error("the simulation's engine counts without filters");
      return { kind: 'count', count: allOf(replicas).length };
    case 'leaving':
      return leavingPoints(onlyOne(replicas), ask);
    case 'owned':
      return ownedIds(onlyOne(replicas), ask);
    case 'gone':
      return goneIds(onlyOne(replicas), ask);
    case 'stray':
      return strayIds(onlyOne(replicas), ask);
    default:
      throw new Error(`the simulation's engine knows no ${ask.kind}`);
  }
}

function bestOf({ candidates, count, filter, query, scoreThreshold }: LevelAsk, replicas: readonly AskedReplica[]): Hit[] {
  if (filter !== null || candidates !== null || scoreThreshold !== null) throw new Error("the simulation's engine has no filters");
  if (query.kind === 'list') {
    const { from } = query;
    const listed = allOf(replicas).filter(({ id }) => from === null || compareIds(id, from) >= 0);
    return listed.sort((one, other) => compareIds(one.id, other.id)).slice(0, count);
  }
  if (query.kind !== 'nearest' || query.value.kind !== 'dense' || query.own !== null)
    throw new Error(`the simulation's engine knows no ${query.kind}`);
  const { values } = query.value;
  const scored = allOf(replicas).flatMap((hit) => {
    const { vector } = hit.point;
    if (vector === null) return [];
    return [{ ...hit, score: Math.fround(vector.reduce((sum, part, at) => sum + part * (values[at] as number), 0)) }];
  });
  return scored.sort((one, other) => other.score - one.score || compareIds(one.id, other.id)).slice(0, count);
}

function allOf(replicas: readonly AskedReplica[]): Hit[] {
  return replicas.flatMap((replica) => [...replica.stored.points.keys()].flatMap((id) => shownPoint(replica, id)));
}

/** Nothing where it is not there, or not the shard's. */
function shownPoint({ ring, shard, stored }: AskedReplica, id: PointId): Hit[] {
  const point = stored.points.get(id);
  const isHidden = ring?.includes(shard) === true && ownerOf(ring, id) !== shard;
  return point === undefined || isHidden ? [] : [{ shard, id, point, score: 1 }];
}

function onlyOne(replicas: readonly AskedReplica[]): AskedReplica {
  const [replica] = replicas;
  if (replica === undefined || replicas.length > 1) throw new Error('one shard is asked at a time');
  return replica;
}

function namedPoints({ ids, shard }: ShardPoints, replicas: readonly AskedReplica[]): Hit[] {
  const asked = replicas.filter((replica) => shard === null || replica.shard === shard);
  return asked.flatMap((replica) => ids.flatMap((id) => shownPoint(replica, id)));
}

function hitsOf(hits: readonly Hit[], { groupBy, withPayload, withVector }: Extras): Hits {
  if (groupBy !== null || withVector.kind !== 'none') throw new Error("the simulation's engine shows payloads");
  const shown = hits.map(({ point }) => ({ payload: Buffer.from(JSON.stringify(point.payload), 'utf8') }));
  return {
    kind: 'hits',
    shards: hits.map(({ shard }) => shard),
    ids: hits.map(({ id }) => id),
    scores: Float64Array.from(hits, ({ score }) => score),
    versions: Float64Array.from(hits, ({ point }) => point.version),
    orderValues: null,
    shown: withPayload.kind === 'none' ? null : shown,
    groups: null,
    total: 0,
  };
}
