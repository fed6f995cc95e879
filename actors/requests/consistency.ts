/**
 * Read consistency: the conditions of a read beyond one replica of each shard.
 *
 * Every Active replica has all acknowledged operations of its shard in the same order, so the end of a replica's log tells what the replica
 * has: the log that reaches furthest holds everything that the others hold.
 *
 * 1. A read that asks for more than one replica first passes a barrier, so that this node knows what is agreed.
 * 2. It asks as many replicas as the level needs for the ends of their logs, and accepts no answer from a replica whose log ends before the
 *    furthest one.
 * 3. A read at `majority` or `all` is answered when the shard's leader knows that every replica it waits for, Active or about to be, has
 *    what was read.
 *
 * A later leader is one of these replicas or follows from one, so no later read can see less.
 */

import type { ReachedLog } from '../../cluster/data-messages.js';
import { TroupeError } from '../../protocols/errors.js';
import type { PeerId, ReadConsistency, ShardId } from '../../protocols/model/cluster.js';
import { answersElsewhere } from './readers.js';
import type { Routes } from './routes.js';
import { some } from './spread.js';

/** The log positions that a read has seen in one collection, over all its rounds. */
export interface Seen {
  readonly collection: string;
  readonly uid: number;
  /** For each shard, the index that answers have to include; earlier rounds raise it. */
  readonly floors: Map<ShardId, number>;
  /** For each shard, the largest index that an answer has included. */
  readonly reached: Map<ShardId, number>;
  /** For each shard, the term of the operation at the floor: in the log of another leader an index says nothing. */
  readonly terms: Map<ShardId, number>;
  /** A random number from 0 to 1 that chooses peers: all rounds ask the same ones while they answer. */
  readonly draw: number;
}

export function nothingSeen(collection: string, uid: number, draw: number): Seen {
  return { collection, uid, floors: new Map(), reached: new Map(), terms: new Map(), draw };
}

/** How many of a shard's `active` replicas are asked for the ends of their logs, and how many have to answer. */
export function quota(consistency: ReadConsistency, active: number): { readonly asked: number; readonly needed: number } {
  const majority = Math.floor(active / 2) + 1;
  switch (consistency) {
    case 'all':
      return { asked: active, needed: active };
    case 'majority':
      return { asked: active, needed: majority };
    case 'quorum':
      return { asked: majority, needed: majority };
    default:
      return { asked: Math.min(consistency, active), needed: Math.min(consistency, active) };
  }
}

/** Whether a read at this level waits until all Active replicas have what was read. */
export function isConfirmed(consistency: ReadConsistency): boolean {
  return consistency === 'majority' || consistency === 'all';
}

/** Pause before a replica that did not tell the end of its log is asked again: by then it may be Dead. */
const AGAIN_MS = 50;
/** How long a replica may take to tell the end of its log. */
const REACHED_MS = 2500;

/**
 * Sets the floors of these shards. Errors: `unavailable` if a shard has no Active replica; `timeout` if Active replicas don't tell the ends
 * of their logs.
 */
export async function setFloors(
  routes: Routes,
  seen: Seen,
  shards: readonly ShardId[],
  consistency: ReadConsistency,
  deadlineMs: number,
): Promise<void> {
  let left = shards.filter((shardId) => !seen.floors.has(shardId));
  while (left.length > 0) {
    const asks = new Map(left.map((shardId) => [shardId, activeOf(routes, seen, shardId)]));
    const chosen = new Map([...asks].map(([shardId, active]) => [shardId, chosenOf(active, consistency, routes)]));
    const answers = await askReached(routes, seen, chosen, deadlineMs);
    left = left.filter((shardId) => {
      const logs = answers.get(shardId) ?? [];
      if (logs.length < quota(consistency, (asks.get(shardId) as PeerId[]).length).needed) return true;
      seen.floors.set(shardId, Math.max(...logs.map(({ index }) => index)));
      seen.terms.set(shardId, Math.max(...logs.map(({ term }) => term)));
      return false;
    });
    if (left.length > 0) await again(routes, left, deadlineMs, 'say how far they are');
  }
}

/**
 * Waits until all replicas that the shards' leaders wait for have what was read. Returns false if a shard has got another leader since its
 * floor was set: that one may lack what was read, so the shard has to be read again. Errors: `timeout`.
 */
