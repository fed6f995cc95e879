/** Tries that led nowhere: each doubles the pause until the next one. Time is counted in ticks, which the caller hands in. */

export interface Tries {
  /** That were made since it was last well. */
  readonly tries: number;
  /** No other one before. */
  readonly nextTick: number;
}

/** One more try at `tick`. ticksMin: the first pause; ticksMax: the longest. */
export function afterTry(
  known: Tries | undefined,
  tick: number,
  { ticksMax, ticksMin }: { readonly ticksMin: number; readonly ticksMax: number },
): Tries {
  const before = known?.tries ?? 0;
  return { tries: before + 1, nextTick: tick + Math.min(ticksMax, ticksMin * 2 ** Math.min(before, 10)) };
}
