/** Reads what the system says about memory. What cannot be read is not limited; other systems than Linux only tell of the machine. */

import os from 'node:os';
import { join } from 'node:path';
import { addressLimit, anonymousBytes, cgroupLimit, cgroupMount, type MemoryLimits, memoryCgroups, oomKills, pathsUp } from './limits.js';
import { readSystemFile } from './system-file.js';

const FILES = {
  1: { max: 'memory.limit_in_bytes', high: null, events: 'memory.oom_control' },
  2: { max: 'memory.max', high: 'memory.high', events: 'memory.events' },
} as const;

export function readMemoryLimits(): MemoryLimits {
  const maxima: number[] = [];
  const highs: number[] = [];
  for (const { folders, version } of ownCgroups()) {
    const { high, max } = FILES[version];
    for (const folder of folders) {
      addTo(maxima, cgroupLimit(readSystemFile(join(folder, max))));
      if (high !== null) addTo(highs, cgroupLimit(readSystemFile(join(folder, high))));
    }
  }
  return {
    processBytes: addressLimit(readSystemFile('/proc/self/limits')),
    cgroupBytes: smallest(maxima),
    cgroupHighBytes: smallest(highs),
    machineBytes: os.totalmem(),
  };
}

/** How often the kernel has killed a process of this one's cgroup for memory, since the cgroup was made; null if it does not say. */
export function readOomKills(): number | null {
  for (const { folders, version } of ownCgroups()) {
    for (const folder of folders) {
      const kills = oomKills(readSystemFile(join(folder, FILES[version].events)));
      if (kills !== null) return kills;
    }
  }
  return null;
}

let usedBytes = 0;

/** Memory of this process that the kernel cannot take back without ending it; what was known last if no descriptor is left to ask with. */
export function readUsedBytes(): number {
  try {
    usedBytes = anonymousBytes(readSystemFile('/proc/self/status')) ?? process.memoryUsage.rss();
  } catch {
    // It is asked for again soon.
  }
  return usedBytes;
}

/** The folders of this process's cgroups in each hierarchy, its own first. */
function ownCgroups(): { version: 1 | 2; folders: string[] }[] {
  const mounts = readSystemFile('/proc/self/mountinfo');
  return memoryCgroups(readSystemFile('/proc/self/cgroup')).flatMap(({ path, version }) => {
    const mount = cgroupMount(mounts, version);
    return mount === null ? [] : [{ version, folders: pathsUp(path).map((above) => join(mount, above)) }];
  });
}

function addTo(numbers: number[], value: number | null): void {
  if (value !== null) numbers.push(value);
}

function smallest(numbers: readonly number[]): number | null {
  return numbers.length === 0 ? null : Math.min(...numbers);
}
