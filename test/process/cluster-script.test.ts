/** `npm run cluster` as its users meet it. */

import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { RestClient } from '../../ops/rest-client.js';
import { temporaryFolder, until } from './support.js';

const SCRIPT = fileURLToPath(new URL('../../ops/cluster/main.js', import.meta.url));

test('the script says where nodes are and what becomes of them, obeys, and Ctrl-C ends it and every node', async (t) => {
  const folder = await temporaryFolder(t);
  const script = spawn(process.execPath, [SCRIPT, '--nodes', '2', '--folder', folder, '--tls'], { stdio: ['pipe', 'pipe', 'inherit'] });
  t.after(() => script.kill('SIGTERM'));
  let printed = '';
  script.stdout.on('data', (bytes: Buffer) => {
    printed += bytes.toString();
  });
  const says = (what: RegExp): Promise<string> => {
    const from = printed.length;
    return until(
      () => Promise.resolve(printed.slice(from)),
      (text) => what.test(text),
      60_000,
    );
  };
  const obeys = async (command: string, what: RegExp): Promise<void> => {
    const said = says(what);
    script.stdin.write(`${command}\n`);
    await said;
  };

  await until(
    () => Promise.resolve(printed),
    // What it says comes in pieces: this is the last one.
    (text) => text.includes('All nodes are ready') && text.includes('Commands:'),
    60_000,
  );
  const address = /node 1 {2}REST https:\S+:(\d+) {2}gRPC \S+ {2}internal http:\S+\n\s+log (\S+)/.exec(printed);
  assert.equal(address?.[2], join(folder, 'node-1', 'node.log'));
  const ca = readFileSync(join(folder, 'cacert.pem'), 'utf8');
  assert.match(printed, /curl --cacert \$TROUPE_CA \$NODE_1\/cluster/);
  const client = new RestClient(Number(address?.[1]), 1, { ca });
  t.after(() => client.close());
  assert.equal((await client.call('GET', '/healthz')).status, 200);
  assert.match(printed, /node 1: Leader in term \d+, peers 1/);
  await obeys('kill 2', /node 2: ended \(SIGKILL\)/);
  await obeys('kill 2', /`kill 2` changes nothing: node 2 is not running/);
  await obeys('resume 1', /`resume 1` changes nothing: node 1 is running/);
  await obeys('partition 7', /there is no node `7`; there are 1, 2/);
  await obeys('start 2', /node 2: (Follower|Leader) in term \d+,.* peers 1 2, ready/);
  await obeys('cut 2 1', /what node 2 sends does not reach node 1/);
  await obeys('heal', /all nodes reach each other/);

  script.kill('SIGINT');
  // As where a terminal goes away: the end of the input comes while nodes are being ended.
  script.stdin.end();
  const [code] = (await once(script, 'exit')) as [number];
  assert.equal(code, 0, printed);
  await assert.rejects(client.call('GET', '/healthz'));
  assert.ok(existsSync(join(folder, 'node-1', 'node.log')), 'a folder that was named is kept');
});

test('the script says how it is called when it does not understand its options', async () => {
  for (const [option, code, said] of [
    ['--bogus', 2, /Unknown option '--bogus'.*\n\nUsage: npm run cluster/],
    ['--nodes=none', 2, /^--nodes: expected a number of 1 to 32, got none\n$/],
    ['--help', 0, /^Usage: npm run cluster/],
  ] as const) {
    const script = spawn(process.execPath, [SCRIPT, option], { stdio: ['ignore', 'pipe', 'pipe'] });
    let printed = '';
    for (const output of [script.stdout, script.stderr]) output.on('data', (bytes: Buffer) => (printed += bytes.toString()));
    const [ended] = (await once(script, 'close')) as [number];
    assert.equal(ended, code, printed);
    assert.match(printed, said);
  }
});
