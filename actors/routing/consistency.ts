/**
 * What a read takes into account beyond one replica of each shard. Every Active replica has all acknowledged operations of its shard, in
 * the same order, so where a replica's log ends says all about what it has: the one that goes furthest holds what all others hold.
 * A read that asks for more than one replica first makes sure that this node knows what is agreed (a barrier), then asks as many
 * replicas as it should how far they are, and takes no answer of one that is behind the furthest. A read at `majority` or `all` is
 * answered when every Active replica has come as far as what it has seen: no later read can see less.
 */

import { TroupeError } from '../../protocols/errors.js';
import type { PeerId, ReadConsistency, ShardId } from '../../protocols/model/cluster.js';
import { answersElsewhere } from './readers.js';
import type { Routes } from './routes.js';
import { some } from './spread.js';

/** What a read has seen of one collection, through all its rounds. */
export interface Seen {
  readonly collection: string;
  readonly uid: number;
  /** Ticks that answers have to take in, by shard: also what earlier rounds have seen. */
  readonly floors: Map<ShardId, number>;
  /** The largest ticks that answers have taken in. */
  readonly reached: Map<ShardId, number>;
  /** Terms that floors were set in: ticks of different terms say nothing of each other. */
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
    for (const shardId of left) seen.terms.set(shardId, termOf(routes, seen, shardId));
    const chosen = new Map([...asks].map(([shardId, active]) => [shardId, chosenOf(active, consistency, routes)]));
    const answers = await askReached(routes, seen, chosen, deadlineMs);
    left = left.filter((shardId) => {
      const ticks = answers.get(shardId) ?? [];
      if (ticks.length < quota(consistency, (asks.get(shardId) as PeerId[]).length).needed) return true;
      seen.floors.set(shardId, Math.max(...ticks));
      return false;
    });
    if (left.length > 0) await again(routes, left, deadlineMs, 'say how far they are');
  }
}

/**
 * Waits until all Active replicas of what was read have what was seen. Errors: `timeout`; `unavailable` when a shard's leader has changed
 * since: the new one may not have what its replicas had of the earlier one.
 */
export async function confirmSeen(routes: Routes, seen: Seen, deadlineMs: number): Promise<void> {
  let left = [...seen.reached.keys()];
  for (;;) {
    for (const shardId of left) checkTerm(routes, seen, shardId);
    const asked = new Map(left.map((shardId) => [shardId, activeOf(routes, seen, shardId)]));
    // Nobody else could answer a later read.
    const shared = new Map([...asked].filter(([, peers]) => peers.length > 1));
    const answers = await askReached(routes, seen, shared, deadlineMs);
    left = [...shared].flatMap(([shardId, peers]) => {
      const tick = seen.reached.get(shardId) as number;
      const have = (answers.get(shardId) ?? []).filter((reached) => reached >= tick);
      return have.length < peers.length ? [shardId] : [];
    });
    for (const shardId of shared.keys()) checkTerm(routes, seen, shardId);
    if (left.length === 0) return;
    await again(routes, left, deadlineMs, 'have what was read');
  }
}

function termOf({ assignments }: Routes, { collection, uid }: Seen, shardId: ShardId): number {
  return assignments.of({ collection, uid, shardId })?.term ?? 0;
}

function checkTerm(routes: Routes, seen: Seen, shardId: ShardId): void {
  const known = seen.terms.get(shardId);
  if (known === undefined || known === termOf(routes, seen, shardId)) return;
  const detail = `shard ${shardId} of collection ${seen.collection} has got another leader while it was read`;
  throw new TroupeError('unavailable', detail, { retryAfterMs: 100 });
}

/** Agreed to be Active. Errors: `unavailable` when there is none; `notFound` when the shard is gone. */
export function activeOf(routes: Pick<Routes, 'assignments'>, { collection, uid }: Seen, shardId: ShardId): PeerId[] {
  const assignment = routes.assignments.of({ collection, uid, shardId });
  if (assignment === null) throw new TroupeError('notFound', `shard ${shardId} of collection ${collection} is gone`);
  const active = [...assignment.replicas].filter(([, state]) => state === 'Active').map(([peer]) => peer);
  if (active.length > 0) return active;
  const states = [...assignment.replicas].map(([peer, state]) => `peer ${peer} is ${state}`).join(', ') || 'it is on no peer';
  throw new TroupeError('unavailable', `shard ${shardId} of collection ${collection} serves no reads: ${states}`, { retryAfterMs: 1000 });
}

function chosenOf(active: readonly PeerId[], consistency: ReadConsistency, { random }: Routes): PeerId[] {
  return some(active, quota(consistency, active.length).asked, () => random.next());
}

/** One call for each peer. Ticks of those that have answered, by shard. */
async function askReached(
  routes: Routes,
  { collection, uid }: Seen,
  peers: ReadonlyMap<ShardId, readonly PeerId[]>,
  deadlineMs: number,
): Promise<ReadonlyMap<ShardId, number[]>> {
  const byPeer = new Map<PeerId, ShardId[]>();
  for (const [shardId, list] of peers) for (const peer of list) byPeer.set(peer, [...(byPeer.get(peer) ?? []), shardId]);
  const ticks = new Map<ShardId, number[]>();
  const timeoutMs = Math.max(1, Math.min(REACHED_MS, deadlineMs - routes.clock.nowMs()));
  const asked = [...byPeer].map(async ([peer, shards]) => {
    const answer = await routes.call(peer, { kind: 'reached', collection, uid, shards }, timeoutMs).catch((error: unknown) => {
      if (answersElsewhere(error)) return null;
      throw error;
    });
    if (answer?.kind !== 'reached') return;
    shards.forEach((shardId, at) => {
      ticks.set(shardId, [...(ticks.get(shardId) ?? []), answer.ticks[at] as number]);
    });
  });
  await Promise.all(asked);
  return ticks;
}

async function again(routes: Routes, shards: readonly ShardId[], deadlineMs: number, what: string): Promise<void> {
  if (deadlineMs - routes.clock.nowMs() > AGAIN_MS) return routes.pause(AGAIN_MS);
  const which = shards.length === 1 ? `shard ${shards[0]}` : `shards ${shards.join(', ')}`;
  throw new TroupeError('timeout', `not enough replicas of ${which} ${what} within the request's time`);
}
