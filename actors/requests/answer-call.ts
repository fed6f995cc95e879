/** Answers the calls of peers: passes each call to the replica that it is for. */

import { holdsWrites, migrationOf } from '../../cluster/apply/migration.js';
import { hidingRing } from '../../cluster/apply/resharding.js';
import {
  type AnswerCall,
  type CopyFence,
  type DataAnswer,
  type DataCall,
  NotReached,
  type PeerCalls,
  type ReachedLog,
  type ShardAddress,
} from '../../cluster/data-messages.js';
import type { ReplicationInput } from '../../cluster/replication/messages.js';
import type { CollectionRecord } from '../../cluster/state/state.js';
import { isComparable } from '../../cluster/transfer/comparing.js';
import { replicaName } from '../../cluster/transfer/healing.js';
import { TroupeError } from '../../protocols/errors.js';
import type { ShardId } from '../../protocols/model/cluster.js';
import type { PointId } from '../../protocols/model/point-id.js';
import type { Written } from '../../protocols/model/update.js';
import { noUsage } from '../../protocols/model/usage.js';
import { type HopNotes, movedHop } from '../../protocols/model/write-hop.js';
import { encodeUpdate, NOTHING } from '../../protocols/update-codec.js';
import { checkLife, checkRead, readables } from '../context/readable.js';
import type { NodeServices } from '../context/services.js';
import type { CollectionEntry, NodeView } from '../context/view.js';
import { NotTaken, type ReplyTo } from '../runtime/behaviour.js';
import type { Clock } from '../runtime/ports.js';
import { handOverShard } from '../shard-log/hand-over.js';
import { mayHide, untilShown } from '../shard-log/shown.js';
import { heldOf } from '../shard-log/view.js';
import { reachHere } from '../snapshots/install.js';
import { ReceivedParts } from '../snapshots/received-parts.js';
import { receiveRestored } from '../snapshots/send.js';
import { receiveFiles } from '../transfers/run/receive-files.js';
import { replicaFacts, replicaFigures } from './figures.js';
import { notedHop } from './noted-hop.js';
import { optimizationsView, reportFacts } from './report.js';
import { checkShardMapVersion, staleCopy } from './shard-map.js';

/** The calls of a node without a cluster: every call fails. */
export const NO_CALLS: PeerCalls = {
  call: (peer) => Promise.reject(new NotReached(`this node is part of no cluster, and knows no peer ${peer}`)),
};

export interface AnswerParts {
  /** The last sequence number of each shard that points were copied from (see `CopyFence`). */
  readonly fences: Map<string, number>;
  /** Comparisons of replicas of shards led here that were asked for (see `Sight`). */
  readonly asked: Set<string>;
  readonly view: NodeView;
  readonly services: NodeServices;
  readonly clock: Clock;
}

type CallOf<Kind extends DataCall['kind']> = Extract<DataCall, { readonly kind: Kind }>;

/** A leader keeps deadlines on its own side. */
const ORDERED_MS = 60_000;
/** The engine ends a write at its deadline with a message that says more than the caller's timeout. */
const GRACE_MS = 100;

/**
 * Answers calls of peers. Errors: `conflict` if the replica is not on this node, was dropped, or is not the one that is meant, and nothing
 * was done; and the replica's own errors.
 */
