/**
 * Finds collections and aliases: on a node without a cluster those that it has; in a cluster those that are agreed on and applied here,
 * also where this node has not made them yet or holds no shard of them.
 */

import { servingShards } from '../../cluster/apply/resharding.js';
import type { ClusterState, CollectionRecord } from '../../cluster/state/state.js';
import { TroupeError } from '../../protocols/errors.js';
import type { AliasMap } from '../../protocols/model/alias.js';
import type { PeerId, ShardId } from '../../protocols/model/cluster.js';
import { localShards } from '../collection/state.js';
import { shardsElsewhere } from '../context/desired.js';
import type { CollectionEntry, NodeView } from '../context/view.js';

/** A collection that was found by its name or an alias. */
export interface Found {
  readonly name: string;
  /** Null while this node is making the collection. */
  readonly entry: CollectionEntry | null;
  /** Null on a node without a cluster. */
  readonly record: CollectionRecord | null;
}

export class Names {
  /** agreed: null on a node without a cluster, and until this node knows what its cluster has agreed on. */
  constructor(
    private readonly view: NodeView,
    private readonly agreed: () => { readonly state: ClusterState; readonly peerId: PeerId } | null,
    /** Throws while this node does not know yet which collections exist. */
    private readonly checkKnows: () => void = () => {},
  ) {}

  /** Names of all collections, in the order of their code units. */
  list(): string[] {
    return [...(this.agreed()?.state ?? this.view).collections.keys()].sort();
  }

  aliases(): AliasMap {
    return (this.agreed()?.state ?? this.view).aliases;
  }

  /** Whether a collection of this name or alias exists. Errors: `unavailable` on a starting node that does not know yet. */
  exists(name: string): boolean {
    if (this.known(name) !== null) return true;
    this.checkKnows();
    return false;
  }

  /** The collection of this name or alias. Errors: `notFound`; `unavailable` on a starting node that does not know yet. */
  find(name: string): Found {
    const found = this.known(name);
    if (found === null) this.checkKnows();
    if (found === null) throw new TroupeError('notFound', `Collection \`${name}\` doesn't exist!`);
    return found;
  }

  /**
   * The collection for requests that its own actors answer. Errors: `notFound`; `unavailable` while this node makes it; `unsupported` if a
   * node without its cluster has only some or none of its shards.
   */
  entry(name: string): CollectionEntry {
    const { entry, name: own, record } = this.find(name);
    if (entry === null)
      throw new TroupeError('unavailable', `collection ${own} is being created on this node: retry`, { retryAfterMs: 1000 });
    const { belonging, config } = entry;
    if (record !== null || belonging === null || config === null) return entry;
    const here = belonging.shards.length;
    const elsewhere = shardsElsewhere(belonging, config).length;
    // Only the cluster knows which shards a key's points are in.
    if (elsewhere === 0 && (here === 1 || (here > 1 && config.params.sharding_method !== 'custom'))) return entry;
    const detail =
      `points of collection ${own}, which was made in a cluster and has ${here} of its ${here + elsewhere} shards on this node: ` +
      'start it as part of that cluster';
    throw new TroupeError('unsupported', detail);
  }

  /** The collection for requests about points, and all its shards, including those that this node does not have yet. Errors: as `entry`. */
  points(name: string): { readonly entry: CollectionEntry; readonly shards: readonly ShardId[] } {
    const entry = this.entry(name);
    const { belonging, config } = entry;
    const { record } = this.find(name);
    if (record !== null) return { entry, shards: [...servingShards(record).keys()] };
    return { entry, shards: config === null ? [] : localShards({ belonging, config }) };
  }

  /** The collection of this name or alias; null: this node knows none. */
  known(name: string): Found | null {
    const agreed = this.agreed();
    if (agreed === null) {
      const entry = this.view.find(name);
      return entry === undefined ? null : { name: entry.name, entry, record: null };
    }
    const { collections, aliases } = agreed.state;
    const own = collections.has(name) ? name : aliases.get(name);
    const record = own === undefined ? undefined : collections.get(own);
    if (own === undefined || record === undefined) return null;
    const entry = this.view.collections.get(own) ?? null;
    return { name: own, entry: entry !== null && isOf(entry, record, agreed) ? entry : null, record };
  }
}

/**
 * Whether the entry is this collection. It is not if an earlier collection of the name, or one from before this node became this peer, is
 * still being removed. An entry whose file is damaged counts as this collection and shows its error.
 */
function isOf({ belonging }: CollectionEntry, { uid }: CollectionRecord, agreed: { state: ClusterState; peerId: PeerId }): boolean {
  if (belonging === null) return true;
  return belonging.uid === uid && belonging.clusterId === agreed.state.clusterId && belonging.peerId === agreed.peerId;
}
