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
