import assert from 'node:assert/strict';
import { cpSync, readFileSync, truncateSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { type TestContext, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { type ErrorFacts, errorFacts } from '../../../protocols/errors.js';
import { verifierOfChanges, verifyReplicas } from '../../../storage/verify/verify-lmdb.js';
import { rowKey } from '../../../storage/wal/records.js';
import { noPrlimit, printedBy } from '../../machine.js';
import { byIds, Replica, specOf, temporaryFolder, upsert } from '../replica/support.js';
import { noStrace } from './strace.js';

const CHECKER = fileURLToPath(new URL('./checking-process.js', import.meta.url));
/** Of an LMDB file; see storage/disk/lmdb-meta.ts. */
const META_PAGE_BYTES = 4096;
const META_TRANSACTION = 152;

/** What the checking process says: an error, or a verdict. */
type Judged = Partial<ErrorFacts> & { readonly verdict?: string | null };

async function closedReplica(t: TestContext, points: number): Promise<string> {
  const folder = temporaryFolder(t);
  const replica = await Replica.open(specOf(folder));
  replica.apply(upsert(Array.from({ length: points }, (_, id) => ({ id, seed: id, payload: { id, text: 'x'.repeat(200) } }))));
  await replica.close();
  return folder;
}

/** Carries out `run` while no checking process can begin. */
async function withoutChecks<Result>(run: () => Promise<Result>): Promise<Result> {
  const options = process.env.NODE_OPTIONS;
  process.env.NODE_OPTIONS = `--require ${path.join(tmpdir(), 'troupe-not-there.cjs')}`;
  return run().finally(() => {
    if (options === undefined) delete process.env.NODE_OPTIONS;
    else process.env.NODE_OPTIONS = options;
  });
}

// The first tests: later ones may find the child of an earlier one, which has begun.
test('a file that is as it was left is not looked through again (Sleep-S7): one that has changed is, and one that is asked for a second time', async (t) => {
  const [folder, changed, copied] = [await closedReplica(t, 3), await closedReplica(t, 3), temporaryFolder(t)];
  const file = path.join(changed, 'lmdb', 'data.mdb');
  const bytes = readFileSync(file);
  (bytes[bytes.length - 1] as number) ^= 1;
  writeFileSync(file, bytes);
  cpSync(folder, copied, { recursive: true });
  await withoutChecks(async () => {
    const verify = verifierOfChanges();
    assert.deepEqual(await verify([folder]), new Map([[folder, null]]));
    for (const other of [changed, copied, folder]) await assert.rejects(verify([other]), /could not begin/, other);
  });
});

test('a replica that met damage leaves nothing that its files could be trusted by', async (t) => {
  const folder = temporaryFolder(t);
  const replica = await Replica.open(specOf(folder));
  replica.apply(upsert([{ id: 1, seed: 1 }]));
  await replica.store.close('asked', false);
  await withoutChecks(() => assert.rejects(verifierOfChanges()([folder]), /could not begin/));
});

test('a checking process that cannot begin says nothing of the file', async (t) => {
  const folder = await closedReplica(t, 3);
  const refused = await withoutChecks(() => verifyReplicas([folder]).catch((error: unknown) => errorFacts(error)));
  assert.ok('detail' in refused, 'the file was judged');
  assert.match(refused.detail, /data\.mdb cannot be checked now: the process that reads it could not begin \(status 1\)/);
  assert.equal(refused.outcome, 'none');
  assert.equal((await verifyReplicas([folder])).get(folder), null);
});

test('sound replicas pass, damaged ones are named, and one that ends the reading process does not keep the others from being checked', async (t) => {
  const sound = await closedReplica(t, 2000);
  // Few enough that the rows lie in LMDB.
  const flipped = await closedReplica(t, 20);
  const torn = await closedReplica(t, 2000);
  const garbage = await closedReplica(t, 2000);
  const last = await closedReplica(t, 3);
  const file = (folder: string): string => path.join(folder, 'lmdb', 'data.mdb');

  const bytes = readFileSync(file(flipped));
  const needle = new Uint8Array(Float32Array.of(7, 7.125, 7.25, 7.375).buffer);
  for (let at = bytes.indexOf(needle); at >= 0; at = bytes.indexOf(needle, at + 1)) (bytes[at] as number) ^= 4;
  writeFileSync(file(flipped), bytes);
  truncateSync(file(torn), 16_384);
  const broken = readFileSync(file(garbage));
  for (let at = 8192; at < broken.length; at++) broken[at] = (at * 31) & 255;
  writeFileSync(file(garbage), broken);

  const folders = [sound, flipped, torn, garbage, last, path.join(sound, 'nowhere')];
  const verdicts = await verifyReplicas(folders);
  assert.deepEqual(
    folders.map((folder) => verdicts.get(folder) === null),
    [true, false, false, false, true, true],
  );
  assert.match(verdicts.get(flipped) as string, /data\.mdb: record `rows\//);
  for (const folder of [torn, garbage]) assert.ok(verdicts.get(folder)?.includes(folder));
});

test('a damaged key makes no record another one: points that were deleted stay so', async (t) => {
  const folder = temporaryFolder(t);
  const replica = await Replica.open(specOf(folder));
  // The first row has no payload, so that its record of payloads has another key than its record of rows.
  replica.apply(upsert(Array.from({ length: 20 }, (_, id) => ({ id, seed: id, ...(id === 0 ? {} : { payload: { id } }) }))));
  replica.apply({ kind: 'deletePoints', selector: byIds(3, 4) });
  await replica.close();
  const file = path.join(folder, 'lmdb', 'data.mdb');
  const pristine = readFileSync(file);
  for (const [name, valueBytes, key, at, bit] of [
    ['deleted', 516, rowKey(1, 0), 3, 64],
    // Of a row that is not there, and of one that is.
    ['payload', null, rowKey(1, 1), 7, 64],
    ['payload', null, rowKey(1, 1), 7, 4],
  ] as const) {
    const bytes = Buffer.from(pristine);
    // LMDB has the lengths of value and key before the key.
    const sizes = valueBytes === null ? Uint8Array.of(0, 0, 8, 0) : Uint8Array.of(valueBytes & 255, valueBytes >> 8, 0, 0, 0, 0, 8, 0);
    const needle = Buffer.concat([sizes, key]);
    let found = 0;
    for (let from = bytes.indexOf(needle); from >= 0; from = bytes.indexOf(needle, from + 1), found++)
      (bytes[from + sizes.length + at] as number) ^= bit;
    assert.ok(found > 0, name);
    writeFileSync(file, bytes);
    assert.match((await verifyReplicas([folder])).get(folder) ?? 'sound', new RegExp(`record \`${name}/`));
  }
  writeFileSync(file, pristine);
  assert.equal((await verifyReplicas([folder])).get(folder), null);
});

