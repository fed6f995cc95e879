import assert from 'node:assert/strict';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { RunKeeper } from '../../ops/run-mark.js';

test('a run knows whether the one before has ended in order, as a killed one leaves its mark', (context) => {
  const folder = mkdtempSync(join(tmpdir(), 'troupe-mark-'));
  context.after(() => rmSync(folder, { recursive: true, force: true }));
  const first = new RunKeeper(folder, 100);
  assert.ok(first.lastEnded, 'there was none');
  const second = new RunKeeper(folder, 100);
  assert.ok(!second.lastEnded, 'the first one was killed');
  second.end();
  assert.ok(new RunKeeper(folder, 100).lastEnded);
});
