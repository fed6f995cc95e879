/** Which collections a reader's thread may read for clients without asking the main thread. */

import { hidingRing, servingShards } from '../../cluster/apply/resharding.js';
import type { CollectionRecord } from '../../cluster/state/state.js';
import type { PeerId, ShardId } from '../../protocols/model/cluster.js';
import type {
  OwnCollection,
  OwnLimits,
  OwnReadsChange,
  PeerCard,
  PeerShare,
  ReplicaKey,
  ServedShards,
  SpreadCollection,
} from '../../storage/threads/messages.js';
import { readable } from '../context/readable.js';
import type { NodeServices } from '../context/services.js';
import type { Found, Names } from './collection-names.js';
import { type CollectionLimits, strictModeOf } from './limits/collection-limits.js';
import { keyedShards } from './shard-keys.js';
import { spread } from './spread.js';

export interface OwnReadsParts extends Pick<NodeServices, 'assignments'> {
  /** How a reader calls a peer; null: there is no connection, or readers call nobody. */
  readonly cardOf: (peer: PeerId) => PeerCard | null;
  readonly limits: Pick<CollectionLimits, 'indexesHere' | 'tokensOf'>;
}

/** Draws of `spread` that each read chooses from, for a peer among up to four equals. */
const DRAWS = Array.from({ length: 12 }, (_, at) => at / 12);

/**
 * Which collections have changed, and what readers may read of these by themselves, with the limits of strict mode: on a node without a
 * cluster those of which all shards serve; in a cluster those of which every shard has an Active replica here or on a peer with a connection,
 * while no points move between shards. About all others the main thread decides. Names and aliases stand beside each other.
 */
export class OwnReadsChanges {
  /** Null: anything may have changed. */
  #changed: Set<string> | null = null;

  constructor(
    private readonly names: Names,
    private readonly parts: OwnReadsParts,
  ) {}

  /** collection: a name; null: more has changed than a single collection. */
  note(collection: string | null): void {
    if (collection === null) this.#changed = null;
    else this.#changed?.add(collection);
  }

  /** Whether readers judge requests by the payload indexes of a collection, so that a change of these is one for them. */
  judgesByIndexes(collection: string): boolean {
    const found = this.names.known(collection);
    return found !== null && strictModeOf(found)?.unindexed_filtering_retrieve === false;
  }

  /** What has changed since the last call; the first time all there is. */
  take(): OwnReadsChange {
    const changed = this.#changed;
    this.#changed = new Set();
    const collections = new Map<string, OwnCollection | SpreadCollection | null>();
    for (const name of changed ?? this.names.list()) this.#look(name, collections);
    for (const [alias, name] of this.names.aliases()) if (changed?.has(name) !== false) this.#look(alias, collections);
    const asked = [...collections.values()].flatMap((own) => (own?.kind === 'spread' ? own.ways.flat() : []));
    const peers = new Map(asked.flatMap(({ isOwn, peer }) => (isOwn ? [] : [[peer, this.parts.cardOf(peer) as PeerCard] as const])));
    return { isWhole: changed === null, collections, peers };
  }

  /** name: also an alias. A collection's name has precedence over an alias. */
  #look(name: string, collections: Map<string, OwnCollection | SpreadCollection | null>): void {
    const found = this.names.known(name);
    if (found === null) {
      collections.set(name, null);
      return;
    }
    const own = found.name === name ? undefined : collections.get(found.name);
    collections.set(name, own === undefined ? ownCollection(found, this.names, this.parts) : own);
  }
}

function ownCollection(found: Found, names: Names, parts: OwnReadsParts): OwnCollection | SpreadCollection | null {
  const own = unlimitedCollection(found, names, parts);
  const limits = own === null ? null : readLimits(found, parts);
  if (own === null || limits === 'unknown') return null;
  return limits === null ? own : { ...own, limits };
}

/** What readers check of a read; 'unknown': this node knows too little to say. */
function readLimits(found: Found, { limits }: OwnReadsParts): OwnLimits | null | 'unknown' {
  const strict = strictModeOf(found);
  if (strict === null) return null;
  const indexes = strict.unindexed_filtering_retrieve === false ? limits.indexesHere(found.entry) : null;
  if (indexes === null && strict.unindexed_filtering_retrieve === false) return 'unknown';
  const tokens = { read: limits.tokensOf(found, 'read'), write: limits.tokensOf(found, 'write') };
  return { request: { strict, indexes }, tokens };
}

function unlimitedCollection({ entry, name, record }: Found, names: Names, parts: OwnReadsParts): OwnCollection | SpreadCollection | null {
  if (entry === null || entry.config === null) return null;
  if (record === null) {
    // A node of a cluster that has not heard of it yet knows nothing.
    const isOwn = parts.assignments.isAlone && entry.belonging === null;
    const replicas = isOwn ? servingKeys(names, name) : null;
    return replicas && { kind: 'whole', replicas, served: null };
  }
  if (hidingRing(record) !== null || !parts.assignments.serves) return null;
  const shards = [...servingShards(record).keys()];
  const replicas = new Map(
    shards.flatMap((shardId) => {
      const replica = readable(parts, entry, record.uid, shardId);
      return replica === null ? [] : [[shardId, replica.key] as const];
    }),
  );
  if (shards.length === 0) return null;
  const { shardMapVersion, uid } = record;
  const served: ServedShards = { name, uid, shardMapVersion, self: parts.assignments.peerId, replicas };
  if (replicas.size === shards.length) return { kind: 'whole', replicas: [...replicas.values()], served };
  return spreadCollection(record, served, parts);
}

/** The replicas of all shards; null if one does not serve. */
function servingKeys(names: Names, name: string): ReplicaKey[] | null {
  const { entry, shards } = names.points(name);
  const keys: ReplicaKey[] = [];
  for (const shardId of shards) {
    const replica = entry.replicas.get(shardId);
    if (replica?.state !== 'Serving') return null;
    keys.push(replica.key);
  }
  return keys.length === 0 ? null : keys;
}

/** Null if a shard cannot be asked anywhere, or if the collection wants several peers to be asked at once. */
function spreadCollection(record: CollectionRecord, served: ServedShards, { assignments, cardOf }: OwnReadsParts): SpreadCollection | null {
  const { name, replicas, shardMapVersion } = served;
  const { params } = record.config;
  if (params.read_fan_out_factor != null || params.read_fan_out_delay_ms != null) return null;
  const candidates = new Map<ShardId, PeerId[]>();
  for (const [shardId, shard] of servingShards(record)) {
    const peers = [...shard.replicas].flatMap(([peer, state]) => {
      const isReadable = peer === assignments.peerId ? replicas.has(shardId) : cardOf(peer) !== null;
      return state === 'Active' && isReadable ? [peer] : [];
    });
    if (peers.length === 0) return null;
    candidates.set(shardId, peers);
  }
  const hasOthers = [...candidates.values()].some(({ length }) => length > 1);
  return {
    kind: 'spread',
    name,
    place: { uid: record.uid, params, shards: keyedShards(record) },
    shardMapVersion,
    replicas,
    served,
    ways: waysOf(candidates, assignments.peerId, hasOthers ? DRAWS : [0]),
    hasOthers,
  };
}

function waysOf(candidates: ReadonlyMap<ShardId, readonly PeerId[]>, self: PeerId, draws: readonly number[]): PeerShare[][] {
  return draws.map((draw) => spread(candidates, self, () => draw).map((share) => ({ ...share, isOwn: share.peer === self })));
}
