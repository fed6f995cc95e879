/**
 * Starts the server once while the image is built, and ends it when it is ready, so that V8's compiled code is in `dist/.cache`, where every
 * container finds it. Its data are in a folder that is removed.
 */

import { spawn } from 'node:child_process';
import { existsSync, mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

const ops = join(dirname(fileURLToPath(import.meta.url)), '..');
const folder = mkdtempSync(join(tmpdir(), 'troupe-warm-'));
const child = spawn(join(ops, 'launch.sh'), [], {
  cwd: folder,
  env: {
    ...process.env,
    SERVICE__SERVICE__HOST: '127.0.0.1',
    SERVICE__SERVICE__HTTP_PORT: '0',
    SERVICE__SERVICE__GRPC_PORT: '0',
    SERVICE__STORAGE__STORAGE_PATH: join(folder, 'storage'),
    SERVICE__STORAGE__SNAPSHOTS_PATH: join(folder, 'snapshots'),
  },
  stdio: ['ignore', 'pipe', 'inherit'],
});
let printed = '';
let isEnding = false;
child.stdout.on('data', (bytes) => {
  printed += bytes;
  if (isEnding || !printed.includes('every collection is open')) return;
  // Once: a second signal would end it at once.
  isEnding = true;
  child.kill('SIGTERM');
});
child.on('exit', (code, signal) => {
  rmSync(folder, { recursive: true, force: true });
  const cache = process.env.NODE_COMPILE_CACHE ?? join(ops, '..', 'dist', '.cache');
  const isWarm = code === 0 && existsSync(cache) && readdirSync(cache).length > 0;
  if (isWarm) return;
  process.stderr.write(`the server left no compiled code in ${cache} (${code ?? signal})\n${printed}`);
  process.exitCode = 1;
});
