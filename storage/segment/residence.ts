/** Decides which originals of a sealed segment stay in their file. Pure. */

import { type CollectionConfig, vectorsByName } from '../../protocols/model/collection.js';
import { ELEMENT_BYTES, type VectorPlan } from './layout.js';

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
