import assert from 'node:assert/strict';
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import type { AddressInfo } from 'node:net';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { loadCollection } from '../../actors/collection/store.js';
import type { JsonValue } from '../../protocols/model/payload.js';
import { NO_TAG } from '../../protocols/model/shard-log.js';
import type { ArchiveManifest } from '../../storage/archive/manifest.js';
import { packToFile } from '../../storage/archive/pack.js';
import { initChecksum } from '../../storage/disk/checksum.js';
import { verifyShard } from '../../storage/verify/verify-shard.js';

const MAIN = fileURLToPath(new URL('../../ops/main.js', import.meta.url));
let folder: string;

before(() => {
  folder = mkdtempSync(join(tmpdir(), 'troupe-main-'));
});
after(() => rmSync(folder, { recursive: true, force: true }));

interface Ended {
  readonly code: number | null;
  readonly out: string;
  readonly err: string;
}

interface Started {
  readonly child: ChildProcess;
  readonly ended: Promise<Ended>;
  /** Resolves with the port once it listens. */
  readonly listening: Promise<number>;
}

function start(args: readonly string[], variables: Record<string, string> = {}): Started {
  const environment = {
    PATH: process.env.PATH ?? '',
    SERVICE__SERVICE__HOST: '127.0.0.1',
    SERVICE__SERVICE__HTTP_PORT: '0',
    SERVICE__STORAGE__STORAGE_PATH: join(folder, 'storage'),
    ...variables,
  };
  const child = spawn(process.execPath, [MAIN, ...args], { cwd: folder, env: environment, stdio: ['ignore', 'pipe', 'pipe'] });
  let out = '';
  let err = '';
  let listens: (port: number) => void;
  let fails: (error: Error) => void;
  const listening = new Promise<number>((resolve, reject) => {
    listens = resolve;
    fails = reject;
  });
  listening.catch(() => {});
  child.stdout.on('data', (chunk) => {
    out += chunk;
    const port = /listening.*http:\/\/[^:]+:(\d+)/.exec(out)?.[1];
    if (port !== undefined) listens(Number(port));
  });
  child.stderr.on('data', (chunk) => {
    err += chunk;
  });
  const ended = once(child, 'close').then(([code]) => {
    fails(new Error(`ended with ${code}: ${out}${err}`));
    return { code: code as number | null, out, err };
  });
  return { child, ended, listening };
}

