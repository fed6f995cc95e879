import assert from 'node:assert/strict';
import fs, { appendFileSync, mkdirSync, readdirSync, readFileSync, statSync, symlinkSync, truncateSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { before, test } from 'node:test';
import { AppendError, AppendFolder, type Place } from '../../../storage/disk/append-file.js';
import { initChecksum } from '../../../storage/disk/checksum.js';
import { temporaryFolder } from '../replica/support.js';

before(initChecksum);

function bytesOf(length: number, seed: number): Uint8Array {
  return Uint8Array.from({ length }, (_, i) => (i * 7 + seed) & 255);
}

/** Appends and commits. */
function kept(files: AppendFolder, file: number, bytes: Uint8Array): Place {
  const place = files.append(file, bytes);
  files.sync();
  files.keep();
  return place;
}

test('what was appended is read again, by another one too', (t) => {
  const folder = path.join(temporaryFolder(t), 'rows');
  const files = new AppendFolder(folder);
  const places = [kept(files, 1, bytesOf(5000, 1)), kept(files, 1, bytesOf(3000, 2)), kept(files, 7, bytesOf(10, 3))];
  assert.deepEqual(
    places.map(({ file, offset, length }) => [file, offset, length]),
    [
      [1, 0, 5000],
      [1, 5000, 3000],
      [7, 0, 10],
    ],
  );
  files.close();
  const again = new AppendFolder(folder);
  for (const place of places) again.claim(place);
  assert.equal(again.settle().size, 0);
  assert.deepEqual(again.read(places[1] as Place, 'it'), bytesOf(3000, 2));
  assert.equal(kept(again, 1, bytesOf(4, 4)).offset, 8000);
  again.close();
});

test('a commit that fails takes the end back, and the next bytes take the place of its own', (t) => {
  const files = new AppendFolder(path.join(temporaryFolder(t), 'rows'));
  const first = kept(files, 1, bytesOf(100, 1));
  files.append(1, bytesOf(200, 2));
  files.append(2, bytesOf(200, 2));
  files.forget();
  assert.deepEqual([files.end(1), files.end(2)], [100, 0]);
  const second = kept(files, 1, bytesOf(50, 3));
  assert.equal(second.offset, 100);
  assert.deepEqual(files.read(first, 'first'), bytesOf(100, 1));
  assert.deepEqual(files.read(second, 'second'), bytesOf(50, 3));
  files.close();
});

test('bytes that the disk refused while others worked are not taken for written by the sync that follows; those after a new beginning are', async (t) => {
  const files = new AppendFolder(path.join(temporaryFolder(t), 'rows'));
  // Once, as the system tells it.
  const refused = t.mock.method(fs, 'fdatasync', (_fd: number, done: (error: Error | null) => void) => done(new Error('EIO')), {
    times: 1,
  });
  files.append(1, bytesOf(200, 2));
  await files.syncing();
  assert.equal(refused.mock.callCount(), 1);
  assert.throws(() => files.sync(), AppendError);
  files.forget();
  files.append(1, bytesOf(50, 3));
  await files.syncing();
  files.sync();
  files.keep();
  assert.equal(files.end(1), 50);
  files.close();
});

test('opening deletes what nothing points at and cuts off what lies behind the last pointer', (t) => {
  const folder = path.join(temporaryFolder(t), 'rows');
  const files = new AppendFolder(folder);
  const place = kept(files, 1, bytesOf(100, 1));
  kept(files, 2, bytesOf(100, 1));
  files.close();
  appendFileSync(path.join(folder, '1'), 'the tail of a commit that never was');
  writeFileSync(path.join(folder, 'note'), 'whatever');
  const again = new AppendFolder(folder);
  again.claim(place);
  assert.equal(again.settle().size, 0);
  assert.deepEqual(readdirSync(folder), ['1']);
  assert.equal(statSync(path.join(folder, '1')).size, 100);
});

test('torn, flipped and missing bytes are told of by the path, with what they were', (t) => {
  const folder = path.join(temporaryFolder(t), 'rows');
  const files = new AppendFolder(folder);
  const place = kept(files, 1, bytesOf(100, 1));
  files.close();
  const file = path.join(folder, '1');
  const pristine = readFileSync(file);
  const flipped = Buffer.from(pristine);
  (flipped[99] as number) ^= 1;
  writeFileSync(file, flipped);
  assert.throws(() => files.read(place, 'rows from 0 on'), {
    code: 'storage',
    detail: `${file}: rows from 0 on (100 bytes from 0 on): wrong checksum`,
  });
  truncateSync(file, 99);
  assert.throws(() => files.read(place, 'rows from 0 on'), {
    code: 'storage',
    detail: `${file}: torn: does not hold rows from 0 on any more`,
  });
  const again = new AppendFolder(folder);
  again.claim(place);
  again.claim({ ...place, file: 9 });
  assert.deepEqual(
    [...again.settle()],
    [
      [1, `${file}: torn: 99 bytes of 100`],
      [9, `${path.join(folder, '9')}: is missing`],
    ],
  );
});

test('links are followed neither as a file nor as the folder', (t) => {
  const base = temporaryFolder(t);
  const folder = path.join(base, 'rows');
  const files = new AppendFolder(folder);
  writeFileSync(path.join(base, 'elsewhere'), 'untouched');
  symlinkSync(path.join(base, 'elsewhere'), path.join(folder, '1'));
  assert.throws(() => files.append(1, bytesOf(10, 1)), AppendError);
  const place = { file: 1, offset: 0, length: 3, checksum: 0n };
  assert.throws(() => files.read(place, 'it'), /is a link/);
  files.claim(place);
  assert.match(files.settle().get(1) as string, /is a link/);
  assert.equal(readFileSync(path.join(base, 'elsewhere'), 'utf8'), 'untouched');
  mkdirSync(path.join(base, 'target'));
  symlinkSync(path.join(base, 'target'), path.join(base, 'wal'));
  assert.throws(() => new AppendFolder(path.join(base, 'wal')), /is a link/);
});
