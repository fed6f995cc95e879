/**
 * The ledger of memory: who has how much of the node's budget, and whether somebody may have more. Pure; `shared-ledger.ts` holds the
 * figures for all threads.
 *
 * - **Memory-M1** The budget is a share of the tightest limit (`storage.performance.memory_budget_mb`). What requests need beyond stored points
 *   (bodies, answers, values of JSON) has a quarter of it, over all connections and threads.
 * - **Memory-M2** Who needs memory for a request reserves it first, as bytes come and not as a client announces them; without room the request
 *   is refused (`busy` for what reads, `outOfMemory` for what changes something) and has no effect. What ends gives its memory back,
 *   also by the end of its thread.
 * - **Memory-M3** What takes memory for good (points, new collections) is refused while the process uses more than the budget; deletions and
 *   changes of configuration are not.
 * - **Memory-M4** A build begins when the process's use and what all builds under way still need leave it room within the budget.
 */

import { type ErrorCode, TroupeError } from '../../protocols/errors.js';

export const ACCOUNTS = ['bodies', 'answers', 'values', 'filters', 'builds'] as const;

/**
 * bodies: of requests, until they are answered. answers: that clients have not taken. values: of JSON being read. filters: kept results of
 * filters. builds: what builds under way may need.
 */
export type Account = (typeof ACCOUNTS)[number];

/** Accounts that share the part of the budget that is for requests. */
export const REQUEST_ACCOUNTS: readonly Account[] = ['bodies', 'answers', 'values'];

const BUDGET_SHARE = 0.8;
const REQUEST_SHARE = 0.25;
const MEBIBYTE = 1 << 20;

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

/** Whether a request may have so much more. held: by all requests. */
export function grantsRequest(budget: MemoryBudget, heldBytes: number, bytes: number): boolean {
  return heldBytes + bytes <= budget.requestBytes;
}

/** Whether what takes memory for good may have so much more. used: by the process. */
export function grantsGrowth(budget: MemoryBudget, usedBytes: number, bytes: number): boolean {
  return usedBytes + bytes <= budget.bytes;
}

/** Why a request gets no memory, and what to do. */
export function noRoomForRequest(code: Extract<ErrorCode, 'busy' | 'outOfMemory'>): TroupeError {
  const detail =
    'the requests under way need all memory that this node has for requests: retry later, with fewer requests at a time or smaller ones';
  return new TroupeError(code, detail, { retryAfterMs: RETRY_MS, outcome: 'none' });
}

/** Why this node takes no more points, and what to do. */
export function noRoomToGrow(budget: MemoryBudget, usedBytes: number): TroupeError {
  const detail =
    `this node uses ${megabytes(usedBytes)} of memory, and its budget is ${megabytes(budget.bytes)}: delete points or collections, ` +
    'set `on_disk` of vectors or a quantization, or give the node more memory (`storage.performance.memory_budget_mb`)';
  return new TroupeError('outOfMemory', detail, { retryAfterMs: GROWTH_RETRY_MS, outcome: 'none' });
}

const RETRY_MS = 1000;
const GROWTH_RETRY_MS = 10_000;

/** Bytes as people read them. */
export function megabytes(bytes: number): string {
  return `${Math.round(bytes / MEBIBYTE)} MB`;
}
