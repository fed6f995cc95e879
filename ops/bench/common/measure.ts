/** Readings of a process tree and of a folder, from Linux's /proc; elsewhere they are null. */

import { existsSync, lstatSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { cpus, release, totalmem } from 'node:os';
import { join } from 'node:path';

/** Clock ticks per second in /proc/<pid>/stat: fixed by the kernel's interface. */
const TICKS_PER_SECOND = 100;

export interface Memory {
  /** Megabytes (10^6 bytes) that are resident, summed over the tree: what tools show as RSS. */
  readonly rss: number;
  /** The part of it that is not backed by files: what the machine cannot drop. */
  readonly anonymous: number;
  /** The part that maps files (the database file, code): cache that the machine may drop. */
  readonly file: number;
  /** Shared memory of the process (vectors and graphs in shared WebAssembly memories may count here). */
  readonly shared: number;
}

/** CPU seconds a process, its threads and its children (also ended ones) have used. */
export function cpuSeconds(pid: number): number | null {
  if (!existsSync('/proc/self/stat')) return null;
  let ticks = 0;
  for (const member of processTree(pid)) {
    const fields = statFields(member);
    if (fields === undefined) continue;
    // utime, stime, and of those whose end was waited for: cutime, cstime.
    for (const at of [13, 14, 15, 16]) ticks += Number(fields[at]);
  }
  return ticks / TICKS_PER_SECOND;
}

/** Resident memory of a process and its children. */
export function memory(pid: number): Memory | null {
  if (!existsSync('/proc/self/status')) return null;
  const sums = { VmRSS: 0, RssAnon: 0, RssFile: 0, RssShmem: 0 };
  for (const member of processTree(pid)) {
    const status = textOf(`/proc/${member}/status`);
    for (const key of Object.keys(sums) as (keyof typeof sums)[]) {
      const match = new RegExp(`^${key}:\\s+(\\d+) kB`, 'm').exec(status);
      sums[key] += match === null ? 0 : (Number(match[1]) * 1024) / 1e6;
    }
  }
  return { rss: sums.VmRSS, anonymous: sums.RssAnon, file: sums.RssFile, shared: sums.RssShmem };
}

/** From now on the peak of a process's resident memory is counted anew. Nothing happens where the system has no such counter. */
export function resetPeak(pid: number): void {
  try {
    writeFileSync(`/proc/${pid}/clear_refs`, '5');
  } catch {
    // Not Linux.
  }
}

/** The most megabytes of a process that were resident since `resetPeak`, files that it maps included. */
export function peakMegabytes(pid: number): number | null {
  const match = /^VmHWM:\s+(\d+) kB/m.exec(textOf(`/proc/${pid}/status`));
  return match === null ? null : (Number(match[1]) * 1024) / 1e6;
}

/** Megabytes on disk below a folder, as blocks taken (sparse files count what they hold). */
export function diskMegabytes(folder: string): number {
  let blocks = 0;
  for (const entry of readdirSync(folder, { recursive: true, withFileTypes: true })) {
    if (entry.isFile()) blocks += lstatSync(join(entry.parentPath ?? entry.path, entry.name)).blocks;
  }
  return (blocks * 512) / 1e6;
}

export interface Machine {
  readonly cpu: string;
  readonly cpus: number;
  readonly memoryGigabytes: number;
  readonly system: string;
  readonly node: string;
}

export function machine(): Machine {
  const list = cpus();
  return {
    cpu: list[0]?.model.trim() ?? 'unknown',
    cpus: list.length,
    memoryGigabytes: Math.round(totalmem() / 1e9),
    system: `${process.platform} ${release()} ${process.arch}`,
    node: process.version,
  };
}

/** A process and those that it started, by process id. */
export function processTree(pid: number): number[] {
  if (!existsSync('/proc/self/stat')) return [];
  const children = new Map<number, number[]>();
  for (const name of readdirSync('/proc')) {
    if (!/^\d+$/.test(name)) continue;
    const parent = Number(statFields(Number(name))?.[3] ?? -1);
    const list = children.get(parent) ?? [];
    list.push(Number(name));
    children.set(parent, list);
  }
  const members = [pid];
  for (let i = 0; i < members.length; i++) members.push(...(children.get(members[i] as number) ?? []));
  return members;
}

/** Fields of /proc/<pid>/stat, counted from 0; undefined when the process is gone. */
function statFields(pid: number): string[] | undefined {
  const text = textOf(`/proc/${pid}/stat`);
  if (text === '') return undefined;
  // The second field, the name in brackets, may hold spaces.
  const close = text.lastIndexOf(')');
  return [String(pid), 'name', ...text.slice(close + 2).split(' ')];
}

function textOf(file: string): string {
  try {
    return readFileSync(file, 'utf8');
  } catch {
    return '';
  }
}
