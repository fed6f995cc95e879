/** What the threads of a node pass around when they speak of a segment. */

import type { FieldSchema } from '../../protocols/model/collection.js';
import type { SegmentLayout } from './layout.js';
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

/**
 * Whether dropping these sets frees memory: whether they have a segment, or an index or payloads of one, that none of the kept sets has. A set
 * that only got one more segment frees nothing.
 */
export function freesMemory(dropped: readonly SegmentSet[], kept: readonly SegmentSet[]): boolean {
  const needed = new Set(kept.flatMap(memoriesOf));
  return dropped.flatMap(memoriesOf).some((memory) => !needed.has(memory));
}

/** A name for each memory of a set. Handles that came by messages share a memory without being the same objects. */
function memoriesOf({ segments }: SegmentSet): string[] {
  return segments.flatMap(({ fieldIndexes, id, payloadBytes, sparseIndexes }) => [
    `${id}`,
    ...(payloadBytes === null ? [] : [`${id} payloads`]),
    ...fieldIndexes.map(({ buffer, field }) => `${id} field ${buffer.byteLength} ${field}`),
    ...sparseIndexes.map(({ buffer, name }) => `${id} sparse ${buffer.byteLength} ${name}`),
  ]);
}
