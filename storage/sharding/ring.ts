/**
 * Which shard a point belongs to: consistent hashing. Each shard stands at many places of a ring of 2^32, and a point belongs
 * to the first place at or behind its hash. A shard that comes takes its places' arcs from all others and moves nothing else.
 * Source: Karger et al., Consistent Hashing and Random Trees, STOC 1997.
 */

import type { ShardId } from '../../protocols/model/cluster.js';
import type { PointId } from '../../protocols/model/point-id.js';
import { hashIdWords, hashNumbers, hashPoint } from './point-hash.js';

/**
 * Places of one shard. Shares of shards differ by 1 / sqrt(places), 2.2 %, so that 12 of them are within 10 % by all odds.
 * It never changes, as points are where it put them.
 */
const PLACES = 2048;
/** Keeps places of other purposes apart. */
const SEED = 0x74726f75;
const RINGS_KEPT = 64;
/** Hashes are looked up by their upper bits first. */
const BUCKET_BITS = 14;
const BUCKET_SHIFT = 32 - BUCKET_BITS;

export interface Ring {
  /** The shards, ascending. */
  readonly shards: readonly ShardId[];
  /** Uint32Array [shards × places], ascending. */
  readonly positions: Uint32Array;
  /** Uint32Array, aligned with `positions`: indexes into `shards`. */
  readonly owners: Uint32Array;
  /** Uint32Array [buckets]: the first position at or behind the first hash of each bucket. */
  readonly buckets: Uint32Array;
}

const rings = new Map<string, Ring>();

/** The ring of these shards, at least one, in any order; made once for each set of them. */
export function ringOf(shards: Iterable<ShardId>): Ring {
  const sorted = [...new Set(shards)].sort((one, other) => one - other);
  const name = sorted.join();
  const known = rings.get(name);
  if (known !== undefined) return known;
  if (rings.size >= RINGS_KEPT) rings.clear();
  const made = makeRing(sorted);
  rings.set(name, made);
  return made;
}

/** Index into `ring.shards` of the shard that has the point. */
export function shardIndexOf(ring: Ring, id: PointId): number {
  return ownerOf(ring, hashPoint(id));
}

function ownerOf({ buckets, owners, positions }: Ring, hash: number): number {
  let at = buckets[hash >>> BUCKET_SHIFT] as number;
  while (at < positions.length && (positions[at] as number) < hash) at++;
  return owners[at === positions.length ? 0 : at] as number;
}

/** Which ids, as their kind and words, one shard of a ring has. */
export class RingOwner {
  readonly #index: number;

  constructor(
    private readonly ring: Ring,
    private readonly shardId: ShardId,
  ) {
    this.#index = ring.shards.indexOf(shardId);
  }

  isSame({ ring, shardId }: RingOwner): boolean {
    return ring === this.ring && shardId === this.shardId;
  }

  has(kind: number, idWords: Uint32Array, at: number): boolean {
    return ownerOf(this.ring, hashIdWords(kind, idWords, at)) === this.#index;
  }
}

/** Two shards at one position: the one with the smaller id comes first. */
function makeRing(shards: readonly ShardId[]): Ring {
  if (shards.length === 0) throw new Error('a ring needs a shard');
  // A double holds both exactly: 32 bits of position, 20 of the shard's index.
  const places = new Float64Array(shards.length * PLACES);
  shards.forEach((shard, index) => {
    for (let place = 0; place < PLACES; place++) places[index * PLACES + place] = hashNumbers(SEED, shard, place) * 2 ** 20 + index;
  });
  places.sort();
  const positions = Uint32Array.from(places, (place) => Math.floor(place / 2 ** 20));
  const owners = Uint32Array.from(places, (place) => place % 2 ** 20);
  return { shards, positions, owners, buckets: bucketsOf(positions) };
}

function bucketsOf(positions: Uint32Array): Uint32Array {
  const buckets = new Uint32Array(2 ** BUCKET_BITS);
  let at = 0;
  for (let bucket = 0; bucket < buckets.length; bucket++) {
    while (at < positions.length && (positions[at] as number) >>> BUCKET_SHIFT < bucket) at++;
    buckets[bucket] = at;
  }
  return buckets;
}
