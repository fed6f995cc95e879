/** Replicas that are made equal by digests and the points of buckets, whatever each of them has been through. */

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { TroupeError } from '../../../protocols/errors.js';
import type { CollectionConfig } from '../../../protocols/model/collection.js';
import { NO_TAG } from '../../../protocols/model/shard-log.js';
import { addVector, removeVector } from '../../../protocols/rest/vector-names.js';
import { decodeUpdate, encodeUpdate } from '../../../protocols/update-codec.js';
import { PointDigest } from '../../../storage/replica/digest.js';
import { DIGEST_BUCKETS } from '../../../storage/threads/shard-log.js';
import { randomFrom } from '../builder/fixture.js';
import { type Model, Observed, type Random, randomNames, randomUpdate, SHAPES } from './observed.js';
import { configOf } from './support.js';

const LEADER = { peer: 1, term: 1 };
/** Tells a replica nothing. */
const NOWHERE = { at: NO_TAG, buckets: new BigUint64Array(), points: new Uint32Array() };

/** All buckets in which the digests of a leader and of another replica differ. */
function differing(leader: Observed, other: Observed): number[] {
  const ours = leader.store.copies.digest(null);
  const theirs = other.store.copies.digest(ours);
  return Array.from({ length: DIGEST_BUCKETS }, (_, bucket) => bucket).filter(
    (bucket) => ours.buckets[bucket] !== theirs.buckets[bucket] || ours.points[bucket] !== theirs.points[bucket],
  );
}

/** Makes a replica what another one is, which goes on meanwhile. The answer: points that were others. */
async function fill(target: Observed, source: Observed, random: Random, meanwhile: () => void = () => {}): Promise<number> {
  source.store.operations.apply();
  target.store.log.reset(source.store.log.position.last);
  target.store.copies.applySettings(source.store.copies.settings());
  let changed = 0;
  for (let more = true; more; ) {
    const buckets = differing(source, target);
    more = buckets.length > 0;
    while (buckets.length > 0) {
      meanwhile();
      follow(target, source);
      if (random(8) === 0) await target.reopen();
      changed += target.store.copies.replaceBuckets(source.store.copies.bucketPoints(buckets.splice(0, 1 + random(20))).bytes);
    }
  }
  assert.equal(target.store.stale, null);
  return changed;
}

/** Sends what the leader has logged. */
function follow(target: Observed, source: Observed): void {
  const part = source.store.log.entriesAfter(target.store.log.position.last, Number.MAX_SAFE_INTEGER);
  const entries = part.kind === 'entries' ? part.entries : assert.fail(part.kind);
  const numbered = entries.map(({ operation, tag }) => ({ operation: tag.index, by: tag, logged: decodeUpdate(operation) }));
  target.store.operations.apply(numbered);
}

/** An operation with the next index; those of the target have a term of their own, as those of a leader that was cut off. */
function write(replica: Observed, by: { peer: number; term: number }, indexAfter: number, model: Model, random: Random): void {
  const operation = Math.max(replica.store.log.position.last.index, indexAfter) + 1;
  const update = randomUpdate(model, replica.config, random);
  // Bytes, as others are sent what the log has.
  const logged = decodeUpdate(encodeUpdate({ operation: update, chained: false }));
  const numbered = [{ operation, by, logged, isLeaders: true }];
  if (random(4) === 0) replica.store.operations.log(numbered);
  else replica.store.operations.apply(numbered);
}

const everyKind = SHAPES.slice(3).reduce(addVector, configOf({}));
const plain = removeVector(everyKind, 'd');
const deferring: CollectionConfig = {
  ...plain,
  optimizer_config: { ...plain.optimizer_config, indexing_threshold: 1, prevent_unoptimized: true },
};

for (const [seed, config] of [
  [1, plain],
  [2, plain],
  [3, plain],
  [4, deferring],
  [5, deferring],
] as const) {
  // biome-ignore format: one thought
  test(`a replica becomes what another one is by the buckets that differ, in history ${seed}`, async (t) => {
    const next = randomFrom(seed);
    const random: Random = (below) => Math.floor(next() * below);
    const model: Model = new Map();
    const source = await Observed.open(t, config);
    const target = await Observed.open(t, config);
    for (let round = 0; round < 60; round++) {
      const replica = random(3) === 0 ? target : source;
      const kind = random(10);
      if (kind < 4) for (let count = random(12); count > 0; count--) write(source, LEADER, 0, model, random);
      else if (kind === 4) write(target, { peer: 2, term: round + 2 }, (round + 2) * 1_000_000, structuredClone(model), random);
      else if (kind === 5) await replica.reopen();
      else if (kind === 6) {
        const changed = randomNames(model, source.config, random);
        for (const each of [source, target]) each.configure(changed);
      } else if (kind === 7) {
        const sources = replica.segments.filter(({ rows }) => rows > 0 && random(3) > 0);
        if (sources.length > 0) await replica.build(sources.map(({ id }) => id), () => write(source, LEADER, 0, model, random)); // biome-ignore format: one thought
      } else {
        const field = { kind: 'createFieldIndex', field: 'id', schema: { type: 'integer' } } as const;
        if (random(4) === 0) source.apply(random(2) === 0 ? field : { kind: 'deleteFieldIndex', field: 'id' });
        await fill(target, source, random, () => {
          for (let count = random(4); count > 0; count--) write(source, LEADER, 0, model, random);
        });
        assert.deepEqual(differing(source, target), []);
        assert.equal(await fill(target, source, random), 0);
        // Readers may see fewer of them while points are deferred, each replica its own.
        if (config === plain) assert.deepEqual([target.seen(), target.seen()], [source.seen(), model]);
        assert.deepEqual(target.store.stats().fields, source.store.stats().fields);
      }
      for (const each of [source, target]) {
        const { buckets, points } = each.store.copies.digest(NOWHERE);
        assert.deepEqual({ buckets, points }, freshDigest(each), `round ${round}`);
      }
    }
    for (const each of [source, target]) each.configure({ ...each.config, optimizer_config: plain.optimizer_config });
    await fill(target, source, random);
    assert.deepEqual([target.seen(), target.seen()], [source.seen(), model]);
    for (const each of [source, target]) assert.deepEqual(each.warnings, []);
  });
}

