/** Readings of a process tree and of a folder, from Linux's /proc; elsewhere they are null. */

import { existsSync, lstatSync, readdirSync, writeFileSync } from 'node:fs';
import { cpus, release, totalmem } from 'node:os';
import { join } from 'node:path';
import { procText } from './proc-files.js';

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
  // utime, stime, and of those whose end was waited for: cutime, cstime.
  return processTree(pid).reduce((sum, member) => sum + (secondsOf(member, [13, 14, 15, 16]) ?? 0), 0);
}

/** The same of a process and its threads alone, which is much cheaper to read. */
export function cpuSecondsAlone(pid: number): number | null {
  return secondsOf(pid, [13, 14]);
}

function secondsOf(pid: number, places: readonly number[]): number | null {
  const fields = statFields(pid);
  return fields === undefined ? null : places.reduce((sum, at) => sum + Number(fields[at]), 0) / TICKS_PER_SECOND;
}

/** Resident memory of a process and its children. */
export function memory(pid: number): Memory | null {
  if (!existsSync('/proc/self/status')) return null;
  const sum = { rss: 0, anonymous: 0, file: 0, shared: 0 };
  for (const member of processTree(pid)) {
    const own = memoryAlone(member);
    for (const key of Object.keys(sum) as (keyof typeof sum)[]) sum[key] += own[key];
  }
  return sum;
}

/** Resident memory of a process without its children, which is much cheaper to read. Zeros where there is none, or no such counters. */
export function memoryAlone(pid: number): Memory {
  const status = procText(`/proc/${pid}/status`);
  const read = (key: string): number => {
    const match = new RegExp(`^${key}:\\s+(\\d+) kB`, 'm').exec(status);
    return match === null ? 0 : (Number(match[1]) * 1024) / 1e6;
  };
  return { rss: read('VmRSS'), anonymous: read('RssAnon'), file: read('RssFile'), shared: read('RssShmem') };
}

export interface FileReads {
  /** Read calls to the system, those of sockets among them. */
  readonly calls: number;
  readonly bytes: number;
  /** Bytes that came from a disk and not from the system's cache. */
  readonly diskBytes: number;
}

/** What a process and its children have read since they began; zeros where the system has no such counters. */
export function fileReads(pid: number): FileReads {
  const members = processTree(pid).map((member) => procText(`/proc/${member}/io`));
  const sum = (key: string): number =>
    members.reduce((total, text) => total + Number(new RegExp(`^${key}: (\\d+)`, 'm').exec(text)?.[1] ?? 0), 0);
  return { calls: sum('syscr'), bytes: sum('rchar'), diskBytes: sum('read_bytes') };
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
  const match = /^VmHWM:\s+(\d+) kB/m.exec(procText(`/proc/${pid}/status`));
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

/** What a cgroup gives this process and those that it starts; null: all of the machine. */
export function limitGigabytes(): number | null {
  const bytes = process.constrainedMemory() ?? 0;
  return bytes > 0 && bytes < totalmem() ? Math.round(bytes / 1e8) / 10 : null;
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
  const text = procText(`/proc/${pid}/stat`);
  if (text === '') return undefined;
  // The second field, the name in brackets, may hold spaces.
  const close = text.lastIndexOf(')');
  return [String(pid), 'name', ...text.slice(close + 2).split(' ')];
}
