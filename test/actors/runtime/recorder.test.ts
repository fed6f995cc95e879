import assert from 'node:assert/strict';
import { test } from 'node:test';
import { FlightRecorder } from '../../../actors/runtime/recorder.js';

const record = (timeMs: number) => ({ timeMs, message: 'm', summary: '', state: 'S' });

test('records come oldest first, and the oldest ones make room', () => {
  const recorder = new FlightRecorder(3);
  assert.deepEqual(recorder.records(), []);
  for (let at = 1; at <= 3; at++) recorder.add(record(at));
  assert.deepEqual(
    recorder.records().map((each) => each.timeMs),
    [1, 2, 3],
  );
  for (let at = 4; at <= 8; at++) recorder.add(record(at));
  assert.deepEqual(
    recorder.records().map((each) => each.timeMs),
    [6, 7, 8],
  );
});
