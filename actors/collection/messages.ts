/** What a collection hears and what it causes. */

import type { ErrorFacts } from '../../protocols/errors.js';
import type { CollectionConfig } from '../../protocols/model/collection.js';
import type { ReplyTo } from '../runtime/behaviour.js';

export type CollectionMessage =
  /** Its configuration is on disk and this. */
  | { readonly kind: 'loaded'; readonly config: CollectionConfig }
  | { readonly kind: 'loadFailed'; readonly error: ErrorFacts }
  | { readonly kind: 'createFailed'; readonly error: ErrorFacts }
  | { readonly kind: 'shardOpened'; readonly shardId: number }
  | { readonly kind: 'shardDied'; readonly shardId: number; readonly error: ErrorFacts }
  | { readonly kind: 'shardClosed'; readonly shardId: number }
  /** The shard crashed too often and is stopped. */
  | { readonly kind: 'shardGaveUp'; readonly shardId: number; readonly error: ErrorFacts }
  | UpdateMessage
  | { readonly kind: 'saved'; readonly config: CollectionConfig; readonly replyTo: ReplyTo<boolean> }
  | { readonly kind: 'saveFailed'; readonly error: ErrorFacts; readonly replyTo: ReplyTo<boolean> }
  /** Answered when its files are gone for good. */
  | { readonly kind: 'delete'; readonly replyTo: ReplyTo<boolean> }
  | { readonly kind: 'removed' }
  | { readonly kind: 'removeFailed'; readonly error: ErrorFacts }
  /** The node stops. */
  | { readonly kind: 'close' };

export interface UpdateMessage {
  readonly kind: 'update';
  /** The new configuration from the current one; what it throws is the caller's answer. */
  readonly change: (config: CollectionConfig) => CollectionConfig;
  readonly replyTo: ReplyTo<boolean>;
}

export type CollectionEffect =
  | { readonly kind: 'load' }
  | { readonly kind: 'create'; readonly config: CollectionConfig }
  | { readonly kind: 'save'; readonly config: CollectionConfig; readonly replyTo: ReplyTo<boolean> }
  | { readonly kind: 'remove' }
  /** Let the doors know the configuration, or why there is none that works. */
  | { readonly kind: 'announce'; readonly config: CollectionConfig | null; readonly error: ErrorFacts | null }
  | { readonly kind: 'startShards'; readonly shardIds: readonly number[] }
  /** The caller gets its answer from the replicas. */
  | { readonly kind: 'configureShards'; readonly config: CollectionConfig; readonly replyTo: ReplyTo<boolean> }
  | { readonly kind: 'closeShards' }
  | { readonly kind: 'reply'; readonly replyTo: ReplyTo<boolean>; readonly answer: boolean }
  | { readonly kind: 'refuse'; readonly replyTo: ReplyTo<boolean>; readonly error: ErrorFacts }
  | { readonly kind: 'tellOpened' }
  | { readonly kind: 'tellDied'; readonly error: ErrorFacts }
  | { readonly kind: 'tellCreateFailedAndStop'; readonly error: ErrorFacts }
  | { readonly kind: 'tellDeletedAndStop' }
  | { readonly kind: 'tellClosedAndStop' };
