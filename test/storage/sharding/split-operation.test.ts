import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import type { PointId } from '../../../protocols/model/point-id.js';
import type { BatchColumn, PointBatch, UpdateOperation } from '../../../protocols/model/update.js';
import { ringOf, shardIndexOf } from '../../../storage/sharding/ring.js';
import { neededPoints, splitOperation } from '../../../storage/sharding/split-operation.js';
import { stagesOf } from '../../../storage/sharding/stages.js';

const RUNS = { numRuns: 300 };
const id: fc.Arbitrary<PointId> = fc.oneof(fc.nat(200), fc.uuid(), fc.bigInt({ min: 2n ** 53n, max: 2n ** 64n - 1n }));
const shards = fc.uniqueArray(fc.nat(50), { minLength: 1, maxLength: 8 });
const FILTERED: UpdateOperation = {
  kind: 'deletePoints',
  selector: { kind: 'filter', filter: { must: [], should: [], mustNot: [], minShould: null } },
};

/** A batch in which point n has vectors and a payload that say n, or none of a name. */
function batchFor(ids: readonly PointId[], has: (name: number, point: number) => boolean): PointBatch {
  const places = (name: number) => ids.flatMap((_, at) => (has(name, at) ? [at] : []));
  const points = (name: number) => (places(name).length === ids.length ? null : Uint32Array.from(places(name)));
  const columns: BatchColumn[] = [
    { kind: 'dense', name: 'd', dim: 2, points: points(0), values: Float32Array.from(places(0).flatMap((at) => [at, -at])) },
    {
      kind: 'multi',
      name: 'm',
      dim: 2,
      points: points(1),
      counts: Uint32Array.from(places(1), (at) => 1 + (at % 3)),
      values: Float32Array.from(places(1).flatMap((at) => new Array((1 + (at % 3)) * 2).fill(at))),
    },
    {
      kind: 'sparse',
      name: 's',
      points: points(2),
      counts: Uint32Array.from(places(2), (at) => at % 4),
      indices: Uint32Array.from(places(2).flatMap((at) => Array.from({ length: at % 4 }, (_, item) => at + item))),
      values: Float32Array.from(places(2).flatMap((at) => new Array(at % 4).fill(at))),
    },
  ];
  const vectors = columns.filter((_, name) => places(name).length > 0);
  return { ids, vectors, payloads: ids.map((_, at) => (has(3, at) ? { at } : undefined)) };
}

/** What a batch says of each of its points, in their order. */
function pointsOf({ ids, payloads, vectors }: PointBatch): { readonly id: PointId; readonly says: unknown }[] {
  return ids.map((own, point) => {
    const named = vectors.flatMap((column) => {
      const entry = column.points === null ? point : column.points.indexOf(point);
      if (entry < 0) return [];
      if (column.kind === 'dense') return [[column.name, ...column.values.subarray(entry * column.dim, (entry + 1) * column.dim)]];
      const width = column.kind === 'multi' ? column.dim : 1;
      const from = column.counts.subarray(0, entry).reduce((sum, count) => sum + count, 0);
      const to = from + (column.counts[entry] as number);
      const indices = column.kind === 'sparse' ? [...column.indices.subarray(from, to)] : [];
      return [[column.name, ...indices, ...column.values.subarray(from * width, to * width)]];
    });
    return { id: own, says: [named, payloads[point]] };
  });
}

test('parts of a batch are the whole: each point is where it belongs, with all it has, in the order given', () => {
  fc.assert(
    fc.property(fc.array(id, { minLength: 1, maxLength: 40 }), shards, fc.func(fc.boolean()), (ids, among, has) => {
      const ring = ringOf(among);
      const batch = batchFor(ids, (name, point) => has(name, point));
      const parts = splitOperation({ kind: 'updateVectors', batch, filter: null }, ring);
      const whole = pointsOf(batch);
      for (const [shard, part] of parts) {
        assert.ok(part.kind === 'updateVectors');
        assert.deepEqual(
          pointsOf(part.batch),
          whole.filter((point) => shardIndexOf(ring, point.id) === shard),
        );
        for (const column of part.batch.vectors) assert.ok(column.points === null || column.points.length > 0);
      }
      const sizes = [...parts.values()].map((part) => ('batch' in part ? part.batch.ids.length : 0));
      assert.equal(
        sizes.reduce((sum, size) => sum + size, 0),
        ids.length,
      );
    }),
    RUNS,
  );
});

