/**
 * How a read was carried out, in the words of the API: request, shards, segments, stages. Times are microseconds of wall time; the stages of one
 * thread follow one another, so what a segment took is the sum of its stages. Asked for by `explain: true`.
 */

import type { HopNotes } from './write-hop.js';

/** A part of the work of one thread. */
export interface ExplainedStage {
  readonly stage: string;
  readonly time_us: number;
  /** That were read or written: of bodies, answers, payloads. */
  readonly bytes?: number;
}

/** How many rows pass, as far as indexes tell without looking at rows. */
export interface EstimatedMatches {
  readonly min: number;
  readonly expected: number;
  readonly max: number;
}

/** What has said which rows pass a condition: `cache` what was found before, `index_and_payload` an index that leaves some rows open. */
export type AnsweredBy = 'index' | 'index_and_payload' | 'payload' | 'cache';

export interface ExplainedCondition {
  /** In words: `city match "Berlin"`. */
  readonly condition: string;
  readonly answered_by: AnsweredBy;
  /** The type of the field's index; null: it has none. */
  readonly index: string | null;
  readonly matches_estimated: EstimatedMatches | null;
  /** Rows of the segment, deleted ones included; null where they were not told apart from those of other conditions. */
  readonly matches: number | null;
}

export interface ExplainedFilter {
  /** `hit`: the whole filter was known; `extended`: but for new rows; `miss`: it was not. */
  readonly cache: 'hit' | 'extended' | 'miss';
  readonly payloads_read: number;
  readonly conditions: readonly ExplainedCondition[];
}

/** What a segment was searched for once. */
export interface ExplainedSearch {
  /** What was wanted, in words. */
  readonly level: string;
  readonly plan: string;
  /** Why, as a sentence. */
  readonly reason: string;
  readonly time_us: number;
  readonly stages: readonly ExplainedStage[];
  readonly matches_estimated: EstimatedMatches | null;
  /** Rows that pass the filter and have the vector, deleted ones included; null where they were not counted. */
  readonly matches: number | null;
  readonly vector: string | null;
  readonly ef: number | null;
  /** Rows of the graph whose neighbours were looked at. */
  readonly hops: number | null;
  /** Too few were found, and another way was taken after it. */
  readonly fell_back: boolean;
  readonly scored_on: 'codes' | 'originals' | null;
  readonly rows_scored: number;
  readonly rows_rescored: number;
  /** Of vectors, codes and payloads. */
  readonly bytes_read: number;
  /** Reads of vectors and codes on disk, each of rows that lie together; the system's cache may have answered some. */
  readonly reads: number;
  /** Rows that the segment answered. */
  readonly found: number;
  readonly filter: ExplainedFilter | null;
}

export interface ExplainedSegment {
  readonly segment_id: number;
  readonly kind: 'appendable' | 'sealed';
  readonly rows: number;
  readonly time_us: number;
  readonly searches: readonly ExplainedSearch[];
}

/** One shard, as one portion of the read saw it. */
export interface ExplainedShard {
  readonly shard_id: number;
  /** Null: of a node without a cluster. */
  readonly peer_id: number | null;
  readonly thread: string;
  /** Questions that were sent to shards before this one: prefetches are asked first. */
  readonly round: number;
  readonly time_us: number;
  readonly segments: readonly ExplainedSegment[];
}

/** A payload index that would have saved work. */
export interface ExplainedAdvice {
  readonly kind: 'field_index';
  readonly field: string;
  /** As a sentence. */
  readonly reason: string;
  /** Payloads that the read looked at for want of the index, and rows that the index would touch, by the sample. */
  readonly rows_read: number;
  readonly rows_with_index: number;
  readonly rows_sampled: number;
  /** By trial: reading the payloads of the sample, and asking an index of the sample, each times rows by sample. */
  readonly time_us: number;
  readonly time_us_with_index: number;
  readonly call: { readonly method: 'PUT'; readonly path: string; readonly body: object };
}

/** What one thread tells of a portion of a read. */
export interface ExplainedPortion {
  readonly thread: string;
  /** Outside of segments. */
  readonly stages: readonly ExplainedStage[];
  readonly shards: readonly ExplainedShard[];
  readonly advice: readonly ExplainedAdvice[];
}

export interface Explanation extends ExplainedPortion {
  readonly operation: string;
  readonly collection: string;
  /** From decoding to the encoded answer, in the thread that did both. */
  readonly time_us: number;
  /** One line. */
  readonly summary: string;
}

/** Whether a read is to be explained, and how it was. Shared by all copies of the request. */
export interface ExplainRequest {
  /** By the client: also set where the body is decoded. */
  wanted: boolean;
  explanation: Explanation | null;
  /** A read that takes a thread so many milliseconds says in `plan` how it was carried out, in one line, also where that is not wanted. */
  readonly planFromMs?: number;
  plan?: string;
  /** Of a call that is part of a trace: it is explained for the trace alone, without advice. */
  readonly trace?: CallTrace;
}

/** What a trace tells of a call: how a read was carried out, or what a write went through. */
export interface CallTrace {
  explanation: Explanation | null;
  readonly hops: HopNotes;
}

export function emptyTrace(): CallTrace {
  return { explanation: null, hops: [] };
}

/** Takes what another thread tells; null: nothing. */
export function takeTrace(trace: CallTrace, told: CallTrace | null): void {
  if (told === null) return;
  trace.explanation = told.explanation;
  trace.hops.push(...told.hops);
}
