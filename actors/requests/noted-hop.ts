/** Hops of writes that are part of a trace. */

import type { HopNotes, WriteHop } from '../../protocols/model/write-hop.js';
import { traceNowUs } from '../../storage/threads/clock.js';

type Facts = WriteHop['facts'];

/**
 * Carries out a hop, and notes when it began and ended, also if it fails. run: gets what its own hops are noted in. Without notes nothing is
 * measured.
 */
export function notedHop<Result>(
  notes: HopNotes | undefined,
  name: string,
  facts: Facts,
  run: (inner: HopNotes | undefined) => Promise<Result>,
): Promise<Result> {
  if (notes === undefined) return run(undefined);
  const inner: HopNotes = [];
  const startUs = traceNowUs();
  return run(inner).finally(() => notes.push({ name, startUs, endUs: traceNowUs(), facts, hops: inner }));
}
