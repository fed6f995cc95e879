/** What a collection in strict mode allows a request, and the facts that this is judged by. */

import type { FieldSchema, StrictModeConfig } from './collection.js';

export interface RequestLimits {
  /** Enabled. */
  readonly strict: StrictModeConfig;
  /** The payload indexes by key; null: no limit asks for them. */
  readonly indexes: ReadonlyMap<string, FieldSchema> | null;
  /** Of a write; absent: no limit asks for it. */
  readonly stored?: StoredFigures;
}

/** What a collection has stored, and what its node uses. Each figure may lag behind the writes that were taken. */
export interface StoredFigures {
  readonly points: number;
  /** Bytes of vectors and of payloads of live points, over all shards. */
  readonly vectorBytes: number;
  readonly payloadBytes: number;
  /** Percent of the memory that this process may have; null: not known. */
  readonly memoryPercent: number | null;
  /** Percent of the storage folder's disk; null: not known. */
  readonly diskPercent: number | null;
}
