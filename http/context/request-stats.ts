/** Counts and durations of answered requests, by what was asked and status. */

import { Durations } from '../../actors/context/durations.js';

export interface RequestCounts<Endpoint> {
  readonly endpoint: Endpoint;
  readonly status: number;
  readonly durations: Durations;
}

/** Counters of one door. endpoints: all that can be asked of it. */
export class RequestStats<Endpoint> {
  /** By the endpoint's place: durations by status. */
  private readonly byEndpoint: readonly Map<number, Durations>[];

  constructor(private readonly endpoints: readonly Endpoint[]) {
    this.byEndpoint = endpoints.map(() => new Map());
  }

  /** endpoint: its place among the endpoints. */
  record(endpoint: number, status: number, milliseconds: number, nowMs: number): void {
    const byStatus = this.byEndpoint[endpoint] as Map<number, Durations>;
    let durations = byStatus.get(status);
    if (durations === undefined) {
      durations = new Durations();
      byStatus.set(status, durations);
    }
    durations.add(milliseconds, nowMs);
  }

  /** What was counted, in the order of the endpoints, statuses ascending. */
  counts(): RequestCounts<Endpoint>[] {
    return this.endpoints.flatMap((endpoint, at) =>
      [...(this.byEndpoint[at] as Map<number, Durations>)]
        .sort(([a], [b]) => a - b)
        .map(([status, durations]) => ({ endpoint, status, durations })),
    );
  }
}
