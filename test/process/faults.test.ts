/** A handful of what `npm run faults` tries for all N: calls of the kernel fail under a workload, and nothing acknowledged is lost. */

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { noFailingCalls } from './faults/failing-calls.js';
import { KINDS, type Kind, type Mode } from './faults/kinds.js';
import { nameOf, type Run } from './faults/order.js';
import { Runs } from './faults/run.js';
import { temporaryFolder } from './support.js';

const TRIED: readonly (readonly [kind: string, mode: Mode, n: number])[] = [
  ['open', 'once', 12],
  // Of a meta page of LMDB.
  ['write', 'once', 10],
  ['sync', 'while', 3],
  ['thread', 'once', 1],
];

test('a node whose opens, writes, syncs and thread starts fail keeps what it acknowledged and applies nothing by halves', {
  skip: noFailingCalls,
}, async (t) => {
  const story: string[] = [];
  const runs = new Runs(await temporaryFolder(t), (line) => story.push(line));
  let failures = 0;
  for (const [kindName, mode, n] of TRIED) {
    const kind = KINDS.find(({ name }) => name === kindName) as Kind;
    const run: Run = { place: 'one', phase: 'work', kind, mode, n };
    story.length = 0;
    const { ending, failed, findings } = await runs.run(run);
    assert.deepEqual(findings, [], `npm run faults -- --only ${nameOf(run)}\n${failed.join('\n')}\n${story.join('\n')}`);
    t.diagnostic(`${nameOf(run)}: ${failed.length} calls failed, ${ending}`);
    failures += failed.length;
  }
  assert.ok(failures > 0, 'no call has failed');
});
