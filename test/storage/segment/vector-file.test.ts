import assert from 'node:assert/strict';
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { test } from 'node:test';
import type { SegmentHandle } from '../../../storage/segment/handle.js';
import { closeVectorFiles, FileParts } from '../../../storage/segment/vector-file.js';

const BYTES = 100;
const PARTS = Array.from({ length: 6 }, (_, n) => ({ position: n * BYTES, bytes: BYTES }));
const START = 64;

/** A file whose parts are filled with their numbers. */
function fileOf(folder: string): SegmentHandle {
  const fd = fs.openSync(path.join(folder, 'codes.0'), 'w');
  fs.writeSync(fd, new Uint8Array(START));
  PARTS.forEach(({ bytes }, n) => {
    fs.writeSync(fd, new Uint8Array(bytes).fill(n));
  });
  fs.closeSync(fd);
  return { folder, memory: new WebAssembly.Memory({ initial: 1, maximum: 1, shared: true }) } as Partial<SegmentHandle> as SegmentHandle;
}

test('parts of a file come in their order, and the system is asked once for all that follow one that waited', (t) => {
  const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'troupe-parts-'));
  t.after(() => fs.rmSync(folder, { recursive: true, force: true }));
  const handle = fileOf(folder);
  const asked: [position: number, bytes: number][] = [];
  // The looks at the clock: before and after each read. Those of parts 2 and 4 take a millisecond.
  let looks = 0;
  let nowMs = 0;
  const clock = (): number => {
    const part = looks++ >> 1;
    nowMs += looks % 2 === 0 && (part === 2 || part === 4) ? 1 : 0;
    return nowMs;
  };
  const parts = new FileParts(
    handle,
    { name: 'codes.0', start: START },
    PARTS,
    (_, position, bytes) => asked.push([position, bytes]),
    clock,
  );
  const target = new Uint8Array(BYTES);
  PARTS.forEach((_, n) => {
    parts.readNext(target);
    assert.ok(target[0] === n && target[BYTES - 1] === n, `part ${n}`);
  });
  assert.deepEqual(
    asked,
    PARTS.slice(3).map(({ position }) => [START + position, BYTES]),
  );
  closeVectorFiles(handle);
});
