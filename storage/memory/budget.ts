/** What may be had of the memory that a process is limited to: decided before anything else of it is loaded. */

const BUDGET_SHARE = 0.8;
const REQUEST_SHARE = 0.25;
const MEBIBYTE = 1 << 20;
/** Readers are several, and what they make of a request is small. */
const READ_HEAP_SHARE = 0.25;
const WRITE_HEAP_SHARE = 0.5;
const HEAP_MB_MIN = 64;
const HEAP_MB_MAX = 4096;

export interface MemoryBudget {
  /** Of all. */
  readonly bytes: number;
  /** Of what requests need. */
  readonly requestBytes: number;
}

/** setting: `memory_budget_mb`, null to take a share of the limit. A larger one than the limit is the limit. */
export function memoryBudget(limitBytes: number, setting: number | null): MemoryBudget {
  const bytes = setting === null ? Math.floor(limitBytes * BUDGET_SHARE) : Math.min(limitBytes, setting * MEBIBYTE);
  return { bytes, requestBytes: Math.floor(bytes * REQUEST_SHARE) };
}

/** Megabytes that the heap of a thread may have. V8 gives a thread no more than the larger bound by itself. */
export function heapMegabytes({ bytes }: MemoryBudget, kind: 'reader' | 'writer' | 'builder' | 'gather'): number {
  const share = kind === 'reader' || kind === 'gather' ? READ_HEAP_SHARE : WRITE_HEAP_SHARE;
  return Math.min(HEAP_MB_MAX, Math.max(HEAP_MB_MIN, Math.floor((bytes * share) / MEBIBYTE)));
}
