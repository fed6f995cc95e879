/** The header `traceparent`. Source: W3C Trace Context, section 3.2. */

/** Where a request belongs in a trace that somebody else has begun. */
export interface TraceParent {
  /** 32 hexadecimal digits, not all zero. */
  readonly traceId: string;
  /** 16 hexadecimal digits, not all zero: the caller's span. */
  readonly spanId: string;
  /** Whether the caller records the trace. */
  readonly isSampled: boolean;
}

const FORM = /^([0-9a-f]{2})-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})(-.*)?$/;
const SAMPLED = 1;

/** Null for a value that is none: the trace is then begun anew. Versions to come may have more behind what this one knows. */
export function parseTraceParent(value: string): TraceParent | null {
  const [, version, traceId = '', spanId = '', flags = '', rest] = FORM.exec(value.trim()) ?? [];
  if (version === undefined || version === 'ff' || (version === '00' && rest !== undefined)) return null;
  if (/^0+$/.test(traceId) || /^0+$/.test(spanId)) return null;
  return { traceId, spanId, isSampled: (Number.parseInt(flags, 16) & SAMPLED) !== 0 };
}
