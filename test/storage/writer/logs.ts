import type { LogShare } from '../../../storage/wal/log-budget.js';

/** Of a writer whose replicas keep of their logs what they want. */
export const UNLIMITED_LOGS: LogShare = {
  budgetBytes: Number.POSITIVE_INFINITY,
  writers: 1,
  asleep: new Int32Array(1),
  isRestorable: false,
};
