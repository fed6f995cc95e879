/** CPU of a node's builds, whose threads come and go, from Linux's /proc. */

import { cpuSeconds } from '../common/measure.js';
import { readThreads, type TreeReading } from '../common/threads.js';

/** How the threads of builds are called; those that such a thread starts inherit its name. */
const BUILDER = /^builder-/;
/** A thread that every node has: where it has its name, builders have theirs. */
const WRITER = /^writer-/;
const LOOK_MS = 1000;

/**
 * The system tells what all ended threads of a process have used together, not which of them used it. So CPU of builds is that of the process, less
 * what each other thread had used when it was last seen. A thread that begins and ends between two looks counts as one of a build.
 */
export class BuildCpu {
  /** Nanoseconds of CPU by thread, of those that build nothing. */
  private readonly others = new Map<number, number>();
  private areNamed = false;
  private readonly before: number;
  private readonly timer: NodeJS.Timeout;

  /** pid: of the node. What it has used so far does not count. */
  constructor(private readonly pid: number) {
    this.before = this.secondsNow();
    this.timer = setInterval(() => this.look(), LOOK_MS);
  }

  /** CPU seconds of builds since the start of the measurement; null where threads have no names. */
  seconds(): number | null {
    const used = this.secondsNow() - this.before;
    return this.areNamed ? used : null;
  }

  end(): void {
    clearInterval(this.timer);
  }

  private secondsNow(): number {
    this.look();
    const othersNs = [...this.others.values()].reduce((sum, ns) => sum + ns, 0);
    return (cpuSeconds(this.pid) ?? Number.NaN) - othersNs / 1e9;
  }

  private look(): void {
    const reading = readThreads(this.pid);
    noteOthers(this.others, reading);
    this.areNamed ||= [...reading.values()].some(({ name }) => WRITER.test(name));
  }
}

/**
 * Notes the CPU of threads that build nothing, and forgets one that was seen before it had the name of a builder. A thread that ended while it was
 * read has no name: what was noted of it stays.
 */
function noteOthers(others: Map<number, number>, reading: TreeReading): void {
  for (const [id, { cpuNs, name }] of reading) {
    if (BUILDER.test(name)) others.delete(id);
    else if (name !== '') others.set(id, cpuNs);
  }
}
