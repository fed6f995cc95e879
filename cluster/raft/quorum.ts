/** Majorities. Source: dissertation, section 3. */

/** The highest value that more than half of `values` reach; 0 when there are none. Sorts `values`. */
export function reachedByMajority(values: number[]): number {
  if (values.length === 0) return 0;
  values.sort((a, b) => b - a);
  return values[values.length >> 1] as number;
}

/** How a vote stands. yes, no: votes of voters so far. */
export function tally(yes: number, no: number, voters: number): 'won' | 'lost' | 'open' {
  const needed = (voters >> 1) + 1;
  if (yes >= needed) return 'won';
  return no > voters - needed ? 'lost' : 'open';
}
