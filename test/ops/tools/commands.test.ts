/** The commands that ask a node, against a real one with a key. */

import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { NodeRefusal } from '../../../ops/client/connection.js';
import { ToolError } from '../../../ops/client/tool.js';
import { LAUNCHER, type RunningNode, startNodeProcess } from '../../../ops/node-process.js';
import { freePorts } from '../../../ops/ports.js';
import type { ToolName } from '../../../ops/tool-names.js';
import { toolNamed } from '../../../ops/tools/run.js';

const KEY = 'a-key-of-some-length-that-is-printed-nowhere';

let folder: string;
let node: RunningNode;

before(async () => {
  folder = await mkdtemp(join(tmpdir(), 'troupe-commands-'));
  await writeFile(join(folder, 'key'), `${KEY}\n`);
  const [peers] = await freePorts(1);
  const cluster = {
    SERVICE__CLUSTER__ENABLED: 'true',
    SERVICE__CLUSTER__P2P__PORT: String(peers),
    SERVICE_URI: `http://127.0.0.1:${peers}`,
  };
  node = await startNodeProcess({ folder, environment: { SERVICE__SERVICE__API_KEY: KEY, ...cluster } });
});
after(async () => {
  await node?.end('SIGKILL');
  await rm(folder, { recursive: true, force: true });
});

/** What a command prints. */
async function printed(name: ToolName, ...args: string[]): Promise<string> {
  let text = '';
  const tool = await toolNamed(name);
  const exitCode = await tool.run([...args, '--url', node.url, '--api-key-file', join(folder, 'key')], (more) => {
    text += more;
  });
  assert.equal(exitCode, 0);
  return text;
}

async function json(name: ToolName, ...args: string[]): Promise<unknown> {
  return JSON.parse(await printed(name, ...args, '--json'));
}

/** A command as a process, as people start it. */
function command(args: readonly string[], input: string, environment: Record<string, string>) {
  return new Promise<{ code: number | null; out: string; error: string }>((done) => {
    const child = spawn(LAUNCHER, args, { env: { ...process.env, ...environment }, cwd: folder });
    const texts = { out: '', error: '' };
    child.stdout.on('data', (chunk) => {
      texts.out += chunk;
    });
    child.stderr.on('data', (chunk) => {
      texts.error += chunk;
    });
    child.on('close', (code) => done({ code, ...texts }));
    child.stdin.end(input);
  });
}

