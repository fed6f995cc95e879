/** A turn of a plan: makes its snapshots, looks through them, and removes those that are no longer wanted. */

import { errorFacts, TroupeError } from '../../protocols/errors.js';
import type { ShardId } from '../../protocols/model/cluster.js';
import type { SnapshotPlace, SnapshotRecord } from '../../storage/snapshot-store/snapshot-store.js';
import type { Log } from '../runtime/ports.js';
import type { SnapshotApi } from '../snapshots/snapshot-api.js';
import type { ArchiveFindings } from '../snapshots/snapshots.js';
import type { BackupOutcome } from './messages.js';
import { type BackupPlan, backupMark, backupTime } from './plan.js';
import { type BackupSnapshot, backupsToRemove } from './retention.js';

/** What backups need of snapshots. */
export interface BackupSnapshots extends Pick<SnapshotApi, 'list' | 'remove'> {
  create(place: SnapshotPlace, base: null, mark: string, only: readonly ShardId[] | null): Promise<SnapshotRecord>;
  lookThrough(place: SnapshotPlace, name: string, unpack: boolean): Promise<ArchiveFindings>;
}

export interface BackupParts {
  readonly snapshots: BackupSnapshots;
  /** Names of the collections that have shards on this node. Errors: `unavailable`. */
  readonly collections: () => readonly string[];
  /** The shards of a collection that are this node's to save now (`backupHolder`); null: all that it has. Errors: `notFound`, `unavailable`. */
  readonly sharesOf: (collection: string) => readonly ShardId[] | null;
  /** This node's peer id. */
  readonly peer: () => number;
  readonly log: Log;
  /** Aborted when the node stops. */
  readonly signal: AbortSignal;
}

/** Goes on after a failure with the next collection. Each failure is logged here. Errors: none. */
export async function runTurn(parts: BackupParts, plan: BackupPlan): Promise<BackupOutcome> {
  const { collections, log, signal } = parts;
  let [made, bytes, removed] = [0, 0, 0];
  const failures: string[] = [];
  const attempt = async (what: string, act: () => Promise<void> | void): Promise<boolean> => {
    try {
      signal.throwIfAborted();
      await act();
      return true;
    } catch (error) {
      const failure = `${what}: ${errorFacts(error).detail}`;
      failures.push(failure);
      if (!signal.aborted) log.error(`backup ${plan.name}: ${failure}`);
      return false;
    }
  };
  let places: readonly SnapshotPlace[] = [];
  await attempt('collections', () => {
    places = placesOf(plan, collections);
  });
  for (const place of places) {
    if (signal.aborted) break;
    let record: SnapshotRecord | null = null;
    const isMade = await attempt(describePlace(place), async () => {
      record = await makeOne(parts, plan, place);
      if (record === null) return;
      made++;
      bytes += record.size;
    });
    if (!isMade || record === null) continue;
    const { name } = record as SnapshotRecord;
    await attempt(`${describePlace(place)}: older backups`, async () => {
      for (const old of backupsToRemove(await backupsOf(parts, plan, place), plan.keep, name)) {
        if (await removeUnneeded(parts, plan, place, old)) removed++;
      }
    });
  }
  return { made, bytes, removed, failures };
}

/** When the newest snapshot of each plan was made, of those that have any. */
export async function surveyBackups(parts: BackupParts, plans: readonly BackupPlan[]): Promise<ReadonlyMap<string, number>> {
  const newest = new Map<string, number>();
  for (const plan of plans) {
    try {
      for (const place of placesOf(plan, parts.collections)) {
        parts.signal.throwIfAborted();
        // A collection of the plan may be missing, and is told at its turn.
        const backups = await backupsOf(parts, plan, place).catch((error: unknown) => notFoundAsNone(error));
        for (const { timeMs } of backups) newest.set(plan.name, Math.max(timeMs, newest.get(plan.name) ?? timeMs));
      }
    } catch (error) {
      if (!parts.signal.aborted) parts.log.warn(`backup ${plan.name}: earlier backups are not known: ${errorFacts(error).detail}`);
    }
  }
  return newest;
}

/**
 * Null: other nodes save all that this one has of the place. Errors: as `create` and `lookThrough`; `storage` if the check finds something. An archive that cannot be
 * restored does not stay.
 */
async function makeOne({ peer, sharesOf, snapshots }: BackupParts, plan: BackupPlan, place: SnapshotPlace): Promise<SnapshotRecord | null> {
  const shares = place.kind === 'collection' ? sharesOf(place.collection) : null;
  if (shares?.length === 0) return null;
  const record = await snapshots.create(place, null, backupMark(plan.name, peer()), shares);
  if (plan.verify === 'none') return record;
  const { isDamaged, problems } = await snapshots.lookThrough(place, record.name, plan.verify === 'restore');
  if (problems.length === 0) return record;
  if (isDamaged) await snapshots.remove(place, record.name);
  const kept = isDamaged ? 'the snapshot is removed' : 'the snapshot stays';
  const more = problems.length === 1 ? '' : ` (and ${problems.length - 1} more)`;
  throw new TroupeError('storage', `the check of ${record.name} has failed, ${kept}: ${problems[0]}${more}`);
}

/** False: a snapshot that somebody has made needs it as its base, and it stays until that one is gone. */
async function removeUnneeded({ log, snapshots }: BackupParts, plan: BackupPlan, place: SnapshotPlace, name: string): Promise<boolean> {
  try {
    await snapshots.remove(place, name);
    return true;
  } catch (error) {
    const { code, detail } = errorFacts(error);
    if (code !== 'conflict') throw error;
    log.info(`backup ${plan.name}: an older backup stays: ${detail}`);
    return false;
  }
}

async function backupsOf({ peer, snapshots }: BackupParts, plan: BackupPlan, place: SnapshotPlace): Promise<BackupSnapshot[]> {
  const mark = backupMark(plan.name, peer());
  return (await snapshots.list(place)).flatMap(({ name }) => {
    const timeMs = backupTime(name, mark);
    return timeMs === null ? [] : [{ name, timeMs }];
  });
}

function placesOf({ collections }: BackupPlan, collectionsNow: () => readonly string[]): SnapshotPlace[] {
  if (collections === 'storage') return [{ kind: 'full' }];
  const names = collections === 'all' ? collectionsNow() : collections;
  return names.map((collection) => ({ kind: 'collection', collection }));
}

function describePlace(place: SnapshotPlace): string {
  return place.kind === 'full' ? 'the whole storage' : `collection ${place.collection}`;
}

function notFoundAsNone(error: unknown): BackupSnapshot[] {
  if (errorFacts(error).code === 'notFound') return [];
  throw error;
}
