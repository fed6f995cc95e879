/** Counts and durations of answered requests, by what was asked and status. */

import { Durations } from '../../actors/context/durations.js';
import { CollectionStats } from './collection-stats.js';
import { SharedCounts } from './shared-counts.js';

export interface RequestCounts<Endpoint> {
  readonly endpoint: Endpoint;
  readonly status: number;
  readonly durations: Durations;
}

/** Counters of one door. endpoints: all that can be asked of it. */
export class RequestStats<Endpoint> {
  /** By the endpoint's place: durations by status. */
  private readonly byEndpoint: readonly Map<number, Durations>[];
  /** Of other threads. */
  private readonly shared: SharedCounts[] = [];
  readonly byCollection = new CollectionStats();

  constructor(private readonly endpoints: readonly Endpoint[]) {
    this.byEndpoint = endpoints.map(() => new Map());
  }

  /** endpoint: its place among the endpoints. collection: that the request named; undefined: none. */
  record(endpoint: number, status: number, milliseconds: number, dateMs: number, collection?: string): void {
    if (collection !== undefined) this.byCollection.record(collection, endpoint, status, milliseconds, dateMs, isGood(status));
    const byStatus = this.byEndpoint[endpoint] as Map<number, Durations>;
    let durations = byStatus.get(status);
    if (durations === undefined) {
      durations = new Durations();
      byStatus.set(status, durations);
    }
    durations.add(milliseconds, dateMs);
  }

  /** Counts of one more thread, which are added to those here. */
  share(): SharedCounts {
    const counts = new SharedCounts(new SharedArrayBuffer(SharedCounts.bytesFor(this.endpoints.length)));
    this.shared.push(counts);
    return counts;
  }

  /** What was counted of each collection, in the order of the endpoints, statuses ascending. nameOf: see `CollectionStats.counts`. */
  countsByCollection(nameOf: (name: string) => string | null): [collection: string, counts: RequestCounts<Endpoint>[]][] {
    return [...this.byCollection.counts(nameOf)].map(([collection, counts]) => [
      collection,
      [...counts]
        .sort((one, other) => one.endpoint - other.endpoint || one.status - other.status)
        .map(({ durations, endpoint, status }) => ({ endpoint: this.endpoints[endpoint] as Endpoint, status, durations })),
    ]);
  }

  /** What was counted, in the order of the endpoints, statuses ascending. */
  counts(): RequestCounts<Endpoint>[] {
    return this.endpoints.flatMap((endpoint, at) =>
      [...this.countsOf(at)].sort(([a], [b]) => a - b).map(([status, durations]) => ({ endpoint, status, durations })),
    );
  }

  private countsOf(endpoint: number): ReadonlyMap<number, Durations> {
    const own = this.byEndpoint[endpoint] as Map<number, Durations>;
    const others = this.shared.flatMap((counts) => counts.counts(endpoint));
    if (others.length === 0) return own;
    const sums = new Map<number, Durations>();
    for (const [status, durations] of [...own, ...others]) {
      const sum = sums.get(status) ?? new Durations();
      sum.merge(durations);
      sums.set(status, sum);
    }
    return sums;
  }
}

/** Of REST and of gRPC. */
export function isGood(status: number): boolean {
  return status === 0 || (status >= 200 && status < 300);
}
