/**
 * `npm run clients:python`: installs the pinned Python client in an environment of its own, starts a node on free ports
 * and lets `test/clients/python/check.py` ask it over REST and gRPC; then a cluster of two, for `shard_keys.py`. Leaves nothing behind. Where there is no Python it
 * says so and ends with 0. TROUPE_SEED and TROUPE_ROUNDS repeat a run and set how many random requests it has.
 */

import { spawn, spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { LocalCluster } from '../cluster/local-cluster.js';
import { startNodeProcess } from '../node-process.js';

const SCRIPTS = resolve(dirname(fileURLToPath(import.meta.url)), '..', '..', '..', 'test', 'clients', 'python');
const ROUNDS_DEFAULT = 400;
/** Ends with 0 where Python is new enough for the client. */
const IS_NEW_ENOUGH = 'import sys, venv; sys.exit(sys.version_info < (3, 10))';

const python = ['python3', 'python'].find((name) => spawnSync(name, ['-c', IS_NEW_ENOUGH]).status === 0);
if (python === undefined) {
  console.log('skipped: there is no Python 3.10 or newer with venv on this machine');
} else {
  const folder = mkdtempSync(join(tmpdir(), 'troupe-python-'));
  try {
    process.exitCode = await check(python, folder);
  } finally {
    rmSync(folder, { recursive: true, force: true, maxRetries: 5 });
  }
}

/** The exit code of the checks. */
async function check(systemPython: string, folder: string): Promise<number> {
  const environment = join(folder, 'venv');
  const own = process.platform === 'win32' ? join(environment, 'Scripts', 'python.exe') : join(environment, 'bin', 'python');
  console.log('installing the client');
  const steps: [string, string[]][] = [
    [systemPython, ['-m', 'venv', environment]],
    [own, ['-m', 'pip', 'install', '--quiet', '--disable-pip-version-check', '-r', join(SCRIPTS, 'requirements.txt')]],
  ];
  for (const [command, argv] of steps) {
    const code = await run(command, argv, folder);
    if (code !== 0) return code;
  }

  const seed = process.env.TROUPE_SEED ?? String(Date.now() % 1_000_000);
  const rounds = process.env.TROUPE_ROUNDS ?? String(ROUNDS_DEFAULT);
  console.log(`TROUPE_SEED=${seed} TROUPE_ROUNDS=${rounds}`);
  const node = await startNodeProcess({ folder });
  try {
    const code = await run(own, [join(SCRIPTS, 'check.py'), String(node.port), String(node.grpcPort), seed, rounds], folder);
    if (code !== 0) return code;
  } finally {
    await node.end('SIGTERM');
  }
  const cluster = await LocalCluster.start({ nodes: 2, folder: join(folder, 'cluster') });
  try {
    return await run(own, [join(SCRIPTS, 'shard_keys.py'), ...cluster.nodes.map(({ grpcPort, port }) => `${port}:${grpcPort}`)], folder);
  } finally {
    await cluster.close();
  }
}

/** The exit code of a command; 1 when a signal has ended it. */
function run(command: string, argv: readonly string[], folder: string): Promise<number> {
  const child = spawn(command, argv, { cwd: folder, stdio: 'inherit', env: { ...process.env, PYTHONDONTWRITEBYTECODE: '1' } });
  return new Promise((done, refuse) => {
    child.once('error', refuse);
    child.once('close', (code) => done(code ?? 1));
  });
}
