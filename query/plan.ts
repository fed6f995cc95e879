/**
 * Decides how one segment is searched: not at all, by scoring the admitted rows one by one (gather), by scoring all
 * rows in order (scan), or by walking the graph. Pure; every plan says why.
 *
 * Invariant Q1: as many results as asked for, whenever so many rows match. Gather and scan see every row; a walk may
 * miss some, so its plan names the exact way to take when it comes back with fewer than min(k, admitted).
 *
 * Costs are nanoseconds per scored row, measured on 2 cores with 128-bit SIMD (200k × 128 and 60k × 784, f32): a scan
 * is bound by memory bandwidth (69 and 315 ns), a walk pays a cache miss and the bookkeeping of its heaps on top
 * (168 ns at 128 components).
 */

export type PlanElement = 'f32' | 'f16' | 'u8';

/** What planning needs to know of a segment, a filter and a query. */
export interface SegmentFacts {
  /** Rows, deleted ones included. */
  readonly rows: number;
  /** Rows that are visible and have the vector. */
  readonly live: number;
  /** Live rows that pass the filter; null without a filter. */
  readonly admitted: number | null;
  readonly hasGraph: boolean;
  readonly hasCodes: boolean;
  /** Asked for by the query: originals only, every row. */
  readonly exact: boolean;
  /** Asked for by the query: leave out large segments that have no graph. */
  readonly indexedOnly: boolean;
  /** Candidates of a walk as asked for; null: `efDefault`. */
  readonly hnswEf: number | null;
  /** The collection's `ef_construct`. */
  readonly efDefault: number;
  /** Results wanted: limit + offset. */
  readonly k: number;
  /** Kilobytes of vectors below which rows are scored one by one. */
  readonly fullScanThresholdKb: number;
  /** Kilobytes of vectors above which a segment gets a graph; 0 or null: never. */
  readonly indexingThresholdKb: number | null;
  readonly dim: number;
  /** Type of the originals. */
  readonly element: PlanElement;
  /** Links of a row on level 0. */
  readonly m0: number;
}

interface Scored {
  /** Score the 8-bit codes first, and the best `keep` rows anew with the originals. */
  readonly useCodes: boolean;
  /** Rows to keep of the first pass; k without codes. */
  readonly keep: number;
  readonly why: string;
}

export type SegmentPlan =
  | { readonly kind: 'none'; readonly why: string }
  /** Score the admitted (or live) rows, listed. */
  | ({ readonly kind: 'gather' } & Scored)
  /** Score all rows in order, leaving out those that are not admitted. */
  | ({ readonly kind: 'scan' } & Scored)
  /**
   * ef: size of the candidate list. narrow: score admitted rows only, reached over two hops.
   * fallback: what to do when fewer than min(k, admitted) rows come back.
   */
  | ({ readonly kind: 'walk'; readonly ef: number; readonly narrow: boolean; readonly fallback: 'gather' | 'scan' } & Scored);

const ELEMENT_BYTES: Record<PlanElement, number> = { f32: 4, f16: 2, u8: 1 };

/** Part of a step's neighbours that were not seen before, on average. */
const FRESH_NEIGHBOURS = 0.7;
/** Share of admitted rows below which a walk over all rows wastes too many scorings. */
const NARROW_BELOW = 0.25;
/** A gather is exact; a walk has to be this much cheaper to be chosen. */
const WALK_ADVANTAGE = 0.85;
/** Share of admitted rows above which reading all rows in order beats listing them. */
const SCAN_ABOVE = 0.5;
/** How much slower than a walk the exact way may be, for so few vectors that `full_scan_threshold` asks for it. */
const THRESHOLD_PATIENCE = 2;
/** Testing one neighbour's neighbour against the filter. */
const TWO_HOP_TEST_NS = 1.2;

/** The plan for one segment. */
export function planSegment(facts: SegmentFacts): SegmentPlan {
  const wanted = facts.admitted ?? facts.live;
  if (facts.k <= 0) return { kind: 'none', why: 'no results wanted' };
  if (facts.live === 0) return { kind: 'none', why: 'no live rows' };
  if (wanted === 0) return { kind: 'none', why: 'no row passes the filter' };
  if (facts.indexedOnly && !facts.hasGraph && isLarge(facts))
    return { kind: 'none', why: 'indexed_only, and the segment has no graph yet' };
  if (facts.exact) return exhaustive(facts, wanted, false, 'exact search asked for');
  if (!facts.hasGraph) return exhaustive(facts, wanted, facts.hasCodes, 'no graph');
  if (wanted <= facts.k * 2) return exhaustive(facts, wanted, facts.hasCodes, 'most of the rows are wanted');
  return cheaper(facts, wanted);
}

