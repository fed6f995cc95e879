/** What a replica hears and what it causes. */

import type { ErrorFacts } from '../../protocols/errors.js';
import type { CollectionConfig } from '../../protocols/model/collection.js';
import type { Written } from '../../protocols/model/update.js';
import type { ReplicaStats } from '../../storage/threads/messages.js';
import type { ReplyTo } from '../runtime/behaviour.js';
import type { ReplicaLife } from './state.js';

export type ReplicaMessage =
  | { readonly kind: 'opened'; readonly stats: ReplicaStats }
  | { readonly kind: 'openFailed'; readonly error: ErrorFacts }
  /** The engine has closed the replica after an error. */
  | { readonly kind: 'failed'; readonly error: ErrorFacts }
  /** Time to try opening again. */
  | { readonly kind: 'retry' }
  | { readonly kind: 'stats'; readonly stats: ReplicaStats }
  /** Answered when the engine has taken the configuration over, or will when the replica opens. */
  | { readonly kind: 'configure'; readonly config: CollectionConfig; readonly replyTo: ReplyTo<boolean> }
  /** An index that its caller waits for is created; `stats` are the figures after it. */
  | { readonly kind: 'indexCreated'; readonly answer: WriteAnswer; readonly stats: ReplicaStats | null }
  /** The optimizer crashed too often and is stopped. */
  | { readonly kind: 'optimizerStopped'; readonly error: ErrorFacts }
  | InstallMessage
  | { readonly kind: 'close' }
  | { readonly kind: 'closed' };

/** Files in the folder `staged` take the place of the replica's. Answered when it is open with them. */
export interface InstallMessage {
  readonly kind: 'install';
  readonly staged: string;
  readonly replyTo: ReplyTo<boolean>;
}

/** An answer and who gets it. */
export interface WriteAnswer {
  readonly replyTo: ReplyTo<Written>;
  readonly written: Written;
}

export type ReplicaEffect =
  /** isDamaged: the files could not be used when they were last, and never will be. */
  | { readonly kind: 'open'; readonly isDamaged: boolean }
  /** As `open`, with other files. */
  | { readonly kind: 'install'; readonly install: InstallMessage }
  | { readonly kind: 'retryLater'; readonly attempt: number }
  /** Show requests whether the replica serves, and why not. */
  | { readonly kind: 'announce'; readonly state: ReplicaLife['kind']; readonly reason: ErrorFacts | null }
  | { readonly kind: 'startOptimizer' }
  | { readonly kind: 'stopOptimizer' }
  | { readonly kind: 'showStoppedOptimizer'; readonly error: ErrorFacts }
  /** Hand figures to the optimizer and take the next ones. */
  | { readonly kind: 'considerStats'; readonly stats: ReplicaStats }
  /** replyTo: null for a configuration that waited until the replica was open. */
  | { readonly kind: 'configure'; readonly config: CollectionConfig; readonly replyTo: ReplyTo<boolean> | null }
  | { readonly kind: 'configured'; readonly replyTo: ReplyTo<boolean> }
  | { readonly kind: 'answer'; readonly answer: WriteAnswer }
  | { readonly kind: 'refuse'; readonly replyTo: ReplyTo<never>; readonly error: ErrorFacts }
  | { readonly kind: 'tellOpened' }
  | { readonly kind: 'tellFailed'; readonly error: ErrorFacts }
  | { readonly kind: 'close' }
  | { readonly kind: 'tellClosedAndStop' };
