/** Sums of products of sparse vectors, row by row, from postings. */

/**
 * Adds weight * value to the sum (f64) of the row of each posting. rows: u32 [count], none of them twice, from `first` on.
 * values: f32 [count].
 */
export function addPostings(rows: usize, values: usize, count: u32, first: u32, weight: f64, sums: usize): void {
  const origin = sums - ((<usize>first) << 3);
  const end = rows + ((<usize>count) << 2);
  for (; rows < end; rows += 4, values += 4) {
    const at = origin + ((<usize>load<u32>(rows)) << 3);
    store<f64>(at, load<f64>(at) + weight * <f64>load<f32>(values));
  }
}

/**
 * Writes which of `count` sums (f64, a multiple of four) are `least` at least and not 0, and what they are as single floats, and
 * sets all to 0. places: u32 [count]; scores: f32 [count]. Returns how many there are.
 */
export function collectSums(sums: usize, count: u32, least: f64, places: usize, scores: usize): u32 {
  let found: u32 = 0;
  const bound = f64x2.splat(least);
  const zero = f64x2.splat(0);
  for (let place: u32 = 0; place < count; place += 4) {
    const at = sums + ((<usize>place) << 3);
    const one = v128.load(at);
    const other = v128.load(at, 16);
    const passing = v128.or(
      v128.and(f64x2.ge(one, bound), f64x2.ne(one, zero)),
      v128.and(f64x2.ge(other, bound), f64x2.ne(other, zero)),
    );
    if (!v128.any_true(passing)) continue;
    for (let lane: u32 = 0; lane < 4; lane++) {
      const sum = load<f64>(at + ((<usize>lane) << 3));
      const to = (<usize>found) << 2;
      store<u32>(places + to, place + lane);
      store<f32>(scores + to, <f32>sum);
      found += <u32>(sum >= least && sum != 0);
    }
  }
  memory.fill(sums, 0, (<usize>count) << 3);
  return found;
}
