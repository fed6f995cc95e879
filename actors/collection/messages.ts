/** What a collection hears and what it causes. */

import type { ErrorFacts } from '../../protocols/errors.js';
import type { CollectionConfig } from '../../protocols/model/collection.js';
import type { Belonging } from '../context/desired.js';
import type { ReplyTo } from '../runtime/behaviour.js';

export type CollectionMessage =
  /** Its configuration is on disk and this. belonging: null outside of a cluster. */
  | { readonly kind: 'loaded'; readonly config: CollectionConfig; readonly belonging: Belonging | null }
  | { readonly kind: 'loadFailed'; readonly error: ErrorFacts }
  | { readonly kind: 'createFailed'; readonly error: ErrorFacts }
  | { readonly kind: 'shardOpened'; readonly shardId: number }
  | { readonly kind: 'shardFailed'; readonly shardId: number; readonly error: ErrorFacts }
  | { readonly kind: 'shardClosed'; readonly shardId: number }
  /** The shard crashed too often and is stopped. */
  | { readonly kind: 'shardStopped'; readonly shardId: number; readonly error: ErrorFacts }
  | UpdateMessage
  | { readonly kind: 'saved'; readonly config: CollectionConfig; readonly replyTo: ReplyTo<boolean> }
  | { readonly kind: 'saveFailed'; readonly error: ErrorFacts; readonly replyTo: ReplyTo<boolean> }
  | ReshapeMessage
  /** The files of the shards that were dropped are gone. */
  | { readonly kind: 'shardsRemoved' }
  | { readonly kind: 'reshapeSaved' }
  | { readonly kind: 'reshapeFailed'; readonly error: ErrorFacts }
  /** Answered when its files are gone for good. */
  | { readonly kind: 'delete'; readonly replyTo: ReplyTo<boolean> }
  | { readonly kind: 'removed' }
  | { readonly kind: 'removeFailed'; readonly error: ErrorFacts }
  /** The node stops. */
  | { readonly kind: 'close' };

/** A collection that is to be made. */
export interface NewCollection {
  readonly config: CollectionConfig;
  /** Null outside of a cluster. */
  readonly belonging: Belonging | null;
}

export interface UpdateMessage {
  readonly kind: 'update';
  /** The new configuration from the current one; what it throws is the caller's answer. */
  readonly change: (config: CollectionConfig) => CollectionConfig;
  readonly replyTo: ReplyTo<boolean>;
}

/** What the cluster wants it to be. Answered when that is on disk, the replicas know, and new ones are open. */
export interface ReshapeMessage {
  readonly kind: 'reshape';
  readonly config: CollectionConfig;
  readonly belonging: Belonging;
  readonly replyTo: ReplyTo<boolean>;
}

export type CollectionEffect =
  | { readonly kind: 'load' }
  | { readonly kind: 'create'; readonly create: NewCollection }
  | {
      readonly kind: 'save';
      readonly config: CollectionConfig;
      readonly belonging: Belonging | null;
      readonly replyTo: ReplyTo<boolean>;
    }
  | { readonly kind: 'saveReshape'; readonly config: CollectionConfig; readonly belonging: Belonging }
  | { readonly kind: 'remove' }
  /** Let the doors know the configuration, or why there is none that works. */
  | {
      readonly kind: 'announce';
      readonly config: CollectionConfig | null;
      readonly belonging: Belonging | null;
      readonly error: ErrorFacts | null;
    }
  | { readonly kind: 'startShards'; readonly shardIds: readonly number[] }
  /** The caller, if there is one, gets its answer from the replicas. */
  | { readonly kind: 'configureShards'; readonly config: CollectionConfig; readonly replyTo: ReplyTo<boolean> | null }
  /** Each is heard of by `shardClosed`, also when it is closed already. */
  | { readonly kind: 'closeShards'; readonly shardIds: readonly number[] }
  | { readonly kind: 'removeShards'; readonly shardIds: readonly number[] }
  | { readonly kind: 'reply'; readonly replyTo: ReplyTo<boolean>; readonly answer: boolean }
  | { readonly kind: 'refuse'; readonly replyTo: ReplyTo<boolean>; readonly error: ErrorFacts }
  | { readonly kind: 'tellOpened' }
  | { readonly kind: 'tellFailed'; readonly error: ErrorFacts }
  | { readonly kind: 'tellCreateFailedAndStop'; readonly error: ErrorFacts }
  | { readonly kind: 'tellDeletedAndStop' }
  | { readonly kind: 'tellClosedAndStop' };
