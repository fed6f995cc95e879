/**
 * Decides how one segment is searched: not at all, by scoring the admitted rows one by one (gather), by scoring all
 * rows in order (scan), by walking a graph: that of all rows, or that of the rows of one payload value which the filter
 * demands, by reading the nearest of its lists from disk, or by looking at the nearest of its lists of token vectors.
 * Pure; every plan holds the facts that decided it, and `explain` words them.
 *
 * Invariant Query-Q1: as many results as asked for, whenever so many rows match. Gather and scan see every row; a walk may
 * miss some, so its plan names the exact way to take when it comes back with fewer than min(k, admitted).
 *
 * Costs are nanoseconds per scored row, measured on 2 cores with 128-bit SIMD (200k × 128 and 60k × 784, f32): a scan
 * is bound by memory bandwidth (69 and 315 ns), a walk pays a cache miss and the bookkeeping of its heaps on top
 * (168 ns at 128 components).
 */

import { endsByDistance } from '../vectors/walk-end.js';

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
  /** Null: none, or they are to be left alone. */
  readonly codes: CodeFacts | null;
  /** Asked for by the query: originals only, every row. */
  readonly exact: boolean;
  /** Leave the segment out unless it has a graph: the query asks for indexed rows, and so many are not that they are to be. */
  readonly indexedOnly: boolean;
  /** Candidates of a walk as asked for; null: `efDefault`. */
  readonly hnswEf: number | null;
  /** The collection's `ef_construct`. */
  readonly efDefault: number;
  /** Shards that points are shared out to by their ids, the segment's included: each has its share of any query's nearest. */
  readonly shards: number;
  /** Results wanted: limit + offset. */
  readonly k: number;
  /** Kilobytes of vectors below which rows are scored one by one. */
  readonly fullScanThresholdKb: number;
  readonly dim: number;
  /** Type of the originals. */
  readonly element: PlanElement;
  /** Links of a row on level 0. */
  readonly m0: number;
  /** The graph over the rows of a payload value that every match has; null without one. */
  readonly valueGraph: { readonly rows: number; readonly m0: number; readonly of: string } | null;
  /** Rows that have codes of their own, by which a scan leaves out most; left out: none. */
  readonly codedRows?: number;
  /** Its rows lie in lists on disk in place of a graph; left out: they do not. */
  readonly lists?: ListFacts;
  /** Token vectors of a multivector lie in lists; left out: they do not, or the vector is no multivector. */
  readonly tokenLists?: TokenListFacts;
}

/** What planning needs to know of lists of token vectors. */
export interface TokenListFacts {
  readonly count: number;
  /** Lists that a search with ef 100 looks at for each vector of the query, without a filter. */
  readonly probes: number;
  /** Token vectors of all rows, and vectors of the query. */
  readonly vectors: number;
  readonly queryVectors: number;
}

/** What planning needs to know of lists. */
export interface ListFacts {
  readonly count: number;
  /** Lists that a search with ef 100 reads, without a filter. */
  readonly probes: number;
}

/** What planning needs to know of a segment's codes, and of how they are to be used. */
export interface CodeFacts {
  /** Of a row. */
  readonly bytes: number;
  /** Whether the best rows are scored anew with the originals. */
  readonly rescore: boolean;
  /** Candidates for each wanted result before that, as asked for; null: as many as suit the codes. */
  readonly oversampling: number | null;
  /** They misplace many rows, as codes of two bits or less do. */
  readonly coarse: boolean;
  /** They are those of a multivector, whose scores add up what each vector of the query misplaces; left out: false. */
  readonly summed?: boolean;
  /** Whether a walk's whole candidate list is scored anew, as costs little where the originals are in memory. */
  readonly rescoreFound: boolean;
}

interface Scored {
  /** Score the codes first. */
  readonly useCodes: boolean;
  /** Then score the best `keep` rows anew with the originals; false without codes. */
  readonly rescore: boolean;
  /** Rows to keep of the first pass; k without codes. */
  readonly keep: number;
  readonly why: PlanReason;
}

