import assert from 'node:assert/strict';
import { test } from 'node:test';
import { NodePace } from '../../../actors/optimizer/pace.js';

/** So many bytes every 50 ms for each replica. */
function stream(pace: NodePace, fromMs: number, toMs: number, bytes: Readonly<Record<string, number>>): void {
  for (let nowMs = fromMs; nowMs < toMs; nowMs += 50) for (const [key, own] of Object.entries(bytes)) pace.came(key, own, nowMs);
}

/** Within a hundredth. */
function isAbout(actual: number, expected: number): void {
  assert.ok(Math.abs(actual - expected) <= expected / 100, `${actual} instead of ${expected}`);
}

test('shards that get about as much are counted together, over the last seconds', () => {
  const pace = new NodePace();
  assert.equal(pace.bytesPerSecond('c/0', 0), 0);
  stream(pace, 0, 20_000, { 'c/0': 1000, 'c/1': 1100 });
  isAbout(pace.bytesPerSecond('c/0', 20_000), 42_000);
  isAbout(pace.bytesPerSecond('c/1', 20_000), 42_000);
  stream(pace, 20_000, 30_000, { 'c/0': 100, 'c/1': 110 });
  isAbout(pace.bytesPerSecond('c/0', 30_000), 4200);
});

test('a slow stream does not count a fast upload beside it, which counts both', () => {
  const pace = new NodePace();
  stream(pace, 0, 10_000, { 'slow/0': 10, 'fast/0': 1000 });
  isAbout(pace.bytesPerSecond('slow/0', 10_000), 200);
  isAbout(pace.bytesPerSecond('fast/0', 10_000), 20_200);
});

test('what has stopped counts no more, and a pause does not count for what comes after it', () => {
  const pace = new NodePace();
  stream(pace, 0, 4000, { 'c/0': 1000, 'c/1': 1000 });
  stream(pace, 4000, 10_000, { 'c/1': 1000 });
  isAbout(pace.bytesPerSecond('c/1', 10_000), 20_000);
  assert.equal(pace.bytesPerSecond('c/0', 10_000), 0);
  stream(pace, 20_000, 21_000, { 'c/1': 50 });
  isAbout(pace.bytesPerSecond('c/1', 21_000), 1000);
});

test("many bytes at once are a quarter of a second's", () => {
  const pace = new NodePace();
  pace.came('c/0', 1000, 7);
  assert.equal(pace.bytesPerSecond('c/0', 7), 4000);
});
