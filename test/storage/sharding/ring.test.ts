import assert from 'node:assert/strict';
import { test } from 'node:test';
import { type PointId, uuidFrom } from '../../../protocols/model/point-id.js';
import { hashNumbers, hashPoint } from '../../../storage/sharding/point-hash.js';
import { ringOf, shardIndexOf } from '../../../storage/sharding/ring.js';

const IDS = 100_000;

function sequentialIds(): PointId[] {
  return Array.from({ length: IDS }, (_, at) => at);
}

function uuids(): PointId[] {
  return Array.from({ length: IDS }, (_, at) => uuidFrom(at.toString(16).padStart(32, '0')) as string);
}

function shardOf(shards: readonly number[], id: PointId): number {
  const ring = ringOf(shards);
  return ring.shards[shardIndexOf(ring, id)] as number;
}

test('the hash is MurmurHash3 of 32 bits', () => {
  // Made by another implementation, which gives 0xba6bd213 for `test`.
  assert.equal(hashPoint(0), 0x63852afc);
  assert.equal(hashPoint(2 ** 40 + 7), 0xf47dcee2);
  assert.equal(hashPoint(0xffff_ffff_ffff_fffen), 0xaa48b385);
  assert.equal(hashPoint('01020304-0506-0708-090a-0b0c0d0e0f10'), 0xda7e3067);
  const word = (text: string) => Buffer.from(text).readUInt32LE();
  assert.equal(hashNumbers(word('abcd'), word('efgh'), word('ijkl')), 0xa36f3d27);
});

test('points are where the first release put them', () => {
  const ids: PointId[] = [0, 1, 2, 3, 1000, 2 ** 53, 0xffff_ffff_ffff_ffffn, '00000000-0000-0000-0000-000000000000'];
  assert.deepEqual(
    ids.map((id) => shardOf([0, 1, 2, 3, 4, 5], id)),
    PLACED,
  );
});

for (const [what, ids] of [
  ['integers in a row', sequentialIds()],
  ['UUIDs', uuids()],
] as const) {
  test(`12 shards have equal shares of ${what} within 10 %`, () => {
    const ring = ringOf(Array.from({ length: 12 }, (_, shard) => shard));
    const counts = new Uint32Array(12);
    for (const id of ids) counts[shardIndexOf(ring, id)] = (counts[shardIndexOf(ring, id)] as number) + 1;
    const even = IDS / 12;
    for (const count of counts) assert.ok(Math.abs(count - even) <= even / 10, `${[...counts]}`);
  });

  test(`a shard that comes takes its share of ${what} from all others, and nothing else moves`, () => {
    for (const shards of [1, 2, 5, 11]) {
      const before = Array.from({ length: shards }, (_, shard) => shard);
      const after = [...before, shards];
      let moved = 0;
      for (const id of ids) {
        const target = shardOf(after, id);
        if (target === shardOf(before, id)) continue;
        assert.equal(target, shards);
        moved++;
      }
      const expected = IDS / (shards + 1);
      assert.ok(Math.abs(moved - expected) < expected / 10, `${moved} of ${IDS} moved to shard ${shards}`);
    }
  });
}

test('the order in which shards are named means nothing', () => {
  assert.equal(ringOf([3, 1, 2]), ringOf([1, 2, 3]));
  for (let id = 0; id < 100; id++) assert.equal(shardOf([9, 4], id), shardOf([4, 9], id));
});

const PLACED = [3, 1, 4, 0, 2, 2, 4, 4];
