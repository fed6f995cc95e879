/**
 * Frees memory that nothing refers to any more. A segment's memory is freed with the last object that refers to it, in any thread, and such an
 * object is so small that no thread would hurry to collect it (measured: 80 MB stayed after each rebuild of 20k × 784, until a collection in
 * every thread that had seen the segment). Where the process can empty such a memory (`memory/system-calls.ts`), little is left to free.
 *
 * A full collection stops its thread for some milliseconds per 10 MB of heap, so a thread runs few: one serves all segments that went within
 * the pause, however many replicas they were of. The main thread's heap grows with the number of collections (0.2 to 0.45 s of stop with 5,000), so
 * that thread has its heap marked between other things.
 */

import v8 from 'node:v8';
import vm from 'node:vm';
import { threadId } from 'node:worker_threads';

/** After a segment went: others may follow. */
const DELAY_MS = 1000;
/** Threads take turns: V8 does a collection with several threads of its own, and all at once stopped readers for 25 ms instead of 8, on two CPUs. */
const TURN_MS = 100;
const TURNS = 8;
/** Least time from the end of one collection to the next one. */
const PAUSE_MS = 2000;
/** The same where less than this would be freed: a stream of points has segments go every few seconds, whose memories are emptied (`memoryEmptier`). */
const LEFT_PAUSE_MS = 30_000;
const LEFT_BYTES_MAX = 16 << 20;

export class GarbageCollector {
  private timer: NodeJS.Timeout | null = null;
  private dueMs = 0;
  /** What the collection that is due frees. */
  private leftBytes = 0;
  private lastMs = Number.NEGATIVE_INFINITY;

  /** run: a full collection. later: runs a function after a delay in milliseconds; nowMs: of a clock that is never set. turn: of this thread. */
  constructor(
    private readonly run: () => void = collectGarbage,
    private readonly later: (run: () => void, delayMs: number) => NodeJS.Timeout = setTimeout,
    private readonly nowMs: () => number = () => performance.now(),
    private readonly turn = threadId % TURNS,
  ) {}

  /** Segments went: has a collection run soon. It keeps no process and no thread alive. leftBytes: what stays until then. Default: much. */
  soon(leftBytes = Number.POSITIVE_INFINITY): void {
    this.leftBytes += leftBytes;
    const pauseMs = this.leftBytes < LEFT_BYTES_MAX ? LEFT_PAUSE_MS : PAUSE_MS;
    const now = this.nowMs();
    const dueMs = Math.max(now + DELAY_MS + this.turn * TURN_MS, this.lastMs + pauseMs);
    if (this.timer !== null && this.dueMs <= dueMs) return;
    this.stop();
    this.dueMs = dueMs;
    const timer = this.later(() => {
      if (this.timer !== timer) return;
      this.timer = null;
      this.leftBytes = 0;
      this.run();
      this.lastMs = this.nowMs();
    }, dueMs - now);
    this.timer = timer;
    timer.unref();
  }

  /** Forgets what `soon` has asked for. */
  stop(): void {
    if (this.timer !== null) clearTimeout(this.timer);
    this.timer = null;
  }
}

/**
 * Memory that requests have left in this thread: bodies, their texts and values. V8 collects what lies outside of its heap only once 64 MB of it
 * have come, in each thread, which several threads of a small container do not have (measured: 120 MB of a container's 512).
 */
export class LeftMemory {
  private bytes = 0;
  private isDue = false;

  /** stepBytes: a collection runs whenever requests have left so much. run: a full collection. later: runs a function once the caller is done. */
  constructor(
    private readonly stepBytes: number,
    private readonly run: () => void = collectGarbage,
    private readonly later: (run: () => void) => unknown = setImmediate,
  ) {}

  /** A request is over that had so much in this thread, of which nothing is needed any more. */
  add(bytes: number): void {
    this.bytes += bytes;
    if (this.isDue || this.bytes < this.stepBytes) return;
    this.isDue = true;
    this.later(() => {
      this.isDue = false;
      this.bytes = 0;
      this.run();
    });
  }
}

/** V8 begins to mark when so much more lies outside of the heap than after the last collection. */
const BEGIN_BYTES = (64 << 20) + 1;

/**
 * Has V8 mark this thread's heap in steps, beside other work, and free what nothing refers to at the end of that. V8 has no call for it: it begins
 * when much memory comes outside of its heap, so this asks for such memory, and gives it back before any page of it is used.
 */
export function beginCollection(): void {
  try {
    const memory = new ArrayBuffer(BEGIN_BYTES) as ArrayBuffer & { transfer?(bytes: number): ArrayBuffer };
    memory.transfer?.(0);
  } catch {
    // There are no addresses for it.
    collectGarbage();
  }
}

