import assert from 'node:assert/strict';
import { test } from 'node:test';
import { mayHide, untilShown, untilShownEverywhere } from '../../../actors/shard-log/shown.js';
import type { DataCall } from '../../../cluster/data-messages.js';
import { TroupeError } from '../../../protocols/errors.js';
import type { ReplicaStats } from '../../../storage/threads/messages.js';
import { FakeWorld } from '../fake-world.js';

const SHARD = { collection: 'a', uid: 3, shardId: 0 };

/** An engine with one replica that has applied operation 7 and hides points since operation 5, in a world with a clock. */
function setup() {
  const world = new FakeWorld();
  const listeners = new Set<(stats: ReplicaStats) => void>();
  const statsOf = (deferredFrom: number | undefined) => {
    const hidden = deferredFrom === undefined ? { deferredPoints: 0 } : { deferredPoints: 1, deferredFrom };
    return { appliedOperation: 7, defers: true, ...hidden } as ReplicaStats;
  };
  let stats = statsOf(5);
  const engine = {
    stats: () => stats,
    onStats: (listener: (stats: ReplicaStats) => void) => {
      listeners.add(listener);
      return () => listeners.delete(listener);
    },
  };
  return {
    world,
    engine,
    clock: world.ports.clock,
    services: { engine, timers: world.ports.timers },
    hideFrom: (deferredFrom: number | undefined) => {
      stats = statsOf(deferredFrom);
      for (const listener of [...listeners]) listener(stats);
    },
    listeners,
  };
}

/** Whether it has resolved by now, and to what. */
async function seen<Value>(promise: Promise<Value>): Promise<Value | 'waits'> {
  const turn = new Promise<'waits'>((resolve) => setImmediate(() => resolve('waits')));
  return Promise.race([promise, turn]);
}

test('a replica may hide points if it defers any, now or later', () => {
  assert.equal(mayHide(null), false);
  assert.equal(mayHide({ defers: true, deferredPoints: 0 } as ReplicaStats), true);
  assert.equal(mayHide({ defers: false, deferredPoints: 1 } as ReplicaStats), true);
  assert.equal(mayHide({ defers: false, deferredPoints: 0 } as ReplicaStats), false);
});

test('who waits for hidden points waits for what is applied by then, and for no later points, which there always are under a stream', async () => {
  const { clock, hideFrom, listeners, services } = setup();
  const waiting = untilShown(services, 'a/0', clock.nowMs() + 100, clock);
  hideFrom(7);
  assert.equal(await seen(waiting), 'waits');
  hideFrom(8);
  assert.equal(await seen(waiting), true);
  assert.equal(listeners.size, 0);
});

test('who waits for hidden points is told when its time is up although nothing happens, as while optimizers are off', async () => {
  const { clock, listeners, services, world } = setup();
  const waiting = untilShown(services, 'a/0', clock.nowMs() + 100, clock);
  world.advance(99);
  assert.equal(await seen(waiting), 'waits');
  world.advance(1);
  assert.equal(await seen(waiting), false);
  assert.deepEqual([listeners.size, world.pendingTimers], [0, 0]);
});

test('a write is shown when all Active replicas show it: those that are Dead or do not answer serve no reads', async () => {
  const { clock, hideFrom, services: own, world } = setup();
  const replicas = new Map([
    [1, 'Active'],
    [2, 'Active'],
    [3, 'Dead'],
    [4, 'Active'],
  ]);
  const asked: [number, DataCall][] = [];
  let answer = (): void => {};
  let refuse = (_: Error): void => {};
  const services = {
    ...own,
    assignments: { peerId: 1, of: () => ({ replicas }) },
    calls: {
      call: (peer: number, call: DataCall) => {
        asked.push([peer, call]);
        if (peer === 4) return Promise.reject(new Error('gone'));
        return new Promise((resolve, reject) => {
          answer = () => resolve({ kind: 'done', changed: 0 });
          refuse = reject;
        });
      },
    },
  } as unknown as Parameters<typeof untilShownEverywhere>[0];
  const deadlineMs = clock.nowMs() + 100;
  const waiting = untilShownEverywhere(services, 'a/0', SHARD, deadlineMs, clock);
  hideFrom(undefined);
  assert.equal(await seen(waiting), 'waits');
  assert.deepEqual(
    asked,
    [2, 4].map((peer) => [peer, { kind: 'shown', shard: SHARD, timeoutMs: 100 }]),
  );
  answer();
  assert.equal(await seen(waiting), true);
  hideFrom(5);
  const late = untilShownEverywhere(services, 'a/0', SHARD, deadlineMs, clock);
  answer();
  world.advance(100);
  assert.equal(await seen(late), false);
  // Shown here, and the other replica says nothing in time.
  hideFrom(undefined);
  const silent = untilShownEverywhere(services, 'a/0', SHARD, clock.nowMs() + 100, clock);
  world.advance(99);
  assert.equal(await seen(silent), 'waits');
  world.advance(1);
  assert.equal(await seen(silent), false);
  // The other replica's time may be up a moment before this node's is.
  const later = untilShownEverywhere(services, 'a/0', SHARD, clock.nowMs() + 100, clock);
  refuse(new TroupeError('timeout', 'not indexed yet'));
  assert.equal(await seen(later), false);
});
