/**
 * What a read takes into account beyond one replica of each shard. Every Active replica has all acknowledged operations of its shard, in
 * the same order, so where a replica's log ends says all about what it has: the one that goes furthest holds what all others hold.
 * A read that asks for more than one replica first makes sure that this node knows what is agreed (a barrier), then asks as many
 * replicas as it should how far they are, and takes no answer of one that is behind the furthest. A read at `majority` or `all` is
 * answered when the shard's leader knows that every replica it waits for has what was seen: those that are Active, and those that
 * are about to be. Whoever leads later is one of them or follows from one, so no later read can see less.
 */

import type { ReachedLog } from '../../cluster/data-messages.js';
import { TroupeError } from '../../protocols/errors.js';
import type { PeerId, ReadConsistency, ShardId } from '../../protocols/model/cluster.js';
import { answersElsewhere } from './readers.js';
import type { Routes } from './routes.js';
import { some } from './spread.js';

/** What a read has seen of one collection, through all its rounds. */
export interface Seen {
  readonly collection: string;
  readonly uid: number;
  /** Indexes that answers have to take in, by shard: also what earlier rounds have seen. */
  readonly floors: Map<ShardId, number>;
  /** The largest indexes that answers have taken in. */
  readonly reached: Map<ShardId, number>;
  /** Of the operations that are the floors: of another leader's log, an index says nothing. */
  readonly terms: Map<ShardId, number>;
  /** 0 to 1: the same peers are asked in all rounds, where they answer. */
  readonly draw: number;
}

export function nothingSeen(collection: string, uid: number, draw: number): Seen {
  return { collection, uid, floors: new Map(), reached: new Map(), terms: new Map(), draw };
}

/** How many of a shard's `active` replicas have to say how far they are, and how many are asked. */
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

/** Whether what is read is confirmed by all Active replicas. */
export function isConfirmed(consistency: ReadConsistency): boolean {
  return consistency === 'majority' || consistency === 'all';
}

/** A replica that does not say how far it is, is asked again after so long: by then it may be Dead. */
const AGAIN_MS = 50;
/** A replica is given so long to say how far it is. */
const REACHED_MS = 2500;

/**
 * Sets floors of these shards. Errors: `unavailable` when a shard has no Active replica; `timeout` when replicas that are said to be
 * Active don't say how far they are.
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
 * Waits until all replicas that the shards' leaders wait for have what was seen. False: a shard has got another leader since its floor was
 * set, which may lack what was read; it has to be read again. Errors: `timeout`.
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

/** None while the shard has none. Errors: `notFound` when it is gone. */
function leaderOf({ assignments }: Routes, { collection, uid }: Seen, shardId: ShardId): PeerId[] {
  const assignment = assignments.of({ collection, uid, shardId });
  if (assignment === null) throw gone(collection, shardId);
  return assignment.leader === null ? [] : [assignment.leader];
}

/** Agreed to be Active. Errors: `unavailable` when there is none; `notFound` when the shard is gone. */
export function activeOf(routes: Pick<Routes, 'assignments'>, { collection, uid }: Seen, shardId: ShardId): PeerId[] {
  const assignment = routes.assignments.of({ collection, uid, shardId });
  if (assignment === null) throw gone(collection, shardId);
  const active = [...assignment.replicas].filter(([, state]) => state === 'Active').map(([peer]) => peer);
  if (active.length > 0) return active;
  const states = [...assignment.replicas].map(([peer, state]) => `peer ${peer} is ${state}`).join(', ') || 'it is on no peer';
  throw new TroupeError('unavailable', `shard ${shardId} of collection ${collection} serves no reads: ${states}`, { retryAfterMs: 1000 });
}

function gone(collection: string, shardId: ShardId): TroupeError {
  return new TroupeError('notFound', `shard ${shardId} of collection ${collection} is gone`);
}

function chosenOf(active: readonly PeerId[], consistency: ReadConsistency, { random }: Routes): PeerId[] {
  return some(active, quota(consistency, active.length).asked, () => random.next());
}

/** One call for each peer. Logs of those that have answered, by shard. */
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
  throw new TroupeError('timeout', `not enough replicas of ${which} ${what} within the request's time`);
}
