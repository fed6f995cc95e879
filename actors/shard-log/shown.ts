/** Waits for deferred points (`prevent_unoptimized`): a write that waits for its points to be visible waits for all of them. */

import type { DataCall } from '../../cluster/data-messages.js';
import type { ReplicaKey, ReplicaStats } from '../../storage/threads/messages.js';
import type { NodeServices } from '../context/services.js';
import type { Clock, EnginePort } from '../runtime/ports.js';
import type { AssignedShard } from './assignments.js';

export function mayHide(stats: ReplicaStats | null): boolean {
  return stats !== null && (stats.defers || stats.deferredPoints > 0);
}

/** Resolves when reads see all points of the replica, when it is closed, or some time after `deadlineMs`, when no caller waits any more. */
export function untilShown(
  engine: Pick<EnginePort, 'onStats' | 'stats'>,
  key: ReplicaKey,
  deadlineMs: number,
  clock: Clock,
): Promise<void> {
  const isOver = () => (engine.stats(key)?.deferredPoints ?? 0) === 0 || clock.nowMs() > deadlineMs;
  return new Promise((resolve) => {
    if (isOver()) {
      resolve();
      return;
    }
    const cancel = engine.onStats(() => {
      if (!isOver()) return;
      cancel();
      resolve();
    });
  });
}

/**
 * Waits for all Active replicas of a shard. A replica that does not answer serves no reads either. Returns false if reads do not see all
 * points by `deadlineMs`.
 */
export async function untilShownEverywhere(
  { assignments, calls, engine }: Pick<NodeServices, 'assignments' | 'calls' | 'engine'>,
  key: ReplicaKey,
  shard: AssignedShard,
  deadlineMs: number,
  clock: Clock,
): Promise<boolean> {
  const timeoutMs = Math.max(1, deadlineMs - clock.nowMs());
  const call: DataCall = { kind: 'shown', shard, timeoutMs };
  const others = [...(assignments.of(shard)?.replicas ?? [])].filter(([peer, state]) => state === 'Active' && peer !== assignments.peerId);
  await Promise.allSettled([untilShown(engine, key, deadlineMs, clock), ...others.map(([peer]) => calls.call(peer, call, timeoutMs))]);
  return clock.nowMs() <= deadlineMs;
}
