/** How long a replica works before the other ones of its home worker have their turn. */

import type { IsOver } from '../replica/slices.js';

/** Of a turn that only fills a transaction: a commit of the others takes longer than this. */
export const PORTION_MS = 1;
/**
 * Of a transaction, from its first portion to its commit, with the turns of others in between. A commit holds the others up, so there are few:
 * where others write all the time, fewer than one beside a hundred of their writes. More is lost in a crash then.
 */
export const SLICE_MS = 500;

export function overAfter(ms: number): IsOver {
  const end = performance.now() + ms;
  return () => performance.now() >= end;
}