test('ids of a selector go to their shards, everything else to all', () => {
  fc.assert(
    fc.property(fc.array(id, { minLength: 1, maxLength: 40 }), shards, (ids, among) => {
      const ring = ringOf(among);
      const parts = splitOperation({ kind: 'setPayload', selector: { kind: 'ids', ids }, payload: { a: 1 }, key: null }, ring);
      for (const [shard, part] of parts)
        assert.deepEqual(
          neededPoints(part),
          ids.filter((own) => shardIndexOf(ring, own) === shard),
        );
      const dropped = { kind: 'deleteFieldIndex', field: 'a' } as const;
      assert.deepEqual(
        [...splitOperation(dropped, ring)],
        ring.shards.map((_, shard) => [shard, dropped]),
      );
      const filtered = [...splitOperation(FILTERED, ring).values()];
      assert.deepEqual(
        filtered.map((part) => ('selector' in part && part.selector.kind === 'filter' ? part.selector.of : null)),
        ring.shards.length === 1 ? [undefined] : ring.shards.map((shardId) => ({ ring: ring.shards, shardId })),
      );
    }),
    RUNS,
  );
});

test('an operation without a point goes to one shard, so that it has a number', () => {
  const nothing: UpdateOperation = { kind: 'deleteVectors', selector: { kind: 'ids', ids: [] }, names: ['a'] };
  assert.deepEqual([...splitOperation(nothing, ringOf([3, 5]))], [[0, nothing]]);
});

test('a shard gets the parts of a batch in their order, and a stage begins with each operation that can fail', () => {
  const operation = fc.oneof(
    fc.array(id, { minLength: 1, maxLength: 9 }).map((ids): UpdateOperation => ({ kind: 'deletePoints', selector: { kind: 'ids', ids } })),
    fc.array(id, { minLength: 1, maxLength: 9 }).map((ids): UpdateOperation => ({ kind: 'clearPayload', selector: { kind: 'ids', ids } })),
    fc.constant(FILTERED),
  );
  fc.assert(
    fc.property(fc.array(operation, { minLength: 1, maxLength: 8 }), shards, fc.boolean(), (operations, among, checked) => {
      const ring = ringOf(among);
      const stages = stagesOf(
        operations,
        operations.map(() => [ring]),
        checked,
      );
      const seen = new Map<number, number>();
      let last = -1;
      for (const { needed, parts } of stages) {
        const ats = parts.flatMap((part) => part.operations.map(({ at }) => at));
        assert.ok(Math.min(...ats) > last);
        last = Math.max(...ats);
        const first = operations[Math.min(...ats)] as UpdateOperation;
        const asked = needed.flatMap(({ ids }) => ids);
        if (needed.length > 0) assert.deepEqual(new Set(asked), new Set(neededPoints(first)));
        for (const part of parts) {
          for (const { at, operation: own } of part.operations) {
            assert.ok(at > (seen.get(part.shardId) ?? -1));
            seen.set(part.shardId, at);
            assert.deepEqual(own, splitOperation(operations[at] as UpdateOperation, ring).get(ring.shards.indexOf(part.shardId)));
          }
        }
      }
      const parts = stages.flatMap((stage) => stage.parts.flatMap((part) => part.operations));
      const wanted = operations.reduce((sum, one) => sum + splitOperation(one, ring).size, 0);
      assert.equal(parts.length, wanted);
      if (!checked) assert.ok(stages.length === 1 && stages[0]?.needed.length === 0);
      else if (operations.length > 1)
        assert.equal(
          stages.filter(({ needed }) => needed.length > 0).length,
          operations.filter((one) => neededPoints(one).length > 0).length,
        );
    }),
    RUNS,
  );
});
