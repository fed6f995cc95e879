/**
 * Binary heaps of 64-bit keys. A key orders as its (score, row): higher score first, then smaller row. So one integer
 * comparison decides, ties included, and no float comparison can go astray.
 *
 * Two heaps: `push`/`pop` with `Best = 1` keep the best key at the root (candidates of a walk), with `Best = 0` the
 * worst one (the k best found so far).
 */

/** Key of a row. NaN, which infinite terms leave that cancel each other, is the lowest score. */
// @ts-ignore: decorator
@inline
export function keyOf(score: f32, row: u32): i64 {
  const bits = reinterpret<i32>(score == score ? score : f32.NEGATIVE_INFINITY);
  return ((<i64>(bits ^ ((bits >> 31) & 0x7fff_ffff))) << 32) | <i64>(<u32>~row);
}

// @ts-ignore: decorator
@inline
export function rowOf(key: i64): u32 {
  return ~(<u32>key);
}

// @ts-ignore: decorator
@inline
export function scoreOf(key: i64): f32 {
  const ordered = <i32>(key >> 32);
  return reinterpret<f32>(ordered ^ ((ordered >> 31) & 0x7fff_ffff));
}

/** Whether `a` belongs nearer to the root. Best: bool type for best-first, u8 for worst-first. */
// @ts-ignore: decorator
@inline
function above<Best>(a: i64, b: i64): bool {
  if (isBoolean<Best>()) return a > b;
  return a < b;
}

/** Adds a key to the heap of `size` keys. */
export function push<Best>(heap: usize, size: u32, key: i64): void {
  let at: u32 = size;
  while (at > 0) {
    const parent = (at - 1) >> 1;
    const other = load<i64>(heap + ((<usize>parent) << 3));
    if (!above<Best>(key, other)) break;
    store<i64>(heap + ((<usize>at) << 3), other);
    at = parent;
  }
  store<i64>(heap + ((<usize>at) << 3), key);
}

/** Puts `key` in the root's place in a heap of `size` keys (size >= 1). */
export function replaceRoot<Best>(heap: usize, size: u32, key: i64): void {
  let at: u32 = 0;
  for (;;) {
    let child: u32 = 2 * at + 1;
    if (child >= size) break;
    let other = load<i64>(heap + ((<usize>child) << 3));
    if (child + 1 < size) {
      const right = load<i64>(heap + ((<usize>(child + 1)) << 3));
      if (above<Best>(right, other)) {
        other = right;
        child++;
      }
    }
    if (!above<Best>(other, key)) break;
    store<i64>(heap + ((<usize>at) << 3), other);
    at = child;
  }
  store<i64>(heap + ((<usize>at) << 3), key);
}

/** Removes the root of a heap of `size` keys (size >= 1); its last key moves. */
// @ts-ignore: decorator
@inline
export function dropRoot<Best>(heap: usize, size: u32): void {
  const last = load<i64>(heap + ((<usize>(size - 1)) << 3));
  if (size > 1) replaceRoot<Best>(heap, size - 1, last);
}

/**
 * Turns a worst-first heap of `size` keys into the answer: the `k` best, best first, as u32 rows [k] at `out` and
 * f32 scores [k] behind them. Returns how many there are. The heap is used up; `out` must not overlap it.
 */
export function drain(heap: usize, size: u32, k: u32, out: usize): u32 {
  for (; size > k; size--) dropRoot<u8>(heap, size);
  const scores = out + ((<usize>size) << 2);
  for (let left = size; left > 0; left--) {
    const key = load<i64>(heap);
    store<u32>(out + ((<usize>(left - 1)) << 2), rowOf(key));
    store<f32>(scores + ((<usize>(left - 1)) << 2), scoreOf(key));
    dropRoot<u8>(heap, left);
  }
  return size;
}
