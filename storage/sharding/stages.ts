/**
 * In which steps a write request goes to its shards, so that one that answers an error has changed nothing, as on one shard:
 * before an operation that needs points to be there goes to several shards, each of them is asked whether it has its own.
 */

import type { ShardId } from '../../protocols/model/cluster.js';
import type { PointId } from '../../protocols/model/point-id.js';
import type { UpdateOperation } from '../../protocols/model/update.js';
import type { Ring } from './ring.js';
import { neededPoints, splitOperation } from './split-operation.js';

/** Parts that go to all their shards at once. */
export interface Stage {
  /** Points that must be there before any part is taken: of the first operation. None: nothing to ask. */
  readonly needed: readonly { readonly shardId: ShardId; readonly ids: readonly PointId[] }[];
  readonly parts: readonly ShardPart[];
}

export interface ShardPart {
  readonly shardId: ShardId;
  /** In their order; `at` says which operation of the request each is a part of. */
  readonly operations: readonly { readonly at: number; readonly operation: UpdateOperation }[];
}

/** checked: false for a request that nobody waits for: it has no answer that could say that points were missing. */
export function stagesOf(operations: readonly UpdateOperation[], ring: Ring, checked: boolean): Stage[] {
  const stages: { needed: Stage['needed']; parts: Map<number, ShardPart['operations'][number][]> }[] = [];
  operations.forEach((operation, at) => {
    const split = splitOperation(operation, ring);
    const asks = checked && (split.size > 1 || operations.length > 1) && neededPoints(operation).length > 0;
    let stage = stages.at(-1);
    if (stage === undefined || asks) {
      stage = { needed: asks ? needs(split, ring) : [], parts: new Map() };
      stages.push(stage);
    }
    for (const [shard, part] of split) {
      const known = stage.parts.get(shard) ?? [];
      known.push({ at, operation: part });
      stage.parts.set(shard, known);
    }
  });
  return stages.map(({ needed, parts }) => ({
    needed,
    parts: [...parts].map(([shard, list]) => ({ shardId: ring.shards[shard] as ShardId, operations: list })),
  }));
}

function needs(split: ReadonlyMap<number, UpdateOperation>, ring: Ring): Stage['needed'] {
  return [...split].map(([shard, part]) => ({ shardId: ring.shards[shard] as ShardId, ids: neededPoints(part) }));
}
