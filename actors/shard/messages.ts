/** What a shard hears and what it causes. */

import type { ErrorFacts } from '../../protocols/errors.js';
import type { CollectionConfig } from '../../protocols/model/collection.js';
import type { ReplyTo } from '../runtime/behaviour.js';

export type ShardMessage =
  | { readonly kind: 'replicaOpened' }
  | { readonly kind: 'replicaDied'; readonly error: ErrorFacts }
  /** The replica crashed too often and is stopped. */
  | { readonly kind: 'replicaGaveUp'; readonly error: ErrorFacts }
  /** Answered when the replica has taken the configuration over, or will when it opens. */
  | { readonly kind: 'configure'; readonly config: CollectionConfig; readonly replyTo: ReplyTo<boolean> }
  | { readonly kind: 'close' }
  | { readonly kind: 'replicaClosed' };

export type ShardEffect =
  | { readonly kind: 'startReplica' }
  | { readonly kind: 'configureReplica'; readonly config: CollectionConfig; readonly replyTo: ReplyTo<boolean> }
  | { readonly kind: 'reply'; readonly replyTo: ReplyTo<boolean> }
  | { readonly kind: 'closeReplica' }
  /** The replica's actor is gone: the engine lets its files go. */
  | { readonly kind: 'abandonReplica'; readonly error: ErrorFacts }
  | { readonly kind: 'tellOpened' }
  | { readonly kind: 'tellDied'; readonly error: ErrorFacts }
  | { readonly kind: 'tellClosedAndStop' };
