/** What is compared at equal recall. */

/** One of several measurements of the same searches, the least `hnsw_ef` first. */
export interface SearchAtEf {
  readonly recall: number;
  readonly cpuMs: number;
}

/** CPU at a recall, by straight line between two measured ones; the lowest where all are above it, null where none is. */
export function atRecall(searches: readonly SearchAtEf[], recall: number): number | null {
  const above = searches.findIndex((search) => search.recall >= recall);
  if (above === -1) return null;
  const high = searches[above] as SearchAtEf;
  const low = searches[above - 1];
  if (low === undefined || high.recall === low.recall) return high.cpuMs;
  return low.cpuMs + ((recall - low.recall) / (high.recall - low.recall)) * (high.cpuMs - low.cpuMs);
}