/** What decided a plan, as facts: only `explain` makes text of them. */
export type PlanReason =
  | { readonly kind: 'nothingWanted' | 'noLiveRows' | 'noneAdmitted' | 'indexedOnly' | 'exact' | 'noGraph' | 'mostRowsWanted' }
  /** Examples that no walk leads to, codes that cannot tell on which side of examples a row lies, or more examples than a walk can take. */
  | { readonly kind: 'placeless' | 'coarseCodes' | 'manyExamples' }
  /** The admitted rows are fewer than `full_scan_threshold` asks to walk among. */
  | { readonly kind: 'belowThreshold'; readonly kilobytes: number }
  | { readonly kind: 'lists'; readonly count: number; readonly probes: number; readonly selectivity: number }
  /** The admitted rows are too few for lists: each is read by itself. */
  | { readonly kind: 'fewerThanLists'; readonly probes: number }
  /** Token vectors lie in lists: what looking at the nearest is estimated to take, and comparing all rows that pass. */
  | {
      readonly kind: 'tokenLists' | 'fewerThanTokenLists';
      readonly count: number;
      readonly probes: number;
      readonly ns: number;
      readonly exhaustiveNs: number;
    }
  | { readonly kind: 'costs'; readonly walk: WalkCost; readonly exhaustive: 'gather' | 'scan'; readonly exhaustiveNs: number };

/** The cheapest walk, and among which rows it goes. */
export interface WalkCost {
  readonly ns: number;
  /** Rows in the graph. */
  readonly rows: number;
  /** The part of them that is admitted, 0 to 1. */
  readonly selectivity: number;
  /** The payload value whose rows these are; null: all rows. */
  readonly of: string | null;
}

export type SegmentPlan =
  | { readonly kind: 'none'; readonly why: PlanReason }
  /** Score the admitted (or live) rows, listed. */
  | ({ readonly kind: 'gather' } & Scored)
  /** Score all rows in order, leaving out those that are not admitted. */
  | ({ readonly kind: 'scan' } & Scored)
  /**
   * graph: over all rows, or over those of a payload value. ef: size of the candidate list. narrow: score admitted rows only,
   * reached over two hops.
   * fallback: what to do when fewer than min(k, admitted) rows come back.
   */
  | ({
      readonly kind: 'walk';
      readonly graph: 'whole' | 'value';
      readonly ef: number;
      readonly narrow: boolean;
      readonly fallback: 'gather' | 'scan';
    } & Scored)
  /** Read the `probes` lists whose middles are nearest and score their rows' codes. fallback: as of a walk, on originals. */
  | ({ readonly kind: 'lists'; readonly probes: number; readonly fallback: 'gather' | 'scan' } & Scored)
  /**
   * Look at the `probes` lists of token vectors that are nearest to each vector of the query, and compare the `compared` rows that stand out there. Where
   * fewer than min(k, admitted) do, all rows are compared, as without lists.
   */
  | ({ readonly kind: 'tokenLists'; readonly probes: number; readonly compared: number } & Scored);

const ELEMENT_BYTES: Record<PlanElement, number> = { f32: 4, f16: 2, u8: 1 };

/** Part of a step's neighbours that were not seen before, on average. */
const FRESH_NEIGHBOURS = 0.7;
/** Share of admitted rows below which a walk over all rows wastes too many scorings. */
const NARROW_BELOW = 0.25;
/** A gather is exact; a walk has to be this much cheaper to be chosen. */
export const WALK_ADVANTAGE = 0.85;
/** Share of admitted rows above which reading all rows in order beats listing them. */
const SCAN_ABOVE = 0.5;
/** How much slower than a walk the exact way may be, for so few vectors that `full_scan_threshold` asks for it. */
export const THRESHOLD_PATIENCE = 2;
/** The `hnsw_ef` for which lists know how many of them a search reads. */
const PROBES_EF = 100;
/** Reading a list and scoring its rows takes as long as reading so many rows one by one. */
const ROWS_PER_LIST_READ = 2;
/** Reading a list from a disk, and scoring its rows. */
const LIST_READ_NS = 300_000;
/**
 * Testing one neighbour's neighbour against the filter, the wait for the lists of all neighbours included. Measured as what a narrow walk takes beyond its
 * scored rows: 2 ns (60k × 784, whose lists are short) to 5 (50k × 256 and 200k × 128, synthetic), filters of 2 to 25 % of the rows.
 */
