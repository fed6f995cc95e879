import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { dirname, join } from 'node:path';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';
import type { FaultKind } from './faults.js';
import {
  COMMIT_FROM_OLD_TERM,
  DOUBLE_VOTE,
  EARLY_ANSWERS,
  EMPTY_TARGETS,
  FORGOTTEN_APPLIED,
  LOST_LAST_WRITES,
  NO_PRE_PERSIST,
  SKIPPED_TAGS,
} from './mistakes.js';
import type { Mistakes } from './node.js';
import { simulate } from './simulate.js';

/** Seeds of one `npm test`; `npm run simulate` runs as many as wanted. */
const SEEDS = 60;
const POINTS_WRONG = /^(P1|acknowledged|linearizability|progress: replicas that are the same)|does not work after healing$/;
/** A broken rule is found within so many. */
const SEEDS_MAX = 60;
/** Faults that show what was not on disk when it was said to be. */
const POWER_FAILURES: readonly FaultKind[] = ['slowDisk', 'crash', 'crashAll'];

test(`${SEEDS} seeds of five nodes keep every invariant, and agree and work when the last fault is healed`, async () => {
  const program = join(dirname(fileURLToPath(import.meta.url)), 'main.js');
  const output = await new Promise<string>((resolve, reject) => {
    execFile(process.execPath, ['--enable-source-maps', program, '--seeds', String(SEEDS)], (error, stdout, stderr) => {
      if (error === null) resolve(stdout);
      else reject(new Error(`${stdout}${stderr}`));
    });
  });
  assert.match(output, new RegExp(`^${SEEDS} seeds, 0 failed$`, 'm'));
});

test('the same seed goes the same way', async () => {
  const [told, silent] = [await simulate(7, { tell: true }), await simulate(7)];
  assert.equal(told.digest, silent.digest);
  assert.equal(told.story.length, Number(told.digest.split(':')[0]));
  assert.notEqual(told.digest, (await simulate(8)).digest);
});

for (const [name, mistakes, invariant, faults] of [
  ['a message that is sent before what it says is on disk', NO_PRE_PERSIST, /^I\d/],
  ['a commit of an old term by its copies', COMMIT_FROM_OLD_TERM, /^I[348]/],
  ['a second vote in a term', DOUBLE_VOTE, /second vote|^I1/],
  ['a forgotten applied index', FORGOTTEN_APPLIED, /^I[46]/],
  ['a write of points that is answered before the log has it', EARLY_ANSWERS, POINTS_WRONG, POWER_FAILURES],
  ['a replica that passes over an operation', SKIPPED_TAGS, POINTS_WRONG],
  ['a transfer that ends before its target has the points', EMPTY_TARGETS, POINTS_WRONG],
  ['a transfer that ends without the last writes', LOST_LAST_WRITES, POINTS_WRONG],
] as readonly (readonly [string, Mistakes, RegExp, (readonly FaultKind[])?])[]) {
  test(`${name} is found`, async () => {
    const found = await firstViolation(mistakes, faults);
    assert.match(found, invariant);
  });
}

/** What the first seed that finds something says. */
async function firstViolation(mistakes: Mistakes, faults?: readonly FaultKind[]): Promise<string> {
  for (let seed = 1; seed <= SEEDS_MAX; seed++) {
    const { violations } = await simulate(seed, { mistakes, nodes: 5, ...(faults === undefined ? {} : { faults }) });
    if (violations[0] !== undefined) return violations[0];
  }
  return `nothing in ${SEEDS_MAX} seeds`;
}
