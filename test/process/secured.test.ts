/** A node that makes its own key, and tokens that are signed with it by the command line. */

import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { LAUNCHER } from '../../ops/node-process.js';
import { nodeFor, temporaryFolder } from './support.js';

const SECURED = { SERVICE__SERVICE__SECURED: 'true', SERVICE__SERVICE__JWT_RBAC: 'true' };
const SHOWN_ONCE = /shown only once: (\S+)/;

function troupe(args: readonly string[], environment: Record<string, string> = {}, input = '') {
  return spawnSync(LAUNCHER, args, { env: { ...process.env, ...environment }, encoding: 'utf8', input });
}

test('a secured node makes a key at its first start, shows it once, serves nobody without it, and takes tokens that it signs', async (t) => {
  const folder = await temporaryFolder(t);
  const path = join(folder, 'storage', '.api-key');
  const first = await nodeFor(t, { folder, environment: SECURED });
  const [, key = ''] = SHOWN_ONCE.exec(first.log()) ?? [];
  assert.match(key, /^[\w-]{43}$/);
  assert.equal(readFileSync(path, 'utf8').trim(), key);
  assert.equal(statSync(path).mode & 0o777, 0o600);
  const status = async (url: string, headers: Record<string, string>) => (await fetch(`${url}/collections`, { headers })).status;
  assert.deepEqual([await status(first.url, {}), await status(first.url, { 'api-key': key })], [401, 200]);
  await first.end('SIGTERM');

  const second = await nodeFor(t, { folder, environment: SECURED });
  assert.doesNotMatch(second.log(), SHOWN_ONCE);
  assert.ok(!second.log().includes(key));
  // The key comes from the folder, a file or standard input.
  const storage = { SERVICE__STORAGE__STORAGE_PATH: join(folder, 'storage') };
  for (const [args, input] of [
    [[], ''],
    [['--key-file', path], ''],
    [['--key-stdin'], `${key}\n`],
  ] as const) {
    const signed = troupe(['token', '--access', 'r', '--expires', '5m', ...args], storage, input);
    assert.equal(signed.status, 0, signed.stderr);
    assert.equal(await status(second.url, { authorization: `Bearer ${signed.stdout.trim()}` }), 200);
  }
});

test('troupe key prints another strong key each time, and troupe token refuses what no node would take', () => {
  const keys = [troupe(['key']).stdout, troupe(['key']).stdout];
  for (const key of keys) assert.match(key, /^\w[\w-]{42}\n$/);
  assert.notEqual(keys[0], keys[1]);
  const wrong: readonly (readonly [readonly string[], RegExp])[] = [
    [[], /--access r .* or --collection/],
    [['--access', 'w'], /--access: 'w' is neither r nor m/],
    [['--access', 'r', '--collection', 'c:r'], /--access r .* or --collection/],
    [['--collection', 'c'], /--collection: 'c' is not/],
    [['--access', 'r', '--expires', 'soon'], /--expires: 'soon' is no span/],
    [['--access', 'r', '--value-exists', 'c:key'], /--value-exists: 'c:key' is not/],
    [['--collection', 'c:r', '--collection', 'c:rw'], /the collection is there already/],
    [['--collection', 'c:r', '--tenant', 'c:key'], /--tenant: 'c:key' is not/],
    [['--collection', 'c:r', '--tenant', 'd:key=a'], /--tenant: 'd:key=a' needs --collection d:r or :rw/],
    [['--collection', 'c:r', '--tenant', 'c:key=a', '--tenant', 'c:key=b'], /--tenant: one for each collection/],
    [['--access', 'r', '--key-file', '/dev/null', '--key-stdin'], /one of --key-env/],
  ];
  for (const [args, message] of wrong) {
    const { status, stderr, stdout } = troupe(['token', ...args], { SERVICE__SERVICE__API_KEY: 'a-key' });
    assert.deepEqual([status, stdout], [2, ''], args.join(' '));
    assert.match(stderr, message);
  }
});
