import assert from 'node:assert/strict';
import { existsSync, readdirSync } from 'node:fs';
import type { ServerResponse } from 'node:http';
import { type TestContext, test } from 'node:test';
import v8 from 'node:v8';
import vm from 'node:vm';
import { type S3Settings, S3SnapshotStore } from '../../../storage/snapshot-store/s3.js';
import { S3Server, s3Error } from './s3-server.js';
import { testStore } from './store-contract.js';
import { archiveIn, bytesIn, FULL, noEnd, PICTURES, temporaryFolder } from './support.js';

const DAY_MS = 24 * 3_600_000;
const PART_BYTES = 1 << 20;

function storeOf(t: TestContext, server: S3Server, given: Partial<S3Settings> = {}, nowMs = () => Date.now()): S3SnapshotStore {
  const store = new S3SnapshotStore({ settings: { ...server.settings, ...given }, freeBytesMin: 0, nowMs, partBytes: PART_BYTES });
  t.after(() => store.close());
  return store;
}

const open = async (t: TestContext) => storeOf(t, await S3Server.start(t));
testStore('S3, archives of one part', 50_000, open);
testStore('S3, archives of many parts', 3 * PART_BYTES + 4321, open);

function countOf(server: S3Server, pattern: RegExp): number {
  return server.requests.filter((request) => pattern.test(request)).length;
}

test('an archive of many parts is sent in parts of the size that was asked for, and a small one at once', async (t) => {
  const server = await S3Server.start(t);
  const store = storeOf(t, server);
  const temp = temporaryFolder(t);
  const large = archiveIn(temp, 3 * PART_BYTES + 1);
  await store.put(FULL, 'large.snapshot', large.file, large.sha256, noEnd());
  assert.equal(countOf(server, /^PUT .*partNumber=/), 4);
  assert.equal(countOf(server, /^POST .*uploadId=/), 1);
  const small = archiveIn(temp, PART_BYTES);
  await store.put(FULL, 'small.snapshot', small.file, small.sha256, noEnd());
  assert.equal(countOf(server, /^PUT (?!.*partNumber=)/), 1);
  assert.deepEqual(server.uploads(), []);
});

test('an object without a SHA-256 in its metadata is listed without one', async (t) => {
  const server = await S3Server.start(t);
  const store = storeOf(t, server);
  const { file } = archiveIn(temporaryFolder(t), 100);
  await store.put(PICTURES, 'a.snapshot', file, 'no hash', noEnd());
  assert.equal((await store.describe(PICTURES, 'a.snapshot')).checksum, null);
});

test('more than a thousand archives are all listed', async (t) => {
  const server = await S3Server.start(t);
  const store = storeOf(t, server);
  const { file, sha256 } = archiveIn(temporaryFolder(t), 8);
  await store.put(FULL, 'first.snapshot', file, sha256, noEnd());
  const count = 1005;
  server.multiply('first.snapshot', count - 1, (number) => `${number}.snapshot`);
  const listed = await store.list(FULL);
  assert.equal(new Set(listed.map(({ name }) => name)).size, count);
  assert.equal(countOf(server, /list-type=2/), 2);
});

test('a part that fails for a moment is sent again, and the archive is whole', async (t) => {
  const server = await S3Server.start(t);
  const store = storeOf(t, server);
  const { content, file, sha256 } = archiveIn(temporaryFolder(t), 3 * PART_BYTES);
  let faults = 0;
  server.fault = (request, response) => {
    if (!/partNumber=2/.test(request.url ?? '') || faults++ >= 2) return false;
    if (faults === 1) request.socket.destroy();
    else s3Error(response, 503, 'SlowDown');
    return true;
  };
  await store.put(FULL, 'a.snapshot', file, sha256, noEnd());
  assert.equal(faults, 3);
  assert.ok(content.equals(await bytesIn((await store.open(FULL, 'a.snapshot', null)).stream)));
});

test('a part that always fails ends the call after a bounded number of tries, and the upload is given up', async (t) => {
  const server = await S3Server.start(t);
  const store = storeOf(t, server);
  const { file, sha256 } = archiveIn(temporaryFolder(t), 3 * PART_BYTES);
  let faults = 0;
  server.fault = (request, response) => {
    if (!/partNumber=2/.test(request.url ?? '')) return false;
    faults++;
    return s3Error(response, 500, 'InternalError');
  };
  await assert.rejects(store.put(FULL, 'a.snapshot', file, sha256, noEnd()), {
    code: 'unavailable',
    message: /has answered InternalError \(status 500\): try again later/,
  });
  assert.equal(faults, 4);
  assert.deepEqual(server.uploads(), []);
  assert.deepEqual(await store.list(FULL), []);
  assert.equal(existsSync(file), true);
});

test('an upload that is cancelled is given up', async (t) => {
  const server = await S3Server.start(t);
  const store = storeOf(t, server);
  const { file, sha256 } = archiveIn(temporaryFolder(t), 5 * PART_BYTES);
  const end = new AbortController();
  let held: ServerResponse | null = null;
  server.fault = (request, response) => {
    if (!/partNumber=3/.test(request.url ?? '')) return false;
    // Never answered.
    held = response;
    end.abort();
    return true;
  };
  await assert.rejects(store.put(FULL, 'a.snapshot', file, sha256, end.signal), { code: 'unavailable' });
  assert.notEqual(held, null);
  assert.deepEqual(server.uploads(), []);
  server.fault = null;
  assert.deepEqual(await store.list(FULL), []);
  assert.equal(existsSync(file), true);
});