/** How often a thread looks whether it is at rest. */
const LOOK_EVERY_MS = 3000;
/** A thread that was active for a smaller part of the time is at rest: now and then a read, and the clock's ticks. */
const REST_SHARE = 0.01;
/** A thread that may be asked for what it has done before keeps for so many looks what makes that quick. */
const WARM_LOOKS = 10;
/** A collection that could free less is not worth its time. */
const GROWTH_BYTES = 2 << 20;
/** A collection of a heap of this size takes some 10 ms; a larger one is marked beside other things. */
const HEAP_BYTES_MAX = 32 << 20;

/** What a thread knows of itself. */
export interface HeapFacts {
  /** That its heap takes, garbage and free places included. */
  readonly heldBytes: number;
  /** Part of the time since the last look in which it did something: 0 to 1. */
  readonly activeShare: number;
}

/**
 * Gives back what a start and busy times have left in a thread that has been at rest for half a minute: garbage, a young generation that grew, and code. A
 * collection of this kind, as V8's own at rest (`--memory-reducer`, eight seconds after another one), drops compiled code with the shapes of objects that it was made
 * for, since at rest there are no such objects. So the next 500 searches take some 60 ms of CPU more, as measured, which is why it waits. Threads of the bundle have no collections of V8's
 * own at rest: with them searches that came in bursts, ten seconds apart, took 1.3 times the CPU. Of 120 MB of a node with 50,000 × 256 this gives back 17, of an empty one 9 of 55,
 * there after the first look.
 */
export class RestingHeap {
  private leftBytes = 0;
  private restLooks = 0;

  /**
   * isWarm: whether the thread may be asked for what it has done before. look: tells of the time since it was asked last, so it is asked again after
   * a collection. run: one that keeps nothing back. beginRun: one of a large heap.
   */
  constructor(
    private readonly isWarm: () => boolean,
    private readonly look: () => HeapFacts = heapLook(),
    private readonly run: () => void = collectAll,
    private readonly beginRun: () => void = beginCollection,
  ) {}

  /** Looks from now on. It keeps no thread alive. */
  begin(): void {
    setInterval(() => this.tick(), LOOK_EVERY_MS).unref();
  }

  tick(): void {
    const { activeShare, heldBytes } = this.look();
    this.restLooks = activeShare > REST_SHARE ? 0 : this.restLooks + 1;
    // V8 may have collected meanwhile, and one that has only begun frees later.
    this.leftBytes = Math.min(this.leftBytes, heldBytes);
    if (this.restLooks < (this.isWarm() ? WARM_LOOKS : 1)) return;
    if (heldBytes - this.leftBytes < GROWTH_BYTES) return;
    if (heldBytes > HEAP_BYTES_MAX) this.beginRun();
    else this.run();
    // The collection is no activity.
    this.leftBytes = this.look().heldBytes;
  }
}

function heapLook(): () => HeapFacts {
  let before = performance.eventLoopUtilization();
  return () => {
    const now = performance.eventLoopUtilization();
    const { utilization } = performance.eventLoopUtilization(now, before);
    before = now;
    return { heldBytes: v8.getHeapStatistics().total_physical_size, activeShare: utilization };
  };
}

interface Collection {
  readonly execution: 'sync';
  readonly type: 'major';
  readonly flavor: 'last-resort';
}

let exposed: ((how?: Collection) => void) | undefined;

/** Collects at once. It stops this thread. */
export function collectGarbage(): void {
  exposed ??= exposeCollection();
  exposed();
}

/** V8 makes what it keeps for later as small as it gets, too. */
function collectAll(): void {
  exposed ??= exposeCollection();
  exposed({ execution: 'sync', type: 'major', flavor: 'last-resort' });
}

/** More often than there are threads: each takes the option back once. */
const EXPOSE_TRIES_MAX = 1000;

/** Options of V8 are those of the whole process: another thread may take this one back before the function is there. */
function exposeCollection(): (how?: Collection) => void {
  for (let tries = 0; tries < EXPOSE_TRIES_MAX; tries++) {
    v8.setFlagsFromString('--expose-gc');
    try {
      const found = vm.runInNewContext("typeof gc === 'function' ? gc : null") as ((how?: Collection) => void) | null;
      if (found !== null) return found;
    } finally {
      // While an option differs, V8 takes no compiled code that was kept without it: threads would take 20 to 50 ms longer to start.
      v8.setFlagsFromString('--no-expose-gc');
    }
  }
  // V8 collects when it wants to, then.
  return () => {};
}
