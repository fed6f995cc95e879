/** Commands on replicas and their transfers. Replica states change only by `REPLICA_STATE_MOVES` (State-S6). */

import type { ErrorFacts } from '../../protocols/errors.js';
import type { PeerId, ReplicaState, ShardId } from '../../protocols/model/cluster.js';
import type { CommandOf, ReplicaChange, TransferKey } from '../state/commands.js';
import { afterEvent, afterStart, eventTo, type ReplicaEvent } from '../state/replica-state.js';
import type { ClusterState, CollectionRecord, ShardRecord, TransferRecord } from '../state/state.js';
import { abortKeyCopy, restartKeyCopy } from './apply-key-copy.js';
import {
  badRequest,
  type Change,
  done,
  onCollection,
  peerMissing,
  refused,
  shardMissing,
  transferMissing,
  unchanged,
  withCollection,
  withCollections,
  wrongInput,
} from './change.js';

type Replicas = ShardRecord['replicas'];

/** Makes all changes or, if one is refused, none. Changes of a collection or replica that is gone are left out. */
export function setReplicaStates(state: ClusterState, { changes }: CommandOf<'setReplicaStates'>): Change {
  const changed = new Map<string, CollectionRecord>();
  const named = new Set<string>();
  for (const change of changes) {
    const name = JSON.stringify([change.collection, change.shardId, change.peerId]);
    if (named.has(name))
      return refused(state, wrongInput(`the request changes the state of replica ${name} twice: name each replica once`));
    named.add(name);
    const record = changed.get(change.collection) ?? state.collections.get(change.collection);
    if (record === undefined || record.uid !== change.uid) continue;
    const made = setReplicaState(record, change);
    if ('error' in made) return refused(state, made.error);
    if (made !== record) changed.set(change.collection, settled(made));
  }
  if (changed.size === 0) return unchanged(state);
  return done(
    withCollections(state, (collections) => {
      for (const [name, record] of changed) collections.set(name, record);
    }),
  );
}

function setReplicaState(record: CollectionRecord, change: ReplicaChange): CollectionRecord | { readonly error: ErrorFacts } {
  const { term, from, peerId, shardId, to } = change;
  const shard = record.shards.get(shardId);
  const replicas = shard?.replicas;
  const current = replicas?.get(peerId);
  if (shard === undefined || replicas === undefined || current === undefined) return record;
  const late = refusedTerm(shardId, shard, term);
  if (late !== null) return { error: late };
  if (current === to) return record;
  const where = `the replica of shard ${shardId} of \`${change.collection}\` on peer ${peerId}`;
  if (from !== null && from !== current) return { error: { code: 'conflict', detail: `${where} is ${current}, not ${from}` } };
  // Two such changes, decided at the same time, would leave no replica with everything that was acknowledged.
  const isLast = current === 'Active' && !hasOtherActive(replicas, peerId);
  if (isLast && (to === 'Listener' || (to === 'Dead' && term !== null)))
    return { error: { code: 'conflict', detail: `${where} is the last Active one of its shard` } };
  const event = to === 'Active' && !hasOtherActive(replicas, peerId) ? 'activateAlone' : eventTo(to);
  const next = event === null ? null : afterEvent(current, event);
  if (next !== to) return { error: wrongInput(`${where} is ${current} and cannot become ${to}`) };
  return withReplica(record, shardId, peerId, next);
}

export function dropReplica(state: ClusterState, { collection, peerId, shardId }: CommandOf<'dropReplica'>): Change {
  return onCollection(state, collection, (record) => {
    const shard = record.shards.get(shardId);
    if (shard === undefined) return refused(state, shardMissing(collection, shardId));
    if (!isMember(state, peerId)) return refused(state, peerMissing(peerId));
    if (!shard.replicas.has(peerId)) return refused(state, replicaMissing(shardId, peerId));
    if (!hasOtherActive(shard.replicas, peerId))
      return refused(state, badRequest(`Shard ${shardId} must have at least one active replica after removing ${peerId}`));
    return done(withCollection(state, collection, settled(withReplica(record, shardId, peerId, null))));
  });
}

