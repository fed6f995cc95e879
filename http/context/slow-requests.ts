/**
 * Requests for points that took long: a line of the log for each, as many as anyone reads, and the last ones for telemetry and the dashboard.
 * What took long is the answer: from the request's arrival until it was ready to be sent.
 */

import type { Log } from '../../actors/runtime/ports.js';
import { givenRequestId, type RequestOrigin } from '../audit/origin.js';
import { parseTraceParent } from './traceparent.js';

/** Ids that a client gave its request. */
export interface RequestIds {
  readonly request_id: string | null;
  /** Of `traceparent`. Source: W3C Trace Context. */
  readonly trace_id: string | null;
}

export interface SlowRequest extends RequestIds {
  readonly door: 'rest' | 'grpc';
  /** Name of the operation. */
  readonly operation: string;
  readonly collection: string | null;
  readonly status: number;
  readonly milliseconds: number;
  /** How it was carried out, in one line; null: the thread that read had it for a short time only, or it is a write. */
  readonly plan: string | null;
}

export interface SeenSlowRequest extends SlowRequest {
  /** Of its answer, as ISO 8601. */
  readonly time: string;
}

/** Headers with ids. */
export const ID_FIELDS = ['x-request-id', 'traceparent'] as const;

/** The last ones are kept. */
const KEPT_MAX = 100;
/** Lines of the log in so long. */
const LINES_MAX = 20;
const LINES_MS = 10_000;

export interface SlowRequestParts {
  /** `service.slow_request_ms`; null: none is slow. */
  readonly thresholdMs: number | null;
  readonly log: Log;
  /** Milliseconds since the epoch. */
  readonly dateMs: () => number;
  readonly monotonicMs: () => number;
}

export class SlowRequests {
  /** Requests that take so long are slow; infinite: none is. */
  readonly fromMs: number;
  private readonly last: SeenSlowRequest[] = [];
  private count = 0;
  private periodMs = Number.NEGATIVE_INFINITY;
  private lines = 0;
  private leftOut = 0;

  constructor(private readonly parts: SlowRequestParts) {
    this.fromMs = parts.thresholdMs ?? Number.POSITIVE_INFINITY;
  }

  note(request: SlowRequest): void {
    this.count++;
    this.last.push({ time: new Date(this.parts.dateMs()).toISOString(), ...request });
    if (this.last.length > KEPT_MAX) this.last.shift();
    this.write(request);
  }

  /** For telemetry; the last ones, newest first. */
  report(): { readonly threshold_ms: number | null; readonly count: number; readonly last: readonly SeenSlowRequest[] } {
    return { threshold_ms: this.parts.thresholdMs, count: this.count, last: this.last.toReversed() };
  }

  /** Lines that were left out are counted in the next one. */
  private write({ collection, door, milliseconds, operation, plan, request_id, status, trace_id }: SlowRequest): void {
    const now = this.parts.monotonicMs();
    if (now - this.periodMs >= LINES_MS) {
      this.periodMs = now;
      this.lines = 0;
    }
    if (this.lines === LINES_MAX) {
      this.leftOut++;
      return;
    }
    this.lines++;
    const facts = { door, operation, collection, status, milliseconds: Math.round(milliseconds), plan, request_id, trace_id };
    const given = Object.entries({ ...facts, left_out: this.leftOut || null }).filter(([, value]) => value !== null);
    this.leftOut = 0;
    this.parts.log.warn('a request took long', Object.fromEntries(given));
  }
}

/** The ids in the headers of a request. */
export function requestIdsOf(field: RequestOrigin['field']): RequestIds {
  const given = field('traceparent');
  const parent = given === undefined ? null : parseTraceParent(given);
  return { request_id: givenRequestId({ field }), trace_id: parent?.traceId ?? null };
}

/** The headers with ids that are there. */
export function idFields(field: RequestOrigin['field']): Readonly<Record<string, string>> {
  const fields: Record<string, string> = {};
  for (const name of ID_FIELDS) {
    const value = field(name);
    if (value !== undefined) fields[name] = value;
  }
  return fields;
}
