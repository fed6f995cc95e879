import assert from 'node:assert/strict';
import { test } from 'node:test';
import { seededRandom } from '../../../ops/random.js';
import { LogEntries, type LogEntry } from '../../../storage/wal/log-entries.js';
import { testSeed } from '../../seed.js';

const listed = (entries: LogEntries): LogEntry[] =>
  Array.from({ length: entries.length }, (_, at) => ({
    operation: entries.operationAt(at),
    bytes: entries.bytesAt(at),
    file: entries.fileAt(at),
  }));

test('entries are what a list of them would be, whatever is added and dropped at both ends', () => {
  const random = seededRandom(testSeed());
  const entries = new LogEntries();
  let model: LogEntry[] = [];
  let next = 2 ** 40;
  for (let round = 0; round < 2000; round++) {
    for (let added = Math.floor(random.unit() * 20); added > 0; added--) {
      next += 1 + Math.floor(random.unit() * 3);
      const entry = { operation: next, bytes: Math.floor(random.unit() * 2 ** 32), file: random.unit() < 0.5 ? null : next - 5 };
      entries.push(entry);
      model.push(entry);
    }
    const first = Math.floor(random.unit() * random.unit() * (model.length + 1));
    entries.dropFirst(first);
    model = model.slice(first);
    const last = random.unit() < 0.2 ? Math.floor(random.unit() * (model.length + 1)) : 0;
    entries.dropLast(last);
    model = model.slice(0, model.length - last);
    assert.deepEqual(listed(entries), model, `round ${round}`);
    const operation = next - Math.floor(random.unit() * 40);
    const position = model.findIndex((entry) => entry.operation >= operation);
    assert.equal(entries.positionOf(operation), position < 0 ? model.length : position);
  }
});

test('300,000 entries take at most 12 MB, and a log that has lost them takes next to nothing', () => {
  const entries = new LogEntries();
  for (let operation = 1; operation <= 300_000; operation++) entries.push({ operation, bytes: 100, file: null });
  assert.ok(entries.heldBytes <= 12e6, `${entries.heldBytes} bytes`);
  entries.dropFirst(299_990);
  assert.ok(entries.heldBytes < 1000, `${entries.heldBytes} bytes`);
});
