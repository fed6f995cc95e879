/**
 * Raft under random faults. A failing seed prints its story. Another range: TROUPE_SEED=<first> TROUPE_SEEDS=<how many>, with
 * `npm test -- random-walk`.
 */

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { isDeepStrictEqual } from 'node:util';
import { stepRaft } from '../../../cluster/raft/step.js';
import { Violation } from './invariants.js';
import { MISTAKES } from './mistakes.js';
import type { Step } from './network.js';
import { walk } from './random-walk.js';
import type { WalkFigures } from './walk-mixture.js';

const FIRST = Number(process.env.TROUPE_SEED ?? 1);
const SEEDS = Number(process.env.TROUPE_SEEDS ?? 300);
const CAREFUL_SEEDS = 12;
const STORY_LINES_MAX = 400;
/** A mistake that needs no rare course of events shows within so many walks. */
const MISTAKE_SEEDS_MAX = 200;

test('Raft keeps its promises whatever is lost, late or down, and works again once all faults are healed', (t) => {
  const sums: Partial<Record<keyof WalkFigures, number>> = {};
  for (let seed = FIRST; seed < FIRST + SEEDS; seed++) {
    for (const [name, value] of Object.entries(walkOrTell(seed)) as [keyof WalkFigures, number][]) {
      sums[name] = name === 'healed' ? Math.max(sums[name] ?? 0, value) : (sums[name] ?? 0) + value;
    }
  }
  t.diagnostic(`${SEEDS} seeds from ${FIRST}: ${JSON.stringify(sums)}`);
});

test('a step changes nothing in place, and does the same again for the same state and input', () => {
  const careful: Step = (state, input) => {
    const copy = structuredClone(state);
    const stepped = stepRaft(state, input);
    assert.ok(isDeepStrictEqual(copy, state), `${input.kind} changed the state in place`);
    assert.ok(isDeepStrictEqual(stepRaft(copy, input), stepped), `${input.kind} did something else for the same state`);
    return stepped;
  };
  for (let seed = FIRST; seed < FIRST + CAREFUL_SEEDS; seed++) walk({ seed, step: careful, actions: 400 });
});

for (const [name, { step: mistaken, story }] of Object.entries(MISTAKES)) {
  if (story !== undefined) continue;
  test(`a Raft that ${name} is found out`, (t) => {
    for (let seed = 1; seed <= MISTAKE_SEEDS_MAX; seed++) {
      try {
        walk({ seed, step: mistaken });
      } catch (error) {
        t.diagnostic(`seed ${seed}: ${error instanceof Error ? error.message : error}`);
        return;
      }
    }
    assert.fail(`${MISTAKE_SEEDS_MAX} walks did not find it`);
  });
}

function walkOrTell(seed: number): WalkFigures {
  try {
    return walk({ seed });
  } catch (error) {
    const story: string[] = [];
    assert.throws(() => walk({ seed, tell: (line) => story.push(line) }));
    const what = error instanceof Violation ? error.message : String(error);
    throw new Error(`TROUPE_SEED=${seed}: ${what}\n${story.slice(-STORY_LINES_MAX).join('\n')}`, { cause: error });
  }
}
