/** Messages and effects of a collection. */

import type { ErrorFacts } from '../../protocols/errors.js';
import type { CollectionConfig } from '../../protocols/model/collection.js';
import type { Belonging } from '../context/desired.js';
import type { ReplyTo } from '../runtime/behaviour.js';

export type CollectionMessage =
  /** The configuration that is on disk. belonging: null outside of a cluster. */
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
  /** The files of the dropped shards are removed. */
  | { readonly kind: 'shardsRemoved' }
  | { readonly kind: 'reshapeSaved' }
  | { readonly kind: 'reshapeFailed'; readonly error: ErrorFacts }
  /** Deletes the collection. Answered when its files are deleted for good. */
  | { readonly kind: 'delete'; readonly replyTo: ReplyTo<boolean> }
  | { readonly kind: 'removed' }
  | { readonly kind: 'removeFailed'; readonly error: ErrorFacts }
  /** Closes the collection, as the node stops. */
  | { readonly kind: 'close' };

/** A collection to create. */
export interface NewCollection {
  readonly config: CollectionConfig;
  /** Null outside of a cluster. */
  readonly belonging: Belonging | null;
}

export interface UpdateMessage {
  readonly kind: 'update';
  /** Computes the new configuration from the current one; an error that it throws is the caller's answer. */
  readonly change: (config: CollectionConfig) => CollectionConfig;
  readonly replyTo: ReplyTo<boolean>;
}

/** The desired collection. Answered when it is on disk, the replicas have taken it over, and new ones are open. */
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
  /** Shows the configuration to requests, or the reason why none is usable. */
  | {
      readonly kind: 'announce';
      readonly config: CollectionConfig | null;
      readonly belonging: Belonging | null;
      readonly error: ErrorFacts | null;
    }
  | { readonly kind: 'startShards'; readonly shardIds: readonly number[] }
  /** Gives the shards a new configuration. They answer the caller, if there is one. */
  | { readonly kind: 'configureShards'; readonly config: CollectionConfig; readonly replyTo: ReplyTo<boolean> | null }
  /** Closes shards. `shardClosed` follows for each, also if it is closed already. */
  | { readonly kind: 'closeShards'; readonly shardIds: readonly number[] }
  | { readonly kind: 'removeShards'; readonly shardIds: readonly number[] }
  | { readonly kind: 'reply'; readonly replyTo: ReplyTo<boolean>; readonly answer: boolean }
  | { readonly kind: 'refuse'; readonly replyTo: ReplyTo<boolean>; readonly error: ErrorFacts }
  | { readonly kind: 'tellOpened' }
  /** shards: those that do not serve; null: none does. */
  | { readonly kind: 'tellFailed'; readonly error: ErrorFacts; readonly shards: readonly number[] | null }
  | { readonly kind: 'tellCreateFailedAndStop'; readonly error: ErrorFacts }
  | { readonly kind: 'tellDeletedAndStop' }
  | { readonly kind: 'tellClosedAndStop' };