export async function confirmSeen(routes: Routes, seen: Seen, deadlineMs: number): Promise<boolean> {
  let left = [...seen.reached.keys()];
  for (;;) {
    const leaders = new Map(left.map((shardId) => [shardId, leaderOf(routes, seen, shardId)]));
    const answers = await askReached(routes, seen, leaders, deadlineMs);
    const logs = new Map([...answers].flatMap(([shardId, [log]]) => (log === undefined ? [] : [[shardId, log] as const])));
    if ([...logs].some(([shardId, { term }]) => term > (seen.terms.get(shardId) as number))) return false;
    left = left.filter((shardId) => (logs.get(shardId)?.held ?? -1) < (seen.reached.get(shardId) as number));
    if (left.length === 0) return true;
    await again(routes, left, deadlineMs, 'have what was read');
  }
}

/** The shard's leader as a list; empty while it has none. Errors: `notFound` if the shard is gone. */
function leaderOf({ assignments }: Routes, { collection, uid }: Seen, shardId: ShardId): PeerId[] {
  const assignment = assignments.of({ collection, uid, shardId });
  if (assignment === null) throw gone(collection, shardId);
  return assignment.leader === null ? [] : [assignment.leader];
}

/**
 * The peers whose replicas of the shard are agreed to be Active. Errors: `unavailable` if there is none; `notFound` if the shard is gone.
 */
export function activeOf(routes: Pick<Routes, 'assignments'>, { collection, uid }: Seen, shardId: ShardId): PeerId[] {
  const assignment = routes.assignments.of({ collection, uid, shardId });
  if (assignment === null) throw gone(collection, shardId);
  const active = [...assignment.replicas].filter(([, state]) => state === 'Active').map(([peer]) => peer);
  if (active.length > 0) return active;
  const states = [...assignment.replicas].map(([peer, state]) => `peer ${peer} is ${state}`).join(', ') || 'it is on no peer';
  throw new TroupeError('unavailable', `shard ${shardId} of collection ${collection} serves no reads: ${states}`, { retryAfterMs: 1000 });
}

function gone(collection: string, shardId: ShardId): TroupeError {
  return new TroupeError('notFound', `shard ${shardId} of collection ${collection} no longer exists`);
}

function chosenOf(active: readonly PeerId[], consistency: ReadConsistency, { random }: Routes): PeerId[] {
  return some(active, quota(consistency, active.length).asked, () => random.next());
}

/** Asks for the ends of logs with one call for each peer. Result: by shard, the logs of the peers that have answered. */
async function askReached(
  routes: Routes,
  { collection, uid }: Seen,
  peers: ReadonlyMap<ShardId, readonly PeerId[]>,
  deadlineMs: number,
): Promise<ReadonlyMap<ShardId, ReachedLog[]>> {
  const byPeer = new Map<PeerId, ShardId[]>();
  for (const [shardId, list] of peers) for (const peer of list) byPeer.set(peer, [...(byPeer.get(peer) ?? []), shardId]);
  const logs = new Map<ShardId, ReachedLog[]>();
  const timeoutMs = Math.max(1, Math.min(REACHED_MS, deadlineMs - routes.clock.nowMs()));
  const asked = [...byPeer].map(async ([peer, shards]) => {
    const answer = await routes.call(peer, { kind: 'reached', collection, uid, shards }, timeoutMs).catch((error: unknown) => {
      if (answersElsewhere(error)) return null;
      throw error;
    });
    if (answer?.kind !== 'reached') return;
    shards.forEach((shardId, at) => {
      logs.set(shardId, [...(logs.get(shardId) ?? []), answer.logs[at] as ReachedLog]);
    });
  });
  await Promise.all(asked);
  return logs;
}

async function again(routes: Routes, shards: readonly ShardId[], deadlineMs: number, what: string): Promise<void> {
  if (deadlineMs - routes.clock.nowMs() > AGAIN_MS) return routes.pause(AGAIN_MS);
  const which = shards.length === 1 ? `shard ${shards[0]}` : `shards ${shards.join(', ')}`;
  throw new TroupeError('timeout', `not enough replicas of ${which} ${what} within the timeout of the request`);
}