export function answerCalls(parts: AnswerParts): AnswerCall {
  const { store, timers } = parts.services;
  const received = new ReceivedParts({ timers, remove: (folder) => store.staged.remove(folder) });
  return async (from, call) => {
    switch (call.kind) {
      case 'write':
        return writePart(parts, call);
      case 'missing':
        return missing(parts, call);
      case 'barrier':
        return barrier(parts, call);
      case 'read':
        return read(parts, call);
      case 'shardMap':
        return shardMapHere(parts, call);
      case 'reached':
        return reached(parts, call);
      case 'shown':
        return shown(parts, call);
      case 'figures': {
        const entry = entryOf(parts, call);
        const { clock, services } = parts;
        const facts = reportFacts(services, clock);
        return { kind: 'figures', figures: call.shards.map((shardId) => replicaFigures(entry, shardId, services.engine, facts)) };
      }
      case 'optimizations': {
        const entry = entryOf(parts, call);
        const { clock, services } = parts;
        if (entry.config === null) throw new TroupeError('conflict', `collection ${call.collection} is not on this node, or not yet`);
        const replicas = replicaFacts(entry, services.engine);
        return { kind: 'optimizations', view: optimizationsView(entry.config, replicas, reportFacts(services, clock)) };
      }
      case 'append':
      case 'position':
      case 'entriesAfter':
      case 'resetLog':
      case 'rewindLog':
      case 'digest':
      case 'replaceBuckets':
      case 'applySettings':
        checkLife(entryOf(parts, call.shard), call.shard.shardId, call.since);
        return ask<DataAnswer>(parts, call.shard, (caller) => ({ kind: 'called', caller, from, call }), ORDERED_MS);
      case 'handOver':
        return handOverShard(parts.services, entryOf(parts, call.shard), call);
      case 'compareReplica':
        return compareReplica(parts, call);
      case 'putFile':
      case 'installFiles':
        return receiveFiles(parts.services, entryOf(parts, call.shard), call);
      case 'putRestored':
      case 'installRestored':
      case 'installUntil':
        return receiveRestored(parts.services, entryOf(parts, call.shard), received, call, parts.clock.dateMs());
      case 'reachOf':
        return { kind: 'reach', reach: await reachHere(parts.services, entryOf(parts, call.shard), call.shard, call.after, call.untilMs) };
      default:
        return call satisfies never;
    }
  };
}

async function writePart(parts: AnswerParts, call: CallOf<'write'>): Promise<DataAnswer> {
  const { fence, isTraced, measured, operation, operations, shard, timeoutMs, until } = call;
  checkTaking(parts, call);
  const usage = measured ? noUsage() : null;
  const deadlineMs = parts.clock.nowMs() + timeoutMs;
  const counted = usage === null ? {} : { usage };
  const copied = fence === undefined ? {} : ({ isCopy: true, waitsForAll: true } as const);
  const notes: HopNotes | undefined = isTraced === true ? [] : undefined;
  const peer = String(parts.services.assignments.peerId);
  const written = await notedHop(notes, 'leader', { 'troupe.peer_id': peer }, (hops) => {
    const noted = hops === undefined ? {} : { hops };
    const write = { operation, operations, until, deadlineMs, ...counted, ...copied, ...noted };
    return ask<Written>(parts, shard, (caller) => ({ kind: 'write', caller, ...write }), timeoutMs + GRACE_MS);
  });
  const hop = notes?.[0];
  return { kind: 'written', ...written, usage, ...(hop === undefined ? {} : { hop: movedHop(hop, -hop.startUs) }) };
}

/** Errors: `conflict` if another replica leads the shard, or if the replica does not get every write. */
function compareReplica({ asked, services }: AnswerParts, { peerId, shard, term }: CallOf<'compareReplica'>): DataAnswer {
  const assignment = services.assignments.of(shard);
  const where = `shard ${shard.shardId} of collection ${shard.collection}`;
  if (assignment?.term !== term || assignment.leader !== services.assignments.peerId)
    throw new TroupeError('conflict', `${where} is not led here in term ${term}`, { reason: 'notLeader' });
  const state = assignment.replicas.get(peerId);
  if (peerId === assignment.leader || state === undefined || !isComparable(state))
    throw new TroupeError('conflict', `the replica of ${where} on peer ${peerId} is ${state ?? 'gone'} by now, and cannot be compared`);
  asked.add(replicaName(shard.uid, shard.shardId, peerId));
  return { kind: 'done', changed: 0 };
}

