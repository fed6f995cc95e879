/** The writer of the audit log on a real file system. */

import assert from 'node:assert/strict';
import { mkdtemp, readdir, readFile, rename, rm, stat, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { ANYONE } from '../../../http/access/caller.js';
import { AUDIT_MEMORY_BYTES, AuditLog } from '../../../http/audit/audit-log.js';
import { until } from '../rest/fake-node.js';

const OPERATION = { name: 'count_points', access: 'r' } as const;
const ORIGIN = { address: '10.0.0.1', field: () => undefined };

interface Line {
  readonly collection?: string;
  readonly event?: string;
  readonly request_id?: string;
  readonly records?: number;
}

async function folderFor(t: TestContext): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'troupe-audit-'));
  t.after(() => rm(folder, { recursive: true, force: true }));
  return folder;
}

function logIn(folder: string, changed: Partial<AuditLog['settings']> = {}): AuditLog {
  const memory = new SharedArrayBuffer(AUDIT_MEMORY_BYTES);
  return new AuditLog({ folder, rotation: 'daily', filesMax: 7, trustForwarded: false, memory, ...changed });
}

function note(log: AuditLog, collection: string): void {
  log.begin('rest', OPERATION, ANYONE, collection, ORIGIN)?.(200, null);
}

async function linesIn(folder: string): Promise<Line[]> {
  const names = (await readdir(folder)).filter((name) => name.startsWith('audit-')).sort();
  const texts = await Promise.all(names.map((name) => readFile(join(folder, name), 'utf8')));
  return texts.flatMap((text) => text.split('\n').filter((line) => line !== '')).map((line) => JSON.parse(line) as Line);
}

test('records are there soon without an end, only its owner may read them, and made ids differ', async (t) => {
  const folder = join(await folderFor(t), 'new', 'audit');
  const log = logIn(folder);
  for (const name of ['a', 'b']) note(log, name);
  await until(() => log.counts().written === 2);
  assert.deepEqual(
    (await linesIn(folder)).map(({ collection }) => collection),
    ['a', 'b'],
  );
  assert.equal(new Set((await linesIn(folder)).map(({ request_id }) => request_id)).size, 2);
  const [name = ''] = await readdir(folder);
  assert.deepEqual([(await stat(folder)).mode & 0o777, (await stat(join(folder, name))).mode & 0o777], [0o700, 0o600]);
  await log.close();
});

test('an orderly end writes what waits, of all threads into one file', async (t) => {
  const folder = await folderFor(t);
  const memory = new SharedArrayBuffer(AUDIT_MEMORY_BYTES);
  const logs = Array.from({ length: 3 }, () => logIn(folder, { memory }));
  for (let round = 0; round < 400; round++) for (const log of logs) note(log, 'c'.repeat(200));
  await Promise.all(logs.map((log) => log.close()));
  assert.equal((await linesIn(folder)).length, 1200);
  assert.deepEqual(logs[0]?.counts(), { written: 1200, lost: 0, failing: 0 });
});

test('what is open to all has no record', async (t) => {
  assert.equal(logIn(await folderFor(t)).begin('rest', { name: 'healthz', access: 'open' }, ANYONE, null, ORIGIN), null);
});

test('old files are deleted when a new one begins, links and other files are not, and a link is not written through', async (t) => {
  const folder = await folderFor(t);
  const elsewhere = join(folder, 'elsewhere');
  await writeFile(elsewhere, 'kept');
  for (const name of ['audit-2026-01-01.jsonl', 'audit-2026-01-03.jsonl', 'audit-x.jsonl']) await writeFile(join(folder, name), '{}\n');
  await symlink(elsewhere, join(folder, 'audit-2026-01-02.jsonl'));
  const log = logIn(folder, { filesMax: 1 });
  await log.check();
  await log.close();
  const left = (await readdir(folder)).filter((name) => !/^audit-20[3-9]|^audit-202[6-9]-(?!01-0)/.test(name)).sort();
  assert.deepEqual(left, ['audit-2026-01-02.jsonl', 'audit-x.jsonl', 'elsewhere']);

  const [current = ''] = (await readdir(folder)).filter((name) => !left.includes(name));
  await rm(join(folder, current));
  await symlink(elsewhere, join(folder, current));
  await assert.rejects(logIn(folder).check(), { code: 'ELOOP' });
  assert.equal(await readFile(elsewhere, 'utf8'), 'kept');
});

test('a file that was moved away is not written any more', async (t) => {
  const folder = await folderFor(t);
  const log = logIn(folder);
  note(log, 'before');
  await until(() => log.counts().written === 1);
  const [name = ''] = await readdir(folder);
  await rename(join(folder, name), join(folder, 'moved'));
  note(log, 'after');
  await log.close();
  assert.deepEqual(
    (await linesIn(folder)).map(({ collection }) => collection),
    ['after'],
  );
  assert.match(await readFile(join(folder, 'moved'), 'utf8'), /"before"/);
});

test('while the log cannot be written records are kept up to a bound, the rest is counted, and the log says so when it can be', async (t) => {
  const folder = await folderFor(t);
  const blocked = join(folder, 'audit');
  // A file where the folder should be: nobody can write there, root neither.
  await writeFile(blocked, '');
  const log = logIn(blocked);
  note(log, 'kept');
  await until(() => log.counts().failing === 1);
  for (let round = 0; round < 30_000; round++) note(log, 'c'.repeat(200));
  const { lost, written } = log.counts();
  assert.ok(lost > 0 && written === 0, `${lost} lost`);
  await rm(blocked);
  note(log, 'last');
  await until(() => log.counts().failing === 0);
  await log.close();
  const lines = await linesIn(blocked);
  assert.deepEqual(
    lines.filter(({ event }) => event !== undefined).map(({ records }) => records),
    [log.counts().lost],
  );
  const records = lines.filter(({ event }) => event === undefined);
  assert.equal(records.length + log.counts().lost, 30_002, 'each record is there or counted');
  assert.equal(records[0]?.collection, 'kept');
});

test('a folder that cannot be written is told at the start', async (t) => {
  const folder = await folderFor(t);
  await writeFile(join(folder, 'audit'), '');
  await assert.rejects(logIn(join(folder, 'audit')).check(), { code: /EEXIST|ENOTDIR/ });
});
