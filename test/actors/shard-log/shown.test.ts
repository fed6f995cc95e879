import assert from 'node:assert/strict';
import { test } from 'node:test';
import { mayHide, untilShown, untilShownEverywhere } from '../../../actors/shard-log/shown.js';
import type { DataCall } from '../../../cluster/data-messages.js';
import type { ReplicaStats } from '../../../storage/threads/messages.js';

const SHARD = { collection: 'a', uid: 3, shardId: 0 };

/** An engine with one replica that hides points, and a clock. */
function world() {
  const listeners = new Set<(stats: ReplicaStats) => void>();
  const stats = { key: 'a/0', deferredPoints: 2, defers: true } as ReplicaStats;
  const now = { ms: 0 };
  let shown = stats;
  return {
    now,
    clock: { nowMs: () => now.ms, dateMs: () => now.ms },
    engine: {
      stats: () => shown,
      onStats: (listener: (stats: ReplicaStats) => void) => {
        listeners.add(listener);
        return () => listeners.delete(listener);
      },
    },
    show: (deferredPoints: number) => {
      shown = { ...stats, deferredPoints };
      for (const listener of [...listeners]) listener(shown);
    },
    listeners,
  };
}

/** Whether it has resolved by now, and to what. */
async function seen<Value>(promise: Promise<Value>): Promise<Value | 'waits'> {
  const turn = new Promise<'waits'>((resolve) => setImmediate(() => resolve('waits')));
  return Promise.race([promise, turn]);
}

test('who waits for hidden points waits until there are none, and no longer than its time', async () => {
  const { clock, engine, listeners, now, show } = world();
  assert.equal(mayHide(engine.stats()), true);
  assert.equal(mayHide(null), false);
  const waiting = untilShown(engine, 'a/0', 100, clock);
  show(1);
  assert.equal(await seen(waiting), 'waits');
  show(0);
  assert.equal(await seen(waiting), undefined);
  show(1);
  const late = untilShown(engine, 'a/0', 100, clock);
  now.ms = 101;
  show(1);
  assert.equal(await seen(late), undefined);
  assert.equal(listeners.size, 0);
});

test('a write is shown when all Active replicas show it: those that are Dead or do not answer serve no reads', async () => {
  const { clock, engine, now, show } = world();
  const replicas = new Map([
    [1, 'Active'],
    [2, 'Active'],
    [3, 'Dead'],
    [4, 'Active'],
  ]);
  const asked: [number, DataCall][] = [];
  let answer = (): void => {};
  const services = {
    engine,
    assignments: { peerId: 1, of: () => ({ replicas }) },
    calls: {
      call: (peer: number, call: DataCall) => {
        asked.push([peer, call]);
        if (peer === 4) return Promise.reject(new Error('gone'));
        return new Promise((resolve) => {
          answer = () => resolve({ kind: 'done', changed: 0 });
        });
      },
    },
  } as unknown as Parameters<typeof untilShownEverywhere>[0];
  const waiting = untilShownEverywhere(services, 'a/0', SHARD, 100, clock);
  show(0);
  assert.equal(await seen(waiting), 'waits');
  assert.deepEqual(
    asked,
    [2, 4].map((peer) => [peer, { kind: 'shown', shard: SHARD, timeoutMs: 100 }]),
  );
  answer();
  assert.equal(await seen(waiting), true);
  const late = untilShownEverywhere(services, 'a/0', SHARD, 100, clock);
  now.ms = 101;
  answer();
  assert.equal(await seen(late), false);
});
