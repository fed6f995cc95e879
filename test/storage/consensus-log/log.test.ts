import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { existsSync, readFileSync, rmSync, statSync, truncateSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { createInterface } from 'node:readline';
import { type TestContext, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { seededRandom } from '../../../ops/random.js';
import { TroupeError } from '../../../protocols/errors.js';
import { NOTHING_STORED, type StoredConsensus } from '../../../protocols/model/consensus.js';
import { ConsensusLog, consensusFolder, forgetConsensus } from '../../../storage/consensus-log/log.js';
import { verifyConsensus } from '../../../storage/verify/verify-lmdb.js';
import { testSeed } from '../../seed.js';
import { temporaryFolder } from '../replica/support.js';
import { MEMBERSHIP, operations, writeOf } from './support.js';

const PAGE_BYTES = 4096;
const META_PAGES = 2;
const IDENTITY = { peerId: 7, clusterId: 'c-1', starts: 3, removed: false };

function openLog(t: TestContext, folder: string): ConsensusLog {
  const log = new ConsensusLog(folder, verifyConsensus);
  t.after(() => log.close());
  return log;
}

/** What another log finds in the folder. */
async function loaded(folder: string): Promise<StoredConsensus> {
  const log = new ConsensusLog(folder, verifyConsensus);
  try {
    return await log.load();
  } finally {
    await log.close();
  }
}

function dataFile(folder: string): string {
  return path.join(consensusFolder(folder), 'lmdb', 'data.mdb');
}

test('a new log holds nothing, and everything that was written is there after opening it again', async (t) => {
  const folder = temporaryFolder(t);
  const log = openLog(t, folder);
  assert.deepEqual(await log.load(), NOTHING_STORED);
  const entries = [
    { index: 1, term: 1, payload: { kind: 'empty' as const } },
    { index: 2, term: 1, payload: { kind: 'membership' as const, membership: MEMBERSHIP } },
    ...operations(3, 6),
  ];
  await log.write(writeOf({ identity: IDENTITY, hardState: { term: 1, votedFor: 7, commit: 0 }, entries }));
  await log.write(writeOf({ applied: 4, hardState: { term: 2, votedFor: null, commit: 5 } }));
  const expected = { identity: IDENTITY, hardState: { term: 2, votedFor: null, commit: 5 }, snapshot: null, entries, applied: 4 };
  assert.deepEqual(await log.load(), expected);
  await log.close();
  assert.deepEqual(await loaded(folder), expected);
});

test('entries replace those from the first one’s index on, and go with a compaction or when a snapshot contradicts them', async (t) => {
  const folder = temporaryFolder(t);
  const log = openLog(t, folder);
  await log.load();
  await log.write(writeOf({ entries: operations(1, 10) }));
  await log.write(writeOf({ entries: operations(6, 7, 2) }));
  assert.deepEqual((await log.load()).entries, [...operations(1, 5), ...operations(6, 7, 2)]);

  const snapshot = { index: 4, term: 1, membership: MEMBERSHIP, data: Uint8Array.of(1, 2, 3) };
  await log.write(writeOf({ snapshot, firstIndex: 3, applied: 4 }));
  const compacted = await log.load();
  assert.deepEqual([compacted.snapshot, compacted.entries[0]?.index, compacted.entries.at(-1)?.index], [snapshot, 3, 7]);

  const newer = { index: 50, term: 4, membership: [], data: new Uint8Array(3_000_000).fill(5) };
  await log.write(writeOf({ snapshot: newer, clearEntries: true, applied: 50 }));
  await log.write(writeOf({ entries: operations(51, 52, 4) }));
  await log.close();
  const last = await loaded(folder);
  assert.deepEqual([last.snapshot, last.entries, last.applied], [newer, operations(51, 52, 4), 50]);
});

test('a write that would leave a gap is refused, and so is what follows it until the log is loaded again', async (t) => {
  const log = openLog(t, temporaryFolder(t));
  await assert.rejects(log.write(writeOf({ applied: 1 })), /not loaded/);
  await log.load();
  await log.write(writeOf({ entries: operations(1, 3) }));
  await assert.rejects(log.write(writeOf({ entries: operations(5, 6) })), /entry 5 does not follow: the next one is 4/);
  await assert.rejects(log.write(writeOf({ entries: operations(4, 4) })), /entry 5 does not follow/);
  assert.deepEqual((await log.load()).entries, operations(1, 3));
  await log.write(writeOf({ entries: operations(4, 4) }));
  const beyond = { index: 9, term: 1, membership: [], data: new Uint8Array() };
  await assert.rejects(log.write(writeOf({ snapshot: beyond })), /leave a gap beside the snapshot at 9/);
});

test('writes are told in the order of the calls, and the thread that asks does none of them itself', async (t) => {
  const log = openLog(t, temporaryFolder(t));
  await log.load();
  const told: number[] = [];
  const writes = operations(1, 200, 1, 20_000).map((entry) => log.write(writeOf({ entries: [entry] })).then(() => told.push(entry.index)));
  // Another thread's answers come with a turn of the event loop. What this thread had written itself would be told before one.
  for (let microtask = 0; microtask < 1000; microtask++) await null;
  assert.deepEqual(told, []);
  await Promise.all(writes);
  assert.deepEqual(
    told,
    operations(1, 200, 1, 20_000).map((entry) => entry.index),
  );
});

test('a write that was torn on its way to the disk is as if it had not been', async (t) => {
  const folder = temporaryFolder(t);
  const log = openLog(t, folder);
  await log.load();
  await log.write(writeOf({ identity: IDENTITY, entries: operations(1, 300, 1, 200) }));
  await log.write(writeOf({ entries: operations(301, 310, 2, 200) }));
  const before = readFileSync(dataFile(folder));
  const expected = await log.load();
  await log.write(writeOf({ entries: operations(250, 400, 3, 300), hardState: { term: 3, votedFor: 1, commit: 240 } }));
  const after = readFileSync(dataFile(folder));
  await log.close();

  // LMDB writes and synchronises pages before the meta page that makes them count; the disk may have written any of them.
  const random = seededRandom(1);
  for (let round = 0; round < 6; round++) {
    const torn = Buffer.alloc(Math.max(before.length, after.length));
    before.copy(torn);
    for (let page = META_PAGES; page * PAGE_BYTES < after.length; page++) {
      const written = random.integer(3);
      if (written === 0) continue;
      const bytes = written === 1 ? PAGE_BYTES : random.integer(PAGE_BYTES);
      after.copy(torn, page * PAGE_BYTES, page * PAGE_BYTES, page * PAGE_BYTES + bytes);
    }
    writeFileSync(dataFile(folder), round === 0 ? torn.subarray(0, before.length) : torn);
    assert.deepEqual(await loaded(folder), expected, `round ${round}`);
  }
});

test('whatever else is damaged is named together with the way to recover, and never read as data', async (t) => {
  const folder = temporaryFolder(t);
  const log = openLog(t, folder);
  await log.load();
  const snapshot = { index: 20, term: 1, membership: MEMBERSHIP, data: Buffer.from('a snapshot of the state '.repeat(400)) };
  await log.write(writeOf({ identity: IDENTITY, entries: operations(1, 60, 1, 64) }));
  await log.write(writeOf({ snapshot, firstIndex: 10, applied: 20 }));
  await log.close();
  const sound = readFileSync(dataFile(folder));
  const expected = await loaded(folder);
  const refuses = async (what: RegExp) => {
    const error = await loaded(folder).then(
      () => assert.fail('it was read'),
      (error: TroupeError) => error,
    );
    assert.ok(error instanceof TroupeError && error.code === 'storage', String(error));
    assert.match(error.detail, what);
    assert.ok(error.detail.includes(consensusFolder(folder)), error.detail);
    assert.match(error.detail, /stop this node; remove its peer .* `--reinit`; .* `--bootstrap`/);
  };
  const flipped = (needle: Uint8Array): Buffer => {
    const bytes = Buffer.from(sound);
    let found = 0;
    for (let at = bytes.indexOf(needle); at >= 0; at = bytes.indexOf(needle, at + needle.length)) {
      (bytes[at + 3] as number) ^= 4;
      found++;
    }
    assert.ok(found > 0);
    return bytes;
  };

  writeFileSync(dataFile(folder), flipped(new Uint8Array(64).fill(33)));
  await refuses(/record `entries\/33` is damaged/);
  writeFileSync(dataFile(folder), flipped(Buffer.from('snapshot of the state a snapshot')));
  await refuses(/record `snapshot\/snapshot` is damaged/);
  writeFileSync(dataFile(folder), sound);
  truncateSync(dataFile(folder), 5 * PAGE_BYTES);
  await refuses(/data\.mdb/);
  truncateSync(dataFile(folder), 0);
  await refuses(/data\.mdb: the first meta page is damaged/);
  rmSync(dataFile(folder));
  await refuses(/missing or empty/);
  writeFileSync(path.join(consensusFolder(folder), 'format.json'), '{"format":9}');
  await refuses(/unknown format 9/);

  writeFileSync(path.join(consensusFolder(folder), 'format.json'), '{"format":1}');
  const random = seededRandom(7);
  for (let round = 0; round < 12; round++) {
    const bytes = Buffer.from(sound);
    const page = META_PAGES + random.integer(bytes.length / PAGE_BYTES - META_PAGES);
    for (let at = 0; at < PAGE_BYTES; at++) bytes[page * PAGE_BYTES + at] = random.integer(256);
    writeFileSync(dataFile(folder), bytes);
    // A page may be free.
    const found = await loaded(folder).catch((error: unknown) => error);
    if (!(found instanceof TroupeError)) assert.deepEqual(found, expected, `page ${page}`);
  }
});

test('a damaged number of a commit does not bring back the state before it', async (t) => {
  const folder = temporaryFolder(t);
  const log = openLog(t, folder);
  await log.load();
  for (let term = 1; term <= 6; term++) await log.write(writeOf({ hardState: { term, votedFor: 7, commit: 0 } }));
  await log.close();
  const bytes = readFileSync(dataFile(folder));
  const NUMBER_AT = 152;
  for (const bit of [1, 2, 64]) {
    const newest = bytes.readUInt8(NUMBER_AT) > bytes.readUInt8(PAGE_BYTES + NUMBER_AT) ? 0 : PAGE_BYTES;
    const damaged = Buffer.from(bytes);
    (damaged[newest + NUMBER_AT] as number) ^= bit;
    writeFileSync(dataFile(folder), damaged);
    await assert.rejects(loaded(folder), /the meta pages do not follow each other/);
  }
  writeFileSync(dataFile(folder), bytes);
  assert.equal((await loaded(folder)).hardState.term, 6);
});

test('an entry that is whole and stands where another one belongs is damage', async (t) => {
  const folder = temporaryFolder(t);
  const log = openLog(t, folder);
  await log.load();
  await log.write(writeOf({ entries: operations(1, 30, 1, 64) }));
  await log.close();
  const bytes = readFileSync(dataFile(folder));
  const record = (index: number): number => bytes.indexOf(new Uint8Array(64).fill(index));
  const [source, target] = [record(20), record(30)];
  // Seal, format, index, term and kind stand in front of the payload.
  bytes.copy(bytes, target - 12, source - 12, source + 64);
  writeFileSync(dataFile(folder), bytes);
  await assert.rejects(loaded(folder), /record `entries\/30 \(it is another entry\)` is damaged/);
});

test('a reset leaves nothing of what was, and what comes with it takes its place in the same commit', async (t) => {
  const folder = temporaryFolder(t);
  const log = openLog(t, folder);
  await log.load();
  const snapshot = { index: 2, term: 1, membership: MEMBERSHIP, data: Uint8Array.of(1) };
  await log.write(
    writeOf({ identity: IDENTITY, entries: operations(1, 9), snapshot, applied: 5, hardState: { term: 4, votedFor: 7, commit: 8 } }),
  );
  const fresh = { peerId: 8, clusterId: null, starts: 1, removed: false };
  await log.write(writeOf({ reset: true, identity: fresh, entries: operations(1, 2) }));
  await log.write(writeOf({ entries: operations(3, 3) }));
  await log.close();
  const hardState = { term: 0, votedFor: null, commit: 0 };
  assert.deepEqual(await loaded(folder), { identity: fresh, hardState, snapshot: null, entries: operations(1, 3), applied: 0 });
});

test('a log that is forgotten is gone, and a new one takes its place', async (t) => {
  const folder = temporaryFolder(t);
  const log = openLog(t, folder);
  await log.load();
  await log.write(writeOf({ identity: IDENTITY, entries: operations(1, 3) }));
  await log.close();
  forgetConsensus(folder);
  assert.ok(!existsSync(consensusFolder(folder)));
  forgetConsensus(folder);
  assert.equal((await loaded(folder)).identity, null);
});

test('after each of many kills, all that was told as written is there, whole and in order', async (t) => {
  const folder = temporaryFolder(t);
  const random = seededRandom(testSeed());
  let acknowledged = 0;
  for (let round = 0; round < 8; round++) {
    const { lines, child } = writingProcess(folder, 1000);
    let wanted = 1 + random.integer(40);
    for await (const line of lines) {
      acknowledged = Number(line);
      if (--wanted === 0) child.kill('SIGKILL');
    }
    const { entries, hardState } = await loaded(folder);
    assert.ok(entries.length >= acknowledged, `${entries.length} entries, ${acknowledged} acknowledged`);
    assert.deepEqual(entries, operations(1, entries.length, 1, 1000));
    assert.equal(hardState.commit, entries.length);
  }
});

test('when the disk is full, writes are refused until the log is loaded again, and what was told as written is there', async (t) => {
  if (process.platform === 'win32') return t.skip('needs ulimit');
  const folder = temporaryFolder(t);
  const { lines } = writingProcess(folder, 20_000, ['bash', '-c', 'ulimit -f 600 && exec "$@"', 'bash']);
  let acknowledged = 0;
  const last: string[] = [];
  for await (const line of lines) {
    if (/^\d+$/.test(line)) acknowledged = Number(line);
    else last.push(line);
  }
  assert.ok(acknowledged > 5, `only ${acknowledged} were written`);
  assert.deepEqual(last, ['refused 5', `loaded ${acknowledged}`]);
  assert.equal((await loaded(folder)).entries.length, acknowledged);
});

function writingProcess(folder: string, bytes: number, wrapper: readonly string[] = []) {
  const file = fileURLToPath(new URL('./writing-process.js', import.meta.url));
  const [command = '', ...args] = [...wrapper, process.execPath, file, folder, String(bytes)];
  const child = spawn(command, args, { stdio: ['ignore', 'pipe', 'inherit'] });
  return { child, lines: createInterface(child.stdout) };
}

test('a log that is closed while it is being loaded is closed in the end, and two loads at once open it once', async (t) => {
  const folder = temporaryFolder(t);
  const log = openLog(t, folder);
  const [one, other] = await Promise.all([log.load(), log.load()]);
  assert.deepEqual(one, other);
  await log.write(writeOf({ entries: operations(1, 3) }));
  await log.close();
  const loading = log.load();
  await Promise.all([loading, log.close()]);
  await assert.rejects(log.write(writeOf({ entries: operations(4, 5) })), /is closed/);
  assert.equal((await loaded(folder)).entries.length, 3);
});

test('an entry and a snapshot of tens of megabytes are kept whole, and a log that shrinks again uses their room', async (t) => {
  const folder = temporaryFolder(t);
  const log = openLog(t, folder);
  await log.load();
  const bytes = new Uint8Array(12 << 20).fill(7);
  const entry = { index: 1, term: 1, payload: { kind: 'operation' as const, bytes } };
  await log.write(writeOf({ entries: [entry] }));
  for (let index = 1; index <= 4; index++) {
    const snapshot = { index, term: 1, membership: MEMBERSHIP, data: new Uint8Array(10 << 20).fill(index) };
    await log.write(writeOf({ snapshot, clearEntries: index === 1, applied: index }));
  }
  await log.close();
  const last = await loaded(folder);
  assert.equal(last.snapshot?.data.length, 10 << 20);
  assert.ok(last.snapshot?.data.every((byte) => byte === 4));
  assert.ok(statSync(dataFile(folder)).size < 90 << 20, `${statSync(dataFile(folder)).size} bytes`);
});
