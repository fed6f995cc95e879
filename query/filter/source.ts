/** What filter evaluation needs of a segment. Storage implements it; evaluation knows no storage. */

import type { FieldSchema } from '../../protocols/model/collection.js';
import type { AnsweredBy } from '../../protocols/model/explanation.js';
import type { Condition, FieldCondition } from '../../protocols/model/filter.js';
import type { Payload } from '../../protocols/model/payload.js';
import type { PointId } from '../../protocols/model/point-id.js';
import type { Work } from '../effort.js';
import type { TermValue } from './lookup.js';

/** An index of one payload field within one segment. */
export interface FieldIndex {
  /**
   * Sets the bits of the rows that match, and answers 'exact'; or sets a superset and answers 'superset' (the caller
   * checks those rows' payloads); or answers 'unable' and sets nothing. bits: u32 words, one bit per row, zero before.
   */
  match(condition: FieldCondition, bits: Uint32Array): 'exact' | 'superset' | 'unable';
  /** Bounds on how many rows match, deleted ones included; null when the index cannot say. */
  cardinality(condition: FieldCondition): { readonly min: number; readonly max: number } | null;
  /**
   * Calls `add` with each value of the index and the number of its rows among `bits` (null: all rows), each row once for
   * a value; false, before any call, when the index does not hold the values as they are.
   */
  countValues?(bits: Uint32Array | null, add: (value: TermValue, count: number) => void): boolean;
  /**
   * Calls `visit` with numbers (times: microseconds) and their rows in the order of the numbers, from `start` on (null:
   * all of them), until it answers false; false, before any call, when the index does not hold the numbers as they are.
   */
  visitInOrder?(direction: 'asc' | 'desc', start: number | null, visit: (value: number, row: number) => boolean): boolean;
}

export interface FilterSource {
  /** Rows to decide: 0..rows-1, deleted ones included. */
  readonly rows: number;
  fieldIndex(key: string): FieldIndex | undefined;
  /** The row's payload; {} when it has none. */
  payload(row: number): Payload;
  /** Rows (deleted ones may be among them) that hold these ids. */
  rowsWithIds(ids: readonly PointId[]): number[];
  hasVector(name: string, row: number): boolean;
  /**
   * Schema of the replica's index of this field, also where this segment has no index yet: some answers differ with an
   * index (see `lookup.ts`), and a field must have the same in every segment.
   */
  fieldSchema?(key: string): FieldSchema | undefined;
  /** Called for each condition, and now and then while values are looked up and payloads are read; may throw to stop the work (time limit). */
  checkpoint?(): void;
  /** Called before memory is taken that grows with the filter, in bytes; may throw where that is too much. */
  hold?(bytes: number): void;
  /** What was held is free. */
  giveBack?(bytes: number): void;
  /** Called before payloads are read; may throw where that is too much work. */
  claim?(work: Work): void;
  /**
   * Called before so many payloads are read for conditions that no index has decided; what it answers is called when they are read, or when
   * that was given up.
   */
  beginScan?(conditions: readonly Condition[], rows: number): (() => void) | undefined;
  /** Is told how the filter is evaluated, where somebody wants to know. */
  readonly notes?: FilterNotes | undefined;
}

/** How a filter is evaluated. */
export interface FilterNotes {
  /** Whether the cache has the whole filter, also for all of the rows. */
  cached(cache: 'hit' | 'extended' | 'miss'): void;
  /** What has answered a condition. bits: of the rows that pass; null: they are not told apart. */
  answered(condition: Condition, by: AnsweredBy, bits: Uint32Array | null): void;
  /** Payloads are read to see which rows pass. */
  read(payloads: number): void;
}
