/** Tells the engine the agreed shard keys, as the engine chooses shards by them. */

import { comingShard, isClosed } from '../../cluster/apply/resharding.js';
import type { CollectionRecord } from '../../cluster/state/state.js';
import type { KeyedShard } from '../../protocols/model/cluster.js';
import type { Cancel, EnginePort } from '../runtime/ports.js';
import type { Assignments } from '../shard-log/assignments.js';

/** Cache of `keyedShards`, by record: records never change. */
const known = new WeakMap<CollectionRecord, readonly KeyedShard[]>();

/** The collection's shards as keys select them, ascending. */
export function keyedShards(record: CollectionRecord): readonly KeyedShard[] {
  const found = known.get(record);
  if (found !== undefined) return found;
  const coming = comingShard(record);
  const shards = [...record.shards].flatMap(([id, shard]): KeyedShard[] => {
    if (id === coming) return [];
    const { key, replicas } = shard;
    if (isClosed(record, shard)) return [{ id, key, active: false, closed: true }];
    return [{ id, key, active: [...replicas.values()].includes('Active') }];
  });
  shards.sort((one, other) => one.id - other.id);
  known.set(record, shards);
  return shards;
}

/** Tells the engine of all collections with keys, now and after each change, until it is cancelled. */
export function showShardKeys(assignments: Assignments, engine: Pick<EnginePort, 'setShardKeys'>): Cancel {
  let shown: ReadonlyMap<string, readonly KeyedShard[]> = new Map();
  const look = (): void => {
    const custom = [...(assignments.agreed?.collections ?? [])].filter(([, { config }]) => config.params.sharding_method === 'custom');
    const keyed = new Map(custom.map(([name, record]) => [name, keyedShards(record)]));
    if (keyed.size === shown.size && [...keyed].every(([name, shards]) => shown.get(name) === shards)) return;
    shown = keyed;
    engine.setShardKeys(keyed);
  };
  look();
  return assignments.watchAll(look);
}