/**
 * Gives the lead of a shard to another replica (State-S7). Errors: `conflict` if this was decided under another leader, or if the heir is
 * not Active any more.
 */
export function changeLeader(state: ClusterState, { term, collection, shardId, to, uid }: CommandOf<'changeLeader'>): Change {
  return onCollection(state, collection, (record) => {
    const shard = record.uid === uid ? record.shards.get(shardId) : undefined;
    if (shard === undefined) return refused(state, shardMissing(collection, shardId));
    const late = refusedTerm(shardId, shard, term);
    if (late !== null) return refused(state, late);
    if (shard.leader === null) return refused(state, { code: 'conflict', detail: `shard ${shardId} has no leader now: retry` });
    const replica = shard.replicas.get(to);
    if (replica !== 'Active') {
      const detail = `the replica of shard ${shardId} on peer ${to} is ${replica ?? 'gone'}, and only an Active one can lead`;
      return refused(state, { code: 'conflict', detail });
    }
    if (shard.leader === to) return unchanged(state);
    return done(withCollection(state, collection, withShard(record, shardId, { ...shard, leader: to, term: shard.term + 1 })));
  });
}

/** Makes an empty replica for a shard that has none. Its points are lost, and the caller knows this. */
export function recreateShard(state: ClusterState, { collection, peerId, shardId }: CommandOf<'recreateShard'>): Change {
  return onCollection(state, collection, (record) => {
    const shard = record.shards.get(shardId);
    if (shard === undefined) return refused(state, shardMissing(collection, shardId));
    // The peer's own replica is lost too, or the caller would not ask.
    if ([...shard.replicas.keys()].some((peer) => peer !== peerId)) {
      // Sorted, so that the text does not depend on the history of the state: a state from a snapshot has another order.
      const replicas = [...shard.replicas].sort(([one], [other]) => one - other);
      const holders = replicas.map(([peer, replica]) => `peer ${peer} (${replica})`).join(', ');
      return refused(state, wrongInput(`shard ${shardId} cannot be recreated empty, as it has replicas: ${holders}`));
    }
    const error = refusedHolder(state, peerId);
    if (error !== null) return refused(state, error);
    const emptied = settled(withReplica(record, shardId, peerId, null));
    const made = withSince(withReplica(emptied, shardId, peerId, 'Initializing'), shardId, peerId, state.appliedIndex);
    return done(withCollection(state, collection, made));
  });
}

/** The error if a peer takes no more replicas, else null. */
function refusedHolder(state: ClusterState, peerId: PeerId): ErrorFacts | null {
  if (!isMember(state, peerId)) return peerMissing(peerId);
  if ((state.marks.get(peerId)?.leaving ?? null) === null) return null;
  return wrongInput(`peer ${peerId} is leaving the cluster and gets no more replicas`);
}

export function startTransfer(state: ClusterState, command: CommandOf<'startTransfer'>): Change {
  const { collection, method, sync, transfer } = command;
  return onCollection(state, collection, (record) => {
    const error = refusedTransfer(state, record, command);
    if (error !== null) return refused(state, error);
    const { shardId, to } = transfer;
    const current = record.shards.get(shardId)?.replicas.get(to);
    const next = afterStart(method, current ?? null);
    if (next === null) {
      const detail =
        current === undefined
          ? `\`${method}\` needs a replica of shard ${shardId} on peer ${to}, and there is none`
          : `the replica of shard ${shardId} on peer ${to} is ${current}: nothing can be transferred to it`;
      return refused(state, wrongInput(detail));
    }
    const started: TransferRecord = { ...transfer, method, sync, targetIsNew: current === undefined, startedAt: state.appliedIndex };
    const target = withReplica({ ...record, transfers: [...record.transfers, started] }, shardId, to, next);
    const begun = current === undefined ? withSince(target, shardId, to, state.appliedIndex) : target;
    return done(withCollection(withoutPlanned(state, record.uid, transfer), collection, begun));
  });
}

