/** SIGKILL at random moments while archives are put and removed: what is listed afterwards is whole (Store-B1). */

import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { mkdirSync, readdirSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { type TestContext, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { LocalSnapshotStore } from '../../../storage/snapshot-store/local.js';
import { smallFileSystem } from '../../machine.js';
import { testSeed } from '../../seed.js';
import { FULL, SHARD, sha256OfFile, temporaryFolder } from './support.js';

const PUTTER = fileURLToPath(new URL('./put-process.js', import.meta.url));
const KILLS = 20;
/** After the process has begun to put, in every other round after the first archive is kept: some puts take this long. */
const DELAY_MS_MAX = 60;

/** Runs a process that puts and removes, until it is killed. Result: the names that it was told are kept, as it printed them, and those removed. */
async function putUntilKilled(
  folder: string,
  temp: string,
  round: number,
  delayMs: number,
): Promise<{ kept: string[]; removed: Set<string> }> {
  const child = spawn(process.execPath, [PUTTER, folder, temp, String(round)], { stdio: ['ignore', 'pipe', 'inherit'] });
  const kept: string[] = [];
  const removed = new Set<string>();
  const ended = new Promise<void>((resolve) => child.once('close', () => resolve()));
  let isTimed = false;
  for await (const line of createInterface({ input: child.stdout })) {
    const [what, name = ''] = line.split(' ');
    if (what === 'kept') kept.push(name);
    if (what === 'removing') removed.add(name);
    if (isTimed || (round % 2 === 1 && what !== 'kept')) continue;
    setTimeout(() => child.kill('SIGKILL'), delayMs);
    isTimed = true;
  }
  await ended;
  assert.equal(child.signalCode, 'SIGKILL', 'the process has ended before it was killed');
  return { kept, removed };
}

async function killedRounds(t: TestContext, folder: string, temp: string): Promise<void> {
  let state = testSeed();
  let found = 0;
  let swept = 0;
  for (let round = 0; round < KILLS; round++) {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    const { kept, removed } = await putUntilKilled(folder, temp, round, (state / 2 ** 32) * DELAY_MS_MAX);
    const store = new LocalSnapshotStore({ folder, freeBytesMin: 0 });
    // Before and after what the next start does.
    for (const isSwept of [false, true]) {
      if (isSwept) swept += await store.sweep();
      for (const place of [FULL, SHARD]) {
        const base = place.kind === 'full' ? folder : join(folder, 'c+2e', 'shards', '3');
        for (const { checksum, name } of await store.list(place)) {
          assert.equal(checksum, await sha256OfFile(join(base, name)), `${name} after ${kept.length} puts`);
          found++;
        }
      }
    }
    const names = new Set((await store.list(FULL)).map(({ name }) => name));
    for (const name of kept) assert.ok(names.has(name) || removed.has(name), `${name} was kept, and is not listed`);
    const left = readdirSync(folder).filter((name) => name.startsWith('.') || name.endsWith('.checksum'));
    assert.deepEqual(left.sort(), [...names].map((name) => `${name}.checksum`).sort());
    for (const name of names) await store.remove(FULL, name);
    rmSync(temp, { recursive: true, force: true });
    mkdirSync(temp);
  }
  t.diagnostic(`${found} listed archives looked through, ${swept} leftovers swept`);
  assert.ok(found > 0, 'no archive was ever finished');
}

test('kills while archives are moved into the store: what is listed is whole and what was acknowledged is there', async (t) => {
  const folder = temporaryFolder(t);
  mkdirSync(join(folder, 'store'));
  mkdirSync(join(folder, 'temp'));
  await killedRounds(t, join(folder, 'store'), join(folder, 'temp'));
});

test('kills while archives are copied into the store: what is listed is whole and what was acknowledged is there', async (t) => {
  const folder = smallFileSystem(t, 256);
  if (folder === null) return;
  const temp = join(temporaryFolder(t), 'temp');
  mkdirSync(temp);
  await killedRounds(t, folder, temp);
});
