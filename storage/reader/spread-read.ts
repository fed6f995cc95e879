/**
 * A small read of a collection whose shards are on several nodes, in the thread that took the request: it asks peers itself, reads what is
 * here, merges and encodes. It does what the main thread would do if nothing goes wrong; in any doubt the main thread begins anew.
 */

import type { PeerId, ShardId } from '../../protocols/model/cluster.js';
import type { GatherAccess, GatherAsk } from '../gather/access.js';
import { gatherInPlace, smallRead } from '../gather/in-place.js';
import type { PeerShare, PortionResult, RawRequest, ReadOperation, ReplicaKey, SpreadCollection } from '../threads/messages.js';

export interface SpreadActs {
  /** The portion of this node's replicas; null if they cannot be read at once. */
  readonly own: (replicas: readonly ReplicaKey[], body: Uint8Array, peer: PeerId) => PortionResult | null;
  /** Rejects in any doubt. */
  readonly ask: (share: PeerShare, body: Uint8Array) => Promise<PortionResult>;
  /** Whether what is known of the collection is still the newest. */
  readonly isNewest: () => boolean;
  /** 0 <= n < 1. */
  readonly random: () => number;
}

/** The main thread has to decide. */
class HandedOn extends Error {}

/** What the read answers; thread: this one, for explanations. Null if it is none that is small. Throws and rejects if the main thread has to decide. */
export function readSpread(
  collection: SpreadCollection,
  operation: ReadOperation,
  request: RawRequest,
  acts: SpreadActs,
  thread = 'reader',
): Promise<Uint8Array> | null {
  const read = smallRead(operation, request);
  if (read === null) return null;
  // All rounds of a read ask the same peers.
  const way = collection.ways[Math.floor(acts.random() * collection.ways.length)] as readonly PeerShare[];
  const reached = new Map<ShardId, number>();
  const access: GatherAccess = {
    place: collection.place,
    isPlain: true,
    locate: () => {
      throw new HandedOn();
    },
    scatter: (ask) => scatter(collection, way, reached, ask, acts),
  };
  return gatherInPlace(operation, request, read, access, thread);
}

/** reached: for each shard the largest position that a round has seen; a later round must not see less. */
async function scatter(
  { replicas }: SpreadCollection,
  way: readonly PeerShare[],
  reached: Map<ShardId, number>,
  { body, collection, shards }: GatherAsk,
  { ask, isNewest, own }: SpreadActs,
): Promise<readonly Uint8Array[]> {
  if (collection !== null) throw new HandedOn();
  const shares = shards === null ? way : sharesOf(way, shards);
  const elsewhere = shares.filter(({ isOwn }) => !isOwn);
  const asked = Promise.all(elsewhere.map((share) => ask(share, body)));
  // What is thrown here says enough.
  asked.catch(() => {});
  // The questions leave before this thread has no time for them.
  await null;
  const here = shares.filter(({ isOwn }) => isOwn);
  const found = here.map(
    (share) =>
      own(
        share.shards.map((shard) => replicas.get(shard) as ReplicaKey),
        body,
        share.peer,
      ) ?? handOn(),
  );
  const answers = [...found, ...(await asked)];
  if (!isNewest()) throw new HandedOn();
  const sides = [...here, ...elsewhere];
  answers.forEach((answer, at) => {
    noteReached(sides[at] as PeerShare, answer, reached);
  });
  return answers.map((answer) => answer.body);
}

/** The same way to these shards only. */
function sharesOf(way: readonly PeerShare[], asked: readonly ShardId[]): readonly PeerShare[] {
  const shares = way.map((share) => ({ ...share, shards: share.shards.filter((shard) => asked.includes(shard)) }));
  const some = shares.filter(({ shards }) => shards.length > 0);
  // A shard that is not served is the main thread's to explain.
  if (some.reduce((sum, { shards }) => sum + shards.length, 0) !== asked.length) throw new HandedOn();
  return some;
}

function noteReached({ shards }: PeerShare, { positions }: PortionResult, reached: Map<ShardId, number>): void {
  shards.forEach((shard, at) => {
    const index = positions[at] as number;
    if (index < (reached.get(shard) ?? 0)) throw new HandedOn();
    reached.set(shard, index);
  });
}

function handOn(): never {
  throw new HandedOn();
}
