/** Spans as OTLP has them, in JSON. Source: OTLP 1.x, `trace/v1/trace.proto`; ids are hexadecimal there, times are texts of nanoseconds. */

export type AttributeValue = string | number | boolean;

export interface TraceSpan {
  readonly traceId: string;
  readonly spanId: string;
  /** Null: the first one of its trace. */
  readonly parentSpanId: string | null;
  readonly name: string;
  readonly kind: 'server' | 'internal';
  /** Microseconds since the epoch. */
  readonly startUs: number;
  readonly endUs: number;
  readonly attributes: Readonly<Record<string, AttributeValue>>;
  /** The operation failed for a reason that is not the client's. */
  readonly isError: boolean;
}

const KINDS = { internal: 1, server: 2 } as const;
const STATUS_ERROR = 2;

/** The body of a request to `/v1/traces`. resource: of this process. */
export function tracesBody(resource: Readonly<Record<string, AttributeValue>>, version: string, spans: readonly TraceSpan[]): object {
  return {
    resourceSpans: [
      {
        resource: { attributes: attributesOf(resource) },
        scopeSpans: [{ scope: { name: 'troupe', version }, spans: spans.map(spanJson) }],
      },
    ],
  };
}

export function attributesOf(values: Readonly<Record<string, AttributeValue>>): readonly object[] {
  return Object.entries(values).map(([key, value]) => ({ key, value: valueJson(value) }));
}

/** nanoseconds are beyond the whole numbers that a double can tell apart. */
export function nanoseconds(microseconds: number): string {
  return `${BigInt(Math.round(microseconds)) * 1000n}`;
}

function spanJson({ attributes, endUs, isError, kind, name, parentSpanId, spanId, startUs, traceId }: TraceSpan): object {
  return {
    traceId,
    spanId,
    ...(parentSpanId === null ? {} : { parentSpanId }),
    name,
    kind: KINDS[kind],
    startTimeUnixNano: nanoseconds(startUs),
    endTimeUnixNano: nanoseconds(endUs),
    attributes: attributesOf(attributes),
    status: isError ? { code: STATUS_ERROR } : {},
  };
}

function valueJson(value: AttributeValue): object {
  if (typeof value === 'string') return { stringValue: value };
  if (typeof value === 'boolean') return { boolValue: value };
  return Number.isSafeInteger(value) ? { intValue: String(value) } : { doubleValue: value };
}