for (const seed of [1, 2, 3])
  test(`a log is rewound to what the leader has, and what it had beyond that is in no point then, in history ${seed}`, async (t) => {
    const next = randomFrom(seed);
    const random: Random = (below) => Math.floor(next() * below);
    const model: Model = new Map();
    const source = await Observed.open(t, plain);
    const target = await Observed.open(t, plain);
    const writeSome = (replica: Observed, term: number, of: Model) => {
      for (let count = random(6); count > 0; count--) write(replica, { peer: 1, term }, term * 1_000_000, of, random);
    };
    let rewound = 0;
    for (let term = 1; term < 80; term += 2) {
      writeSome(source, term, model);
      follow(target, source);
      // It led then, and was cut off.
      writeSome(target, term, structuredClone(model));
      if (random(3) === 0) await target.reopen();
      const { last } = target.store.log.position;
      writeSome(source, term + 1, model);
      const part = source.store.log.entriesAfter(last, 1);
      if (part.kind === 'diverged') {
        rewound++;
        target.store.log.rewind(part.before ?? assert.fail('the log has no beginning'));
        assert.deepEqual(target.store.log.position.last, part.before);
      }
      if (random(3) === 0) await target.reopen();
      follow(target, source);
      for (let buckets = differing(source, target); buckets.length > 0; buckets = differing(source, target)) {
        writeSome(source, term + 1, model);
        follow(target, source);
        target.store.copies.replaceBuckets(source.store.copies.bucketPoints(buckets).bytes);
      }
      assert.equal(target.store.stale, null);
      assert.deepEqual([target.seen(), source.seen()], [model, model], `term ${term}`);
      const { buckets, points } = target.store.copies.digest(NOWHERE);
      assert.deepEqual({ buckets, points }, freshDigest(target));
    }
    assert.ok(rewound > 20, `${rewound}`);
    assert.deepEqual(target.warnings, []);
  });

test('a log that has begun anew is not rewound to what is before its beginning, nor to what it does not have', async (t) => {
  const replica = await Observed.open(t, plain);
  for (let count = 0; count < 3; count++) write(replica, LEADER, 0, new Map(), () => 1);
  const refuses = (index: number, term = 1) =>
    assert.throws(
      () => replica.store.log.rewind({ ...LEADER, term, index }),
      (error) => error instanceof TroupeError && error.code === 'conflict',
    );
  refuses(4);
  refuses(2, 7);
  replica.store.log.rewind({ ...LEADER, index: 3 });
  assert.equal(replica.store.stale, null);
  replica.store.log.reset({ ...LEADER, index: 2 });
  refuses(1);
});

/** What the points come to when they are counted anew. */
function freshDigest({ store }: Observed): object {
  return PointDigest.of((store as unknown as { shape: { segments: Parameters<typeof PointDigest.of>[0] } }).shape.segments).value();
}

test('points of buckets are refused by a replica that has gone on, and where their vectors are not known yet', async (t) => {
  const source = await Observed.open(t, everyKind);
  const target = await Observed.open(t, everyKind);
  const poorer = await Observed.open(t, plain);
  const random: Random = () => 1;
  write(source, LEADER, 0, new Map(), random);
  const { at, buckets, bytes, points } = source.store.copies.bucketPoints(differing(source, target));
  assert.deepEqual([at, buckets.length, points], [{ ...LEADER, index: 1 }, 1, 1]);
  const failsWith = (code: string) => (error: unknown) => error instanceof TroupeError && error.code === code;
  assert.throws(() => target.store.copies.replaceBuckets(bytes), failsWith('conflict'));
  target.store.log.reset(at);
  poorer.store.log.reset(at);
  assert.throws(() => poorer.store.copies.replaceBuckets(bytes), failsWith('unavailable'));
  assert.throws(() => target.store.copies.replaceBuckets(new Uint8Array(9)), failsWith('wrongInput'));
  assert.equal(target.store.copies.replaceBuckets(bytes), 1);
  write(target, LEADER, 0, new Map(), random);
  assert.throws(() => target.store.copies.replaceBuckets(bytes), failsWith('conflict'));
});