const TWO_HOP_TEST_NS = 4;
/** Candidates that each of several shards keeps at least, unless fewer are asked for. */
const SHARED_EF_MIN = 24;
/** Beyond so many candidates a walk that ends by distance opens fewer rows than `ef`: 1.4 to 1.7 times as many for twice the ef. */
const OPENED_IN_FULL = 32;
const OPENED_GROWTH = 0.7;

/** The `hnsw_ef` for which lists of token vectors know how many of them a search looks at, and the results it is asked for then. */
export const TOKEN_PROBES = { ef: PROBES_EF, k: 10 } as const;
/** Rows that are compared for each candidate asked for: what lists tell of a row is part of its score. */
const COMPARED_PER_CANDIDATE = 4;
/** Comparing two vectors by codes, in the order of memory; and what it takes more to look one up from a list and to note it for its row. */
const PAIR_NS = { fixed: 0.5, component: 0.055 } as const;
const LOOKED_UP_NS = 12;

/** The plan for one segment. */
export function planSegment(facts: SegmentFacts): SegmentPlan {
  const wanted = facts.admitted ?? facts.live;
  if (facts.k <= 0) return NOTHING_WANTED;
  if (facts.live === 0) return NO_LIVE_ROWS;
  if (wanted === 0) return NONE_ADMITTED;
  if (facts.indexedOnly && !facts.hasGraph && facts.lists === undefined) return INDEXED_ONLY;
  if (facts.exact) return { ...exhaustive(facts, wanted, false), why: { kind: 'exact' } };
  if (facts.lists !== undefined) return byLists(facts, facts.lists, wanted);
  if (facts.tokenLists !== undefined) return byTokenLists(facts, facts.tokenLists, wanted);
  if (!facts.hasGraph && facts.valueGraph === null) return { ...exhaustive(facts, wanted, facts.codes !== null), why: { kind: 'noGraph' } };
  if (wanted <= askedFor(facts) * 2) return { ...exhaustive(facts, wanted, facts.codes !== null), why: { kind: 'mostRowsWanted' } };
  return cheaper(facts, wanted);
}

/** Nanoseconds that a plan for these facts takes. */
export function planNs(facts: SegmentFacts, plan: SegmentPlan): number {
  switch (plan.kind) {
    case 'none':
      return 0;
    case 'walk':
      return plan.why.kind === 'costs' ? plan.why.walk.ns : 0;
    case 'lists':
      return plan.probes * LIST_READ_NS;
    case 'tokenLists':
      return plan.why.kind === 'tokenLists' ? plan.why.ns : 0;
    case 'gather':
    case 'scan':
      return exhaustiveCost(facts, facts.admitted ?? facts.live, plan);
    default:
      return plan satisfies never;
  }
}

const NOTHING_WANTED: SegmentPlan = { kind: 'none', why: { kind: 'nothingWanted' } };
const NO_LIVE_ROWS: SegmentPlan = { kind: 'none', why: { kind: 'noLiveRows' } };
const NONE_ADMITTED: SegmentPlan = { kind: 'none', why: { kind: 'noneAdmitted' } };
const INDEXED_ONLY: SegmentPlan = { kind: 'none', why: { kind: 'indexedOnly' } };

/** One line: what is done and why. */
export function explain(plan: SegmentPlan): string {
  switch (plan.kind) {
    case 'none':
      return `none: ${reasonText(plan.why)}`;
    case 'gather':
    case 'scan':
      return `${plan.kind} ${scoring(plan)}: ${reasonText(plan.why)}`;
    case 'lists':
      return `lists ${plan.probes}, ${scoring(plan)}, else ${plan.fallback}: ${reasonText(plan.why)}`;
    case 'tokenLists':
      return `token lists ${plan.probes}, ${plan.compared} rows compared ${scoring(plan)}: ${reasonText(plan.why)}`;
    case 'walk':
      return `walk${plan.graph === 'value' ? ' of sub-graph' : ''} ef ${plan.ef}${plan.narrow ? ', two hops through the filter' : ''}, ${scoring(plan)}, else ${plan.fallback}: ${reasonText(plan.why)}`;
  }
}

