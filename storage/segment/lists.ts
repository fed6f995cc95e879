/**
 * Lists of rows on disk, for segments larger than memory: rows that are near each other lie one after the other, and their codes are read at once.
 * In memory are where each list begins and its centroid. Decisions only.
 */

import { align16 } from '../../vectors/scratch.js';
import type { VectorPlan } from './layout.js';

/**
 * Bytes of codes that a list should have. Measured with 100,000 × 128: lists of half the bytes took as many reads for recall 0.95 (24), and half the bytes.
 * Still smaller ones would save little, as a read of 4 kB takes half as long as one of 64 kB.
 */
const LIST_BYTES = 24 << 10;
/** A search compares its query with each list of a segment: 0.2 ms with so many of 128 components. */
const LISTS_MAX = 32_768;
/** Centroids are in memory, and a build holds ten times as much for a moment. */
const CENTROIDS_BYTES_MAX = 1 << 24;

/** Lists for so many rows, at least one. codeBytes: of a row. */
export function listCount(rows: number, codeBytes: number): number {
  return Math.min(LISTS_MAX, Math.floor(CENTROIDS_BYTES_MAX / codeBytes), rows, Math.ceil((rows * codeBytes) / LIST_BYTES));
}

/** Room for the lists of a vector that is to be built. */
export function reservedLists(rows: number, { dim }: Pick<VectorPlan, 'dim'>): NonNullable<VectorPlan['lists']> {
  return { count: listCount(rows, align16(dim)), scale: 1, origin: 0, probes: 1 };
}
