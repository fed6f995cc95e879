/**
 * Lists of token vectors: those of a multivector that are near each other, whichever rows they belong to. A search looks at the lists that are nearest to each
 * vector of the query, and compares only rows that stand out there. Decisions only.
 */

import type { TokenLists } from '../../vectors/kernel-api.js';
import { codeMatrix } from './code-matrix.js';
import type { VectorLayout, VectorPlan } from './layout.js';

/**
 * Token vectors that a list should have. With 10,000 × 16 vectors, lists of half as many took twice the time to be ranked, and lists of twice as many twice
 * the time to be looked at.
 */
const LIST_ITEMS = 256;
/** More take longer to be ranked than they save. */
const LISTS_MAX = 8192;

/** Lists for so many token vectors of so many rows, at least one; scratch for rows holds their numbers. */
export function tokenListCount(rows: number, items: number): number {
  return Math.max(1, Math.min(LISTS_MAX, rows, Math.ceil(items / LIST_ITEMS)));
}

/** Room for the lists of a multivector that is to be built. */
export function reservedTokenLists(rows: number, items: number): NonNullable<VectorPlan['tokenLists']> {
  return { count: tokenListCount(rows, items), probes: 1 };
}

/** The lists of a vector as kernels look at them; null: it has none. */
export function openTokenLists(memory: WebAssembly.Memory, vector: VectorLayout): TokenLists | null {
  const { codes, tokenLists } = vector;
  if (tokenLists === null || codes === null) return null;
  const { centroids, count, items, rows, starts } = tokenLists;
  return {
    count,
    centroids: { ...codeMatrix(memory, vector, codes), offset: centroids },
    starts: new Uint32Array(memory.buffer, starts, count + 1),
    items,
    rows,
  };
}