async function missing(parts: AnswerParts, call: CallOf<'missing'>): Promise<DataAnswer> {
  const { ids, shardMapVersion, shard, timeoutMs } = call;
  checkShardMapVersion(agreedRecord(parts.services, shard), shard.collection, shardMapVersion);
  const deadlineMs = parts.clock.nowMs() + timeoutMs;
  const id = await ask<PointId | null>(parts, shard, (caller) => ({ kind: 'missing', caller, ids, deadlineMs }), timeoutMs + GRACE_MS);
  return { kind: 'missing', id };
}

/** Logs an entry that changes nothing. It is taken also while writes of the shard wait, or too few replicas serve it. */
async function barrier(parts: AnswerParts, call: CallOf<'barrier'>): Promise<DataAnswer> {
  const { fence, shard, shardMapVersion, timeoutMs } = call;
  const record = agreedRecord(parts.services, shard);
  checkShardMapVersion(record, shard.collection, shardMapVersion);
  if (fence !== undefined) checkFence(parts, record, fence);
  const deadlineMs = parts.clock.nowMs() + timeoutMs;
  const migrates = fence === undefined ? {} : ({ waitsForAll: true } as const);
  const entry = { operation: 'deletePoints', operations: [encodeUpdate(NOTHING)], until: 'applied', isCopy: true, ...migrates } as const;
  const { numbers } = await ask<Written>(parts, shard, (caller) => ({ kind: 'write', caller, ...entry, deadlineMs }), timeoutMs + GRACE_MS);
  return { kind: 'barrier', index: numbers[0] as number };
}

async function read(parts: AnswerParts, call: CallOf<'read'>): Promise<DataAnswer> {
  const usage = call.measured ? noUsage() : null;
  const record = agreedRecord(parts.services, call);
  checkShardMapVersion(record, call.collection, call.shardMapVersion);
  if (call.fence !== undefined) checkFence(parts, record, call.fence);
  const entry = entryOf(parts, call);
  const replicas = readables(parts.services, entry, call.uid, call.shards);
  const keys = replicas.map(({ key }) => key);
  const deadlineMs = parts.clock.nowMs() + call.timeoutMs;
  const ring = call.fence === undefined ? hidingRing(record) : null;
  const peer = parts.services.assignments.peerId;
  const how = { peer, ...(usage && { usage }), ...(ring && { ring }) };
  const { body, positions } = await parts.services.engine.portion(keys, call.body, deadlineMs, how);
  checkRead(parts.services, entry, call.uid, call.shards, replicas);
  // Points that were hidden may have been removed during the read.
  checkShardMapVersion(agreedRecord(parts.services, call), call.collection, call.shardMapVersion);
  return { kind: 'answered', body, positions, usage };
}

async function reached(parts: AnswerParts, call: CallOf<'reached'>): Promise<DataAnswer> {
  const entry = entryOf(parts, call);
  const { replications } = entry;
  const logs = readables(parts.services, entry, call.uid, call.shards).map(async ({ key }, at): Promise<ReachedLog> => {
    const { last } = await parts.services.engine.position(key);
    const status = replications.get(call.shards[at] as ShardId)?.status();
    return { term: last.term, index: last.index, held: status === undefined ? null : heldOf(status) };
  });
  return { kind: 'reached', logs: await Promise.all(logs) };
}

/** Errors: `timeout` if reads of the replica did not see all points in time. */
async function shown({ clock, services, view }: AnswerParts, { shard, timeoutMs }: CallOf<'shown'>): Promise<DataAnswer> {
  const replica = entryOf({ view }, shard).replicas.get(shard.shardId);
  const isShown = replica === undefined || (await untilShown(services, replica.key, clock.nowMs() + timeoutMs, clock));
  if (isShown) return { kind: 'done', changed: 0 };
  throw new TroupeError('timeout', `shard ${shard.shardId} of collection ${shard.collection} has points that are not indexed yet`);
}

/**
 * Tells this node's shard map version, and whether its replicas show all points: they do if the agreed configuration, which defers none,
 * has reached them.
 */
