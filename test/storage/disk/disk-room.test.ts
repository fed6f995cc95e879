import assert from 'node:assert/strict';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { diskMarks, hasRoomFor, isFull, reserveMove } from '../../../storage/disk/disk-room.js';
import { DiskWatch } from '../../../storage/disk/disk-watch.js';

const MEBIBYTE = 1 << 20;
const marks = { freeBytesMin: 10 * MEBIBYTE, reserveBytes: 4 * MEBIBYTE };

test('a fiftieth of the disk stays free, between 4 and 512 MB, unless the settings say otherwise', () => {
  const free = (megabytes: number, setting: number | null = null) => diskMarks(megabytes * MEBIBYTE, setting, 4).freeBytesMin / MEBIBYTE;
  assert.deepEqual(
    [24, 1000, 1_000_000].map((megabytes) => free(megabytes)),
    [4, 20, 512],
  );
  assert.equal(free(1000, 7), 7);
  assert.equal(free(1000, 0), 0);
});

test('a write begins only if the mark is kept with its bytes', () => {
  const held = marks.reserveBytes;
  assert.equal(hasRoomFor(marks, 12 * MEBIBYTE, held, 2 * MEBIBYTE), true);
  assert.equal(hasRoomFor(marks, 12 * MEBIBYTE, held, 2 * MEBIBYTE + 1), false);
  assert.equal(hasRoomFor(marks, 10 * MEBIBYTE - 1, held, 0), false);
  // What a reserve that was given up leaves free is for deletions.
  assert.equal(hasRoomFor(marks, 14 * MEBIBYTE - 1, 0, 0), false);
  assert.equal(hasRoomFor(marks, 14 * MEBIBYTE, 0, 0), true);
});

test('a disk that was full counts as full until half of its mark more is free', () => {
  const full = (free: number, wasFull: boolean) => isFull(marks, free * MEBIBYTE, marks.reserveBytes, wasFull);
  assert.deepEqual([full(9, false), full(10, false)], [true, false]);
  assert.deepEqual([full(14, true), full(15, true)], [true, false]);
});

test('the reserve is given up when the disk is full, and made again only above the mark', () => {
  const moves = (held: number) => [0, 2, 13, 14].map((free) => reserveMove(marks, free * MEBIBYTE, held * MEBIBYTE));
  assert.deepEqual(moves(4), ['giveUp', null, null, null]);
  assert.deepEqual(moves(0), [null, null, null, 'make']);
  // A smaller one than the settings ask for is made anew, one that they do not ask for goes.
  assert.equal(reserveMove(marks, 20 * MEBIBYTE, MEBIBYTE), 'make');
  assert.equal(reserveMove({ ...marks, reserveBytes: 0 }, 20 * MEBIBYTE, MEBIBYTE), 'giveUp');
});

test('a disk that does not answer is no end of the process: the figures from before hold', () => {
  const folder = mkdtempSync(join(tmpdir(), 'troupe-disk-'));
  const watch = new DiskWatch(folder, { freeMegabytes: 0, reserveMegabytes: 0 }, () => {});
  const { freeBytes } = watch.report();
  rmSync(folder, { recursive: true });
  assert.equal(watch.report().freeBytes, freeBytes);
  watch.require(1);
});