function reasonText(why: PlanReason): string {
  switch (why.kind) {
    case 'nothingWanted':
      return 'no results wanted';
    case 'noLiveRows':
      return 'no live rows';
    case 'noneAdmitted':
      return 'no row passes the filter';
    case 'indexedOnly':
      return 'indexed_only, and the segment has no graph yet';
    case 'exact':
      return 'exact search asked for';
    case 'noGraph':
      return 'no graph';
    case 'mostRowsWanted':
      return 'most of the rows are wanted';
    case 'placeless':
      return 'the examples lead to no place in the graph';
    case 'coarseCodes':
      return 'codes too coarse to tell on which side of examples a row lies';
    case 'manyExamples':
      return 'too many examples for a walk';
    case 'belowThreshold':
      return `${Math.round(why.kilobytes)} kB are below full_scan_threshold`;
    case 'lists':
      return `${why.count} lists on disk, ${percent(why.selectivity)} of the rows admitted`;
    case 'tokenLists':
    case 'fewerThanTokenLists':
      return `${why.probes} of ${why.count} lists ${micros(why.ns)}, all rows that pass ${micros(why.exhaustiveNs)}`;
    case 'fewerThanLists':
      return `so few rows take fewer reads than ${why.probes} lists on disk`;
    case 'costs': {
      const { ns, rows, selectivity, of } = why.walk;
      const admitted = `${percent(selectivity)} of ${rows} rows${of === null ? '' : ` of ${of}`} admitted`;
      return `walk ${micros(ns)}, ${why.exhaustive} ${micros(why.exhaustiveNs)}, ${admitted}`;
    }
    default:
      return why satisfies never;
  }
}

function scoring(plan: Scored): string {
  return `on ${plan.useCodes ? 'codes' : 'originals'}, best ${plan.keep}${plan.rescore ? ' rescored' : ''}`;
}

/** A way that sees every row, without its reason. */
type Exhaustive = { readonly kind: 'gather' | 'scan' } & Omit<Scored, 'why'>;

function exhaustive(facts: SegmentFacts, wanted: number, useCodes: boolean): Exhaustive {
  // Codes don't pay when nearly every row would be scored anew.
  const codes = useCodes && wanted > keepOf(facts, facts.codes) * 4 ? facts.codes : null;
  const kind = facts.admitted === null || wanted > facts.rows * SCAN_ABOVE ? 'scan' : 'gather';
  return { kind, ...scored(codes, keepOf(facts, codes)) };
}

function scored(codes: CodeFacts | null, keep: number): Omit<Scored, 'why'> {
  return { useCodes: codes !== null, rescore: codes?.rescore === true, keep };
}

function cheaper(facts: SegmentFacts, wanted: number): SegmentPlan {
  const { codes } = facts;
  const ef = Math.max(sharedEf(facts), askedFor(facts));
  const plain = exhaustive(facts, wanted, codes !== null);
  const exhaustiveNs = exhaustiveCost(facts, wanted, plain);
  const walk = cheapestWalk(facts, ef, wanted);
  const size = kilobytes(wanted, facts);
  if (size < facts.fullScanThresholdKb && exhaustiveNs <= walk.ns * THRESHOLD_PATIENCE) {
    return { ...plain, why: { kind: 'belowThreshold', kilobytes: size } };
  }
  const why: PlanReason = { kind: 'costs', walk, exhaustive: plain.kind, exhaustiveNs };
  if (exhaustiveNs * WALK_ADVANTAGE <= walk.ns) return { ...plain, why };
  const keep = codes?.rescore && codes.rescoreFound ? ef : Math.min(ef, keepOf(facts, codes));
  return { kind: 'walk', graph: walk.graph, narrow: walk.narrow, ef, ...scored(codes, keep), fallback: plain.kind, why };
}

