import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Filter } from '../../../protocols/model/filter.js';
import { decodeFilter } from '../../../protocols/rest/filter.js';
import { type SeenScan, SeenScans } from '../../../storage/reader/seen-scans.js';

function start() {
  const told: (readonly SeenScan[])[] = [];
  const waiting: (() => void)[] = [];
  const clock = { ms: 0 };
  const scans = new SeenScans(
    (some) => told.push(some),
    () => clock.ms,
    (run) => waiting.push(run),
  );
  const scan = (field: string, rows: number, ms: number): void => {
    const { must } = decodeFilter({ must: [{ key: field, match: { value: 'x' } }] }, 'filter') as Filter;
    const ended = scans.begin('c', must, (name) => (name === 'indexed' ? { type: 'keyword' } : undefined), rows);
    clock.ms += ms;
    ended?.();
  };
  return { scans, scan, told, waiting };
}

test('scans of all segments of a read count as one read, and are told together', () => {
  const { scans, scan, told, waiting } = start();
  scans.nextRead();
  scan('a', 1000, 2);
  scan('a', 500, 1);
  scans.nextRead();
  scan('a', 1000, 2);
  scan('b', 300, 4);
  assert.equal(waiting.length, 1, 'one message for all');
  waiting.shift()?.();
  assert.deepEqual(told, [
    [
      { collection: 'c', field: 'a', type: 'keyword', reads: 2, rows: 2500, milliseconds: 5 },
      { collection: 'c', field: 'b', type: 'keyword', reads: 1, rows: 300, milliseconds: 4 },
    ],
  ]);
  scan('a', 1000, 2);
  assert.equal(waiting.length, 1, 'what comes later is told later');
});

test('few payloads and fields with an index are no scans, and there is a bound on the number of fields', () => {
  const { scan, told, waiting } = start();
  scan('a', 63, 1);
  scan('indexed', 1000, 1);
  assert.equal(waiting.length, 0);
  for (let at = 0; at < 400; at++) scan(`field ${at}`, 1000, 1);
  waiting.shift()?.();
  assert.equal(told[0]?.length, 256);
});
