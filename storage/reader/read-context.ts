/** What a read works on. */

import type { KeyedShard, ShardKeySelector } from '../../protocols/model/cluster.js';
import type { ExplainPlace } from '../explain/explainer.js';
import type { ReplicaSnapshot } from './snapshot/snapshot-view.js';

export interface ReadContext {
  /** One of each replica of the collection, at least one. */
  readonly snapshots: readonly ReplicaSnapshot[];
  /** Shards of the collection with their keys; absent: it has none. */
  readonly keyed?: readonly KeyedShard[] | undefined;
  /** The same of another collection or alias, of all its shards or those chosen. Errors: `notFound`; those of `chosenSnapshots`. */
  readonly lookup: (collection: string, shardKey?: ShardKeySelector) => readonly ReplicaSnapshot[];
  /** For explanations. */
  readonly place?: ExplainPlace;
  /** 0 <= n < 1. */
  readonly random: () => number;
}
