/**
 * Looks through an archive in a process of its own: reading every point of its shards takes long, and LMDB trusts its files.
 *
 * This file is both sides: `checkArchive` starts it as the child.
 */

import { constants, setPriority } from 'node:os';
import { fileURLToPath } from 'node:url';
import type { CheckArchive } from '../actors/snapshots/snapshots.js';
import { TroupeError } from '../protocols/errors.js';
import { childProcess } from '../protocols/late-modules.js';

const CHILD_ARGUMENT = 'check-archive';
/** The rest is counted by nobody: a damaged shard may have a problem for each of its points. */
const PROBLEMS_MAX = 100;

interface Findings {
  readonly problems: readonly string[];
  readonly isDamaged: boolean;
}

export const checkArchive: CheckArchive = (file, unpackIn, signal) =>
  new Promise((resolve, reject) => {
    const child = childProcess().fork(fileURLToPath(import.meta.url), [CHILD_ARGUMENT, file, unpackIn ?? ''], {
      execArgv: [],
      stdio: ['ignore', 'ignore', 'ignore', 'ipc'],
    });
    let findings: Findings | null = null;
    const kill = (): void => void child.kill('SIGKILL');
    signal.addEventListener('abort', kill, { once: true });
    if (signal.aborted) kill();
    const end = (how: string): void => {
      signal.removeEventListener('abort', kill);
      if (findings !== null) resolve(findings);
      else reject(new TroupeError('unavailable', `${file} could not be looked through: ${how}`, { outcome: 'none' }));
    };
    child.on('message', (message: Findings) => {
      findings = message;
    });
    child.on('error', (error) => end(error.message));
    child.on('close', (code, signalName) => end(`the process that reads it has ended (${signalName ?? `status ${code}`})`));
  });

// ------------------------------------------------------------------ child

if (process.send !== undefined && process.argv[1] === fileURLToPath(import.meta.url) && process.argv[2] === CHILD_ARGUMENT) {
  setPriority(constants.priority.PRIORITY_LOW);
  const problems: string[] = [];
  const note = (line: string): void => {
    if (problems.length < PROBLEMS_MAX) problems.push(line);
  };
  const [, , , file = '', unpackIn = ''] = process.argv;
  // Without its parent it has nobody to tell.
  process.on('disconnect', () => process.exit());
  // Loaded here, since the node itself needs none of it.
  void import('./verify-archive.js')
    .then(({ verifyArchiveFile }) => verifyArchiveFile(file, unpackIn === '' ? null : unpackIn, note))
    .then(({ damages }) => process.send?.({ problems, isDamaged: damages > 0 } satisfies Findings, () => process.disconnect?.()));
}
