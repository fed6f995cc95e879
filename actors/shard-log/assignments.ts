/**
 * The agreed state of the shards, for the actors that execute it. It is read on the main thread without asking consensus, which writes each
 * new state here once it has applied it.
 */

import type { ShardAssignment } from '../../cluster/replication/messages.js';
import { copiesNeeded } from '../../cluster/replication/required.js';
import type { Leads } from '../../cluster/state/giving-back.js';
import type { ClusterState, CollectionRecord, ShardRecord, TransferRecord } from '../../cluster/state/state.js';
import type { PeerId, ShardId } from '../../protocols/model/cluster.js';
import type { Cancel } from '../runtime/ports.js';

/** The agreed state of one shard of a collection: what its log goes by, and its transfers. */
export interface Assignment extends ShardAssignment {
  /** The transfers of this shard. */
  readonly transfers: readonly TransferRecord[];
}

/** Names the shard of an assignment. A later collection of the same name has another `uid`. */
export interface AssignedShard {
  readonly collection: string;
  readonly uid: number;
  readonly shardId: ShardId;
}

/** The assignment of every shard of a node without a cluster: this node, as peer 0, leads the only replica, and there is one term. */
const ALONE: Assignment = {
  leader: 0,
  term: 0,
  replicas: new Map([[0, 'Active']]),
  since: new Map(),
  writeFactor: 1,
  transfers: [],
};

interface Watch extends AssignedShard {
  seen: CollectionRecord | null;
  shown: Assignment | null;
  readonly changed: (assignment: Assignment | null) => void;
}

export interface Shown {
  readonly agreed: ClusterState;
  readonly peerId: PeerId;
  readonly leads: boolean;
  readonly connected: ReadonlySet<PeerId>;
  readonly serves: boolean;
  /** See `Assignments.lastIndexAtStart`. */
  readonly lastIndexAtStart: number;
  /** See `Assignments.leadsAtStart`. */
  readonly leadsAtStart: Leads;
  /** See `Assignments.isAloneWithout`. */
  readonly isAloneWithout: (peer: PeerId) => boolean;
  /** See `Assignments.full`. */
  readonly full: ReadonlySet<PeerId>;
}

export class Assignments {
  #agreed: ClusterState | null = null;
  #peerId: PeerId = 0;
  #leads = false;
  #connected: ReadonlySet<PeerId> = new Set();
  #isAloneWithout: (peer: PeerId) => boolean = () => false;
  #full: ReadonlySet<PeerId> = new Set();
  #lastIndexAtStart = 0;
  #leadsAtStart: Leads = new Map();
  #serves = true;
  #isSettled: boolean;
  #mayBeLeft = true;
  readonly #watches = new Map<string, Set<Watch>>();
  readonly #watchers = new Set<() => void>();
  /** Called in each change of what this node may read. */
  #readsChanged: () => void = () => {};

  /** isAlone: this node has no cluster. */
  constructor(readonly isAlone = false) {
    this.#isSettled = isAlone;
  }

  /** The agreed state; null outside of a cluster, and until this node has heard of its cluster. */
  get agreed(): ClusterState | null {
    return this.#agreed;
  }

  /** Peer id of this node; 0 until it is known, and on a node without a cluster. */
  get peerId(): PeerId {
    return this.#peerId;
  }

  /** Whether this node leads its cluster's consensus, as far as it knows. */
  get leadsCluster(): boolean {
    return this.#leads;
  }

  /** Index of the last entry that an earlier process has left in Raft's log: later entries are new to this node. 0 until it is known. */
  get lastIndexAtStart(): number {
    return this.#lastIndexAtStart;
  }

  /** Who led the shards of this node's replicas at that index, or at a later one of this process. Empty until it is known. */
  get leadsAtStart(): Leads {
    return this.#leadsAtStart;
  }

  /** Whether this node may serve. False after a start while it may lack earlier agreements: its replicas may not be Active any more. */
  get serves(): boolean {
    return this.#serves;
  }

  /**
   * Whether this node knows everything that was agreed before its process began. The state that it starts with may be older than what an
   * earlier process knew.
   */
  get isSettled(): boolean {
    return this.#isSettled;
  }

  /** Notes that a barrier has passed, so that `isSettled` is true. */
  settle(): void {
    this.#isSettled = true;
  }

  /** Peers that this node is connected with; on the leader of consensus, only those of them that it hears. */
  get connected(): ReadonlySet<PeerId> {
    return this.#connected;
  }

  /** Peers whose disk is full, this one among them (Disk-D4). */
  get full(): ReadonlySet<PeerId> {
    return this.#full;
  }

