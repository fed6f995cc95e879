import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { dirname, join } from 'node:path';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { simulate } from './simulate.js';

/** Seeds of one `npm test`; `npm run simulate` runs as many as wanted. */
const SEEDS = 25;

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

test('a node that has lost the files of its points is whole again each time, however soon it is back', async () => {
  for (const seed of [8, 10]) {
    const { faults, violations } = await simulate(seed, { faults: ['loseFiles'] });
    assert.deepEqual([violations, (faults.get('loseFiles') ?? 0) > 0], [[], true], `seed ${seed}`);
  }
});

test('a shard whose lead comes to a node that has lost its files is led again by the node that led it before', async () => {
  const { faults, violations } = await simulate(630_261);
  assert.deepEqual([violations, (faults.get('loseFiles') ?? 0) > 0], [[], true]);
});

test('the same seed goes the same way', async () => {
  const [told, silent] = [await simulate(7, { tell: true }), await simulate(7)];
  assert.equal(told.digest, silent.digest);
  assert.equal(told.story.length, Number(told.digest.split(':')[0]));
  assert.notEqual(told.digest, (await simulate(8)).digest);
});
