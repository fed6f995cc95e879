/**
 * Shared memories of segments. V8 gives each `WebAssembly.Memory` 8 to 10 GiB of addresses, whatever its size and maximum are (measured with
 * Node 20 and 26: the bounds of accesses are held by pages that nothing may touch). So small segments lie in one memory, many beside each
 * other. The place of one that no thread has open any more can be given back, and is used again; a memory is freed when no thread has a
 * segment in it any more.
 */

import { threadId } from 'node:worker_threads';
import { requireAddresses } from '../disk/machine.js';

const PAGE_BYTES = 65_536;
/** Of addresses, for a memory of any size. */
const MEMORY_ADDRESS_BYTES = 10 * 2 ** 30;
/**
 * A memory that small segments lie in: places for a thousand small replicas, of which no page is there before it is written to. Each message
 * that brings it to a thread counts there as so much memory taken, and so has V8 collect garbage: the newest one goes to each thread once
 * (`threads/sent-sets.ts`). With 32 MB, which 256 replicas filled, waking 5,000 of them had each thread collect all of its heap 20 times.
 */
const COMMON_BYTES = 128 * 2 ** 20;
/** A larger place is not used again: making it zero takes its time, and takes all its pages. */
const REUSED_BYTES_MAX = 256 * 2 ** 10;
/** Larger segments have a memory of their own. */
export const SMALL_BYTES_MAX = 16 * 2 ** 20;

/** Which of the memories for small segments: the thread that made it, whose number no later thread gets, and its number there, ascending. */
export interface CommonMemory {
  readonly thread: number;
  readonly number: number;
}

/** A place in a memory: bytes from `base` on, a multiple of 64 KB, all zero. */
export interface MemoryPlace {
  readonly memory: WebAssembly.Memory;
  readonly base: number;
  readonly common: CommonMemory;
}

/**
 * A shared memory with room for so many bytes, zero and unused. It is made small and grows before anybody uses it: V8 counts what a memory has when
 * it is made, and marks the thread's heap for each 64 MB (measured: 20 to 30 ms of CPU for a segment of 250 MB). Errors: `storage` without
 * addresses for it.
 */
export function sharedMemory(bytes: number): WebAssembly.Memory {
  const pages = Math.max(1, Math.ceil(bytes / PAGE_BYTES));
  requireAddresses(MEMORY_ADDRESS_BYTES, 'cannot make the memory of a segment');
  const memory = new WebAssembly.Memory({ initial: 1, maximum: pages, shared: true });
  if (pages > 1) memory.grow(pages - 1);
  return memory;
}

interface NewestMemory {
  /** What is here must not be what keeps the memory alive. */
  readonly memory: WeakRef<WebAssembly.Memory>;
  readonly common: CommonMemory;
  taken: number;
  /** Where places begin that were given back, by their sizes. */
  readonly free: Map<number, number[]>;
}

/** This thread's memory for small segments. */
let newest: NewestMemory | null = null;

/** A place for a small segment of this thread, beside others. Errors: as of `sharedMemory`. */
export function smallPlace(bytes: number): MemoryPlace {
  const size = placeBytes(bytes);
  let memory = newest?.memory.deref();
  const again = memory === undefined ? undefined : newest?.free.get(size)?.pop();
  if (newest !== null && memory !== undefined && again !== undefined) {
    new Uint8Array(memory.buffer, again, size).fill(0);
    return { memory, base: again, common: newest.common };
  }
  if (newest === null || memory === undefined || newest.taken + size > COMMON_BYTES) {
    memory = sharedMemory(COMMON_BYTES);
    const common = { thread: threadId, number: (newest?.common.number ?? 0) + 1 };
    newest = { memory: new WeakRef(memory), common, taken: 0, free: new Map() };
  }
  const base = newest.taken;
  newest.taken += size;
  return { memory, base, common: newest.common };
}

/** Gives back the place of a small segment of this thread, of so many bytes: no thread has anything of it open, or ever will. */
export function giveBackPlace({ base, common }: Pick<MemoryPlace, 'base' | 'common'>, bytes: number): void {
  const size = placeBytes(bytes);
  if (newest === null || common.thread !== threadId || common.number !== newest.common.number || size > REUSED_BYTES_MAX) return;
  const free = newest.free.get(size) ?? [];
  newest.free.set(size, free);
  free.push(base);
}

function placeBytes(bytes: number): number {
  return Math.ceil(bytes / PAGE_BYTES) * PAGE_BYTES;
}
