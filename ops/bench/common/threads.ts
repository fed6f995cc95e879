/** CPU and wake-ups of every thread of a process tree, from Linux's /proc; elsewhere nothing is read. */

import { processTree } from './measure.js';
import { procEntries, procText } from './proc-files.js';

export interface ThreadReading {
  readonly pid: number;
  /** Its first 15 bytes. Node.js has told the system the names of its threads for some versions; before, all are `node`. */
  readonly name: string;
  /** Nanoseconds on a CPU. */
  readonly cpuNs: number;
  /** How often the thread went to sleep by itself: each time, something had to wake it again. */
  readonly sleeps: number;
}

/** By thread id. A thread that ends between two readings drops out of their difference. */
export type TreeReading = ReadonlyMap<number, ThreadReading>;

export interface TreeUse {
  /** Microseconds of CPU of all threads. */
  readonly cpuUs: number;
  /** Microseconds of CPU of the main thread of the process that used most. */
  readonly mainUs: number;
  /** Microseconds of CPU of each other thread of that process, most first. */
  readonly othersUs: readonly number[];
  readonly sleeps: number;
}

export function readThreads(pid: number): TreeReading {
  const threads = new Map<number, ThreadReading>();
  for (const member of processTree(pid)) {
    for (const id of procEntries(`/proc/${member}/task`)) {
      const folder = `/proc/${member}/task/${id}`;
      const cpuNs = Number(procText(`${folder}/schedstat`).split(' ', 1)[0]);
      const status = procText(`${folder}/status`);
      const name = /^Name:\s+(.*)$/m.exec(status)?.[1] ?? '';
      const sleeps = Number(/^voluntary_ctxt_switches:\s+(\d+)/m.exec(status)?.[1] ?? 0);
      threads.set(Number(id), { pid: member, name, cpuNs, sleeps });
    }
  }
  return threads;
}

/** What the tree has used between two readings. */
export function treeUse(before: TreeReading, after: TreeReading): TreeUse {
  const byProcess = new Map<number, { sumUs: number; mainUs: number; othersUs: number[] }>();
  let sleeps = 0;
  for (const [id, thread] of after) {
    const then = before.get(id);
    const usedUs = (thread.cpuNs - (then?.cpuNs ?? 0)) / 1000;
    sleeps += thread.sleeps - (then?.sleeps ?? 0);
    const process = byProcess.get(thread.pid) ?? { sumUs: 0, mainUs: 0, othersUs: [] };
    byProcess.set(thread.pid, process);
    process.sumUs += usedUs;
    if (id === thread.pid) process.mainUs = usedUs;
    else process.othersUs.push(usedUs);
  }
  const processes = [...byProcess.values()].sort((one, other) => other.sumUs - one.sumUs);
  return {
    cpuUs: processes.reduce((sum, { sumUs }) => sum + sumUs, 0),
    mainUs: processes[0]?.mainUs ?? 0,
    othersUs: (processes[0]?.othersUs ?? []).sort((one, other) => other - one),
    sleeps,
  };
}