test('a damaged number of the last commit does not bring the replica back to the commit before, whose points would be all there are', async (t) => {
  const folder = temporaryFolder(t);
  const replica = await Replica.open(specOf(folder));
  for (let id = 0; id < 4; id++) replica.apply(upsert([{ id, seed: id }]));
  await replica.close();
  const file = path.join(folder, 'lmdb', 'data.mdb');
  const bytes = readFileSync(file);
  const transactionOf = (page: number): bigint => bytes.readBigUInt64LE(page * META_PAGE_BYTES + META_TRANSACTION);
  const newest = transactionOf(0) > transactionOf(1) ? 0 : 1;
  for (const bit of [1n, 64n]) {
    const spoiled = Buffer.from(bytes);
    spoiled.writeBigUInt64LE(transactionOf(newest) ^ bit, newest * META_PAGE_BYTES + META_TRANSACTION);
    writeFileSync(file, spoiled);
    assert.match((await verifyReplicas([folder])).get(folder) ?? 'sound', /meta pages do not follow each other/);
  }
  writeFileSync(file, bytes);
  assert.equal((await verifyReplicas([folder])).get(folder), null);
});

test('a list of free pages that names pages beyond the file is found before LMDB writes to one of them', async (t) => {
  const folder = temporaryFolder(t);
  const replica = await Replica.open(specOf(folder));
  for (let round = 0; round < 40; round++) {
    const points = Array.from({ length: 50 }, (_, n) => ({ id: round * 50 + n, seed: n, payload: { n, text: 'x'.repeat(600) } }));
    replica.apply(upsert(points));
    replica.apply({ kind: 'deletePoints', selector: byIds(...points.slice(0, 49).map(({ id }) => id)) });
  }
  await replica.close();
  const file = path.join(folder, 'lmdb', 'data.mdb');
  assert.equal((await verifyReplicas([folder])).get(folder), null);

  const pristine = readFileSync(file);
  const [freeRoot, last] = freeListOf(pristine);
  assert.ok(freeRoot > 1, 'nothing is free');
  const page = freeRoot * META_PAGE_BYTES;
  // A leaf ends with the numbers of the node that it got first.
  const at = page + META_PAGE_BYTES - 8;
  const bytes = Buffer.from(pristine);
  bytes.writeBigInt64LE(BigInt(last + 1), at);
  writeFileSync(file, bytes);
  assert.match((await verifyReplicas([folder])).get(folder) ?? 'sound', /the list of free pages is damaged: it names page \d+/);
});

/** The page of the list of free pages in the newest commit, and the last page that the file has. */
function freeListOf(bytes: Buffer): [root: number, last: number] {
  const transactionOf = (page: number): bigint => bytes.readBigUInt64LE(page * META_PAGE_BYTES + META_TRANSACTION);
  const meta = (transactionOf(0) > transactionOf(1) ? 0 : 1) * META_PAGE_BYTES;
  return [Number(bytes.readBigUInt64LE(meta + 88)), Number(bytes.readBigUInt64LE(meta + 144))];
}

test('a lack of file descriptors is no damage: the file is not judged, and is sound when descriptors are free', {
  skip: noPrlimit,
}, async (t) => {
  const folder = await closedReplica(t, 20);
  const command = ['prlimit', '--nofile=100:100', process.execPath, CHECKER, folder, 'descriptors'];
  const [refused, sound] = printedBy<Judged>(command);
  assert.equal(refused?.outcome, 'none', JSON.stringify(refused));
  assert.match(refused?.detail ?? '', /data\.mdb cannot be checked now: .*EMFILE/);
  assert.deepEqual(sound, { verdict: null });
});

test('an opening by LMDB that ends the checking process for lack of addresses says nothing of the file', { skip: noStrace }, async (t) => {
  const folder = await closedReplica(t, 20);
  for (const file of ['lock.mdb', 'data.mdb']) {
    const options = ['-f', '-qq', '-o', '/dev/null', '-P', path.join(folder, 'lmdb', file), '--trace=mmap'];
    const command = ['strace', ...options, '--inject=mmap:error=ENOMEM:when=1', process.execPath, CHECKER, folder];
    const [refused] = printedBy<Judged>(command);
    assert.match(
      refused?.detail ?? '',
      /data\.mdb cannot be checked now: opening it ended the process \(SIG\w+\)/,
      JSON.stringify(refused),
    );
    assert.equal(refused?.outcome, 'none');
  }
  assert.equal((await verifyReplicas([folder])).get(folder), null);
});
