/** A node as the container image runs it: a user without rights, and nothing can be written but its volumes and the folder for temporary files. */

import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { chmodSync, chownSync, mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { LAUNCHER } from '../../ops/node-process.js';
import { nodeFor, temporaryFolder } from './support.js';

const HEALTH = fileURLToPath(new URL('../../../ops/docker/health.mjs', import.meta.url));
const NOBODY = 65534;
const AS_NOBODY = ['setpriv', `--reuid=${NOBODY}`, `--regid=${NOBODY}`, '--clear-groups', '--no-new-privs', '--bounding-set=-all'];
/** $0: the folder that stays writable. */
const READ_ONLY = `mount --bind "$0" "$0" && mount -o remount,bind,ro / && exec ${AS_NOBODY.join(' ')} "$@"`;

/** Needs root, mount namespaces, and a clone that others can read. */
const canRun =
  spawnSync('unshare', ['-m', 'sh', '-c', `mount -o remount,bind,ro / && exec ${AS_NOBODY.join(' ')} test -x ${LAUNCHER}`]).status === 0;

test('a node serves as a user without rights on a read-only root, and ends in order', {
  skip: canRun ? false : 'this user cannot make its own mounts',
}, async (t) => {
  const folder = await temporaryFolder(t);
  chmodSync(folder, 0o755);
  for (const name of ['storage', 'snapshots', 'tmp']) {
    mkdirSync(join(folder, name));
    chownSync(join(folder, name), NOBODY, NOBODY);
  }
  const wrapper = ['unshare', '-m', 'sh', '-c', READ_ONLY, folder];
  const node = await nodeFor(t, { folder, wrapper, environment: { TMPDIR: join(folder, 'tmp') } });
  await node.client.result('PUT', '/collections/c', { vectors: { size: 2, distance: 'Dot' } });
  await node.client.result('PUT', '/collections/c/points?wait=true', { points: [{ id: 1, vector: [1, 2] }] });
  await node.client.result('POST', '/collections/c/snapshots');
  // A path that is not plain goes through the socket in the folder for temporary files.
  assert.equal((await fetch(`${node.url}//collections//c`)).status, 200);
  const health = (port: number): number | null =>
    spawnSync(process.execPath, [HEALTH], { env: { ...process.env, SERVICE__SERVICE__HTTP_PORT: String(port) } }).status;
  assert.equal(health(node.port), 0);
  assert.equal(health(1), 1, 'nothing listens there');
  assert.deepEqual(await node.end('SIGTERM'), { code: 0, signal: null });
});
