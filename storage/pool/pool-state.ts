/**
 * Who reads what next: the pool's decisions, apart from threads and clocks. Reads wait in one queue and go to the
 * reader with the least in flight; a reader gets a few at a time, so that it never idles, and a slow query holds up
 * few others. Heavy reads go to readers of their own, the last ones, and wait in a queue of their own; while none of those
 * is up they are reads like others. Everything here is synchronous and changes only the state it is given.
 */

/** One read on its way. */
export interface QueuedRead<T> {
  readonly id: number;
  readonly deadlineMs: number;
  /** Of its body. */
  readonly bytes: number;
  /** Quick reads should not wait for it. */
  isHeavy: boolean;
  readonly work: T;
  /** How many readers it was given to. */
  attempts: number;
  /** Answered, refused or timed out: whatever still comes for it is ignored. */
  settled: boolean;
}

export interface ReaderSlot<T> {
  /** Accepts reads: its thread runs and is ready. */
  up: boolean;
  /** What it was given and has not answered, by id; reads that timed out stay until it answers, as it is busy with them. */
  readonly inFlight: Map<number, QueuedRead<T>>;
  /** Reads answered. */
  processed: number;
}

export interface ReadLimits {
  /** Reads that may wait, over all readers. */
  readonly waitingMax: number;
  /** Bytes of their bodies. */
  readonly waitingBytesMax: number;
  /** Reads a reader holds: the one it works on, and what it takes next without asking. A reader for heavy ones holds one. */
  readonly inFlightMax: number;
}

export interface ReadState<T> {
  readonly limits: ReadLimits;
  readonly readers: ReaderSlot<T>[];
  /** From here on readers are for heavy reads. */
  readonly firstForHeavy: number;
  /** First in, first out; settled ones among them are skipped. */
  readonly waiting: Deque<QueuedRead<T>>;
  readonly waitingHeavy: Deque<QueuedRead<T>>;
  /** Reads that wait for replicas to wake. */
  readonly waitingAsleep: Set<QueuedRead<T>>;
  /** Waiting reads that are not settled, and bytes of their bodies. */
  waitingCount: number;
  waitingBytes: number;
}

/** forHeavy: readers beside the others that get only heavy reads. */
export function readState<T>(readers: number, limits: ReadLimits, forHeavy = 0): ReadState<T> {
  return {
    limits,
    readers: Array.from({ length: readers + forHeavy }, () => ({ up: false, inFlight: new Map(), processed: 0 })),
    firstForHeavy: readers,
    waiting: new Deque(),
    waitingHeavy: new Deque(),
    waitingAsleep: new Set(),
    waitingCount: 0,
    waitingBytes: 0,
  };
}

/** Index of the reader that gets the read now; 'wait' when it has to wait (it does), 'busy' when there is no room to wait. */
export function offerRead<T>(state: ReadState<T>, read: QueuedRead<T>): number | 'wait' | 'busy' {
  const queue = queueOf(state, read);
  dropSettled(queue);
  const reader = queue.length === 0 ? freestReader(state, read.isHeavy) : -1;
  if (reader >= 0) {
    give(state, reader, read);
    return reader;
  }
  const { waitingMax, waitingBytesMax } = state.limits;
  if (state.waitingCount >= waitingMax || (state.waitingCount > 0 && state.waitingBytes + read.bytes > waitingBytesMax)) return 'busy';
  queue.push(read);
  countWaiting(state, read, 1);
  return 'wait';
}

/** Takes the answered read off its reader. Undefined: unknown, or nobody waits for it any more. */
export function finishRead<T>(state: ReadState<T>, reader: number, id: number): QueuedRead<T> | undefined {
  const slot = state.readers[reader] as ReaderSlot<T>;
  const read = slot.inFlight.get(id);
  if (read === undefined) return undefined;
  slot.inFlight.delete(id);
  slot.processed++;
  if (read.settled) return undefined;
  read.settled = true;
  return read;
}

/** Takes a read off a reader that found it too heavy; it waits for one that is for such reads, also where no room is left to wait. */
export function leaveRead<T>(state: ReadState<T>, reader: number, id: number): void {
  const { inFlight } = state.readers[reader] as ReaderSlot<T>;
  const read = inFlight.get(id);
  inFlight.delete(id);
  if (read === undefined || read.settled) return;
  read.isHeavy = true;
  read.attempts--;
  state.waitingHeavy.push(read);
  countWaiting(state, read, 1);
}

/** Takes a read off a reader that has not all of its replicas awake; `returnRead` brings it back. Undefined: nobody waits for it any more. */
export function setAside<T>(state: ReadState<T>, reader: number, id: number): QueuedRead<T> | undefined {
  const { inFlight } = state.readers[reader] as ReaderSlot<T>;
  const read = inFlight.get(id);
  inFlight.delete(id);
  if (read === undefined || read.settled) return undefined;
  read.attempts--;
  state.waitingAsleep.add(read);
  countWaiting(state, read, 1);
  return read;
}

