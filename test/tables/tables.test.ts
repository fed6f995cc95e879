import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { TABLES } from './list.js';
import { withSection } from './print.js';

const ROOT = resolve(fileURLToPath(import.meta.url), '../../../..');

for (const { printed, untried } of TABLES) {
  test(`the README of ${printed.name} has its table as the code has it`, () => {
    const readme = readFileSync(join(ROOT, printed.readme), 'utf8');
    const message = `the table of ${printed.name} in ${printed.readme} is not the code's: run \`npm run tables\``;
    assert.equal(readme, withSection(readme, printed), message);
  });

  test(`the diagram of ${printed.name} comes from a walk through every cell of its table that decides something`, () => {
    assert.deepEqual(untried, []);
  });
}