function shardMapHere(parts: AnswerParts, call: CallOf<'shardMap'>): DataAnswer {
  const { engine } = parts.services;
  const record = agreedRecord(parts.services, call);
  const { shardMapVersion, revision } = record;
  if (record.config.optimizer_config.prevent_unoptimized !== true) return { kind: 'shardMap', shardMapVersion, showsAll: true };
  const { belonging, replicas } = entryOf(parts, call);
  const holdsBack = [...replicas.values()].some(({ key }) => mayHide(engine.stats(key)));
  return { kind: 'shardMap', shardMapVersion, showsAll: belonging?.revision === revision && !holdsBack };
}

type OfCollection = { readonly collection: string; readonly uid: number };

/** The collection's agreed record. Errors: `conflict` if this node does not know the collection. */
function agreedRecord({ assignments }: Pick<NodeServices, 'assignments'>, { collection, uid }: OfCollection): CollectionRecord {
  const record = assignments.agreed?.collections.get(collection);
  if (record?.uid === uid) return record;
  throw notHere(`collection ${collection} (${uid}) is not known to this node, or not yet`);
}

/** Checks that the shard takes writes. Errors: `conflict` if its writes wait or go to another shard (Migr-D2, Migr-D3). */
function checkTaking(parts: AnswerParts, { fence, shardMapVersion, shard }: CallOf<'write'>): void {
  const record = agreedRecord(parts.services, shard);
  checkShardMapVersion(record, shard.collection, shardMapVersion);
  if (fence !== undefined) checkFence(parts, record, fence);
  else if (holdsWrites(record, shard.shardId))
    throw new TroupeError('conflict', `shard ${shard.shardId} of collection ${shard.collection} is moving points to other shards: retry`, {
      reason: 'shardMigrating',
    });
}

/** Checks that a copy is not late (Migr-D4). Errors: `conflict`. */
function checkFence({ fences }: AnswerParts, record: CollectionRecord, fence: CopyFence): void {
  const { shards, uid } = record;
  const { term, from, sequence, startedAt } = fence;
  const late = (detail: string) => new TroupeError('conflict', detail);
  if (migrationOf(record)?.startedAt !== startedAt) throw late('points are copied for something that is over, or not begun here');
  const known = shards.get(from)?.term;
  if (known !== term) throw late(`shard ${from} has term ${known} here, not ${term}`);
  const name = `${uid}/${startedAt}/${from}/${term}`;
  if (sequence < (fences.get(name) ?? 0)) throw staleCopy(from);
  if (!fences.has(name))
    for (const other of fences.keys()) if (other.startsWith(`${uid}/`) && !other.startsWith(`${uid}/${startedAt}/`)) fences.delete(other);
  fences.set(name, sequence);
}

/**
 * Asks the actor of a replica's log. Errors: as `ActorRef.ask`; `conflict` if the replica is not on this node, or ended before it handled
 * the message.
 */
async function ask<Answer>(
  parts: AnswerParts,
  shard: ShardAddress,
  make: (caller: ReplyTo<Answer>) => ReplicationInput,
  timeoutMs: number,
): Promise<Answer> {
  const replication = entryOf(parts, shard).replications.get(shard.shardId);
  const where = `shard ${shard.shardId} of collection ${shard.collection}`;
  if (replication === undefined) throw notHere(`${where} is not on this node, or not yet`);
  try {
    return await replication.actor.ask(make, timeoutMs);
  } catch (error) {
    if (error instanceof NotTaken) throw notHere(`${where} is no longer on this node`, error);
    throw error;
  }
}

function entryOf(
  { view }: Pick<AnswerParts, 'view'>,
  { collection, uid }: { readonly collection: string; readonly uid: number },
): CollectionEntry {
  const entry = view.collections.get(collection);
  if (entry?.belonging?.uid === uid) return entry;
  throw notHere(`collection ${collection} (${uid}) is not on this node, or not yet`);
}

function notHere(detail: string, cause?: unknown): TroupeError {
  return new TroupeError('conflict', detail, { cause, reason: 'replicaNotHere' });
}
