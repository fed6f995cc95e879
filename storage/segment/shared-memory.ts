/**
 * Shared memories of segments. V8 gives each `WebAssembly.Memory` 8 to 10 GiB of addresses, whatever its size and maximum are (measured with
 * Node 20 and 26: the bounds of accesses are held by pages that nothing may touch). So small segments lie in one memory, many beside each
 * other. Their places are not used again: a memory is freed when no thread has a segment in it any more.
 */

import { threadId } from 'node:worker_threads';
import { requireAddresses } from '../disk/machine.js';

const PAGE_BYTES = 65_536;
/** Of addresses, for a memory of any size. */
const MEMORY_ADDRESS_BYTES = 10 * 2 ** 30;
/**
 * A memory that small segments lie in. One that stays keeps up to so much of segments that are gone. Each message that brings it to a thread
 * counts there as so much memory taken, and so has V8 collect garbage: the newest one goes to each thread once (`threads/common-memories.ts`).
 */
const COMMON_BYTES = 32 * 2 ** 20;
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

/** A shared memory with room for so many bytes, zero and unused. Errors: `storage` without addresses for it. */
export function sharedMemory(bytes: number): WebAssembly.Memory {
  const pages = Math.max(1, Math.ceil(bytes / PAGE_BYTES));
  requireAddresses(MEMORY_ADDRESS_BYTES, 'cannot make the memory of a segment');
  return new WebAssembly.Memory({ initial: pages, maximum: pages, shared: true });
}

/** This thread's memory for small segments, and how much of it is taken. It must not be what keeps the memory alive. */
let newest: { readonly memory: WeakRef<WebAssembly.Memory>; readonly common: CommonMemory; taken: number } | null = null;

/** A place for a small segment of this thread, beside others. Errors: as of `sharedMemory`. */
export function smallPlace(bytes: number): MemoryPlace {
  const size = Math.ceil(bytes / PAGE_BYTES) * PAGE_BYTES;
  let memory = newest?.memory.deref();
  if (newest === null || memory === undefined || newest.taken + size > COMMON_BYTES) {
    memory = sharedMemory(COMMON_BYTES);
    newest = { memory: new WeakRef(memory), common: { thread: threadId, number: (newest?.common.number ?? 0) + 1 }, taken: 0 };
  }
  const base = newest.taken;
  newest.taken += size;
  return { memory, base, common: newest.common };
}
