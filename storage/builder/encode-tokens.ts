/** Codes of a new segment's multivector that no quantization asks for: MaxSim leaves out rows by them. */

import { encodeCodes } from '../../vectors/quantize.js';
import { ComponentRange, greatestLoss } from '../../vectors/unclipped.js';
import type { VectorLayout } from '../segment/layout.js';
import type { SegmentDraft } from './build-vectors.js';
import type { BuildControl } from './control.js';
import { readFloatRange } from './matrix.js';

/** Components coded between two looks at whether the build goes on. */
const BATCH_COMPONENTS = 1 << 20;

/** Writes the codes of all token vectors, which are in their places; the layout with what the codes mean, or without codes that would be of no use. */
export async function encodeTokens(draft: SegmentDraft, vector: VectorLayout, control: BuildControl): Promise<VectorLayout> {
  const { codes: room, ragged, dim } = vector;
  const count = ragged?.itemCapacity ?? 0;
  if (room === null) return vector;
  const batch = Math.ceil(BATCH_COMPONENTS / dim);
  const range = new ComponentRange();
  for (let item = 0; item < count; item += batch) {
    range.add(readFloatRange(draft.memory, vector, item, Math.min(batch, count - item)));
    await control.checkpoint();
  }
  const chosen = range.codes();
  if (chosen === null) return { ...vector, codes: null };
  const out = new Uint8Array(draft.memory.buffer);
  let exact = true;
  let lost = 0;
  for (let item = 0; item < count; item += batch) {
    const values = readFloatRange(draft.memory, vector, item, Math.min(batch, count - item));
    const start = room.offset + item * room.stride;
    exact = encodeCodes(values, dim, room.stride, chosen, out, start) && exact;
    lost = Math.max(lost, greatestLoss(values, dim, out, start, room.stride, chosen));
    control.progress('coding', item, count);
    await control.checkpoint();
  }
  return { ...vector, codes: { ...room, ...chosen, exact, lost } };
}
