/** Puts restored files in the place of shards' files on this node. */

import { setTimeout as pause } from 'node:timers/promises';
import type { ReplicaChange } from '../../cluster/state/commands.js';
import { type ErrorFacts, TroupeError } from '../../protocols/errors.js';
import type { ShardId } from '../../protocols/model/cluster.js';
import type { CollectionParams } from '../../protocols/model/collection.js';
import { type LogReach, type LogTag, NO_TAG } from '../../protocols/model/shard-log.js';
import { encodeUpdate, NOTHING } from '../../protocols/update-codec.js';
import type { StoredCollection } from '../collection/config-file.js';
import type { NodeServices } from '../context/services.js';
import type { CollectionEntry, ReplicaEntry } from '../context/view.js';
import type { Assignment } from '../shard-log/assignments.js';
import type { ReplicationEntry } from '../shard-log/view.js';

/** Files of a checkpoint for one shard. */
export interface RestoredShard {
  readonly shardId: ShardId;
  /** Has the files, synced; it is taken away. */
  readonly folder: string;
  /** The last operation that the files have, in the log that they come from. */
  readonly at: LogTag;
  /** The last operation of the shard's log that belongs to the restore, after `at` or the same; null: none does (Restore-I4). */
  readonly to: LogTag | null;
}

/** Writes under way end within this time. */
const PAUSE_MS = 10_000;
const PROPOSE_MS = 10_000;
const INSTALL_MS = 600_000;
const LEADING_MS = 30_000;
const LEADING_PAUSE_MS = 10;
/** Of the log that are carried at a time. */
const CARRY_BYTES = 4 * 2 ** 20;

/** A shard on this node with its actors. */
interface Here extends RestoredShard {
  readonly replica: ReplicaEntry;
  readonly replication: ReplicationEntry;
  readonly assignment: Assignment;
}

/**
 * - **Restore-I1** What a shard's leader installs is one operation of its log: the log goes on after it, with an index that no operation of
 *   the shard has had. So a replica that has missed it can never be taken for one that has everything.
 * - **Restore-I2** The other replicas of the shard are agreed to be Dead before: no read takes them for Active, and each is filled by the
 *   leader afterwards. If the restore ends in between, they are filled with what the leader had.
 * - **Restore-I3** Files of several shards take their places as one, also if the process ends meanwhile (`prepareExchange`).
 * - **Restore-I4** A restore to a point in time is a log that was taken back to that operation and goes on: the copy of the log's operations up to it, then
 *   the operation of Restore-I1. They lie in the files before these take their place, so a start after a crash applies them. What has been acknowledged since
 *   is in no log of an Active replica any more.
 *
 * dateMs: now. leads: this node leads the shards, and the files become their data; else only the replicas of this node change (`no_sync`), and their logs
 * stay where they are. Resolves when the replicas are open. Errors: `conflict` (`notLeader`); `unavailable`, `timeout`, `storage`.
 */
export async function installShards(
  services: NodeServices,
  entry: CollectionEntry,
  shards: readonly RestoredShard[],
  leads: boolean,
  dateMs: number,
): Promise<void> {
  const here = shards.map((shard) => shardHere(services, entry, shard, leads));
  if (leads) await Promise.all(here.map(untilLeading));
  for (const shard of here) await carryLog(services, entry, shard);
  if (leads) await Promise.all(here.map((shard) => loseOthers(services, entry, shard)));
  const resume = () => {
    if (leads) for (const { replication } of here) replication.actor.report({ kind: 'resume' });
  };
  try {
    if (leads)
      await Promise.all(here.map(({ replication }) => replication.actor.ask<true>((caller) => ({ kind: 'pause', caller }), PAUSE_MS)));
    for (const shard of here) await giveNextOperation(services, entry, shard, await placeInLog(services, shard, leads), dateMs);
    await exchange(services, entry, here);
    if (leads) await Promise.all(here.map(untilLeading));
  } finally {
    // A replica that was opened anew has forgotten the pause.
    resume();
  }
}

function shardHere(services: NodeServices, entry: CollectionEntry, shard: RestoredShard, leads: boolean): Here {
  return { ...shard, ...partsHere(services, entry, shard.shardId, leads) };
}

function partsHere(
  { assignments }: NodeServices,
  entry: CollectionEntry,
  shardId: ShardId,
  leads: boolean,
): Pick<Here, 'replica' | 'replication' | 'assignment'> {
  const assignment = assignments.of({ collection: entry.name, uid: entry.belonging?.uid ?? 0, shardId });
  const replica = entry.replicas.get(shardId);
  const replication = entry.replications.get(shardId);
  if (assignment === null || replica === undefined || replication === undefined)
    throw new TroupeError('conflict', `shard ${shardId} of ${entry.name} is not on this node, or not yet`);
  if (leads && assignment.leader !== assignments.peerId)
    throw new TroupeError('conflict', `shard ${shardId} of ${entry.name} is not led here`, { reason: 'notLeader' });
  return { replica, replication, assignment };
}

