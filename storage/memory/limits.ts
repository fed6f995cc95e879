/**
 * How much memory this process may have: the tightest of what the process, its cgroups and the machine allow. Pure; `read-limits.ts` reads
 * the files.
 */

/** Bytes; null for what is not limited. */
export interface MemoryLimits {
  /** RLIMIT_AS: it limits addresses, of which a process always has more than memory. */
  readonly processBytes: number | null;
  /** `memory.max` (v2) or `memory.limit_in_bytes` (v1), of the cgroup and those above it: beyond it the process is killed. */
  readonly cgroupBytes: number | null;
  /** `memory.high` (v2): beyond it the process is slowed down. */
  readonly cgroupHighBytes: number | null;
  readonly machineBytes: number;
}

export type LimitSource = 'process' | 'cgroup' | 'cgroup high' | 'machine';

/** The smallest of the limits, and whose it is. */
export function tightestLimit(limits: MemoryLimits): { readonly bytes: number; readonly source: LimitSource } {
  const known: readonly (readonly [LimitSource, number | null])[] = [
    ['cgroup', limits.cgroupBytes],
    ['cgroup high', limits.cgroupHighBytes],
    ['process', limits.processBytes],
  ];
  let tightest: { bytes: number; source: LimitSource } = { bytes: limits.machineBytes, source: 'machine' };
  for (const [source, bytes] of known) if (bytes !== null && bytes < tightest.bytes) tightest = { bytes, source };
  return tightest;
}

/** The soft limit of addresses. text: of `/proc/self/limits`. */
export function addressLimit(text: string): number | null {
  return bytesOf(/^Max address space\s+(\S+)/m.exec(text)?.[1]);
}

/** A limit of a cgroup's file; null for none: `max`, or the number that v1 has for it. */
export function cgroupLimit(text: string): number | null {
  const bytes = bytesOf(text.trim());
  return bytes !== null && bytes < Number.MAX_SAFE_INTEGER ? bytes : null;
}

/** A hierarchy of cgroups that limits memory. */
export interface MemoryCgroup {
  readonly version: 1 | 2;
  /** The path of this process in it. */
  readonly path: string;
}

/** The hierarchies that this process is in. text: of `/proc/self/cgroup`, lines of `id:controllers:path`. */
export function memoryCgroups(text: string): MemoryCgroup[] {
  return text.split('\n').flatMap((line): MemoryCgroup[] => {
    const [, id, controllers, path] = /^(\d+):([^:]*):(.*)$/.exec(line) ?? [];
    if (path === undefined) return [];
    if (id === '0' && controllers === '') return [{ version: 2, path }];
    return controllers?.split(',').includes('memory') ? [{ version: 1, path }] : [];
  });
}

/** Where a hierarchy is mounted. text: of `/proc/self/mountinfo`. */
export function cgroupMount(text: string, version: 1 | 2): string | null {
  for (const line of text.split('\n')) {
    const [before, after] = line.split(' - ');
    const [type, , options] = after?.split(' ') ?? [];
    const fits = version === 2 ? type === 'cgroup2' : type === 'cgroup' && options?.split(',').includes('memory') === true;
    const mount = before?.split(' ')[4];
    if (fits && mount !== undefined) return mount;
  }
  return null;
}

/** The path and those above it, the root last, which is where a container without a name space of its own finds its limit. */
export function pathsUp(path: string): string[] {
  const parts = path.split('/').filter((part) => part !== '' && part !== '..');
  return Array.from({ length: parts.length + 1 }, (_, up) =>
    parts
      .slice(0, parts.length - up)
      .map((part) => `/${part}`)
      .join(''),
  );
}

/** How often the kernel has killed a process of the cgroup for memory; null if it does not say. text: `memory.events` or `memory.oom_control`. */
export function oomKills(text: string): number | null {
  const count = /^oom_kill (\d+)$/m.exec(text)?.[1];
  return count === undefined ? null : Number(count);
}

/** Memory of a process that the kernel cannot take back by dropping or writing pages of files. text: of `/proc/self/status`. */
export function anonymousBytes(text: string): number | null {
  const sizes = [...text.matchAll(/^Rss(?:Anon|Shmem):\s+(\d+) kB$/gm)].map(([, kilobytes]) => Number(kilobytes) * 1024);
  return sizes.length === 0 ? null : sizes.reduce((sum, bytes) => sum + bytes, 0);
}

function bytesOf(text: string | undefined): number | null {
  return text !== undefined && /^\d+$/.test(text) ? Number(text) : null;
}
