/**
 * The ledger of memory: who has how much of the node's budget, and whether somebody may have more. Pure; `shared-ledger.ts` holds the
 * figures for all threads.
 *
 * - **Memory-M1** The budget is a share of the tightest limit (`storage.performance.memory_budget_mb`). What requests need beyond stored points
 *   (bodies, what reads find and print, answers) has a quarter of it, over all connections and threads; one read has at most half of that.
 * - **Memory-M2** Who needs memory for a request reserves it first, as bytes come and not as a client announces them; without room the request
 *   is refused (`busy` for what reads, `outOfMemory` for what changes something) and has no effect. What ends gives its memory back,
 *   also by the end of its thread.
 * - **Memory-M3** What takes memory for good (points, new collections) is refused while the process uses more than 85 % of the budget; deletions and
 *   changes of configuration are not. The rest is for builds, which make room again.
 *   Copies of other replicas are taken up to 92.5 %: where nodes are alike, the leader refuses its clients first (as Disk-D3).
 * - **Memory-M4** A build begins when the process's use and what all builds under way still need leave it room within the budget.
 * - **Memory-M5** The heap of a thread is bounded well below the budget, so that a thread which runs out of memory ends alone and its requests with
 *   it. A body has so few JSON values that they fit in half of the heap.
 * - **Memory-M6** What requests leave behind in a thread is no more than an eighth of their memory before it is collected, and no reader holds a
 *   heavy read beside the one that it works on: neither is counted. Nor are writes that are answered before they are applied: the queue of a
 *   writer has half of that memory, and at least one write.
 * - **Memory-M7** What threads make of large bodies (texts, values) has as much memory as requests, beside theirs. A body that needs more is
 *   decoded where no other thread has decoded one; else it is refused as in Memory-M2. Measured: writes and reads of 4 to 31 MB on eight
 *   connections took 410 MB of a container's 512 in place of 310 (medians of three).
 */

import { type ErrorCode, TroupeError } from '../../protocols/errors.js';
import type { MemoryBudget } from './budget.js';

export const ACCOUNTS = ['bodies', 'reads', 'answers', 'values', 'filters', 'builds'] as const;

/**
 * bodies: of requests, until they are answered. reads: what reads under way have found and printed. answers: that clients have not taken. values: what
 * large bodies under way become when they are decoded. filters: kept results of filters. builds: what builds under way may need.
 */
export type Account = (typeof ACCOUNTS)[number];

/** Accounts that share the part of the budget that is for requests. */
export const REQUEST_ACCOUNTS: readonly Account[] = ['bodies', 'reads', 'answers'];

const MEBIBYTE = 1 << 20;

/** Whether a request may have so much more. held: by all requests. */
export function grantsRequest(budget: MemoryBudget, heldBytes: number, bytes: number): boolean {
  return heldBytes + bytes <= budget.requestBytes;
}

/** Whether a thread may decode a large body, which takes so much. held, own: what all threads have decoded, and the thread itself. */
export function grantsValues(budget: MemoryBudget, heldBytes: number, ownBytes: number, bytes: number): boolean {
  return heldBytes === ownBytes || heldBytes + bytes <= budget.requestBytes;
}

/** Why a request gets no memory, and what to do. */
export function noRoomForRequest(code: Extract<ErrorCode, 'busy' | 'outOfMemory'>): TroupeError {
  const detail =
    'the requests under way need all memory that this node has for requests: retry later, with fewer requests at a time or smaller ones';
  return new TroupeError(code, detail, { retryAfterMs: RETRY_MS, outcome: 'none' });
}

/** Why a read ends that found or would print too much, and what to do. */
export function noRoomForRead(): TroupeError {
  const detail =
    'the read needs more memory than this node has for a read: ask for fewer points at a time (`limit`, `sample`, fewer queries in a batch), or ' +
    'give the node more memory (`storage.performance.memory_budget_mb`)';
  return new TroupeError('busy', detail, { outcome: 'none' });
}

/** Why this node takes no more points, and what to do. max, used: bytes of the process. */
export function noRoomToGrow(maxBytes: number, usedBytes: number): TroupeError {
  const detail =
    `this node uses or plans with ${megabytes(usedBytes)} of memory, and takes writes up to ${megabytes(maxBytes)}: delete points or collections, ` +
    'set `on_disk` of vectors or a quantization, or give the node more memory (`storage.performance.memory_budget_mb`)';
  return new TroupeError('outOfMemory', detail, { retryAfterMs: GROWTH_RETRY_MS, outcome: 'none' });
}

const RETRY_MS = 1000;
const GROWTH_RETRY_MS = 10_000;

/** Bytes as people read them. */
export function megabytes(bytes: number): string {
  return `${Math.round(bytes / MEBIBYTE)} MB`;
}
