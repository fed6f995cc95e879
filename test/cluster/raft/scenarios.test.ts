/**
 * Each file of `test/scenarios/raft` is a story of some Rafts that comes out as it is written there. `TROUPE_REWRITE=1` writes
 * what comes out into the files, to be read and kept.
 */

import assert from 'node:assert/strict';
import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { test } from 'node:test';
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

/** The first line of the file says what it shows. */
function titleOf(text: string): string {
  return text.split('\n')[0]?.replace(/^# */, '') ?? '';
}
