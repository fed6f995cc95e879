/** What the threads of a node pass around when they speak of a segment. */

import type { FieldSchema } from '../../protocols/model/collection.js';
import type { FilePart } from '../memory/system-calls.js';
import { PLACE_BYTES, type SegmentLayout, wholePages } from './layout.js';
import type { CommonMemory } from './shared-memory.js';

/** A sealed segment's index of one payload field; its bytes are the file's (see `index/`). */
export interface FieldIndexHandle extends FieldSchema {
  readonly field: string;
  /** All bytes, or just the resident ones (`index/layout.ts`) where `file` says where the others are. */
  readonly buffer: SharedArrayBuffer;
  /** `on_disk` indexes. start: place of the index's first byte. inode: an index file may be replaced under its name. */
  readonly file?: { readonly name: string; readonly start: number; readonly inode: number };
}

/** A sealed segment's inverted index of one sparse vector; its bytes are the file's (see `vectors/sparse/index.ts`). */
export interface SparseIndexHandle {
  /** The vector's name. */
  readonly name: string;
  readonly buffer: SharedArrayBuffer;
}

export interface SegmentHandle {
  /** Unique within the replica, never used again. */
  readonly id: number;
  readonly kind: 'appendable' | 'sealed';
  readonly layout: SegmentLayout;
  readonly memory: WebAssembly.Memory;
  /** Set if other segments lie in the same memory. */
  readonly common?: CommonMemory;
  /** Rows of a sealed segment. An appendable one's stand in the replica's state record. */
  readonly rows: number;
  /** Sealed: folder of its files. Appendable: null (its rows are in LMDB). */
  readonly folder: string | null;
  /** Sealed: payload file offsets, f64 [rows + 1]; and the payload bytes themselves where the collection keeps payloads in memory. */
  readonly payloadOffsets: SharedArrayBuffer | null;
  readonly payloadBytes: SharedArrayBuffer | null;
  readonly fieldIndexes: readonly FieldIndexHandle[];
  /** Sealed: of its sparse vectors, but for those whose file was damaged. */
  readonly sparseIndexes: readonly SparseIndexHandle[];
}

/** The published set of segments: an immutable value, swapped whole. */
export interface SegmentSet {
  readonly generation: number;
  readonly segments: readonly SegmentHandle[];
}

/** What stays of a memory that was emptied (`memoryEmptier`) until its object is collected: what lies beside whole pages. */
const EMPTIED_BYTES = PLACE_BYTES;

/**
 * Bytes that only a collection of garbage frees once these sets are dropped: of segments, and of indexes and payloads of them, that none of the kept sets has. A set
 * that only got one more segment frees nothing: 0. isEmptied: whether the memories of segments are emptied then.
 */
export function freedBytes(dropped: readonly SegmentSet[], kept: readonly SegmentSet[], isEmptied: boolean): number {
  const needed = new Set(kept.flatMap((set) => memoriesOf(set).map(({ name }) => name)));
  const freed = new Map<string, number>();
  for (const { bytes, isOwn, name } of dropped.flatMap(memoriesOf))
    if (!needed.has(name)) freed.set(name, isOwn && isEmptied ? EMPTIED_BYTES : bytes);
  return [...freed.values()].reduce((sum, bytes) => sum + bytes, 0);
}

/** The whole pages of a segment's memory; null: none. */
export function pagesOf({ common, layout, memory }: SegmentHandle): FilePart | null {
  const { buffer } = memory;
  const pages = common === undefined ? wholePages(0, buffer.byteLength) : wholePages(layout.base, layout.bytes);
  return pages && { buffer, ...pages };
}

interface SetMemory {
  /** Handles that came by messages share a memory without being the same objects. */
  readonly name: string;
  readonly bytes: number;
  /** It is the segment's, and not that of an index or of payloads. */
  readonly isOwn: boolean;
}

function memoriesOf({ segments }: SegmentSet): SetMemory[] {
  return segments.flatMap(({ fieldIndexes, id, layout, payloadBytes, sparseIndexes }) => [
    { name: `${id}`, bytes: layout.bytes, isOwn: true },
    ...(payloadBytes === null ? [] : [beside(`${id} payloads`, payloadBytes)]),
    ...fieldIndexes.map(({ buffer, field }) => beside(`${id} field ${buffer.byteLength} ${field}`, buffer)),
    ...sparseIndexes.map(({ buffer, name }) => beside(`${id} sparse ${buffer.byteLength} ${name}`, buffer)),
  ]);
}

function beside(name: string, { byteLength }: SharedArrayBuffer): SetMemory {
  return { name, bytes: byteLength, isOwn: false };
}
