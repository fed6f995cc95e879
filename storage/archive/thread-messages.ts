/** Messages between the main thread and the archive's thread. */

import type { ErrorFacts } from '../../protocols/errors.js';
import type { CollectionParams } from '../../protocols/model/collection.js';
import type { LogTag, ShardEntry } from '../../protocols/model/shard-log.js';
import type { ArchiveErrorFacts } from './archive-error.js';
import type { ArchiveManifest } from './manifest.js';
import type { PackedArchive, PackOrder, UnpackedArchive, UnpackOrder } from './port.js';

/** A work that ends with a value. */
export type FileWork =
  | { readonly kind: 'pack'; readonly order: PackOrder; readonly file: string }
  | { readonly kind: 'unpack'; readonly order: UnpackOrder }
  | { readonly kind: 'manifestOf'; readonly file: string }
  | { readonly kind: 'hash'; readonly file: string }
  | { readonly kind: 'beginLogAfter'; readonly folder: string; readonly at: LogTag; readonly timeMs: number }
  | { readonly kind: 'addToLog'; readonly folder: string; readonly entries: readonly ShardEntry[]; readonly params: CollectionParams };

/** Or one whose chunks are sent as they are asked for. */
export type ArchiveWork = FileWork | { readonly kind: 'packStream'; readonly order: PackOrder };

export type ToArchiveThread =
  | { readonly kind: 'work'; readonly id: number; readonly work: ArchiveWork }
  /** Of a stream: one more chunk may be sent. */
  | { readonly kind: 'more'; readonly id: number }
  | { readonly kind: 'cancel'; readonly id: number };

export type FromArchiveThread =
  | { readonly kind: 'progress'; readonly id: number; readonly done: number; readonly total: number }
  /** A stream begins, of so many bytes. */
  | { readonly kind: 'streaming'; readonly id: number; readonly bytes: number }
  | { readonly kind: 'chunk'; readonly id: number; readonly chunk: Uint8Array }
  | { readonly kind: 'done'; readonly id: number; readonly value: PackedArchive | UnpackedArchive | ArchiveManifest | undefined }
  | { readonly kind: 'failed'; readonly id: number; readonly error: ErrorFacts | ArchiveErrorFacts };

/** Chunks of a stream that are on their way to whoever takes them, at most. */
export const STREAM_WINDOW_CHUNKS = 2;
