import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { FaultKind } from './faults.js';
import {
  COMMIT_FROM_OLD_TERM,
  DOUBLE_VOTE,
  EARLY_ANSWERS,
  EMPTY_PLEDGES,
  EMPTY_TARGETS,
  FORGOTTEN_APPLIED,
  FORGOTTEN_COMMIT,
  LOST_COPIES,
  LOST_LAST_WRITES,
  MISSING_ENTRY,
  NO_PRE_PERSIST,
  PASSED_OVER,
  REWRITTEN_ENTRY,
  SHOWN_COPIES,
  SILENCE_AS_END,
  SKIPPED_ENTRY,
  SKIPPED_TAGS,
  TRUSTED_STALE,
  TWO_MEMBERS_AT_ONCE,
} from './mistakes.js';
import type { Mistakes } from './node.js';
import { simulate } from './simulate.js';

const POINTS_WRONG =
  /^(Sim-P1|acknowledged|linearizability|progress: (replicas that are the same|giving shards the replicas))|gave a point twice$|does not work after healing$|is in the log and fails| crashed: invariant (Log|Op)-[A-Z]\d+ is broken/;
/** A broken rule is found within so many, counted from the seed that found it where this was written. */
const SEEDS_MAX = 60;
/** The seed that is tried first, where another one than 1 found the mistake: a search from 1 takes minutes in all. */
const FIRST_SEEDS = new Map<Mistakes, number>([
  [COMMIT_FROM_OLD_TERM, 4],
  [DOUBLE_VOTE, 17],
  [EARLY_ANSWERS, 30],
  [SKIPPED_TAGS, 5],
  [TRUSTED_STALE, 10],
  [SHOWN_COPIES, 11],
  [EMPTY_PLEDGES, 39],
]);
/** What shows the mistakes of two nodes: with all kinds of faults there are too few of these in a run. */
const FAULTS_OF_TWO: readonly FaultKind[] = [
  'crash',
  'crashLeader',
  'crashAll',
  'stop',
  'pause',
  'split',
  'oneWay',
  'isolateLeader',
  'loss',
  'delay',
  'duplicate',
  'reorder',
  'slowDisk',
  'fullDisk',
  'clockJump',
  'removePeer',
  'recover',
];

for (const [name, mistakes, invariant, nodes = 5] of [
  ['a message that is sent before what it says is on disk', NO_PRE_PERSIST, /^Sim-I\d/],
  ['a commit of an old term by its copies', COMMIT_FROM_OLD_TERM, /^Sim-I[348]/],
  ['a second vote in a term', DOUBLE_VOTE, /second vote|^Sim-I1|invariant Raft-R2 is broken/],
  ['a forgotten applied index', FORGOTTEN_APPLIED, /^Sim-I[46]/],
  ['a write of points that is answered before the log has it', EARLY_ANSWERS, POINTS_WRONG],
  ['a replica that passes over an operation', SKIPPED_TAGS, POINTS_WRONG],
  ['a lack of means that is taken for a fault of the operation', PASSED_OVER, POINTS_WRONG],
  ['an old point that is changed as if it were the new one', TRUSTED_STALE, POINTS_WRONG],
  ['a transfer that ends before its target has the points', EMPTY_TARGETS, POINTS_WRONG],
  ['a transfer that ends without the last writes', LOST_LAST_WRITES, POINTS_WRONG],
  ['a shard that serves before the copies are confirmed', LOST_COPIES, POINTS_WRONG],
  ['a copy that is shown while another shard has the point', SHOWN_COPIES, POINTS_WRONG],
  ['one of two nodes that takes silence for the end of the other', SILENCE_AS_END, /^Sim-I\d/, 2],
  ['one of two nodes that counts on the other without its pledge', EMPTY_PLEDGES, new RegExp(`^Sim-I3|${POINTS_WRONG.source}`), 2],
  // Promises that stop the actor that breaks them.
  ['a follower that forgets what is committed', FORGOTTEN_COMMIT, / crashed: invariant Raft-R[45] is broken/],
  ['an apply that skips an entry', SKIPPED_ENTRY, / crashed: invariant State-S1 is broken/],
  ['a leader that sends another entry for a committed one', REWRITTEN_ENTRY, / crashed: invariant Raft-R4 is broken/],
  ['a leader that leaves an entry out', MISSING_ENTRY, / crashed: invariant Raft-R12 is broken/],
  ['a membership that changes by two peers', TWO_MEMBERS_AT_ONCE, / crashed: invariant Raft-R9 is broken/],
] as readonly (readonly [string, Mistakes, RegExp, number?])[]) {
  test(`${name} is found`, async () => {
    const found = await firstViolation(mistakes, nodes);
    assert.match(found, invariant);
  });
}

/** What the first seed that finds something says. */
async function firstViolation(mistakes: Mistakes, nodes: number): Promise<string> {
  const first = FIRST_SEEDS.get(mistakes) ?? 1;
  for (let seed = first; seed < first + SEEDS_MAX; seed++) {
    const { violations } = await simulate(seed, { mistakes, nodes, ...(nodes === 2 ? { faults: FAULTS_OF_TWO } : {}) });
    if (violations[0] !== undefined) return violations[0];
  }
  return `nothing in ${SEEDS_MAX} seeds`;
}