/** A read that was set aside is the next of its kind. */
export function returnRead<T>(state: ReadState<T>, read: QueuedRead<T>): void {
  if (state.waitingAsleep.delete(read) && !read.settled) queueOf(state, read).unshift(read);
}

/** A read that was set aside gets no answer from a reader. Whether somebody waits for it. */
export function dropRead<T>(state: ReadState<T>, read: QueuedRead<T>): boolean {
  if (!state.waitingAsleep.delete(read) || read.settled) return false;
  read.settled = true;
  countWaiting(state, read, -1);
  return true;
}

/** The next waiting read and the reader that gets it, while there is one of each. */
export function nextRead<T>(state: ReadState<T>): { reader: number; read: QueuedRead<T> } | undefined {
  return nextOf(state, state.waiting, false) ?? nextOf(state, state.waitingHeavy, true);
}

function nextOf<T>(
  state: ReadState<T>,
  queue: Deque<QueuedRead<T>>,
  isHeavy: boolean,
): { reader: number; read: QueuedRead<T> } | undefined {
  dropSettled(queue);
  const reader = queue.length === 0 ? -1 : freestReader(state, isHeavy);
  if (reader < 0) return undefined;
  const read = queue.shift() as QueuedRead<T>;
  countWaiting(state, read, -1);
  give(state, reader, read);
  return { reader, read };
}

/** Takes settled reads off the head of a queue. */
function dropSettled<T>(queue: Deque<QueuedRead<T>>): void {
  while (queue.peek()?.settled === true) queue.shift();
}

/**
 * A reader is lost. Its reads go back to the head of the queue when this was their first reader; one that was lost with
 * two readers may be what kills them, and is given up. Returns those.
 */
export function loseReader<T>(state: ReadState<T>, reader: number): QueuedRead<T>[] {
  const slot = state.readers[reader] as ReaderSlot<T>;
  slot.up = false;
  const lost = [...slot.inFlight.values()].filter((read) => !read.settled);
  slot.inFlight.clear();
  const again = lost.filter((read) => read.attempts < 2);
  for (const read of again.reverse()) {
    queueOf(state, read).unshift(read);
    countWaiting(state, read, 1);
  }
  const given = lost.filter((read) => read.attempts >= 2);
  for (const read of given) read.settled = true;
  return given;
}

/** Settles and returns every read whose deadline has come. */
export function expireReads<T>(state: ReadState<T>, nowMs: number): QueuedRead<T>[] {
  const expired: QueuedRead<T>[] = [];
  for (const read of allWaiting(state)) {
    if (read.settled || read.deadlineMs > nowMs) continue;
    read.settled = true;
    countWaiting(state, read, -1);
    expired.push(read);
  }
  for (const slot of state.readers) {
    for (const read of slot.inFlight.values()) {
      if (read.settled || read.deadlineMs > nowMs) continue;
      read.settled = true;
      expired.push(read);
    }
  }
  return expired;
}

/** Earliest deadline of all reads that are not settled; infinity when there is none. */
export function nextDeadline<T>(state: ReadState<T>): number {
  let next = Number.POSITIVE_INFINITY;
  for (const read of allWaiting(state)) if (!read.settled && read.deadlineMs < next) next = read.deadlineMs;
  for (const slot of state.readers) {
    for (const read of slot.inFlight.values()) if (!read.settled && read.deadlineMs < next) next = read.deadlineMs;
  }
  return next;
}

/**
 * Readers that are stuck: since `graceMs` past the deadline of the oldest read in flight they have not answered it,
 * though a reader looks at the clock as it works. moreMs: how much longer a reader gets, as it had no CPU for that long.
 */
export function stuckReaders<T>(state: ReadState<T>, nowMs: number, graceMs: number, moreMs: MoreMs): number[] {
  const stuck: number[] = [];
  state.readers.forEach((slot, index) => {
    const oldest = slot.inFlight.values().next().value;
    if (slot.up && oldest !== undefined && isStuck(index, oldest.deadlineMs, nowMs, graceMs, moreMs)) stuck.push(index);
  });
  return stuck;
}

type MoreMs = (reader: number, deadlineMs: number) => number;

function isStuck(reader: number, deadlineMs: number, nowMs: number, graceMs: number, moreMs: MoreMs): boolean {
  // Asked at each look past the deadline, so that it is known what the reader has waited since.
  return deadlineMs <= nowMs && deadlineMs + graceMs + moreMs(reader, deadlineMs) <= nowMs;
}