/**
 * Candidates of a walk. Of the nearest rows few lie in each of many shards, which find them with fewer candidates: divided by the root of the number
 * of shards `ef` gives the recall of one shard with `ef` or a higher one, to a thousandth (figures in the README).
 */
function sharedEf({ efDefault, hnswEf, shards }: SegmentFacts): number {
  const asked = hnswEf ?? efDefault;
  return Math.max(Math.min(asked, SHARED_EF_MIN), Math.ceil(asked / Math.sqrt(shards)));
}

/**
 * Rows that lie in lists on disk: their codes are not in memory. Lists are read in proportion to `hnsw_ef`, and, as rows that pass lie farther away the
 * fewer they are, to the root of how many there are of each. Few rows are read one by one.
 */
function byLists(facts: SegmentFacts, lists: ListFacts, wanted: number): SegmentPlan {
  const ef = Math.max(facts.hnswEf ?? facts.efDefault, askedFor(facts));
  const selectivity = facts.admitted === null ? 1 : Math.min(1, wanted / facts.live);
  const probes = Math.min(lists.count, Math.ceil((lists.probes * ef) / PROBES_EF / Math.sqrt(selectivity)));
  const plain = exhaustive(facts, wanted, false);
  if (wanted <= askedFor(facts) * 2) return { ...plain, why: { kind: 'mostRowsWanted' } };
  if (wanted <= probes * ROWS_PER_LIST_READ) return { ...plain, why: { kind: 'fewerThanLists', probes } };
  const keep = keepOf(facts, facts.codes);
  return {
    kind: 'lists',
    probes,
    ...scored(facts.codes, keep),
    fallback: plain.kind,
    why: { kind: 'lists', count: lists.count, probes, selectivity },
  };
}

/**
 * Rows of which vectors lie in lists. These are looked at to the root of `hnsw_ef`, as later ones say less and less, and of how many rows there are for each
 * that passes, as those lie farther away.
 */
function byTokenLists(facts: SegmentFacts, lists: TokenListFacts, wanted: number): SegmentPlan {
  const { dim, rows } = facts;
  const { count, queryVectors, vectors } = lists;
  const ef = Math.max(facts.hnswEf ?? facts.efDefault, askedFor(facts));
  const selectivity = facts.admitted === null ? 1 : Math.min(1, wanted / facts.live);
  const probes = Math.min(count, Math.ceil(lists.probes * Math.sqrt(ef / TOKEN_PROBES.ef / selectivity)));
  const compared = comparedByTokens(ef, facts.k);
  const plain = exhaustive(facts, wanted, facts.codes !== null);
  // Rows that are found are kept in half the scratch of all.
  if (wanted <= compared * 2 || compared * 2 > rows) return { ...plain, why: { kind: 'mostRowsWanted' } };
  const pairNs = PAIR_NS.fixed + PAIR_NS.component * dim;
  const lookedAt = (vectors * probes) / count;
  const ns = queryVectors * (count * pairNs + lookedAt * (pairNs + LOOKED_UP_NS) + ((compared * vectors) / rows) * pairNs);
  const exhaustiveNs = queryVectors * vectors * selectivity * pairNs;
  const why = { count, probes, ns, exhaustiveNs };
  if (exhaustiveNs * WALK_ADVANTAGE <= ns) return { ...plain, why: { kind: 'fewerThanTokenLists', ...why } };
  return {
    kind: 'tokenLists',
    probes,
    compared,
    ...scored(facts.codes, keepOf(facts, facts.codes)),
    why: { kind: 'tokenLists', ...why },
  };
}

/** Rows that are compared by all of their vectors, of those that lists of token vectors have found. */
export function comparedByTokens(ef: number, k: number): number {
  return COMPARED_PER_CANDIDATE * Math.max(ef, 2 * k);
}

export interface PlannedWalk extends WalkCost {
  readonly graph: 'whole' | 'value';
  readonly narrow: boolean;
}

