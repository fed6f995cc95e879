import assert from 'node:assert/strict';
import { test } from 'node:test';
import { VirtualTimeScheduler } from 'rxjs';
import { liveChanges } from '../../../actors/live/streams.js';
import type { LiveSignal, LiveSources } from '../../../actors/live/topics.js';

/** Collections by name, each with its points. */
class FakeSources implements LiveSources {
  readonly points = new Map<string, number>();
  readonly listeners = new Set<(signal: LiveSignal) => void>();
  reads = 0;

  watch(listener: (signal: LiveSignal) => void): () => void {
    this.listeners.add(listener);
    return () => this.listeners.delete(listener);
  }

  groups(): Iterable<string> {
    return this.points.keys();
  }

  read({ group }: LiveSignal): readonly object[] {
    this.reads += 1;
    const points = this.points.get(group);
    return points === undefined ? [] : [{ points }];
  }

  set(name: string, points: number | null): void {
    if (points === null) this.points.delete(name);
    else this.points.set(name, points);
    for (const listener of this.listeners) listener({ topic: 'collections', group: name });
  }
}

function start() {
  const sources = new FakeSources();
  const clock = new VirtualTimeScheduler();
  const told: string[] = [];
  const changes = liveChanges(sources, clock);
  const subscribe = () =>
    changes.subscribe(({ groups, topic }) => {
      told.push(`${clock.now()} ${topic} ${groups.map(({ group, items }) => `${group}${JSON.stringify(items)}`).join(' ')}`);
    });
  /** Lets this much time pass. */
  const pass = (milliseconds: number): void => {
    clock.maxFrames = clock.now() + milliseconds;
    clock.schedule(() => {}, milliseconds);
    clock.flush();
  };
  return { sources, told, subscribe, pass };
}

test('the first change is told at once, and those that follow together, two a second at most', () => {
  const { pass, sources, subscribe, told } = start();
  subscribe();
  sources.set('a', 1);
  assert.deepEqual(told.splice(0), ['0 collections a[{"points":1}]']);
  for (let points = 2; points <= 50; points++) sources.set('a', points);
  sources.set('b', 7);
  assert.deepEqual(told, []);
  pass(499);
  assert.deepEqual(told, []);
  pass(1);
  assert.deepEqual(told, ['500 collections a[{"points":50}] b[{"points":7}]']);
});

test('what is as it was told last is not told again, and what is gone is told once', () => {
  const { pass, sources, subscribe, told } = start();
  subscribe();
  sources.set('a', 1);
  pass(500);
  sources.set('a', 1);
  pass(500);
  sources.set('a', null);
  pass(500);
  assert.deepEqual(told, ['0 collections a[{"points":1}]', '1000 collections a[]']);
});

test('many groups are told in several turns, and none is lost', () => {
  const { pass, sources, subscribe, told } = start();
  subscribe();
  for (let at = 0; at < 350; at++) sources.set(`c${at}`, at);
  for (let turn = 0; turn < 5; turn++) pass(500);
  const groups = told.flatMap((text) => text.match(/c\d+(?=\[)/g) ?? []);
  assert.deepEqual(new Set(groups).size, 350);
  assert.ok(told.length >= 4, `${told.length} turns`);
});

test('sources are watched once for all who follow, and no longer than somebody does', () => {
  const { sources, subscribe } = start();
  assert.equal(sources.listeners.size, 0);
  const [one, other] = [subscribe(), subscribe()];
  assert.equal(sources.listeners.size, 1);
  one.unsubscribe();
  assert.equal(sources.listeners.size, 1);
  other.unsubscribe();
  assert.equal(sources.listeners.size, 0);
});
