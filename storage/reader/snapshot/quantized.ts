/** How a search uses the codes of a segment. Pure. */

import type { QuantizationParams } from '../../../protocols/model/query.js';
import type { CodeFacts } from '../../../query/plan.js';
import type { VectorReader } from './snapshot-view.js';

/** Bits of a component below which codes misplace many rows. */
const FINE_BITS = 4;

/**
 * The codes of a vector for planning. Codes that no quantization asked for are our own affair: parameters change nothing
 * about them. Null: there are none, or the request ignores them; where the originals are in a file, the walk goes on codes all
 * the same, and `ignore` sees to it that originals make the score.
 */
export function codeFacts({ layout, original }: Pick<VectorReader, 'layout' | 'original'>, params: QuantizationParams): CodeFacts | null {
  const { quantization, dim, lists } = layout;
  const codes = layout.codes ?? lists?.filed?.codes ?? null;
  if (codes === null) return null;
  if (quantization === null) return { bytes: dim, rescore: true, oversampling: null, coarse: false, rescoreFound: false };
  if (params.ignore && original !== null && lists === null) return null;
  return {
    bytes: codes.stride,
    // Scores of originals are what a client expects who says nothing, and rescoring costs little beside a walk.
    rescore: params.ignore || (params.rescore ?? true),
    oversampling: params.oversampling,
    coarse: codes.spec !== null && (codes.stride * 8) / dim < FINE_BITS,
    rescoreFound: original !== null,
  };
}
