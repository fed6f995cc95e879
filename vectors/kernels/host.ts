/** What the kernels ask of the thread that calls them. */

// @ts-ignore: decorator
@external('env', 'expired')
declare function hostExpired(): i32;

/** Hops of a walk between two looks at the time limit: some ten microseconds of work. */
export const HOPS_PER_CHECK: u32 = 64;

/** Whether the time limit of the query has passed, and the kernel has to give up. */
export function expired(): bool {
  return hostExpired() != 0;
}

/** Bytes of rows that are scored, or coded, between two looks at the time limit: some ten microseconds of work. */
export const LOOK_BYTES: u32 = 131072;

/** Bytes that were worked on since the last look at the time limit, whichever kernel did. */
let bytesSinceLook: usize = 0;

/** Has the next `expiredAfter` look. */
export function lookFirst(): void {
  bytesSinceLook = usize.MAX_VALUE >> 1;
}

/** Asked before `bytes` bytes of rows are worked on: as `expired`, but looks only after each `lookBytes` of them. */
export function expiredAfter(bytes: usize, lookBytes: usize): bool {
  bytesSinceLook += bytes;
  if (bytesSinceLook < lookBytes) return false;
  bytesSinceLook = 0;
  return expired();
}
