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

/**
 * rings: where each operation goes (see `keys.ts`).
 * checked: false for a request that nobody waits for: it has no answer that could say that points were missing.
 */
export function stagesOf(operations: readonly UpdateOperation[], rings: readonly (readonly Ring[])[], checked: boolean): Stage[] {
  const stages: { needed: Stage['needed']; parts: Map<ShardId, ShardPart['operations'][number][]> }[] = [];
  operations.forEach((operation, at) => {
    const split = splitByRings(operation, rings[at] as readonly Ring[]);
    const asks = checked && (split.size > 1 || operations.length > 1) && needs(split).length > 0;
    let stage = stages.at(-1);
    if (stage === undefined || asks) {
      stage = { needed: asks ? needs(split) : [], parts: new Map() };
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
    parts: [...parts].map(([shardId, list]) => ({ shardId, operations: list })),
  }));
}

function needs(split: ReadonlyMap<ShardId, UpdateOperation>): Stage['needed'] {
  return [...split].map(([shardId, part]) => ({ shardId, ids: neededPoints(part) })).filter(({ ids }) => ids.length > 0);
}

/** Of points under several keys nobody says that each key has each of them: those that are there are meant. */
function splitByRings(operation: UpdateOperation, rings: readonly Ring[]): Map<ShardId, UpdateOperation> {
  const meant = rings.length > 1 ? ofThoseThere(operation) : operation;
  const parts = new Map<ShardId, UpdateOperation>();
  for (const ring of rings) for (const [shard, part] of splitOperation(meant, ring)) parts.set(ring.shards[shard] as ShardId, part);
  return parts;
}

function ofThoseThere(operation: UpdateOperation): UpdateOperation {
  if (!('selector' in operation) || operation.selector.kind !== 'ids') return operation;
  const { ids } = operation.selector;
  return {
    ...operation,
    selector: { kind: 'filter', filter: { must: [{ kind: 'hasId', ids }], should: [], mustNot: [], minShould: null } },
  };
}