/** One line: what is done and why. */
export function explain(plan: SegmentPlan): string {
  switch (plan.kind) {
    case 'none':
      return `none: ${plan.why}`;
    case 'gather':
    case 'scan':
      return `${plan.kind} ${scoring(plan)}: ${plan.why}`;
    case 'walk':
      return `walk ef ${plan.ef}${plan.narrow ? ', two hops through the filter' : ''}, ${scoring(plan)}, else ${plan.fallback}: ${plan.why}`;
  }
}

function scoring(plan: Scored): string {
  return plan.useCodes ? `on codes, best ${plan.keep} rescored` : `on originals, best ${plan.keep}`;
}

function exhaustive(facts: SegmentFacts, wanted: number, useCodes: boolean, why: string): SegmentPlan {
  // Codes don't pay when nearly every row would be scored anew.
  const coded = useCodes && wanted > keepOf(facts.k) * 4;
  const kind = facts.admitted === null || wanted > facts.rows * SCAN_ABOVE ? 'scan' : 'gather';
  return { kind, useCodes: coded, keep: coded ? keepOf(facts.k) : facts.k, why };
}

function cheaper(facts: SegmentFacts, wanted: number): SegmentPlan {
  const selectivity = facts.admitted === null ? 1 : wanted / facts.live;
  const narrow = selectivity < NARROW_BELOW;
  const ef = Math.max(facts.hnswEf ?? facts.efDefault, facts.k);
  const plain = exhaustive(facts, wanted, facts.hasCodes, '');
  const exhaustiveNs = exhaustiveCost(facts, wanted, plain);
  const walkNs = walkCost(facts, ef, selectivity, narrow);
  const size = kilobytes(wanted, facts);
  if (size < facts.fullScanThresholdKb && exhaustiveNs <= walkNs * THRESHOLD_PATIENCE) {
    return { ...plain, why: `${Math.round(size)} kB are below full_scan_threshold` };
  }
  const costs = `walk ${micros(walkNs)}, ${plain.kind} ${micros(exhaustiveNs)}, ${percent(selectivity)} of ${facts.live} rows admitted`;
  if (exhaustiveNs * WALK_ADVANTAGE <= walkNs) return { ...plain, why: costs };
  const keep = facts.hasCodes ? Math.min(ef, keepOf(facts.k)) : facts.k;
  return { kind: 'walk', ef, narrow, useCodes: facts.hasCodes, keep, fallback: plain.kind === 'scan' ? 'scan' : 'gather', why: costs };
}

function exhaustiveCost(facts: SegmentFacts, wanted: number, plan: SegmentPlan): number {
  const bytes = plan.kind !== 'none' && plan.useCodes ? facts.dim : vectorBytes(facts);
  return plan.kind === 'scan' ? facts.rows + wanted * (6 + 0.125 * bytes) : wanted * (20 + 0.14 * bytes);
}

function walkCost(facts: SegmentFacts, ef: number, selectivity: number, narrow: boolean): number {
  const bytes = facts.hasCodes ? facts.dim : vectorBytes(facts);
  const perRow = 110 + 0.12 * bytes;
  const scored = ef * facts.m0 * FRESH_NEIGHBOURS;
  if (!narrow) return Math.min(scored / selectivity, facts.live) * perRow;
  return Math.min(scored, facts.live * selectivity) * perRow + ef * facts.m0 * facts.m0 * TWO_HOP_TEST_NS;
}

/** Candidates that are scored anew for k results: codes misplace few, so twice as many and some are plenty. */
function keepOf(k: number): number {
  return k * 2 + 16;
}

/** Larger than a segment may be without a graph. */
function isLarge(facts: SegmentFacts): boolean {
  if (facts.indexingThresholdKb === null || facts.indexingThresholdKb === 0) return false;
  return kilobytes(facts.live, facts) > Math.max(facts.indexingThresholdKb, facts.fullScanThresholdKb);
}

function kilobytes(rows: number, facts: SegmentFacts): number {
  return (rows * vectorBytes(facts)) / 1024;
}

function vectorBytes(facts: SegmentFacts): number {
  return facts.dim * ELEMENT_BYTES[facts.element];
}

function micros(nanoseconds: number): string {
  return `${Math.round(nanoseconds / 1000)} µs`;
}

function percent(share: number): string {
  return `${Number((share * 100).toPrecision(2))} %`;
}