/** A replica that has been opened just now finds out first what the others have. Errors: `unavailable`. */
async function untilLeading({ replication, shardId }: Pick<Here, 'replication' | 'shardId'>): Promise<void> {
  for (let waitedMs = 0; replication.status().role !== 'Leading'; waitedMs += LEADING_PAUSE_MS) {
    if (waitedMs > LEADING_MS)
      throw new TroupeError('unavailable', `shard ${shardId} does not take writes yet: retry`, { retryAfterMs: 1000 });
    await pause(LEADING_PAUSE_MS);
  }
}

/** Restore-I2. */
async function loseOthers({ assignments, propose }: NodeServices, entry: CollectionEntry, { assignment, shardId }: Here): Promise<void> {
  const { replicas, term } = assignment;
  const uid = entry.belonging?.uid ?? 0;
  const changes = [...replicas].flatMap(([peerId, from]): ReplicaChange[] =>
    peerId === assignments.peerId || from === 'Dead' ? [] : [{ collection: entry.name, uid, shardId, peerId, from, to: 'Dead', term }],
  );
  if (changes.length > 0) await propose({ kind: 'setReplicaStates', changes }, PROPOSE_MS);
}

/** The operation that the files stand for (Restore-I1). */
async function placeInLog({ assignments, engine }: NodeServices, { assignment, at, replica }: Here, leads: boolean): Promise<LogTag> {
  const { last } = await engine.position(replica.key);
  if (!leads) return last;
  const index = Math.max(last.index, at.index) + 1;
  return assignments.isAlone ? { ...NO_TAG, index } : { peer: assignments.peerId, term: assignment.term, index };
}

/** What the shard's log of now has up to the restore's point in time goes behind the files (Restore-I4). */
async function carryLog(
  { archive, copyRoom, engine }: NodeServices,
  entry: CollectionEntry,
  { at, folder, replica, shardId, to }: Here,
): Promise<void> {
  if (to === null) return;
  for (let after = at; after.index < to.index; ) {
    const part = await engine.entriesAfter(replica.key, after, CARRY_BYTES);
    const entries = part.kind === 'entries' ? part.entries.filter(({ tag }) => tag.index <= to.index) : [];
    const last = entries.at(-1)?.tag;
    if (last === undefined)
      throw new TroupeError(
        'unavailable',
        `the log of shard ${shardId} of ${entry.name} has lost operation ${after.index} meanwhile: retry`,
        {
          outcome: 'none',
        },
      );
    copyRoom.require(entries.reduce((sum, { operation }) => sum + operation.length, 0));
    await archive.addToLog(folder, entries, paramsOf(entry));
    after = last;
  }
}

/** The files stand for an operation of their own (Restore-I1), behind those that were carried. */
async function giveNextOperation(
  { archive }: NodeServices,
  entry: CollectionEntry,
  { folder, to }: Here,
  tag: LogTag,
  timeMs: number,
): Promise<void> {
  if (to === null) await archive.beginLogAfter(folder, tag, timeMs);
  else await archive.addToLog(folder, [{ tag, timeMs, operation: encodeUpdate(NOTHING) }], paramsOf(entry));
}

function paramsOf({ config, name }: CollectionEntry): CollectionParams {
  if (config === null) throw new TroupeError('unavailable', `collection ${name} has no configuration`);
  return config.params;
}

/** Restore-I3. What fails after the files were prepared is finished by the next start. */
async function exchange({ store }: NodeServices, entry: CollectionEntry, shards: readonly Here[]): Promise<void> {
  const prepared = await store.prepareExchange(storedCollection(entry), new Map(shards.map(({ folder, shardId }) => [shardId, folder])));
  await Promise.all(shards.map((shard) => putInPlace(shard, prepared.folderOf(shard.shardId))));
  await prepared.finish();
}

/** The part in the shard's log begins anew: what it knows of its place there is over (Restore-I1). */
async function putInPlace({ replica, replication, shardId }: Here, staged: string): Promise<void> {
  const error: ErrorFacts = { code: 'unavailable', detail: `shard ${shardId} is being restored`, retryAfterMs: 1000 };
  replication.actor.report({ kind: 'closed', error });
  await replica.actor.ask<boolean>((replyTo) => ({ kind: 'install', staged, replyTo }), INSTALL_MS);
  replication.actor.report({ kind: 'opened' });
}

/**
 * What the log of a shard that this node leads has after an operation until a time. Errors: `conflict` (`notLeader`): another node's replica may have
 * more of it.
 */
export async function reachHere(
  services: NodeServices,
  entry: CollectionEntry,
  { shardId }: Pick<RestoredShard, 'shardId'>,
  after: LogTag,
  untilMs: number,
): Promise<LogReach> {
  const { replica, replication } = partsHere(services, entry, shardId, true);
  await untilLeading({ replication, shardId });
  return services.engine.reachOf(replica.key, after, untilMs);
}

function storedCollection({ belonging, config, name }: CollectionEntry): StoredCollection {
  if (config === null) throw new TroupeError('unavailable', `collection ${name} has no configuration`);
  return belonging === null ? { name, config } : { name, config, belonging };
}
