import assert from 'node:assert/strict';
import { test } from 'node:test';
import {
  COMMIT_FROM_OLD_TERM,
  DOUBLE_VOTE,
  EARLY_ANSWERS,
  EMPTY_TARGETS,
  FORGOTTEN_APPLIED,
  LOST_COPIES,
  LOST_LAST_WRITES,
  NO_PRE_PERSIST,
  SHOWN_COPIES,
  SKIPPED_TAGS,
} from './mistakes.js';
import type { Mistakes } from './node.js';
import { simulate } from './simulate.js';

const POINTS_WRONG =
  /^(P1|acknowledged|linearizability|progress: (replicas that are the same|giving shards the replicas))|gave a point twice$|does not work after healing$/;
/** A broken rule is found within so many; six, where this was written. */
const SEEDS_MAX = 60;

for (const [name, mistakes, invariant] of [
  ['a message that is sent before what it says is on disk', NO_PRE_PERSIST, /^I\d/],
  ['a commit of an old term by its copies', COMMIT_FROM_OLD_TERM, /^I[348]/],
  ['a second vote in a term', DOUBLE_VOTE, /second vote|^I1/],
  ['a forgotten applied index', FORGOTTEN_APPLIED, /^I[46]/],
  ['a write of points that is answered before the log has it', EARLY_ANSWERS, POINTS_WRONG],
  ['a replica that passes over an operation', SKIPPED_TAGS, POINTS_WRONG],
  ['a transfer that ends before its target has the points', EMPTY_TARGETS, POINTS_WRONG],
  ['a transfer that ends without the last writes', LOST_LAST_WRITES, POINTS_WRONG],
  ['a shard that serves before the copies are confirmed', LOST_COPIES, POINTS_WRONG],
  ['a copy that is shown while another shard has the point', SHOWN_COPIES, POINTS_WRONG],
] as readonly (readonly [string, Mistakes, RegExp])[]) {
  test(`${name} is found`, async () => {
    const found = await firstViolation(mistakes);
    assert.match(found, invariant);
  });
}

/** What the first seed that finds something says. */
async function firstViolation(mistakes: Mistakes): Promise<string> {
  for (let seed = 1; seed <= SEEDS_MAX; seed++) {
    const { violations } = await simulate(seed, { mistakes, nodes: 5 });
    if (violations[0] !== undefined) return violations[0];
  }
  return `nothing in ${SEEDS_MAX} seeds`;
}