/** The same of readers by the reads that they answer for clients by themselves. deadlines: by reader, 0 for none. */
export function stuckAlone(deadlines: Float64Array, nowMs: number, graceMs: number, moreMs: MoreMs): number[] {
  return [...deadlines.keys()].filter((index) => {
    const deadlineMs = deadlines[index] as number;
    return deadlineMs > 0 && isStuck(index, deadlineMs, nowMs, graceMs, moreMs);
  });
}

/** Reads that are neither settled nor answered. */
export function pendingCount<T>(state: ReadState<T>): number {
  return state.readers.reduce((sum, slot) => sum + slot.inFlight.size, state.waitingCount);
}

/** When a refused caller may try again: the time the waiting reads need, in 50..5000 ms. answerMs: mean time between two answers. */
export function retryAfterMs(waiting: number, answerMs: number): number {
  return Math.min(5000, Math.max(50, Math.ceil(waiting * answerMs)));
}

/** Pause before a lost worker's replacement starts: none at first, then doubling. restarts: in the last minute. */
export function workerDelayMs(restarts: number): number {
  return restarts === 0 ? 0 : Math.min(10_000, 50 * 2 ** (restarts - 1));
}

/** The writer with the fewest replicas, the first among equals. replicas: how many each has. */
export function chooseWriter(replicas: readonly number[]): number {
  let best = 0;
  for (let i = 1; i < replicas.length; i++) if ((replicas[i] as number) < (replicas[best] as number)) best = i;
  return best;
}

/** Room in a writer's queue. */
export interface WriteLimits {
  readonly queuedMax: number;
  readonly queuedBytesMax: number;
}

/** Whether a write of `bytes` finds room: an idle writer takes any. */
export function acceptsWrite(queued: number, queuedBytes: number, bytes: number, limits: WriteLimits): boolean {
  return queued === 0 || (queued < limits.queuedMax && queuedBytes + bytes <= limits.queuedBytesMax);
}

function countWaiting<T>(state: ReadState<T>, read: QueuedRead<T>, sign: 1 | -1): void {
  state.waitingCount += sign;
  state.waitingBytes += sign * read.bytes;
}

function give<T>(state: ReadState<T>, reader: number, read: QueuedRead<T>): void {
  read.attempts++;
  (state.readers[reader] as ReaderSlot<T>).inFlight.set(read.id, read);
}

function queueOf<T>(state: ReadState<T>, { isHeavy }: QueuedRead<T>): Deque<QueuedRead<T>> {
  return isHeavy ? state.waitingHeavy : state.waiting;
}

function* allWaiting<T>(state: ReadState<T>): Generator<QueuedRead<T>> {
  yield* state.waiting;
  yield* state.waitingHeavy;
  yield* state.waitingAsleep;
}

/** The reader for the next read of its kind; -1: each has enough. */
function freestReader<T>(state: ReadState<T>, isHeavy: boolean): number {
  const { firstForHeavy, readers } = state;
  const forHeavy = isHeavy && readers.some(({ up }, at) => up && at >= firstForHeavy);
  let best = -1;
  // Each may have tens of megabytes, which nobody counts once it has timed out.
  let least = forHeavy ? 1 : state.limits.inFlightMax;
  for (let i = forHeavy ? firstForHeavy : 0; i < (forHeavy ? readers.length : firstForHeavy); i++) {
    const slot = state.readers[i] as ReaderSlot<T>;
    if (slot.up && slot.inFlight.size < least) {
      least = slot.inFlight.size;
      best = i;
    }
  }
  return best;
}

/** A queue open at both ends, on a ring that grows. */
export class Deque<T> {
  private ring: (T | undefined)[] = new Array(16);
  private head = 0;
  length = 0;

  push(item: T): void {
    this.maybeGrow();
    this.ring[(this.head + this.length) & (this.ring.length - 1)] = item;
    this.length++;
  }

  unshift(item: T): void {
    this.maybeGrow();
    this.head = (this.head - 1) & (this.ring.length - 1);
    this.ring[this.head] = item;
    this.length++;
  }

  peek(): T | undefined {
    return this.length === 0 ? undefined : this.ring[this.head];
  }

  shift(): T | undefined {
    if (this.length === 0) return undefined;
    const item = this.ring[this.head];
    this.ring[this.head] = undefined;
    this.head = (this.head + 1) & (this.ring.length - 1);
    this.length--;
    return item;
  }

  *[Symbol.iterator](): Iterator<T> {
    for (let i = 0; i < this.length; i++) yield this.ring[(this.head + i) & (this.ring.length - 1)] as T;
  }

  private maybeGrow(): void {
    if (this.length < this.ring.length) return;
    this.ring = [...this, ...new Array(this.length)];
    this.head = 0;
  }
}
