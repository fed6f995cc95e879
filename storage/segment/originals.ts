/**
 * Originals of a sealed segment's dense vectors that are not in memory: read from their file, or made of the codes that stand for them. Those of large
 * segments come to memory while the segment is searched: to take their pages from the system is most of what loading them costs a start.
 */

import path from 'node:path';
import { standForFloats } from '../../vectors/quantize.js';
import { type PauseReading, readSegmentFileInParts } from '../disk/file.js';
import { isVerified, markVerified } from './block-sums.js';
import type { SegmentHandle } from './handle.js';
import type { OriginalsFile, VectorLayout } from './layout.js';
import { readRows } from './vector-file.js';

/** Whether the codes of a finished vector are all that need be kept of it: 8-bit ones that lose nothing of float32. */
export function canDecode({ kind, element, codes }: VectorLayout): boolean {
  return kind === 'dense' && element === 'f32' && codes !== null && codes.spec === null && codes.exact && standForFloats(codes);
}

/** Where the originals of a vector begin in memory; null while they are not there. */
export function originalsOffset(memory: WebAssembly.Memory, { arrival, offset }: VectorLayout): number | null {
  return arrival === null || Atomics.load(new Uint32Array(memory.buffer, arrival, 1), 0) !== 0 ? offset : null;
}

/** The vectors of a segment whose originals come later. */
export function arrivingVectors({ layout }: SegmentHandle): VectorLayout[] {
  return layout.vectors.filter(({ arrival }) => arrival !== null);
}

/**
 * Brings the originals of an arriving vector to memory. pause: awaited between parts of some megabytes.
 * Errors: `storage`, naming the file, where it is damaged by now; what `pause` rejects with. They stay in their file then.
 */
export async function bringOriginals({ folder, memory, rows }: SegmentHandle, vector: VectorLayout, pause: PauseReading): Promise<void> {
  const { arrival, file, offset, stride } = vector;
  if (arrival === null || file === null || offset === null || folder === null) throw new Error(`'${vector.name}' does not arrive`);
  if (originalsOffset(memory, vector) !== null) return;
  const place = new Uint8Array(memory.buffer, offset, rows * stride);
  await readSegmentFileInParts(path.join(folder, file.name), 'vectors', (reader) => reader.readIntoInParts('vectors', place, pause));
  Atomics.store(new Uint32Array(memory.buffer, arrival, 1), 0, 1);
}

function filesRead({ file, lists }: VectorLayout): OriginalsFile[] {
  return [file, lists?.filed?.file ?? null].filter((read) => read !== null);
}

/** The files of a vector were written by this process: what reads find in them is not verified. */
export function trustFiles(vector: VectorLayout): void {
  for (const { sums } of filesRead(vector)) if (sums !== undefined) markVerified(sums);
}

/** Whether the file of a vector's originals, or of its codes that lists read, was not verified as a whole since the segment was loaded. */
export function isUnverified(vector: VectorLayout): boolean {
  return filesRead(vector).some(({ sums }) => sums !== undefined && !isVerified(sums));
}

/**
 * Verifies the originals' file. pause: awaited between parts of some megabytes. Errors: `storage`, naming the file, where it is damaged; what `pause`
 * rejects with.
 */
export async function verifyOriginals(handle: SegmentHandle, { file, stride }: VectorLayout, pause: PauseReading): Promise<void> {
  if (file !== null) await verifyFile(handle, file, 'vectors', stride, pause);
}

/** As `verifyOriginals`, of the codes that lists read. */
export async function verifyFiledCodes(handle: SegmentHandle, { lists }: VectorLayout, pause: PauseReading): Promise<void> {
  const { codes, file } = lists?.filed ?? {};
  if (codes !== undefined && file !== undefined) await verifyFile(handle, file, 'codes', codes.stride, pause);
}

async function verifyFile(
  { folder, rows }: SegmentHandle,
  { name, sums }: OriginalsFile,
  section: 'vectors' | 'codes',
  stride: number,
  pause: PauseReading,
): Promise<void> {
  if (sums === undefined || folder === null || isVerified(sums)) return;
  await readSegmentFileInParts(path.join(folder, name), section, (reader) => reader.verifyInParts(section, pause, rows * stride));
  markVerified(sums);
}

/**
 * Fills `target` (which may lie in shared memory) with whole rows from `row` on, as they would lie in memory.
 * vector: one of the segment's, with its originals not in memory. Errors: `storage`, with the file's path.
 */
export function readOriginals(handle: SegmentHandle, vector: VectorLayout, row: number, target: Uint8Array): void {
  if (vector.decoded) decodeRows(handle.memory, vector, row, target);
  else readRows(handle, vector, row, target);
}

/** Fills `target` with whole rows from `row` on of a vector whose codes stand for it. */
export function decodeRows(memory: WebAssembly.Memory, vector: VectorLayout, row: number, target: Uint8Array): void {
  const { codes, dim, stride } = vector;
  if (codes === null) throw new Error(`'${vector.name}' has no codes`);
  const { scale, origin } = codes;
  const floats = new Float32Array(target.buffer, target.byteOffset, target.length / 4);
  const bytes = new Uint8Array(memory.buffer);
  for (let at = 0, from = codes.offset + row * codes.stride; at < floats.length; at += stride / 4, from += codes.stride) {
    for (let index = 0; index < dim; index++) floats[at + index] = scale * (bytes[from + index] as number) + origin;
    floats.fill(0, at + dim, at + stride / 4);
  }
}
