/**
 * Each file of `test/scenarios/raft` is a story of some Rafts that comes out as it is written there. `TROUPE_REWRITE=1` writes
 * what comes out into the files, to be read and kept.
 */

import assert from 'node:assert/strict';
import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { test } from 'node:test';
import { Violation } from './invariants.js';
import { MISTAKES } from './mistakes.js';
import { scenarioOutput } from './scenario.js';

const FOLDER = new URL('../../../../test/scenarios/raft/', import.meta.url);

for (const name of readdirSync(FOLDER).filter((file) => file.endsWith('.txt'))) {
  const file = new URL(name, FOLDER);
  const expected = readFileSync(file, 'utf8');
  test(`raft, ${titleOf(expected)}`, () => {
    const found = scenarioOutput(expected);
    if (process.env.TROUPE_REWRITE === '1') writeFileSync(file, found);
    else assert.equal(found, expected, `${name} comes out differently; TROUPE_REWRITE=1 writes it anew`);
  });
}

for (const [name, { step, story }] of Object.entries(MISTAKES)) {
  if (story === undefined) continue;
  test(`a Raft that ${name} is found out by the story ${story}`, () => {
    const text = readFileSync(new URL(`${story}.txt`, FOLDER), 'utf8');
    assert.throws(
      () => scenarioOutput(text, step),
      (error: Error) => error.cause instanceof Violation,
    );
  });
}

/** The first line of the file says what it shows. */
function titleOf(text: string): string {
  return text.split('\n')[0]?.replace(/^# */, '') ?? '';
}
