/** What a shard hears and what it causes. */

import type { ErrorFacts } from '../../protocols/errors.js';
import type { CollectionConfig } from '../../protocols/model/collection.js';
import type { ReplyTo } from '../runtime/behaviour.js';

export type ShardMessage =
  | { readonly kind: 'replicaOpened' }
  /** The replica could not be opened or failed; it tries again by itself. */
  | { readonly kind: 'replicaFailed'; readonly error: ErrorFacts }
  /** The replica's actor crashed too often and is stopped. */
  | { readonly kind: 'replicaStopped'; readonly error: ErrorFacts }
  /** Answered when the replica has taken the configuration over, or will when it opens. */
  | { readonly kind: 'configure'; readonly config: CollectionConfig; readonly replyTo: ReplyTo<boolean> }
  | { readonly kind: 'close' }
  | { readonly kind: 'replicaClosed' };

export type ShardEffect =
  | { readonly kind: 'startReplica' }
  | { readonly kind: 'configureReplica'; readonly config: CollectionConfig; readonly replyTo: ReplyTo<boolean> }
  | { readonly kind: 'reply'; readonly replyTo: ReplyTo<boolean> }
  | { readonly kind: 'closeReplica' }
  /** The replica's actor is gone: the engine closes its files. */
  | { readonly kind: 'closeFiles'; readonly error: ErrorFacts }
  | { readonly kind: 'tellOpened' }
  | { readonly kind: 'tellFailed'; readonly error: ErrorFacts }
  | { readonly kind: 'tellClosedAndStop' };
