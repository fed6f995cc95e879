/** Waits for deferred points (`prevent_unoptimized`): a write that waits for its points to be visible waits for all earlier ones too (Defer-D5). */

import type { DataCall } from '../../cluster/data-messages.js';
import { TroupeError } from '../../protocols/errors.js';
import type { ReplicaKey, ReplicaStats } from '../../storage/threads/messages.js';
import type { NodeServices } from '../context/services.js';
import type { Clock, EnginePort } from '../runtime/ports.js';
import type { AssignedShard } from './assignments.js';

export function mayHide(stats: ReplicaStats | null): boolean {
  return stats !== null && (stats.defers || stats.deferredPoints > 0);
}

/** Resolves to true when reads see everything that the replica has applied by now or it is closed; to false at `deadlineMs`. */
export function untilShown(
  { engine, timers }: Pick<NodeServices, 'timers'> & { readonly engine: Pick<EnginePort, 'onStats' | 'stats'> },
  key: ReplicaKey,
  deadlineMs: number,
  clock: Clock,
): Promise<boolean> {
  const upTo = engine.stats(key)?.appliedOperation ?? 0;
  const isOver = () => (engine.stats(key)?.deferredFrom ?? Number.POSITIVE_INFINITY) > upTo;
  return new Promise((resolve) => {
    if (isOver()) {
      resolve(true);
      return;
    }
    const stop = (isShown: boolean): void => {
      stopListening();
      stopTimer();
      resolve(isShown);
    };
    const stopListening = engine.onStats(() => {
      if (isOver()) stop(true);
    });
    // While optimizers are off, nothing may change for long.
    const stopTimer = timers.after(Math.max(0, deadlineMs - clock.nowMs()), () => stop(false));
  });
}

/**
 * Waits for all Active replicas of a shard. A replica that does not answer serves no reads either. Returns false if reads do not see all
 * points by `deadlineMs`.
 */
export async function untilShownEverywhere(
  services: Pick<NodeServices, 'assignments' | 'calls' | 'engine' | 'timers'>,
  key: ReplicaKey,
  shard: AssignedShard,
  deadlineMs: number,
  clock: Clock,
): Promise<boolean> {
  const { assignments, calls } = services;
  const timeoutMs = Math.max(1, deadlineMs - clock.nowMs());
  const call: DataCall = { kind: 'shown', shard, timeoutMs };
  const others = [...(assignments.of(shard)?.replicas ?? [])].filter(([peer, state]) => state === 'Active' && peer !== assignments.peerId);
  const asked = others.map(async ([peer]) => {
    try {
      await calls.call(peer, call, timeoutMs);
      return true;
    } catch (error) {
      return !(error instanceof TroupeError && error.code === 'timeout');
    }
  });
  const all = Promise.all([untilShown(services, key, deadlineMs, clock), ...asked]);
  return new Promise((resolve) => {
    // The other replicas got the call later, and count from then.
    const stopTimer = services.timers.after(Math.max(0, deadlineMs - clock.nowMs()), () => resolve(false));
    all.then((shown) => {
      stopTimer();
      resolve(shown.every((isShown) => isShown));
    });
  });
}
