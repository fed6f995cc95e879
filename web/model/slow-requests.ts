/** Requests that took long, as `/telemetry` has them. */

export interface ShownSlowRequest {
  readonly time: string;
  readonly door: 'rest' | 'grpc';
  readonly operation: string;
  readonly collection: string | null;
  readonly status: number;
  readonly milliseconds: number;
  readonly plan: string | null;
  readonly request_id: string | null;
  readonly trace_id: string | null;
}

export interface SlowReport {
  readonly threshold_ms: number | null;
  readonly count: number;
  readonly last: readonly ShownSlowRequest[];
}

/** What the page says above its table. */
export function slowSentence({ count, last, threshold_ms }: SlowReport): string {
  if (threshold_ms === null) return 'Slow requests are not noted: service.slow_request_ms is null.';
  const since = 'since this node started';
  if (count === 0) return `No read or write of points took ${threshold_ms} ms or more ${since}.`;
  const those = count === 1 ? '1 read or write of points' : `${count.toLocaleString('en-US')} reads and writes of points`;
  return `${those} took ${threshold_ms} ms or more ${since}${last.length < count ? `; these are the last ${last.length}` : ''}.`;
}

/** By which a request is found in the log of its client; empty: it had none. */
export function idsText({ request_id, trace_id }: Pick<ShownSlowRequest, 'request_id' | 'trace_id'>): string {
  return [...(request_id === null ? [] : [`request ${request_id}`]), ...(trace_id === null ? [] : [`trace ${trace_id}`])].join(', ');
}
