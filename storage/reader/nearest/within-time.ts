/** Calls of kernels within the time limit of a read. */

import { KernelExpired } from '../../../vectors/kernel-api.js';
import { timeLimitReached } from '../../threads/deadline.js';

/** What `work` returns. Errors: `timeout` where a kernel has ended as the time limit passed. */
export function withinTime<T>(work: () => T): T {
  try {
    return work();
  } catch (error) {
    if (error instanceof KernelExpired) throw timeLimitReached();
    throw error;
  }
}
