/** A generator of random numbers as a value: the same state gives the same number. Source: Marsaglia, «Xorshift RNGs» (2003). */

/** Draws a number. state: any integer. value: 0..below - 1. next: the state for the next draw. */
export function draw(state: number, below: number): { readonly value: number; readonly next: number } {
  let next = state | 0 || 0x9e3779b9;
  next ^= next << 13;
  next ^= next >>> 17;
  next ^= next << 5;
  return { value: (next >>> 0) % below, next };
}