/** The state without the planned move that has been started. */
function withoutPlanned(state: ClusterState, uid: number, { from, shardId, to }: TransferKey): ClusterState {
  const left = state.plannedMoves.filter((move) => move.uid !== uid || move.shardId !== shardId || move.from !== from || move.to !== to);
  return left.length === state.plannedMoves.length ? state : { ...state, plannedMoves: left };
}

function isMember({ membership }: ClusterState, peerId: PeerId): boolean {
  return membership.some((member) => member.peerId === peerId);
}

function refusedTransfer(
  state: ClusterState,
  { shards, transfers }: CollectionRecord,
  { collection, method, transfer }: CommandOf<'startTransfer'>,
): ErrorFacts | null {
  const { from, shardId, to, toShardId } = transfer;
  if (toShardId !== null || method === 'resharding_stream_records')
    return { code: 'unsupported', detail: 'transfers between shards: use start_resharding, or replicate_points' };
  const shard = shards.get(shardId);
  if (shard === undefined) return shardMissing(collection, shardId);
  if (!isMember(state, to)) return peerMissing(to);
  if (!shard.replicas.has(to) && (state.marks.get(to)?.leaving ?? null) !== null)
    return wrongInput(`peer ${to} is leaving the cluster and gets no more replicas`);
  const source = shard.replicas.get(from);
  if (source === undefined) return replicaMissing(shardId, from);
  if (from === to) return wrongInput(`shard ${shardId} cannot be transferred from peer ${from} to itself`);
  // State-S5
  if (source !== 'Active')
    return wrongInput(`the replica of shard ${shardId} on peer ${from} is ${source}, only an Active one can be transferred`);
  if (transfers.some((other) => other.shardId === shardId && other.to === to))
    return { code: 'conflict', detail: `shard ${shardId} is being transferred to peer ${to} already` };
  return null;
}

export function restartTransfer(state: ClusterState, command: CommandOf<'restartTransfer'>): Change {
  const { collection, method } = command;
  if (command.transfer.toShardId !== null) return restartKeyCopy(state, command);
  return onTransfer(state, command, (record, known) => {
    const { shardId, to } = known;
    const current = record.shards.get(shardId)?.replicas.get(to);
    const next = current === undefined ? null : afterStart(method, current);
    if (next === null)
      return refused(state, wrongInput(`the transfer of shard ${shardId} to peer ${to} cannot be restarted with the method \`${method}\``));
    if (known.targetIsNew && afterStart(method, null) === null)
      return refused(
        state,
        wrongInput(`\`${method}\` needs a replica of shard ${shardId} on peer ${to} that was there before the transfer`),
      );
    const transfers = record.transfers.map((other) => (other === known ? { ...known, method, startedAt: state.appliedIndex } : other));
    return done(withCollection(state, collection, withReplica({ ...record, transfers }, shardId, to, next)));
  });
}

/** Finishes a transfer: the target becomes Active and, unless it is a copy, the source is dropped. */
export function finishTransfer(state: ClusterState, command: CommandOf<'finishTransfer'>): Change {
  const { collection } = command;
  return onTransfer(state, command, (record, known) => {
    const { from, shardId, sync, to } = known;
    const finished = withEvent(without(record, known), shardId, to, 'finish');
    return done(withCollection(state, collection, sync ? finished : settled(withReplica(finished, shardId, from, null))));
  });
}

export function abortTransfer(state: ClusterState, command: CommandOf<'abortTransfer'>): Change {
  const { collection } = command;
  if (command.transfer.toShardId !== null) return abortKeyCopy(state, command);
  return onTransfer(state, command, (record, known) => done(withCollection(state, collection, aborted(record, known))));
}

/** Collections without the replicas of a peer that left the cluster. */
export function withoutPeer(collections: ClusterState['collections'], peerId: PeerId): ClusterState['collections'] {
  const next = new Map(collections);
  for (const [name, record] of collections) {
    let left = record;
    for (const [shardId, { replicas }] of record.shards) if (replicas.has(peerId)) left = withReplica(left, shardId, peerId, null);
    if (left !== record) next.set(name, settled(left));
  }
  return next;
}