test('a collection is made, filled from standard input, asked and deleted, by commands as people type them', async () => {
  assert.equal(
    await printed('collections', 'create', 'cities', '--size', '2', '--distance', 'Dot', '--sparse', 'words'),
    'cities was made\n',
  );
  const lines = [
    '{"id": 1, "vector": [1, 0], "payload": {"city": "Berlin", "area": 891.0, "key": 12345678901234567890}}',
    '',
    '{"id": "2b0b2c1e-7d3a-4d0e-9c55-111111111111", "vector": {"": [0, 1], "words": {"text": "swallows fly low", "model": "bm25"}}}',
  ];
  const sent = await command(['points', 'upsert', 'cities'], lines.join('\n'), { TROUPE_URL: node.url, TROUPE_API_KEY: KEY });
  assert.deepEqual(sent, { code: 0, out: '2 points were written\n', error: '' });
  assert.match(await printed('collections', 'list'), /^name +status .*\ncities +green +2 +0 .* 2 Dot, words sparse\n$/);
  assert.equal(await printed('points', 'count', 'cities'), '2\n');
  assert.equal(await printed('points', 'count', 'cities', '--filter', '{"must": {"key": "city", "match": {"value": "Berlin"}}}'), '1\n');
  assert.equal(
    await printed('points', 'get', 'cities', '1', '--json'),
    '[{"id":1,"payload":{"city":"Berlin","area":891.0,"key":12345678901234567890}}]\n',
    'no digit is lost',
  );
  assert.equal((await printed('points', 'scroll', 'cities', '--all', '--with-vector')).split('\n').length, 3);
  assert.match(await printed('points', 'scroll', 'cities', '--limit', '1'), /--offset 2b0b2c1e-7d3a-4d0e-9c55-111111111111 on\n$/);
  const found = async (...args: string[]) =>
    ((await json('query', 'cities', ...args)) as { points: { id: unknown; score: number }[] }).points.map(({ id }) => id);
  assert.deepEqual(await found('--vector', '[2, 1]', '--limit', '1'), [1]);
  assert.deepEqual(await found('--id', '1'), ['2b0b2c1e-7d3a-4d0e-9c55-111111111111']);
  assert.deepEqual(await found('--text', 'a flying swallow', '--using', 'words'), ['2b0b2c1e-7d3a-4d0e-9c55-111111111111']);
  assert.deepEqual(await found('--body', '{"query": [0, 1], "limit": 1}'), ['2b0b2c1e-7d3a-4d0e-9c55-111111111111']);
  assert.match(await printed('query', 'cities', '--vector', '[2, 1]'), /^id +score +payload\n1 +2 +\{"city":"Berlin","area":891\.0/);
  // A filter of its own: a reader may know the rows of the one above, and shows no condition then.
  assert.match(
    await printed('explain', 'cities', '--vector', '[2, 1]', '--filter', '{"must": {"key": "city", "match": {"any": ["Berlin"]}}}'),
    /^[^\n]+\n.*\n└─ shard 0: .*\n {3}└─ segment \d+, appendable, 2 rows: .*\n.*nearest [\s\S]*1 found [\s\S]*city/,
  );
  assert.equal(await printed('points', 'delete', 'cities', '1'), 'completed\n');
  assert.equal(await printed('collections', 'create', 'cities', '--size', '2', '--if-missing'), 'cities is there already\n');
  assert.equal(await printed('collections', 'delete', 'cities', '--yes'), 'cities was deleted\n');
});

test('a snapshot is made, downloaded, uploaded under another name, and deleted', async () => {
  await printed('collections', 'create', 'kept', '--size', '1');
  const { name } = (await json('snapshot', 'create', 'kept')) as { name: string };
  const file = join(folder, 'kept.snapshot');
  await printed('snapshot', 'download', 'kept', name, '--to', file);
  await printed('snapshot', 'upload', 'copy', file);
  assert.deepEqual(await json('collections', 'list', '--names'), ['copy', 'kept']);
  await printed('snapshot', 'delete', 'kept', name, '--yes');
  assert.deepEqual(await json('snapshot', 'list', 'kept'), []);
  assert.match(await printed('actors', '/node/copy'), /^copy {2}collection: \w+ .*\n└─ shard-0/);
});

test('peers, shards and moves of a cluster are shown, and what cannot be done is refused', async () => {
  assert.match(await printed('cluster'), /^peer +address .*\n\d+ +http:\S+ +answers +leader +\S+ +\d+ +0\nasked: peer \d+, term \d+/);
  await printed('collections', 'create', 'spread', '--size', '1', '--shards', '2');
  assert.match(await printed('cluster', 'shards', 'spread'), /^shard +peer +state +points here\n0 +\d+ +Active +0\n1 +\d+ +Active +0\n$/);
  assert.equal(await printed('cluster', 'rebalance', '--dry-run'), 'nothing is to be moved\n');
  const { peer_id: peer } = (await json('cluster', 'status')) as { peer_id: number };
  await assert.rejects(printed('cluster', 'move', 'spread', '0', '--from', String(peer), '--to', '1'), NodeRefusal);
  await assert.rejects(printed('cluster', 'drop', 'spread', '0', '--peer', String(peer), '--yes'), NodeRefusal, 'the last replica stays');
  await assert.rejects(printed('cluster', 'move', 'spread', '0', '--to', '1'), /--from/);
});

test('what is not there, not allowed, not reached or not understood has an exit code of its own, and no key is shown', async () => {
  const outcome = async (name: ToolName, ...args: string[]) =>
    printed(name, ...args).then(
      () => 0,
      (error: unknown) => (error instanceof ToolError ? error.exitCode : 'wrong arguments of parseArgs'),
    );
  assert.equal(await outcome('collections', 'show', 'nope'), 1);
  assert.equal(await outcome('points', 'get', 'nope', '1'), 1);
  assert.equal(await outcome('collections', 'delete', 'nope', '--yes'), 1);
  assert.equal(await outcome('collections', 'delete', 'nope'), 2, 'nobody can be asked');
  assert.equal(await outcome('points', 'count', 'nope', '--filter', '{'), 2);
  assert.equal(await outcome('query', 'nope'), 2);
  const { run } = await toolNamed('collections');
  const refused = (error: unknown) => error instanceof NodeRefusal && error.status === 401 && /TROUPE_API_KEY/.test(error.message);
  await assert.rejects(async () => run(['list', '--url', node.url], () => {}), refused);
  const nobody = await command(['collections', 'list', '--url', 'http://127.0.0.1:1'], '', { TROUPE_API_KEY: KEY });
  assert.deepEqual([nobody.code, nobody.out], [3, '']);
  assert.ok(!nobody.error.includes(KEY));
  const wrong = await command(['points', 'scroll', 'c', '--limt', '1'], '', {});
  assert.deepEqual([wrong.code, wrong.out], [2, '']);
  assert.match(
    wrong.error,
    /^troupe points: Unknown option '--limt'\n\nUsage: troupe points get[^\0]*`troupe points --help` tells all of it\.\n$/,
  );
  assert.match(nobody.error, /`troupe serve` starts a node/);
});
