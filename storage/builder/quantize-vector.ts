/** Codes of a new segment's vector as its collection's quantization asks for them. */

import { encodeCodes, quantileCodes } from '../../vectors/quantize.js';
import { LevelCoder, type LevelSpec, trainLevels } from '../../vectors/quantizers/levels.js';
import { ProductCoder, trainingRows } from '../../vectors/quantizers/product.js';
import { codeTable } from '../segment/code-matrix.js';
import type { CodesLayout, VectorLayout } from '../segment/layout.js';
import type { SegmentDraft } from './build-vectors.js';
import type { BuildControl } from './control.js';
import { broughtFloatRange, broughtFloats, spreadRows } from './matrix.js';

/** Rows whose means, deviations and quantiles stand for those of all. */
const SAMPLE_ROWS = 4096;
const SAMPLE_COMPONENTS = 1 << 24;
/** Components coded between two looks at whether the build goes on. */
const BATCH_COMPONENTS = 1 << 20;

/**
 * Writes the codes; the layout with their scale and origin. present: rows with the vector, or token vectors of a multivector. Its token vectors are
 * in their places.
 */
export async function quantizeVector(
  draft: SegmentDraft,
  vector: VectorLayout,
  present: Uint32Array,
  control: BuildControl,
): Promise<VectorLayout> {
  const { codes } = vector;
  if (codes === null || present.length === 0) return vector;
  control.progress('quantizing', 0, countOf(draft, vector));
  const { spec } = codes;
  if (spec === null) return quantizeScalar(draft, vector, codes, present, control);
  if (spec.kind === 'product') await quantizeProduct(draft, vector, codes, spec.partDim, present, control);
  else await quantizeLevels(draft, vector, codes, spec, present, control);
  return vector;
}

async function quantizeScalar(
  draft: SegmentDraft,
  vector: VectorLayout,
  room: CodesLayout,
  present: Uint32Array,
  control: BuildControl,
): Promise<VectorLayout> {
  const setting = vector.quantization;
  const quantile = setting !== null && 'scalar' in setting ? (setting.scalar.quantile ?? null) : null;
  const codes = { ...room, ...quantileCodes(broughtFloats(draft, vector, spreadRows(present, sampleRows(vector.dim))), quantile) };
  const out = new Uint8Array(draft.memory.buffer);
  let exact = true;
  await eachBatch(draft, vector, control, (values, row) => {
    exact = encodeCodes(values, vector.dim, codes.stride, codes, out, codes.offset + row * codes.stride) && exact;
  });
  return { ...vector, codes: { ...codes, exact } };
}

async function quantizeProduct(
  draft: SegmentDraft,
  vector: VectorLayout,
  codes: CodesLayout,
  partDim: number,
  present: Uint32Array,
  control: BuildControl,
): Promise<void> {
  const coder = new ProductCoder(partDim, vector.dim, codeTable(draft.memory, codes));
  await coder.train(broughtFloats(draft, vector, spreadRows(present, trainingRows(vector.dim))), () => control.checkpoint());
  const out = new Uint8Array(draft.memory.buffer);
  await eachBatch(draft, vector, control, (values, row) => coder.encode(values, out, codes.offset + row * codes.stride, codes.stride));
}

async function quantizeLevels(
  draft: SegmentDraft,
  vector: VectorLayout,
  codes: CodesLayout,
  spec: LevelSpec,
  present: Uint32Array,
  control: BuildControl,
): Promise<void> {
  const { dim, metric } = vector;
  const table = codeTable(draft.memory, codes);
  trainLevels(spec, metric, broughtFloats(draft, vector, spreadRows(present, sampleRows(vector.dim))), dim, table);
  const coder = new LevelCoder(spec, metric, dim, table);
  const out = new Uint8Array(draft.memory.buffer);
  await eachBatch(draft, vector, control, (values, first) => {
    for (let from = 0, at = codes.offset + first * codes.stride; from < values.length; from += dim, at += codes.stride)
      coder.encode(values.subarray(from, from + dim), out.subarray(at, at + codes.stride));
  });
}

async function eachBatch(
  draft: SegmentDraft,
  vector: VectorLayout,
  control: BuildControl,
  encode: (values: Float32Array, row: number) => void,
): Promise<void> {
  const batch = Math.ceil(BATCH_COMPONENTS / vector.dim);
  const count = countOf(draft, vector);
  for (let row = 0; row < count; row += batch) {
    encode(broughtFloatRange(draft, vector, row, Math.min(batch, count - row)), row);
    control.progress('quantizing', row, count);
    await control.checkpoint();
  }
}

/** Rows, or token vectors of all rows. */
function countOf(draft: SegmentDraft, { ragged }: VectorLayout): number {
  return ragged?.itemCapacity ?? draft.rows;
}

function sampleRows(dim: number): number {
  return Math.min(SAMPLE_ROWS, Math.ceil(SAMPLE_COMPONENTS / dim));
}