/** The record without transfers whose source is not Active any more, or whose target is gone, Dead or waits for nothing (State-S5). */
function settled(record: CollectionRecord): CollectionRecord {
  let next = record;
  for (const transfer of record.transfers) {
    const replicas = record.shards.get(transfer.shardId)?.replicas;
    const target = replicas?.get(transfer.to);
    if (target === 'Dead') next = aborted(next, transfer);
    else if (target === undefined || target === 'Active') next = without(next, transfer);
    else if (replicas?.get(transfer.from) !== 'Active') next = aborted(next, transfer);
  }
  return next;
}

/** The record after a transfer without success. A target that was made for it is dropped; one that existed before has missed writes. */
function aborted(record: CollectionRecord, transfer: TransferRecord): CollectionRecord {
  const { shardId, targetIsNew, to } = transfer;
  const left = without(record, transfer);
  return targetIsNew ? withReplica(left, shardId, to, null) : withEvent(left, shardId, to, 'abort');
}

function without(record: CollectionRecord, transfer: TransferRecord): CollectionRecord {
  return { ...record, transfers: record.transfers.filter((other) => other !== transfer) };
}

function onTransfer(
  state: ClusterState,
  { term, collection, transfer }: { readonly collection: string; readonly transfer: TransferKey; readonly term: number | null },
  change: (record: CollectionRecord, transfer: TransferRecord) => Change,
): Change {
  const { from, shardId, to, toShardId } = transfer;
  return onCollection(state, collection, (record) => {
    const shard = record.shards.get(shardId);
    const late = shard === undefined ? null : refusedTerm(shardId, shard, term);
    if (late !== null) return refused(state, late);
    const known = record.transfers.find(
      (other) => other.shardId === shardId && other.from === from && other.to === to && other.toShardId === toShardId,
    );
    if (known !== undefined) return change(record, known);
    return refused(state, transferMissing(collection, transfer));
  });
}

/** The record after a replica's event, which the table must not refuse. */
function withEvent(record: CollectionRecord, shardId: ShardId, peerId: PeerId, event: ReplicaEvent): CollectionRecord {
  const current = record.shards.get(shardId)?.replicas.get(peerId);
  const next = current === undefined ? null : afterEvent(current, event);
  return next === null ? record : withReplica(record, shardId, peerId, next);
}

/** The record with a replica in the state `next`; null drops the replica. */
function withReplica(record: CollectionRecord, shardId: ShardId, peerId: PeerId, next: ReplicaState | null): CollectionRecord {
  const shard = record.shards.get(shardId);
  if (shard === undefined) return record;
  const replicas = new Map(shard.replicas);
  if (next !== null) {
    replicas.set(peerId, next);
    return withShard(record, shardId, { ...shard, replicas });
  }
  const since = new Map(shard.since);
  replicas.delete(peerId);
  since.delete(peerId);
  return withShard(record, shardId, { ...shard, replicas, since });
}

/** The record with `index` as the entry that made the replica. */
function withSince(record: CollectionRecord, shardId: ShardId, peerId: PeerId, index: number): CollectionRecord {
  const shard = record.shards.get(shardId);
  return shard === undefined ? record : withShard(record, shardId, { ...shard, since: new Map(shard.since).set(peerId, index) });
}

function withShard(record: CollectionRecord, shardId: ShardId, shard: ShardRecord): CollectionRecord {
  return { ...record, shards: new Map(record.shards).set(shardId, shard) };
}

/** The error if a command was decided under another leader of the shard. */
function refusedTerm(shardId: ShardId, shard: ShardRecord, term: number | null): ErrorFacts | null {
  if (term === null || term === shard.term) return null;
  return { code: 'conflict', detail: `shard ${shardId} has term ${shard.term} by now, not ${term}` };
}

function hasOtherActive(replicas: Replicas, peerId: PeerId): boolean {
  return [...replicas].some(([peer, state]) => peer !== peerId && state === 'Active');
}

function replicaMissing(shardId: ShardId, peerId: PeerId): ErrorFacts {
  return { code: 'notFound', detail: `Shard ${shardId} has no replica on peer ${peerId}` };
}
