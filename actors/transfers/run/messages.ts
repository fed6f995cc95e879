/** What a transfer hears and what it causes. */

import type { AttachResult, CompareResult, FillResult } from '../../../cluster/replication/messages.js';
import type { ClusterCommand } from '../../../cluster/state/commands.js';
import type { TransferProgress } from '../../../cluster/transfer/progress.js';
import type { ErrorFacts } from '../../../protocols/errors.js';

export type TransferRunMessage =
  /** sent of total bytes of files; `nowMs` stands on messages that progress is told by. */
  | { readonly kind: 'fileSent'; readonly sent: number; readonly total: number; readonly nowMs: number }
  | { readonly kind: 'filesInstalled'; readonly nowMs: number }
  | { readonly kind: 'attached'; readonly attached: AttachResult; readonly nowMs: number }
  | { readonly kind: 'compared'; readonly compared: CompareResult; readonly nowMs: number }
  | { readonly kind: 'filled'; readonly filled: FillResult; readonly nowMs: number }
  | { readonly kind: 'required'; readonly nowMs: number }
  /** The leader takes no writes for a moment, or could not stop: then those under way end as at any change of leaders. */
  | { readonly kind: 'paused'; readonly nowMs: number }
  /** What was proposed is applied here. */
  | { readonly kind: 'agreed'; readonly nowMs: number }
  /** announced: the target is agreed to be Partial by now, maybe by what an earlier try or run has proposed. */
  | { readonly kind: 'failed'; readonly error: ErrorFacts; readonly announced: boolean; readonly nowMs: number }
  /** A pause after a failure is over. */
  | { readonly kind: 'retry'; readonly nowMs: number };

export type TransferEffect =
  | { readonly kind: 'sendFiles' }
  | { readonly kind: 'attach'; readonly mayReset: boolean }
  | { readonly kind: 'compare' }
  | { readonly kind: 'fill'; readonly buckets: readonly number[] }
  | { readonly kind: 'require' }
  | { readonly kind: 'pause' }
  | { readonly kind: 'resume' }
  | { readonly kind: 'propose'; readonly operation: ClusterCommand }
  | { readonly kind: 'retryLater'; readonly attempt: number }
  | { readonly kind: 'show'; readonly progress: TransferProgress }
  | { readonly kind: 'log'; readonly level: 'info' | 'warn'; readonly text: string };