async function untilReady(port: number): Promise<void> {
  for (;;) {
    const response = await fetch(`http://127.0.0.1:${port}/readyz`);
    if (response.status === 200) return;
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
}

test('--version and --help print and end well; wrong command lines end with 2', async () => {
  const ends = await Promise.all(
    [['--version'], ['--help'], ['--colour'], ['--snapshot', 'a'], ['--bootstrap', 'a']].map((args) => start(args).ended),
  );
  assert.deepEqual(
    ends.map(({ code }) => code),
    [0, 0, 2, 2, 2],
  );
  assert.match(ends[0]?.out as string, /^troupe \d+\.\d+\.\d+/);
  assert.match(ends[1]?.out as string, /--config-path/);
  assert.match(ends[2]?.err as string, /--colour/);
  assert.match(ends[3]?.err as string, /--snapshot: 'a' is not <file>:<collection>/);
  assert.match(ends[4]?.err as string, /--bootstrap: `a` is no address/);
});

test('settings that cannot be used end with 1 and name the key', async () => {
  const path = join(folder, 'bad.yaml');
  writeFileSync(path, 'service: { http_port: many }');
  const ends = await Promise.all([
    start(['--config-path', path], { SERVICE__SERVICE__HTTP_PORT: '1' }).ended,
    start([], { SERVICE__SERVICE__MAX_REQUEST_SIZE_MB: '0' }).ended,
    start([], { SERVICE__CLUSTER__ENABLED: 'true', SERVICE__CLUSTER__P2P__ENABLE_TLS: 'true' }).ended,
    start([], { SERVICE__CLUSTER__ENABLED: 'true', SERVICE__CLUSTER__P2P__PORT: '0' }).ended,
    start([], { SERVICE__LOG_LEVEL: 'loud' }).ended,
    start(['--uri', 'http://a:1', '--reinit']).ended,
    start(['--uri', 'https://a:1'], { SERVICE__CLUSTER__ENABLED: 'true' }).ended,
    start([], { SERVICE__CLUSTER__ENABLED: 'true', SERVICE__SERVICE__ENFORCE_INTERNAL_AUTH: 'true' }).ended,
    start([], { SERVICE__SERVICE__VERIFY_HTTPS_CLIENT_CERTIFICATE: 'true' }).ended,
  ]);
  const keys = [
    /service\.http_port/,
    /service\.max_request_size_mb/,
    /tls\.ca_cert: cannot read .* which cluster\.p2p\.enable_tls needs/,
    /--uri: this node is part of no cluster yet/,
    /log_level/,
    /--uri: .*set cluster\.enabled to true[\s\S]*--reinit: /,
    /--uri: https:\/\/ asks for TLS between peers: set cluster\.p2p\.enable_tls/,
    /service\.enforce_internal_auth: needs service\.api_key or cluster\.p2p\.enable_tls/,
    /service\.verify_https_client_certificate: needs service\.enable_tls/,
  ];
  ends.forEach(({ code, err }, at) => {
    assert.equal(code, 1, err);
    assert.match(err, keys[at] as RegExp);
  });
});

test('a node serves, keeps its storage to itself, warns of unknown settings and ends well on SIGTERM', async () => {
  const node = start([], { SERVICE__SERVICE__COLOUR: 'red' });
  const port = await node.listening;
  await untilReady(port);
  const second = await start([]).ended;
  assert.equal(second.code, 1);
  assert.match(second.err, /in use by another process/);
  node.child.kill('SIGTERM');
  const { code, out, err } = await node.ended;
  assert.equal(code, 0, out + err);
  assert.match(out, /unknown setting `service\.colour`/);
  assert.equal(err, '');
});

test('verify looks through a folder that no node has open: 0 where all is sound, 1 with what is wrong', async () => {
  const storage = join(folder, 'verified');
  const node = start([], { SERVICE__STORAGE__STORAGE_PATH: storage });
  const port = await node.listening;
  await untilReady(port);
  const put = (path: string, body: unknown) =>
    fetch(`http://127.0.0.1:${port}${path}`, {
      method: 'PUT',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify(body),
    });
  await put('/collections/c', { vectors: { size: 2, distance: 'Dot' } });
  assert.equal((await put('/collections/c/points?wait=true', { points: [{ id: 1, vector: [1, 2] }] })).status, 200);
  const inUse = await start(['verify', storage]).ended;
  assert.deepEqual([inUse.code, /in use by another process/.test(inUse.err)], [1, true], inUse.err);
  node.child.kill('SIGTERM');
  await node.ended;

  const sound = await start(['verify'], { SERVICE__STORAGE__STORAGE_PATH: storage }).ended;
  assert.equal(sound.code, 0, sound.out + sound.err);
  assert.match(sound.out, /^nothing is wrong: looked through 1 collections, 1 shards, 1 points in /);
  writeFileSync(join(storage, 'collections', 'c', 'config.json'), '{}');
  const damaged = await start(['verify', storage]).ended;
  assert.equal(damaged.code, 1, damaged.err);
  assert.match(damaged.out, /^c: .*config\.json is damaged.*\n1 problem: /);
  const [none, tooMany, unknown] = await Promise.all([
    start(['verify', join(folder, 'not-there')]).ended,
    start(['verify', storage, storage]).ended,
    start(['verity']).ended,
  ]);
  assert.deepEqual([none?.code, tooMany?.code, unknown?.code], [1, 2, 2]);
  assert.match(none?.err ?? '', /is no storage folder/);
});

test('verify looks through the file of a snapshot, with `--unpack` through its shards, too: 0 where all is sound, 1 with what is wrong', async () => {
  const storage = join(folder, 'packed');
  const node = start([], { SERVICE__STORAGE__STORAGE_PATH: storage });
  const port = await node.listening;
  await untilReady(port);
  const put = (path: string, body: unknown) =>
    fetch(`http://127.0.0.1:${port}${path}`, {
      method: 'PUT',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify(body),
    });
  await put('/collections/c', { vectors: { size: 2, distance: 'Dot' }, shard_number: 2 });
  const points = Array.from({ length: 20 }, (_, id) => ({ id, vector: [id, 2] }));
  assert.equal((await put('/collections/c/points?wait=true', { points })).status, 200);
  node.child.kill('SIGTERM');
  await node.ended;

  await initChecksum();
  const collection = join(storage, 'collections', 'c');
  const { config } = await loadCollection(collection, 'c');
  const counts = await Promise.all([0, 1].map(async (id) => (await verifyShard(join(collection, String(id)), config)).points));
  const archive = async (name: string, configured: object): Promise<string> => {
    const file = join(folder, name);
    const shards = counts.map((count, id) => ({
      id,
      key: null,
      points: count,
      at: NO_TAG,
      files: filesBelow(join(collection, String(id))),
    }));
    const description = configured as JsonValue;
    const collections = [{ name: 'c', description, shards }];
    const manifest: ArchiveManifest = {
      kind: 'collection',
      version: '1',
      createdAt: '2026-11-21T01:04:22Z',
      peer: 0,
      aliases: [],
      collections,
    };
    await packToFile({ manifest, folderOf: (_, id) => join(collection, String(id)) }, file, 0);
    return file;
  };
  const file = await archive('sound.snapshot', { config });
  const temporary = join(folder, 'temporary');
  mkdirSync(temporary);
  const environment = { SERVICE__STORAGE__TEMP_PATH: temporary };
  const sound = await start(['verify', '--unpack', file], environment).ended;
  assert.equal(sound.code, 0, sound.out + sound.err);
  assert.match(
    sound.out,
    /^nothing is wrong: looked through 1 collections, 2 shards, 20 points of a collection snapshot \(\d+ bytes, SHA-256 [0-9a-f]{64}, /,
  );

  // A record of a point is damaged before the shard is packed: the archive has what it was given.
  const rows = join(collection, '1', 'lmdb/data.mdb');
  const bytes = readFileSync(rows);
  bytes.fill(0, Math.floor(bytes.length / 2));
  writeFileSync(rows, bytes);
  const wrongShard = await archive('wrong-shard.snapshot', { config });
  const wrongArchive = join(folder, 'wrong.snapshot');
  const cut = readFileSync(file);
  writeFileSync(wrongArchive, cut.subarray(0, cut.length - 1500));
  const ends = await Promise.all([
    start(['verify', wrongShard], environment).ended,
    start(['verify', '--unpack', wrongShard], environment).ended,
    start(['verify', wrongArchive], environment).ended,
    start(['--unpack'], environment).ended,
  ]);
  assert.deepEqual(
    ends.map(({ code }) => code),
    [0, 1, 1, 2],
  );
  assert.match(ends[1]?.out ?? '', /^c\/1: /);
  assert.match(ends[2]?.out ?? '', /^the archive is truncated: .*\n1 problem: the snapshot .* cannot be read to its end\n$/);
  assert.deepEqual(readdirSync(temporary), []);
});

test('a port in use ends with 1 and says whose setting it is', async () => {
  const blocker = createServer().listen(0, '127.0.0.1');
  await once(blocker, 'listening');
  try {
    const port = String((blocker.address() as AddressInfo).port);
    const { code, err } = await start([], { SERVICE__SERVICE__HTTP_PORT: port, SERVICE__STORAGE__STORAGE_PATH: join(folder, 'other') })
      .ended;
    assert.equal(code, 1);
    assert.match(err, /service\.http_port/);
  } finally {
    blocker.close();
  }
});

/** Files of a shard as an archive has them. */
function filesBelow(shard: string): { path: string; bytes: number }[] {
  const names = readdirSync(shard, { recursive: true, encoding: 'utf8' }).filter((name) => !name.endsWith('lock.mdb'));
  return names.flatMap((name) => {
    const stat = statSync(join(shard, name));
    return stat.isFile() ? [{ path: name, bytes: stat.size }] : [];
  });
}
