import assert from 'node:assert/strict';
import { mkdirSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { pathToFileURL } from 'node:url';
import { localArchivePath, readArchiveLocation, requireUrlRecovery } from '../../../storage/snapshot-store/archive-location.js';
import { temporaryFolder } from './support.js';

function foldersFor(t: TestContext): { folder: string; outside: string } {
  const root = temporaryFolder(t);
  const [folder, outside] = [join(root, 'snapshots'), join(root, 'outside')];
  for (const path of [join(folder, 'c'), join(folder, '+4dy+20+50ictures'), outside]) mkdirSync(path, { recursive: true });
  for (const path of [join(folder, 'c'), join(folder, '+4dy+20+50ictures'), outside]) writeFileSync(join(path, 'a.snapshot'), '');
  return { folder, outside };
}

test('URLs of http and https, and files, are places of archives', () => {
  const url = readArchiveLocation('HTTPS://host/x.snapshot');
  assert.deepEqual(url, { kind: 'url', url: new URL('https://host/x.snapshot') });
  assert.deepEqual(readArchiveLocation('file:///a%20b/c.snapshot'), { kind: 'file', path: '/a b/c.snapshot' });
  assert.deepEqual(readArchiveLocation('file://localhost/c.snapshot'), { kind: 'file', path: '/c.snapshot' });
});

test('what is no place of an archive is told as clients know it', () => {
  assert.throws(() => readArchiveLocation('ftp://127.0.0.1/x'), {
    message: 'Bad request: URL ftp://127.0.0.1/x with scheme ftp is not supported',
  });
  assert.throws(() => readArchiveLocation('abc'), { message: 'Format error in JSON body: relative URL without a base: "abc"' });
  for (const location of ['file://elsewhere/a.snapshot', 'file:///a%2Fb.snapshot', 'file:///a%00.snapshot'])
    assert.throws(() => readArchiveLocation(location), { code: 'badRequest' }, location);
});

test('recovery from a URL can be switched off', () => {
  assert.throws(() => requireUrlRecovery(false), {
    message: 'Forbidden: Snapshot recovery from remote URLs is disabled in the configuration',
  });
  assert.doesNotThrow(() => requireUrlRecovery(true));
});

test('a file of the folder of snapshots is found, by the folder of its collection and by the name of the collection', async (t) => {
  const { folder } = foldersFor(t);
  const path = join(folder, 'c', 'a.snapshot');
  assert.equal(await localArchivePath(path, folder), path);
  assert.equal(await localArchivePath(join(folder, 'My Pictures', 'a.snapshot'), folder), join(folder, '+4dy+20+50ictures', 'a.snapshot'));
  assert.equal(await localArchivePath(join(folder, 'c', '..', 'c', 'a.snapshot'), folder), path);
  const { pathname } = pathToFileURL(path);
  assert.deepEqual(readArchiveLocation(`file://${pathname}`), { kind: 'file', path });
});

test('a file that is not there, is outside or is no file is refused as clients know it', async (t) => {
  const { folder, outside } = foldersFor(t);
  await assert.rejects(localArchivePath('/no/such/file.snapshot', folder), {
    message: 'Bad request: Snapshot file "/no/such/file.snapshot" does not exist',
  });
  const forbidden = { message: `Forbidden: Snapshot file path must be inside the snapshots directory ${JSON.stringify(folder)}` };
  await assert.rejects(localArchivePath(join(outside, 'a.snapshot'), folder), forbidden);
  await assert.rejects(localArchivePath(join(folder, '..', 'outside', 'a.snapshot'), folder), forbidden);
  await assert.rejects(localArchivePath(folder, folder), forbidden);
  await assert.rejects(localArchivePath(join(outside, 'a.snapshot'), join(folder, 'not-there')), { code: 'forbidden' });
  await assert.rejects(localArchivePath(join(folder, 'c'), folder), { code: 'badRequest', message: /is not a file/ });
});

test('a link that leads out of the folder is refused, and a folder of snapshots may itself be a link', async (t) => {
  const { folder, outside } = foldersFor(t);
  symlinkSync(join(outside, 'a.snapshot'), join(folder, 'c', 'link.snapshot'));
  symlinkSync(outside, join(folder, 'linked'));
  await assert.rejects(localArchivePath(join(folder, 'c', 'link.snapshot'), folder), { code: 'forbidden' });
  await assert.rejects(localArchivePath(join(folder, 'linked', 'a.snapshot'), folder), { code: 'forbidden' });
  const alias = join(outside, 'alias');
  symlinkSync(folder, alias);
  assert.equal(await localArchivePath(join(alias, 'c', 'a.snapshot'), alias), join(folder, 'c', 'a.snapshot'));
});
