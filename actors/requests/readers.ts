/** Reads portions: chooses replicas, asks another one on failure or delay, and decides which answers count. */

import type { DataAnswer } from '../../cluster/data-messages.js';
import { errorFacts, reasonOf, TroupeError } from '../../protocols/errors.js';
import type { PeerId, ShardId } from '../../protocols/model/cluster.js';
import type { CollectionParams } from '../../protocols/model/collection.js';
import { addUsage, type HardwareUsage } from '../../protocols/model/usage.js';
import { activeOf, type Seen } from './consistency.js';
import { race } from './race.js';
import { isReadAgain } from './retries.js';
import type { Routes } from './routes.js';
import { type Share, spread } from './spread.js';

export interface ShardJob {
  readonly seen: Seen;
  readonly shards: readonly ShardId[];
  readonly params: Pick<CollectionParams, 'read_fan_out_factor' | 'read_fan_out_delay_ms'>;
  readonly deadlineMs: number;
}

export interface PortionJob extends ShardJob {
  /** An encoded `Portion`. */
  readonly body: Uint8Array;
  /** The shard map version that the read was split by. */
  readonly shardMapVersion: number;
  /** The answers' cost is added to it. */
  readonly usage?: HardwareUsage | undefined;
}

type Answered = Extract<DataAnswer, { kind: 'answered' }>;

/** After this long another replica is asked too: the node of the first one may have stopped. */
const SLOW_MS = 2000;
/** Pause before replicas that lag, and nodes that learn of agreements later than this one, are asked again. */
const AGAIN_MS = 10;
const AGAIN_MAX_MS = 200;

/**
 * Answers that together include each shard once, in any order. Errors: the first one that no other replica could avoid; `unavailable`,
 * `timeout`.
 */
export async function readPortions(routes: Routes, job: PortionJob): Promise<Uint8Array[]> {
  const answers = await askShards(routes, job, (share) => askPortion(routes, job, share));
  for (const { usage } of answers) if (job.usage !== undefined && usage !== null) addUsage(job.usage, usage);
  return answers.map(({ body }) => body);
}

/** Whether another replica may answer after one has failed with this error. */
export function answersElsewhere(error: unknown): boolean {
  return reasonOf(error) === 'answerLost' || (error instanceof TroupeError && ELSEWHERE.has(error.code));
}

/** `timeout` is not included: the time of the request is over on all replicas. */
const ELSEWHERE: ReadonlySet<string> = new Set(['unavailable', 'conflict', 'busy', 'storage', 'internal']);

/** Answers of Active replicas that together include each shard once, in any order. ask: asks one peer. Errors: as `readPortions`. */
export async function askShards<T>(routes: Routes, job: ShardJob, ask: (share: Share) => Promise<T>): Promise<T[]> {
  for (let pauseMs = AGAIN_MS; ; pauseMs = Math.min(AGAIN_MAX_MS, pauseMs * 2)) {
    try {
      return await askOthers(routes, job, ask, job.shards, new Map());
    } catch (error) {
      // The peer knows a newer agreed state, in which a replica has moved.
      if (!isReadAgain(error)) throw error;
      if (job.deadlineMs - routes.clock.nowMs() <= pauseMs)
        throw new TroupeError('unavailable', errorFacts(error).detail, { cause: error, retryAfterMs: 1000 });
    }
    await routes.pause(pauseMs);
  }
}

/** tried: for each shard, the peers that were asked already and are not asked again. */
async function askOthers<T>(
  routes: Routes,
  job: ShardJob,
  ask: (share: Share) => Promise<T>,
  shards: readonly ShardId[],
  tried: ReadonlyMap<ShardId, ReadonlySet<PeerId>>,
): Promise<T[]> {
  const { read_fan_out_delay_ms: delayMs, read_fan_out_factor: more } = job.params;
  const left = candidatesOf(routes, job.seen, shards, tried);
  const self = routes.assignments.peerId;
  const answers = spread(left, self, () => job.seen.draw).map((share) => {
    const others = new Map(share.shards.map((shardId) => [shardId, new Set([...(tried.get(shardId) ?? []), share.peer])]));
    const canPass = share.shards.every((shardId) => (left.get(shardId) as PeerId[]).length > 1);
    const asked = async () => [await ask(share)];
    const runs = [asked, ...(canPass ? [() => askOthers(routes, job, ask, share.shards, others)] : [])];
    const atOnce = Math.max(1, Math.min(runs.length, 1 + (more ?? 0)));
    return race(() => runs.shift()?.(), routes.timers, { atOnce, delayMs: delayMs ?? SLOW_MS, passes: answersElsewhere });
  });
  return (await Promise.all(answers)).flat();
}

/**
 * The peers to ask, by shard. Errors: `unavailable`; `conflict` if all Active replicas of a shard have been asked: others may be Active at
 * the next try.
 */
function candidatesOf(
  routes: Routes,
  seen: Seen,
  shards: readonly ShardId[],
  tried: ReadonlyMap<ShardId, ReadonlySet<PeerId>>,
): ReadonlyMap<ShardId, PeerId[]> {
  return new Map(
    shards.map((shardId) => {
      const passed = tried.get(shardId);
      const left = activeOf(routes, seen, shardId).filter((peer) => passed?.has(peer) !== true);
      if (left.length === 0)
        throw new TroupeError('conflict', `no Active replica of shard ${shardId} of collection ${seen.collection} has answered`, {
          reason: 'replicaNotServing',
        });
      return [shardId, left];
    }),
  );
}

/**
 * Asks one peer until its answer includes the floors. Errors: those of the call; `conflict` if the replica lags and is not Active any more;
 * `timeout`.
 */
async function askPortion(routes: Routes, job: PortionJob, { peer, shards }: Share): Promise<Answered> {
  const { body, deadlineMs, shardMapVersion, seen, usage } = job;
  const { collection, uid } = seen;
  for (let pauseMs = AGAIN_MS; ; pauseMs = Math.min(AGAIN_MAX_MS, pauseMs * 2)) {
    const timeoutMs = Math.max(1, deadlineMs - routes.clock.nowMs());
    const call = { kind: 'read', collection, uid, shards, body, timeoutMs, measured: usage !== undefined, shardMapVersion } as const;
    const answer = await routes.call(peer, call, timeoutMs);
    if (answer.kind !== 'answered') throw new Error(`a peer has answered a read with ${answer.kind}`);
    const lags = shards.some((shardId, at) => (answer.positions[at] as number) < (seen.floors.get(shardId) ?? 0));
    if (!lags) {
      shards.forEach((shardId, at) => {
        const index = answer.positions[at] as number;
        seen.reached.set(shardId, Math.max(seen.reached.get(shardId) ?? 0, index));
        seen.floors.set(shardId, Math.max(seen.floors.get(shardId) ?? 0, index));
      });
      return answer;
    }
    if (shards.some((shardId) => !activeOf(routes, seen, shardId).includes(peer)))
      throw new TroupeError('conflict', `the replica on peer ${peer} has not applied all acknowledged writes and is no longer Active`, {
        reason: 'replicaNotServing',
      });
    if (deadlineMs - routes.clock.nowMs() <= pauseMs)
      throw new TroupeError('timeout', `the replica on peer ${peer} did not apply all acknowledged writes within the timeout`);
    await routes.pause(pauseMs);
  }
}
