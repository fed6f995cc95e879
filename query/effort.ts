/**
 * How long a part of a read will take, in nanoseconds of one thread, before it is begun: decides which reads stand before others for so long
 * that another thread should do them. Pure. Figures are measured as those of `plan.ts`, and rough: they tell microseconds from milliseconds.
 */

/** A part of a read, by what there is to do. Rows and points are counted, bytes are those of one row's vector. */
export type Work =
  /** Bytes of a request are decoded. */
  | { readonly kind: 'decode'; readonly bytes: number }
  /** As a plan has estimated it. */
  | { readonly kind: 'planned'; readonly ns: number }
  /** Vectors of rows here and there are compared with so many others. */
  | { readonly kind: 'score'; readonly rows: number; readonly bytes: number; readonly others: number }
  /** Rows of a multivector, of so many vectors together, are compared with each vector of a query. */
  | { readonly kind: 'maxSim'; readonly vectors: number; readonly bytes: number; readonly others: number }
  /** Postings of an inverted index are added up. */
  | { readonly kind: 'postings'; readonly count: number }
  /** Payloads are parsed and looked at. */
  | { readonly kind: 'payloads'; readonly count: number }
  /** Entries of an index are visited, or rows in the order of their ids. */
  | { readonly kind: 'entries'; readonly count: number }
  /** Points are shown; numbers: components of their vectors that are printed for each. */
  | { readonly kind: 'show'; readonly points: number; readonly numbers: number };

/** Reads of more than this are heavy: a quick one takes a tenth of it. */
export const HEAVY_NS = 1_000_000;
/** Where quick reads are about that take longer, a read is heavy from so many times that on. */
const HEAVY_TIMES = 4;

/** A larger body takes so long to decode that its read is heavy before it is looked at, and may miss its deadline by it. */
export const HEAVY_BODY_BYTES = 1 << 20;

/** A write whose body is larger is decoded where heavy reads are: a thread with connections would hear nobody meanwhile, also no timeouts. */
export const HEAVY_WRITE_BYTES = 4 << 20;

/** Reads of more than this are left also where no quick ones are about: a thread with connections hears nobody while it reads. */
const LONG_NS = 50_000_000;

/**
 * Above how many nanoseconds a thread leaves a read to another one. mayLeave: there is another one. quickNs: how long quick reads take that are about, which
 * would wait for it; null: there are none.
 */
export function effortNsMaxOf(mayLeave: boolean, quickNs: number | null): number {
  if (!mayLeave) return Number.POSITIVE_INFINITY;
  return quickNs === null ? LONG_NS : Math.max(HEAVY_NS, HEAVY_TIMES * quickNs);
}

const DECODE_BYTE_NS = 5;
const SCORE_ROW_NS = 30;
const SCORE_BYTE_NS = 0.14;
const MAX_SIM_PAIR_NS = 10;
const MAX_SIM_BYTE_NS = 0.05;
const POSTING_NS = 6;
const PAYLOAD_NS = 3000;
const ENTRY_NS = 20;
const SHOW_POINT_NS = 1500;
const SHOW_NUMBER_NS = 50;

export function effortNs(work: Work): number {
  switch (work.kind) {
    case 'decode':
      return work.bytes * DECODE_BYTE_NS;
    case 'planned':
      return work.ns;
    case 'score':
      return work.rows * work.others * (SCORE_ROW_NS + SCORE_BYTE_NS * work.bytes);
    case 'maxSim':
      return work.vectors * work.others * (MAX_SIM_PAIR_NS + MAX_SIM_BYTE_NS * work.bytes);
    case 'postings':
      return work.count * POSTING_NS;
    case 'payloads':
      return work.count * PAYLOAD_NS;
    case 'entries':
      return work.count * ENTRY_NS;
    case 'show':
      return work.points * (SHOW_POINT_NS + work.numbers * SHOW_NUMBER_NS);
    default:
      return work satisfies never;
  }
}
