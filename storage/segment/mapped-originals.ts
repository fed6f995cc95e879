/**
 * Large originals of a sealed segment as pages of their file, in the place where they would be in its memory: kernels and everything else read them as
 * if they were there, and only what is read takes memory. A walk scores codes, and a few dozen originals after it, so that most of them are seldom needed; those that
 * were needed are let go of again.
 */

import fs from 'node:fs';
import path from 'node:path';
import { type CollectionConfig, vectorsByName } from '../../protocols/model/collection.js';
import { openPlainFile, readFully, readSegmentFile } from '../disk/file.js';
import type { FilePages, FilePart } from '../memory/system-calls.js';
import type { SegmentHandle } from './handle.js';
import { LARGE_ORIGINALS_BYTES, PLACE_BYTES, residentOffset, type VectorLayout, wholePages } from './layout.js';
import { isUnverified } from './originals.js';
import { vectorFile } from './vector-file.js';

/** The whole pages of originals in memory and in their file. */
export interface MappedRange {
  /** In memory. */
  readonly offset: number;
  readonly bytes: number;
  /** In the file. */
  readonly position: number;
}

/**
 * Which part of originals can be pages of their file: null where there is none, or where they lie differently in a page of both. Pure.
 * offset: of the first byte in memory. start: of the same in the file. bytes: how many there are.
 */
export function mappedRange(offset: number, start: number, bytes: number): MappedRange | null {
  const pages = wholePages(offset, bytes);
  if (pages === null || (offset - start) % PLACE_BYTES !== 0) return null;
  return { ...pages, position: start + pages.offset - offset };
}

/**
 * Whether originals may be pages of their file: they are many, a walk scores codes, and nobody has asked for them in memory (`on_disk: false`, or
 * `memmap_threshold: 0`). rows: of the segment. bytesMin: fewer are not worth it.
 */
export function mayBeMapped(
  { codes, graph, kind, name, offset, stride }: VectorLayout,
  rows: number,
  config: CollectionConfig,
  bytesMin = LARGE_ORIGINALS_BYTES,
): boolean {
  if (kind !== 'dense' || codes === null || graph === null || offset === null || rows * stride < bytesMin) return false;
  return mayLeaveMemory(name, config);
}

/** Whether nobody has asked for the originals of a vector in memory. */
export function mayLeaveMemory(name: string, { optimizer_config, params }: CollectionConfig): boolean {
  return vectorsByName(params.vectors).get(name)?.on_disk !== false && optimizer_config.memmap_threshold !== 0;
}

/** What is mapped of the segments that this thread has asked for: nothing for those that cannot be. */
const mapped = new WeakMap<WebAssembly.Memory, readonly FilePart[]>();

/**
 * Puts originals of the segment in their place in memory as pages of their files, where they may be, and has those arrive that were to come later.
 * At a further call it lets go of the pages that were read since the one before. Returns whether any of its originals are such pages.
 * Errors: `storage`, naming the file, where it cannot be read. The originals are where they were then.
 */
export function tendOriginals(handle: SegmentHandle, config: CollectionConfig, pages: FilePages, bytesMin?: number): boolean {
  const { common, folder, kind, layout, memory, rows } = handle;
  const known = mapped.get(memory);
  for (const part of known ?? []) pages.letGo(part);
  if (known !== undefined) return known.length > 0;
  // What kernels read in their place is verified by nobody.
  if (layout.vectors.some(isUnverified)) return false;
  const parts: FilePart[] = [];
  mapped.set(memory, parts);
  if (kind !== 'sealed' || folder === null || common !== undefined) return false;
  for (const [n, vector] of layout.vectors.entries()) {
    if (!mayBeMapped(vector, rows, config, bytesMin)) continue;
    const part = putOriginals(path.join(folder, vectorFile(n)), handle, vector, pages);
    if (part !== null) parts.push(part);
  }
  return parts.length > 0;
}

/**
 * Fills the place in memory of a built vector's originals from their file, which is just written: with its pages, or, where these cannot be
 * put there, their bytes. Errors: `storage`, naming the file, where it cannot be read.
 */
export function placeOriginals(handle: SegmentHandle, name: string, pages: FilePages): void {
  const { folder, layout, memory, rows } = handle;
  const n = layout.vectors.findIndex((vector) => vector.name === name);
  const vector = layout.vectors[n] as VectorLayout;
  const file = path.join(folder as string, vectorFile(n));
  if (putOriginals(file, handle, vector, pages) !== null) return;
  const place = new Uint8Array(memory.buffer, residentOffset(vector), rows * vector.stride);
  readSegmentFile(file, 'vectors', (reader) => reader.readInto('vectors', place));
}

/** Null where they cannot be mapped. */
function putOriginals(file: string, { memory, rows }: SegmentHandle, vector: VectorLayout, pages: FilePages): FilePart | null {
  const { arrival, stride } = vector;
  const offset = vector.offset as number;
  const { buffer } = memory;
  const { offset: start, bytes } = readSegmentFile(file, 'vectors', (reader) => reader.section('vectors'));
  const range = mappedRange(offset, start, rows * stride);
  if (range === null || bytes !== rows * stride) return null;
  const part: FilePart = { buffer, offset: range.offset, bytes: range.bytes };
  const descriptor = openPlainFile(file);
  try {
    // What lies beside whole pages stays in memory.
    const end = range.offset + range.bytes;
    readFully(descriptor, new Uint8Array(buffer, offset, range.offset - offset), start, file);
    readFully(descriptor, new Uint8Array(buffer, end, offset + bytes - end), start + end - offset, file);
    if (!pages.put(part, descriptor, range.position)) return null;
  } finally {
    fs.closeSync(descriptor);
  }
  if (arrival !== null) Atomics.store(new Uint32Array(buffer, arrival, 1), 0, 1);
  return part;
}