test('a finished upload whose answer was lost is a finished upload', async (t) => {
  const server = await S3Server.start(t);
  const store = storeOf(t, server);
  const { file, sha256 } = archiveIn(temporaryFolder(t), 2 * PART_BYTES);
  let completions = 0;
  server.fault = (request, response) => {
    if (request.method !== 'POST' || !/uploadId=/.test(request.url ?? '')) return false;
    completions++;
    // The first one is carried out, but its answer never leaves; then the store does not know the upload any more.
    if (completions === 1) response.end = response.destroy.bind(response) as unknown as typeof response.end;
    return completions === 1 ? false : s3Error(response, 404, 'NoSuchUpload');
  };
  assert.equal((await store.put(FULL, 'a.snapshot', file, sha256, noEnd())).checksum, sha256);
  assert.equal(completions, 2);
});

test('a download that breaks off is fetched again; what cannot be fetched leaves no file', async (t) => {
  const server = await S3Server.start(t);
  const store = storeOf(t, server);
  const temp = temporaryFolder(t);
  const { file, sha256 } = archiveIn(temp, 400_000);
  await store.put(FULL, 'a.snapshot', file, sha256, noEnd());
  let isBroken = 1;
  server.fault = (request, response) => {
    if (request.method !== 'GET' || isBroken-- <= 0) return false;
    response.writeHead(200, { 'content-length': 400_000 });
    response.write(Buffer.alloc(1000), () => request.socket.destroy());
    return true;
  };
  const local = await store.localFile(FULL, 'a.snapshot', temp, noEnd());
  await local.release();
  isBroken = Number.POSITIVE_INFINITY;
  await assert.rejects(store.localFile(FULL, 'a.snapshot', temp, noEnd()), { code: 'unavailable' });
  assert.deepEqual(readdirSync(temp), []);
});

test('old uploads are swept, and those that another node may be at are not', async (t) => {
  const server = await S3Server.start(t);
  const store = storeOf(t, server);
  const { file, sha256 } = archiveIn(temporaryFolder(t), 2 * PART_BYTES);
  // A node that is killed between its parts and the end of the upload.
  for (let at = 0; at < 2; at++) {
    server.fault = (request, response) =>
      request.method === 'DELETE' || (request.method === 'POST' && /uploadId=/.test(request.url ?? ''))
        ? s3Error(response, 400, 'Killed')
        : false;
    await assert.rejects(store.put(FULL, `${at}.snapshot`, file, sha256, noEnd()));
  }
  server.fault = null;
  const [old = '', recent] = server.uploads();
  server.age(old, DAY_MS + 60_000);
  assert.equal(await store.sweep(), 1);
  assert.deepEqual(server.uploads(), [recent]);
  server.listsUploads = false;
  assert.equal(await store.sweep(), 0);
});

test('what a store refuses is told with what to do', async (t) => {
  const server = await S3Server.start(t);
  const { file, sha256 } = archiveIn(temporaryFolder(t), 100);
  const refusals: [Partial<S3Settings>, RegExp][] = [
    [{ bucket: 'not-there' }, /the bucket not-there does not exist: make it, or change `storage\.snapshots_config\.s3_config\.bucket`/],
    [{ accessKey: 'nobody' }, /the store does not know the access key: change `storage\.snapshots_config\.s3_config\.access_key`/],
    [{ secretKey: 'wrong' }, /does not accept the signature: check `storage\.snapshots_config\.s3_config\.secret_key`/],
    [{ endpointUrl: 'http://127.0.0.1:9' }, /127\.0\.0\.1:9 cannot be reached \(ECONNREFUSED\): check `.*endpoint_url`/],
  ];
  for (const [given, pattern] of refusals) {
    const store = storeOf(t, server, given);
    await assert.rejects(store.open(FULL, 'a.snapshot', null), { code: 'unavailable', message: pattern });
    await assert.rejects(store.put(FULL, 'a.snapshot', file, sha256, noEnd()), { code: 'unavailable' });
  }
  server.fault = (_, response) => s3Error(response, 403, 'AccessDenied');
  await assert.rejects(storeOf(t, server).list(FULL), {
    code: 'unavailable',
    message: /access to the bucket snapshots is denied: allow these keys/,
  });
});

test('an upload takes memory for the chunks under way, not for its parts', async (t) => {
  const server = await S3Server.start(t);
  const partBytes = 20 << 20;
  const store = new S3SnapshotStore({ settings: server.settings, freeBytesMin: 0, nowMs: () => Date.now(), partBytes });
  t.after(() => store.close());
  const { file, sha256 } = archiveIn(temporaryFolder(t), 2 * partBytes);
  v8.setFlagsFromString('--expose-gc');
  const collectGarbage = vm.runInNewContext('gc') as () => void;
  const heldBytes = () => {
    collectGarbage();
    return process.memoryUsage().arrayBuffers;
  };
  const before = heldBytes();
  const held: number[] = [];
  // Each time the server hears of a part: whoever reads parts into memory has it then.
  server.fault = (request) => {
    if (/partNumber=/.test(request.url ?? '')) held.push(heldBytes() - before);
    return false;
  };
  await store.put(FULL, 'a.snapshot', file, sha256, noEnd());
  assert.equal(held.length, 2);
  assert.ok(Math.max(...held) < partBytes / 2, `${held} bytes in buffers`);
});
