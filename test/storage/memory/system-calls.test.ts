/** What a process gives back, in one of the runtime that serves. */

import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { isWarned } from '../../../storage/memory/system-calls.js';
import { broughtNode } from '../../brought-node.js';
import { temporaryFolder } from '../replica/support.js';

const SYSTEM_CALLS = new URL('../../../storage/memory/system-calls.js', import.meta.url);

/**
 * Reads a database of 32 MB through its map, and lets go of the pages. Then fills memory with blocks that the C library has, frees all but the last of each thousand, and gives back; prints kB before and after, and a sum
 * of code run since.
 */
const PROGRAM = `
import { readFileSync } from 'node:fs';
const { giveWayCall, mappedPagesGiver, memoryGiver, setTurns } = await import(process.argv[1]);
const { Environment } = await import(process.argv[2]);
const of = (key) => Number(new RegExp('^' + key + ':\\\\s+(\\\\d+)', 'm').exec(readFileSync('/proc/self/status', 'utf8'))[1]);

const records = Array.from({ length: 512 }, (_, at) => Buffer.of(at >> 8, at & 255));
const environment = Environment.open(process.argv[3], () => {});
environment.write(() => {
  for (const record of records) environment.put('rows', record, new Uint8Array(1 << 16).fill(record[1]));
});
const readAll = () => records.reduce((sum, record) => environment.get('rows', record).reduce((max, byte) => Math.max(max, byte), 0) + sum, 0);
readAll();
const mapped = of('RssFile');
mappedPagesGiver()?.(environment.file);
const database = { mapped, left: of('RssFile'), sum: readAll() };
await environment.close();

const giveWay = giveWayCall();
giveWay?.();
const turns = { short: String(setTurns(100_000n)), others: String(setTurns(0n)) };

const giveBack = memoryGiver();
let blocks = Array.from({ length: 8000 }, () => Buffer.allocUnsafeSlow(8192).fill(1));
blocks = blocks.filter((_, at) => at % 1000 === 999);
gc();
const before = { anonymous: of('RssAnon'), file: of('RssFile') };
giveBack?.("freed and program");
const after = { anonymous: of('RssAnon'), file: of('RssFile') };
let sum = 0;
for (const block of blocks) for (const byte of block) sum += byte;
console.log(JSON.stringify({ can: giveBack !== null && giveWay !== null, database, before, after, sum, turns, parsed: JSON.parse('[1.5]')[0], text: 'ä'.toUpperCase() }));
`;

test('freed blocks, pages of the program and mapped pages of a database go back to the system, threads give way, and the program goes on', async (t) => {
  const runtime = broughtNode();
  if (runtime === null || process.platform !== 'linux') return t.skip('needs the runtime that Troupe brings along, on Linux');
  const words = [
    '--expose-gc',
    '--no-concurrent-array-buffer-sweeping',
    '--disable-warning=ExperimentalWarning',
    '--input-type=module',
    '-e',
    PROGRAM,
    SYSTEM_CALLS.href,
    new URL('../../../storage/disk/lmdb.js', import.meta.url).href,
    temporaryFolder(t),
  ];
  const environment = { ...process.env, TROUPE_STARTED: 'brought', MALLOC_MMAP_THRESHOLD_: '65536' };
  const { stdout, stderr } = await promisify(execFile)(runtime, words, {
    env: environment,
    cwd: fileURLToPath(new URL('.', SYSTEM_CALLS)),
  });
  assert.equal(stderr, '');
  const { after, before, can, database, turns, ...rest } = JSON.parse(stdout);
  assert.equal(can, true);
  assert.ok(before.anonymous - after.anonymous > 40_000, `anonymous memory: ${before.anonymous} kB, then ${after.anonymous} kB`);
  assert.ok(before.file - after.file > 10_000, `pages of files: ${before.file} kB, then ${after.file} kB`);
  assert.ok(database.mapped - database.left > 32_000, `mapped: ${database.mapped} kB, then ${database.left} kB`);
  assert.equal(database.sum, 2 * 255 * 128);
  // Without a length of its own a thread has that of the system. Older systems know of none, and tell 0.
  if (turns.short !== '0') assert.deepEqual([turns.short, Number(turns.others) > 100_000], ['100000', true]);
  assert.deepEqual(rest, { sum: 8 * 8192, parsed: 1.5, text: 'Ä' });
});

test('an experimental feature is used where the launcher or the program has turned its warning off, and nowhere else', () => {
  assert.equal(isWarned([], {}), true);
  assert.equal(isWarned(['--max-semi-space-size=2'], { NODE_OPTIONS: '--enable-source-maps' }), true);
  assert.equal(isWarned([], { TROUPE_STARTED: 'brought 0' }), false);
  assert.equal(isWarned(['--disable-warning=ExperimentalWarning'], {}), false);
  assert.equal(isWarned([], { NODE_OPTIONS: '--enable-source-maps --no-warnings' }), false);
  assert.equal(isWarned([], { NODE_NO_WARNINGS: '1' }), false);
});