  /**
   * Whether this peer is away and nothing can be agreed on without it, nor without this node: no shard that this node leads gets another
   * leader.
   */
  isAloneWithout(peer: PeerId): boolean {
    return this.#mayBeLeft && this.#isAloneWithout(peer);
  }

  /** Ends writes that other replicas lack: this node has asked to lead no more, which may be agreed on at any time. */
  stayTogether(): void {
    this.#mayBeLeft = false;
  }

  /** Takes the newest agreed state and other facts from consensus. */
  show({ agreed, connected, full, isAloneWithout, lastIndexAtStart, leads, leadsAtStart, peerId, serves }: Shown): void {
    const before = this.#agreed;
    const isSameSelf = this.#serves === serves && this.#peerId === peerId;
    const readsAsBefore = isSameSelf && isSameButCollections(before, agreed) && isSameSet(this.#connected, connected);
    this.#lastIndexAtStart = lastIndexAtStart;
    this.#leadsAtStart = leadsAtStart;
    this.#leads = leads;
    this.#serves = serves;
    this.#connected = connected;
    this.#isAloneWithout = isAloneWithout;
    this.#full = full;
    this.#agreed = agreed;
    this.#peerId = peerId;
    const isSameCollections = before?.collections === agreed.collections;
    // Before anybody acts on the change.
    if (!readsAsBefore || !isSameCollections) this.#readsChanged();
    if (isSameCollections) return;
    for (const watches of this.#watches.values()) for (const watch of watches) this.#look(watch);
    for (const changed of this.#watchers) changed();
  }

  /** The agreed state of a shard; null if the cluster has no such shard, as far as this node knows. */
  of({ collection, shardId, uid }: AssignedShard): Assignment | null {
    if (this.isAlone) return ALONE;
    const record = this.#agreed?.collections.get(collection);
    const shard = record?.uid === uid ? record.shards.get(shardId) : undefined;
    return record === undefined || shard === undefined ? null : assignmentOf(record, shardId, shard);
  }

  /** Calls `changed` at each change of the shard's assignment, until it is cancelled. */
  watch(shard: AssignedShard, changed: (assignment: Assignment | null) => void): Cancel {
    const { collection, shardId, uid } = shard;
    const watch: Watch = {
      collection,
      uid,
      shardId,
      seen: this.#agreed?.collections.get(collection) ?? null,
      shown: this.of(shard),
      changed,
    };
    const watches = this.#watches.get(collection) ?? new Set();
    this.#watches.set(collection, watches.add(watch));
    return () => {
      watches.delete(watch);
      if (watches.size === 0 && this.#watches.get(collection) === watches) this.#watches.delete(collection);
    };
  }

  /** Calls `changed` at each change of any collection, until it is cancelled. */
  watchAll(changed: () => void): Cancel {
    this.#watchers.add(changed);
    return () => void this.#watchers.delete(changed);
  }

  /** Has the listener called in each change of collections, aliases, connections, or whether this node serves, before anything follows from the change. */
  watchReads(listener: () => void): void {
    this.#readsChanged = listener;
  }

  #look(watch: Watch): void {
    const record = this.#agreed?.collections.get(watch.collection) ?? null;
    if (record === watch.seen) return;
    watch.seen = record;
    const assignment = this.of(watch);
    if (isSame(watch.shown, assignment)) return;
    watch.shown = assignment;
    watch.changed(assignment);
  }
}

function assignmentOf({ config, transfers }: CollectionRecord, id: ShardId, { leader, replicas, since, term }: ShardRecord): Assignment {
  const own = transfers.filter(({ shardId }) => shardId === id);
  const added = own.flatMap(({ targetIsNew, to }) => (targetIsNew ? [to] : []));
  const writeFactor = copiesNeeded(config.params.write_consistency_factor, replicas, added);
  return { leader, term, replicas, since, writeFactor, transfers: own };
}

function isSameButCollections(one: ClusterState | null, other: ClusterState): boolean {
  return one?.aliases === other.aliases && one.membership === other.membership;
}

function isSameSet(one: ReadonlySet<PeerId>, other: ReadonlySet<PeerId>): boolean {
  return one === other || (one.size === other.size && [...one].every((peer) => other.has(peer)));
}

/** Whether two assignments are equal. Records are compared by identity; an equal copy costs one extra check. */
function isSame(one: Assignment | null, other: Assignment | null): boolean {
  if (one === null || other === null) return one === other;
  if (one.leader !== other.leader || one.term !== other.term || one.replicas !== other.replicas || one.since !== other.since) return false;
  if (one.writeFactor !== other.writeFactor) return false;
  return one.transfers.length === other.transfers.length && one.transfers.every((transfer, at) => transfer === other.transfers[at]);
}
