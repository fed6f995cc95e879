/** Decides which originals of a sealed segment stay in their file, and which come to memory later. Pure. */

import { type CollectionConfig, vectorsByName } from '../../protocols/model/collection.js';
import { ELEMENT_BYTES, LARGE_ORIGINALS_BYTES, strideOf, type VectorPlan } from './layout.js';

/**
 * Whether a segment can be searched before the originals of a vector are in memory: a walk scores codes, and few originals, which are read from their file
 * until then. bytesMin: fewer are not worth it.
 */
export function canArriveLater(plan: VectorPlan, rows: number, bytesMin = LARGE_ORIGINALS_BYTES): boolean {
  if (plan.kind !== 'dense' || plan.element === 'u8' || plan.decoded === true || plan.codes === null || plan.graph === null) return false;
  return rows * strideOf(plan) >= bytesMin;
}

/**
 * Whether the originals of a vector stay out of memory: `on_disk` says so, or says nothing and they are larger than
 * `memmap_threshold`. What a walk scores has to be in memory: so originals of one byte, which are their own codes, stay
 * there, and so do those of graphs without codes. Multivectors and sparse vectors are never left in their files, and
 * originals that codes stand for are in no file.
 * rows: of the segment.
 */
export function staysOnDisk(plan: VectorPlan, rows: number, config: CollectionConfig): boolean {
  if (plan.kind !== 'dense' || plan.element === 'u8' || plan.decoded === true) return false;
  if (plan.codes === null && (plan.graph !== null || plan.subgraphs !== undefined)) return false;
  const wanted = vectorsByName(config.params.vectors).get(plan.name)?.on_disk;
  if (wanted !== undefined) return wanted;
  const threshold = config.optimizer_config.memmap_threshold;
  return !!threshold && (rows * plan.dim * ELEMENT_BYTES[plan.element]) / 1024 > threshold;
}
