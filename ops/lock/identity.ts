/** Who this process is, and which processes run, as the system tells it. */

import { readFileSync, readlinkSync } from 'node:fs';
import os from 'node:os';
import type { ProcessIdentity } from './judge-owner.js';

export function ownIdentity(): ProcessIdentity {
  return {
    pid: process.pid,
    startTicks: startTicksOf(process.pid),
    bootId: orNull(() => readFileSync('/proc/sys/kernel/random/boot_id', 'utf8').trim()),
    pidNamespace: orNull(() => readlinkSync('/proc/self/ns/pid')),
    host: os.hostname(),
  };
}

/**
 * When a process started, in the system's ticks since the machine's start; null when there is none of this number, or the system does not
 * tell. A killed process whose parent has not asked for its end yet still has its number, but no memory and no files: it counts as ended.
 */
export function startTicksOf(pid: number): string | null {
  const stat = orNull(() => readFileSync(`/proc/${pid}/stat`, 'utf8'));
  // After the program's name, which may hold spaces: state first, start time the 20th.
  const fields = stat?.slice(stat.lastIndexOf(')') + 2).split(' ') ?? [];
  const [state] = fields;
  return state === 'Z' || state === 'X' ? null : (fields[19] ?? null);
}

function orNull(read: () => string): string | null {
  try {
    return read();
  } catch {
    return null;
  }
}