/** There is a graph. Of walks that cost the same the one among fewer rows finds more. */
export function cheapestWalk(facts: SegmentFacts, ef: number, wanted: number): PlannedWalk {
  const walks: PlannedWalk[] = [];
  if (facts.hasGraph) walks.push(walkOf('whole', facts, ef, facts.admitted === null ? 1 : wanted / facts.live, null));
  if (facts.valueGraph !== null) {
    const { rows, m0, of } = facts.valueGraph;
    walks.push(walkOf('value', { ...facts, live: rows, m0 }, ef, Math.min(1, wanted / rows), of));
  }
  return walks.reduce((best, walk) => (walk.ns <= best.ns ? walk : best));
}

function walkOf(graph: PlannedWalk['graph'], facts: SegmentFacts, ef: number, selectivity: number, of: string | null): PlannedWalk {
  const narrow = selectivity < NARROW_BELOW;
  return { graph, narrow, ns: walkCost(facts, openedOf(facts, ef), selectivity, narrow), rows: facts.live, selectivity, of };
}

/**
 * Rows whose neighbours a walk looks at. By codes of less than a byte walks end by ef alone. So do those of graphs of single payload values, which are
 * taken to cost what the same walk of the whole graph would: they find more.
 */
function openedOf({ k, codes, dim }: SegmentFacts, ef: number): number {
  const quantized = codes !== null && codes.bytes < dim;
  if (quantized || ef <= OPENED_IN_FULL || !endsByDistance(k, ef)) return ef;
  return OPENED_IN_FULL * (ef / OPENED_IN_FULL) ** OPENED_GROWTH;
}

function exhaustiveCost(facts: SegmentFacts, wanted: number, plan: Pick<Exhaustive, 'kind' | 'useCodes'>): number {
  const bytes = plan.useCodes && facts.codes ? facts.codes.bytes : scannedBytes(facts);
  return plan.kind === 'scan' ? facts.rows + wanted * (6 + 0.125 * bytes) : wanted * (20 + 0.14 * bytes);
}

/** Bytes of a row that are read on average where all are looked at: of those with codes of their own a byte for each component. */
function scannedBytes(facts: SegmentFacts): number {
  const bytes = vectorBytes(facts);
  const coded = Math.min(facts.codedRows ?? 0, facts.rows) / Math.max(1, facts.rows);
  return bytes - coded * (bytes - facts.dim);
}

function walkCost(facts: SegmentFacts, opened: number, selectivity: number, narrow: boolean): number {
  const bytes = facts.codes?.bytes ?? vectorBytes(facts);
  const perRow = 110 + 0.12 * bytes;
  const scored = opened * facts.m0 * FRESH_NEIGHBOURS;
  if (!narrow) return Math.min(scored / selectivity, facts.live) * perRow;
  return Math.min(scored, facts.live * selectivity) * perRow + opened * facts.m0 * facts.m0 * TWO_HOP_TEST_NS;
}

/**
 * Candidates that are scored anew for k results. 8-bit codes misplace few, so twice as many and some are plenty; coarse ones
 * need twice that, and far more where scores are sums: in 30,000 to 50,000 rows 400 product codes of a byte for eight components held 0.98 of the
 * ten best by MaxSim and more, 50 held 0.81 to 0.92. Without codes, or without rescoring: k.
 */
function keepOf({ k, rows }: SegmentFacts, codes: CodeFacts | null): number {
  if (codes === null || !codes.rescore) return k;
  if (codes.oversampling !== null) return Math.max(k, Math.min(rows, Math.ceil(k * codes.oversampling)));
  if (codes.coarse) return k * 4 + (codes.summed === true ? 360 : 32);
  return k * 2 + 16;
}

/** Rows a walk has to find: the results, or the candidates for them where the request says how many. */
function askedFor(facts: SegmentFacts): number {
  return facts.codes === null || facts.codes.oversampling === null ? facts.k : keepOf(facts, facts.codes);
}

export function kilobytes(rows: number, facts: SegmentFacts): number {
  return (rows * vectorBytes(facts)) / 1024;
}

export function vectorBytes(facts: SegmentFacts): number {
  return facts.dim * ELEMENT_BYTES[facts.element];
}

function micros(nanoseconds: number): string {
  return `${Math.round(nanoseconds / 1000)} µs`;
}

function percent(share: number): string {
  return `${Number((share * 100).toPrecision(2))} %`;
}
