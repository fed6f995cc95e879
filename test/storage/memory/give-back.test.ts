import assert from 'node:assert/strict';
import { test } from 'node:test';
import {
  type GiveBackState,
  gaveBack,
  isDueForBuild,
  mappedRanges,
  NOTHING_GIVEN_BACK,
  nextGiveBack,
  programRanges,
} from '../../../storage/memory/give-back.js';
import { MemoryWatch } from '../../../storage/memory/watch.js';

const MB = 1 << 20;

/** At which of these measures memory is given back, and why where it is not the rest. freed: what each time frees. */
function dueAt(megabytes: readonly number[], freed = 0, budget = 1000): (number | string)[] {
  const dues: (number | string)[] = [];
  let state: GiveBackState = NOTHING_GIVEN_BACK;
  for (const [at, used] of megabytes.entries()) {
    const { due, state: next } = nextGiveBack(state, used * MB, budget * MB);
    state = next;
    if (due === null) continue;
    dues.push(due === 'rest' ? at : `${at} ${due}`);
    state = gaveBack(state, (used - freed) * MB);
  }
  return dues;
}

test('memory is given back once what is used has stayed the same for four measures', () => {
  assert.deepEqual(dueAt([80, 80, 80, 80, 80, 80, 80]), [4]);
  assert.deepEqual(dueAt([80, 80, 80, 90, 90, 90, 90, 90]), [7]);
});

test('a process that goes on as it was gives back nothing more, until it has taken or freed megabytes', () => {
  const idle = new Array<number>(20).fill(80);
  assert.deepEqual(dueAt(idle), [4]);
  assert.deepEqual(dueAt([...idle, 83, 83, 83, 83, 83]), [4]);
  assert.deepEqual(dueAt([...idle, 300, 300, 300, 300, 300]), [4, 24]);
  assert.deepEqual(dueAt([...idle, 70, 70, 70, 70, 70]), [4, 24]);
});

test('what was freed does not make it look as if something had happened', () => {
  const rest = new Array<number>(20).fill(50);
  assert.deepEqual(dueAt([80, 80, 80, 80, 80, ...rest], 30), [4]);
});

test('a process that is never at rest gives back, too, when it is short of memory, and not where that frees nothing', () => {
  const busy = [300, 320, 340, 360, 340, 360, 340, 360];
  assert.deepEqual(dueAt(busy), []);
  assert.deepEqual(dueAt(busy, 40, 400), ['2 short', '4 short', '6 short']);
  assert.deepEqual(dueAt(busy, 40, 424), []);
  // What is used stays what it is: nothing was freed.
  assert.deepEqual(dueAt([390, 392, 390, 392, 390, 392, 390], 0, 455), ['1 short']);
});

const PROGRAM = '/opt/node';

function mapping(head: string, anonymousKb: number): string {
  return `${head}\nSize:   4 kB\nRss:    4 kB\nAnonymous:   ${anonymousKb} kB\nVmFlags: rd ex\n`;
}

test('only code and constants of the program that are as in its file are given up, and no mapping that may go', () => {
  const smaps = [
    mapping(`00400000-00800000 r--p 00000000 08:01 77                 ${PROGRAM}`, 0),
    mapping(`00800000-03400000 r-xp 00400000 08:01 77                 ${PROGRAM}`, 0),
    // Relocated, then protected: its pages are in no file.
    mapping(`03400000-03500000 r--p 03000000 08:01 77                 ${PROGRAM}`, 12),
    mapping(`03500000-03600000 rw-p 03100000 08:01 77                 ${PROGRAM}`, 0),
    mapping('03600000-03700000 rw-p 00000000 00:00 0', 0),
    mapping('04000000-04800000 rw-p 00000000 00:00 0                  [heap]', 900),
    // A copy beside a thread's code.
    mapping(`7f0000000000-7f0000200000 r-xp 00400000 08:01 77         ${PROGRAM}`, 0),
    mapping('7f1000000000-7f1000200000 r-xp 00400000 08:01 78         /lib/libc.so.6', 0),
    mapping('7f2000000000-7f2000200000 r--s 00000000 08:01 79         /data/lmdb/data.mdb', 0),
  ].join('');
  assert.deepEqual(programRanges(smaps, PROGRAM), [
    { start: 0x40_0000n, bytes: 0x40_0000n },
    { start: 0x80_0000n, bytes: 0x2c0_0000n },
  ]);
  assert.deepEqual(programRanges('', PROGRAM), []);
});

test('of a database only what is mapped of its file for reading is let go, also where it is mapped twice', () => {
  const maps = [
    '7f1000000000-7f1010000000 r--s 00000000 08:01 79         /data/a/lmdb/data.mdb',
    '7f2000000000-7f2020000000 r--s 00000000 08:01 79         /data/a/lmdb/data.mdb',
    '7f3000000000-7f3000001000 rw-s 00000000 08:01 79         /data/a/lmdb/data.mdb',
    '7f4000000000-7f4000001000 r--p 00000000 08:01 79         /data/a/lmdb/data.mdb',
    '7f5000000000-7f5010000000 r--s 00000000 08:01 80         /copy/data/a/lmdb/data.mdb',
    '7f6000000000-7f6010000000 rw-p 00000000 00:00 0',
    '',
  ].join('\n');
  assert.deepEqual(mappedRanges(maps, '/data/a/lmdb/data.mdb'), [
    { start: 0x7f10_0000_0000n, bytes: 0x1000_0000n },
    { start: 0x7f20_0000_0000n, bytes: 0x2000_0000n },
  ]);
  assert.deepEqual(mappedRanges(maps, '/data/b/lmdb/data.mdb'), []);
});

test('memory is given back for a build that needs 32 MB more than those under way, and not again within ten seconds', () => {
  assert.equal(isDueForBuild({ before: 0, now: 32 * MB }, 10_000), true);
  assert.equal(isDueForBuild({ before: 100 * MB, now: 131 * MB }, 10_000), false);
  assert.equal(isDueForBuild({ before: 200 * MB, now: 100 * MB }, 10_000), false);
  assert.equal(isDueForBuild({ before: 0, now: 32 * MB }, 9999), false);
});

test('a watch gives memory back before the first build, and once for builds that begin together', (t) => {
  const watch = new MemoryWatch(null);
  t.after(() => watch.stop());
  let times = 0;
  watch.noteHeld(100 * MB);
  watch.noteHeld(0);
  watch.giveBack = () => {
    times++;
  };
  watch.noteHeld(100 * MB);
  assert.equal(times, 1);
  watch.noteHeld(200 * MB);
  assert.equal(times, 1);
});
