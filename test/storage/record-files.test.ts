import assert from 'node:assert/strict';
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, symlinkSync, truncateSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { before, type TestContext, test } from 'node:test';
import { initChecksum } from '../../storage/checksum.js';
import { fileOf, RecordFiles, recordBytes, verifyEntry } from '../../storage/record-files.js';
import { seal } from '../../storage/replica/records.js';

before(initChecksum);

function folderFor(t: TestContext): string {
  const folder = mkdtempSync(path.join(tmpdir(), 'troupe-records-'));
  t.after(() => rmSync(folder, { recursive: true, force: true }));
  return path.join(folder, 'records');
}

function recordOf(bytes: number, fill: number): Uint8Array {
  return seal(new Uint8Array(8 + bytes).fill(fill));
}

test('a small record stays in its entry, a large one goes to its file; both come back as they were', (t) => {
  const folder = folderFor(t);
  const files = new RecordFiles(folder);
  const small = files.put(3, recordOf(100, 1));
  assert.equal(fileOf(small, 'small'), null);
  assert.ok(!existsSync(folder));
  const large = files.put(3, recordOf(10_000, 2));
  assert.equal(fileOf(large, 'large'), 3);
  assert.deepEqual([recordBytes(small, 'small'), recordBytes(large, 'large')], [108, 10_008]);
  files.sync();
  files.keep();
  assert.deepEqual(files.get(small, 'small'), new Uint8Array(100).fill(1));
  assert.deepEqual(files.get(large, 'large'), new Uint8Array(10_000).fill(2));
  files.close();
});

test('records of a failed transaction are overwritten, kept ones never', (t) => {
  const files = new RecordFiles(folderFor(t));
  const kept = files.put(1, recordOf(5000, 1));
  files.sync();
  files.keep();
  const lost = files.put(1, recordOf(9000, 2));
  files.forget();
  const next = files.put(1, recordOf(6000, 3));
  files.sync();
  files.keep();
  assert.deepEqual(files.get(kept, 'kept'), new Uint8Array(5000).fill(1));
  assert.deepEqual(files.get(next, 'next'), new Uint8Array(6000).fill(3));
  assert.throws(() => files.get(lost, 'lost'), { code: 'storage' });
  files.close();
});

test('after a restart a file goes on behind the records that entries lead to', (t) => {
  const folder = folderFor(t);
  const first = new RecordFiles(folder);
  const kept = first.put(1, recordOf(5000, 1));
  first.sync();
  first.keep();
  first.put(1, recordOf(7000, 2));
  first.put(2, recordOf(7000, 2));
  first.close();
  const second = new RecordFiles(folder);
  second.note(kept, 'kept');
  second.clean();
  assert.deepEqual(readdirSync(folder), ['1']);
  assert.equal(second.bytesOf(1), 5008);
  const next = second.put(1, recordOf(6000, 3));
  assert.deepEqual(second.get(kept, 'kept'), new Uint8Array(5000).fill(1));
  assert.deepEqual(second.get(next, 'next'), new Uint8Array(6000).fill(3));
  second.close();
});

test('a flipped byte, a torn file and a missing one are errors that name the file', (t) => {
  const folder = folderFor(t);
  const file = path.join(folder, '1');
  const write = new RecordFiles(folder);
  const entry = write.put(1, recordOf(5000, 1));
  write.sync();
  write.keep();
  write.close();
  const pristine = readFileSync(file);
  const damages: (() => void)[] = [
    () =>
      writeFileSync(
        file,
        pristine.map((byte, at) => (at === 700 ? byte ^ 1 : byte)),
      ),
    () => truncateSync(file, 4000),
    () => rmSync(file),
  ];
  for (const damage of damages) {
    damage();
    const read = new RecordFiles(folder);
    assert.throws(
      () => read.get(entry, 'rows/1/0'),
      (error: Error) => error.message.includes(file),
    );
    read.close();
    writeFileSync(file, pristine);
  }
});

test('a link in the place of a file is not followed', (t) => {
  const folder = folderFor(t);
  const files = new RecordFiles(folder);
  files.put(1, recordOf(5000, 1));
  const outside = path.join(folder, '..', 'outside');
  writeFileSync(outside, 'mine');
  symlinkSync(outside, path.join(folder, '2'));
  assert.throws(() => files.put(2, recordOf(5000, 1)), { code: 'storage' });
  assert.equal(readFileSync(outside, 'utf8'), 'mine');
  files.close();
});

test('an entry that is damaged itself is found without its file', (t) => {
  const files = new RecordFiles(folderFor(t));
  const small = files.put(1, recordOf(100, 1));
  const large = files.put(1, recordOf(5000, 1));
  for (const entry of [small, large]) verifyEntry(entry, 'sound');
  for (const entry of [small.with(50, 99), small.subarray(0, 20), small.subarray(0, 4), large.with(0, 7), large.subarray(0, 20)]) {
    assert.throws(() => verifyEntry(entry, 'rows/1/0'), { code: 'storage', detail: /rows\/1\/0/ });
  }
  files.close();
});
