/** An environment of Python with pinned packages, in a folder of its own. */

import { spawn, spawnSync } from 'node:child_process';
import { join } from 'node:path';

/** Ends with 0 where Python is new enough for the packages. */
const IS_NEW_ENOUGH = 'import sys, venv; sys.exit(sys.version_info < (3, 10))';
/** What to say where `systemPython` is null. */
export const NO_PYTHON = 'skipped: there is no Python 3.10 or newer with venv on this machine';

/** The command of a Python that can make environments; null: this machine has none. */
export function systemPython(): string | null {
  return ['python3', 'python'].find((name) => spawnSync(name, ['-c', IS_NEW_ENOUGH]).status === 0) ?? null;
}

/** Makes an environment in `folder` with the packages of a file of requirements. Its Python; or the exit code of the step that failed. */
export async function makeEnvironment(python: string, folder: string, requirements: string): Promise<string | number> {
  const environment = join(folder, 'venv');
  const own = process.platform === 'win32' ? join(environment, 'Scripts', 'python.exe') : join(environment, 'bin', 'python');
  const steps: [string, string[]][] = [
    [python, ['-m', 'venv', environment]],
    [own, ['-m', 'pip', 'install', '--quiet', '--disable-pip-version-check', '-r', requirements]],
  ];
  for (const [command, argv] of steps) {
    const code = await runCommand(command, argv, folder);
    if (code !== 0) return code;
  }
  return own;
}

/** The exit code of a command; 1 when a signal has ended it. */
export function runCommand(
  command: string,
  argv: readonly string[],
  folder: string,
  environment: Readonly<Record<string, string>> = {},
): Promise<number> {
  const env = { ...process.env, PYTHONDONTWRITEBYTECODE: '1', ...environment };
  const child = spawn(command, argv, { cwd: folder, stdio: 'inherit', env });
  return new Promise((done, refuse) => {
    child.once('error', refuse);
    child.once('close', (code) => done(code ?? 1));
  });
}
