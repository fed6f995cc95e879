/** What the main thread does for a read over many nodes: it knows where shards are, and moves bytes. */

import type { KeyedShard, ShardId } from '../../protocols/model/cluster.js';
import type { CollectionParams } from '../../protocols/model/collection.js';

/** What a read has to know of a collection before it asks for its points. */
export interface GatherPlace {
  /** Of this life of the collection: two names stand for the same one when they have the same number. */
  readonly uid: number;
  readonly params: CollectionParams;
  /** All its shards, ascending. */
  readonly shards: readonly KeyedShard[];
}

/** One question to some shards of a collection: portions that together take in each of them once. */
export interface GatherAsk {
  /** Name or alias, as the request has it; null: the collection that is asked. */
  readonly collection: string | null;
  /** Null: all of them. */
  readonly shards: readonly ShardId[] | null;
  /** For `EnginePool.portion` of the nodes that have replicas of these shards. Shared: it must not be given away. */
  readonly body: Uint8Array;
}

/** Called in the main thread, for one request. Rejections end the request, and are what it answers. */
export interface GatherAccess {
  /** The collection that is asked. */
  readonly place: GatherPlace;
  /** Present: who carries out portions takes plain ones (`../threads/plain-portion.ts`). */
  readonly isPlain?: true;
  /** Another one, by its name or an alias. Errors: `notFound`; `unavailable`. */
  locate(collection: string): GatherPlace;
  /**
   * Answers of the nodes, in any order. Which replicas are asked, again or twice, and which of their answers counts, is decided
   * there, and what they cost is added to the request's usage there.
   */
  scatter(ask: GatherAsk): Promise<readonly Uint8Array[]>;
}
