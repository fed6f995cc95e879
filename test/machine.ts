/** What tests of a lack do with the machine: the limits of a process, a small file system, a process that tells how it went. */

import assert from 'node:assert/strict';
import { execFileSync, spawnSync } from 'node:child_process';
import { mkdtempSync, openSync, readFileSync, rmdirSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { TestContext } from 'node:test';

/** Why a test that needs `prlimit` is skipped; false where the machine has it, as Linux does. */
export const noPrlimit: string | false = spawnSync('prlimit', ['--version']).status === 0 ? false : 'needs prlimit';

/** A figure of a process that Linux has in kB, in bytes: `VmSize`, `RssAnon`. */
export function statusBytes(field: string, pid: number | 'self' = 'self'): number {
  const kilobytes = new RegExp(`^${field}:\\s+(\\d+) kB$`, 'm').exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1];
  return Number(kilobytes) * 1024;
}

/** This process gets so many bytes of addresses beyond those that it has. Returns what takes the limit away. */
export function limitAddresses(freeBytes: number): () => void {
  const limit = (bytes: number | string) => execFileSync('prlimit', ['--pid', String(process.pid), `--as=${bytes}:unlimited`]);
  limit(statusBytes('VmSize') + freeBytes);
  return () => limit('unlimited');
}

/** Opens files until this process can open no more. Returns their descriptors. */
export function takeDescriptors(): number[] {
  const taken: number[] = [];
  try {
    for (;;) taken.push(openSync('/dev/null', 'r'));
  } catch {}
  return taken;
}

/** A folder on a file system of its own, gone after the test; null, with the test skipped, where none can be mounted. */
export function smallFileSystem(t: TestContext, megabytes: number): string | null {
  const folder = mkdtempSync(join(tmpdir(), 'troupe-disk-'));
  const mounted = spawnSync('mount', ['-t', 'tmpfs', '-o', `size=${megabytes}m`, 'tmpfs', folder]);
  if (mounted.status !== 0) {
    rmdirSync(folder);
    t.skip(`no file system can be mounted here: ${mounted.error?.message ?? String(mounted.stderr).trim()}`);
    return null;
  }
  t.after(() => {
    // At once, though a node may still have files open.
    spawnSync('umount', ['-l', folder]);
    rmdirSync(folder);
  });
  return folder;
}

/** What a process prints, a value of JSON in each line. It must end in order. */
export function printedBy<Value>(command: readonly string[]): Value[] {
  const [program = '', ...words] = command;
  const { signal, status, stderr, stdout } = spawnSync(program, words, { encoding: 'utf8' });
  assert.deepEqual({ signal, status }, { signal: null, status: 0 }, `${stdout}${stderr}`);
  return stdout
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line) as Value);
}
