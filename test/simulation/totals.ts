/** What many runs come to. */

import type { SimulationResult } from './simulate.js';

/** A result that can be sent to another process. */
export interface Summary {
  readonly seed: number;
  readonly violations: readonly string[];
  readonly figures: { readonly [name: string]: number };
  readonly faults: { readonly [kind: string]: number };
  readonly transfers: { readonly [what: string]: number };
  readonly reshardings: { readonly [what: string]: number };
  readonly sorts: { readonly [sort: string]: number };
  readonly recoveredMs: number;
}

export interface Totals {
  readonly seeds: number;
  readonly failed: readonly number[];
  readonly figures: ReadonlyMap<string, number>;
  readonly faults: ReadonlyMap<string, number>;
  readonly transfers: ReadonlyMap<string, number>;
  readonly reshardings: ReadonlyMap<string, number>;
  readonly sorts: ReadonlyMap<string, number>;
  readonly recoveredMsMax: number;
}

export function summaryOf(result: SimulationResult): Summary {
  const { clients, committed, events, faults, moves, network, points, recoveredMs, seed, sort, terms, undecided, violations } = result;
  return {
    seed,
    violations,
    figures: {
      events,
      'virtual ms': result.virtualMs,
      'committed entries': committed,
      terms,
      ...named('messages', network),
      ...named('calls', clients),
      ...named('points', points),
      ...named('shards', moves),
      'undecided histories': undecided,
      'ended as the last copy of a shard was removed by force': Number(result.lastCopyRemoved),
    },
    transfers: Object.fromEntries(result.transfers),
    reshardings: Object.fromEntries(result.reshardings),
    sorts: { [sort]: 1 },
    faults: Object.fromEntries(faults),
    recoveredMs,
  };
}

export function emptyTotals(): Totals {
  const empty = { figures: new Map(), faults: new Map(), transfers: new Map(), reshardings: new Map(), sorts: new Map() };
  return { seeds: 0, failed: [], ...empty, recoveredMsMax: 0 };
}

export function addTo(totals: Totals, summary: Summary): Totals {
  return {
    seeds: totals.seeds + 1,
    failed: summary.violations.length === 0 ? totals.failed : [...totals.failed, summary.seed],
    figures: sums(totals.figures, summary.figures),
    faults: sums(totals.faults, summary.faults),
    transfers: sums(totals.transfers, summary.transfers),
    reshardings: sums(totals.reshardings, summary.reshardings),
    sorts: sums(totals.sorts, summary.sorts),
    recoveredMsMax: Math.max(totals.recoveredMsMax, summary.recoveredMs),
  };
}

export function shown(totals: Totals): string {
  const list = (values: ReadonlyMap<string, number>) => [...values].map(([name, value]) => `${name} ${value}`).join(', ');
  const hours = (totals.figures.get('virtual ms') ?? 0) / 3_600_000;
  const lines = [
    `${totals.seeds} seeds, ${totals.failed.length} failed`,
    `${list(totals.figures)} (${hours.toFixed(1)} virtual hours)`,
    `faults: ${list(totals.faults)}`,
    `transfers: ${list(totals.transfers)}`,
    `resharding: ${list(totals.reshardings)}`,
    `clusters: ${list(totals.sorts)}`,
    `longest recovery: ${(totals.recoveredMsMax / 1000).toFixed(1)} virtual s`,
  ];
  return lines.join('\n');
}

function named(subject: string, counts: object): { [name: string]: number } {
  return Object.fromEntries(Object.entries(counts).map(([name, value]) => [`${subject} ${name}`, value as number]));
}

function sums(totals: ReadonlyMap<string, number>, values: { readonly [name: string]: number }): Map<string, number> {
  const next = new Map(totals);
  for (const [name, value] of Object.entries(values)) next.set(name, (next.get(name) ?? 0) + value);
  return next;
}
