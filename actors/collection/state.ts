/**
 * States of a collection on this node.
 *
 * - `Loading`: its configuration is being read;
 * - `Creating`: its configuration is being written for the first time;
 * - `Opening`: its shards are being opened;
 * - `Serving`: every shard on this node serves; there may be none;
 * - `Failed`: a shard does not serve, and tries again by itself;
 * - `Damaged`: its configuration cannot be read, or its files could not be removed: it can only be deleted;
 * - `Deleting`: its shards close, then its files are removed;
 * - `Closing`: the node stops, and so do its shards.
 */

import type { ErrorFacts } from '../../protocols/errors.js';
import type { CollectionConfig } from '../../protocols/model/collection.js';
import type { Belonging } from '../context/desired.js';
import type { ReplyTo } from '../runtime/behaviour.js';
import { ownShards } from './config-file.js';
import type { ReshapeMessage, UpdateMessage } from './messages.js';

export type CollectionState =
  | LoadingCollection
  | CreatingCollection
  | OpeningCollection
  | ServingCollection
  | FailedCollection
  | DamagedCollection
  | DeletingCollection
  | ClosingCollection;

/** States of a collection that has shards. */
export type WithShards = OpeningCollection | ServingCollection | FailedCollection;

export interface LoadingCollection {
  readonly kind: 'Loading';
  /** A change to make once the collection is loaded; null if there is none. */
  readonly waiting: ReshapeMessage | null;
}

export interface CreatingCollection {
  readonly kind: 'Creating';
}

/** The data of a collection with shards. */
export interface Running {
  readonly config: CollectionConfig;
  /** Null outside of a cluster. */
  readonly belonging: Belonging | null;
  /** Shards that serve. */
  readonly open: ReadonlySet<number>;
  /** Changes of the configuration: the first is being saved, the others wait for it. */
  readonly updates: readonly UpdateMessage[];
  /** The change to the desired collection that is under way; null if there is none. */
  readonly reshaping: Reshaping | null;
}

/**
 * A change to the desired collection, in order:
 *
 * 1. shards that are not wanted close;
 * 2. their files are removed;
 * 3. `config.json` is saved;
 * 4. new shards are opened.
 *
 * A crash in between leaves the old `config.json` and some shards without their points: shards that the cluster does not want here.
 */
export interface Reshaping {
  readonly stage: 'closing' | 'removing' | 'saving' | 'opening';
  readonly wanted: ReshapeMessage;
  /** Shards that this stage waits for. */
  readonly left: ReadonlySet<number>;
}

export interface OpeningCollection {
  readonly kind: 'Opening';
  readonly running: Running;
}

export interface ServingCollection {
  readonly kind: 'Serving';
  readonly running: Running;
}

export interface FailedCollection {
  readonly kind: 'Failed';
  readonly running: Running;
  readonly error: ErrorFacts;
}

export interface DamagedCollection {
  readonly kind: 'Damaged';
  readonly error: ErrorFacts;
}

export interface DeletingCollection {
  readonly kind: 'Deleting';
  readonly replyTo: ReplyTo<boolean>;
  /** Shards that have not closed. */
  readonly closing: ReadonlySet<number>;
}

export interface ClosingCollection {
  readonly kind: 'Closing';
  readonly closing: ReadonlySet<number>;
}

/** The shards of a collection on this node: those that its cluster wants here; all of them outside of a cluster. */
export function localShards({ belonging, config }: Pick<Running, 'belonging' | 'config'>): readonly number[] {
  return belonging?.shards ?? ownShards(config);
}

export function loadingCollection(waiting: ReshapeMessage | null = null): LoadingCollection {
  return { kind: 'Loading', waiting };
}

export function openingCollection(config: CollectionConfig, belonging: Belonging | null = null): OpeningCollection {
  return { kind: 'Opening', running: { config, belonging, open: new Set(), updates: [], reshaping: null } };
}

export function servingCollection(running: Running): ServingCollection {
  return { kind: 'Serving', running };
}

export function failedCollection(running: Running, error: ErrorFacts): FailedCollection {
  return { kind: 'Failed', running, error };
}

export function damagedCollection(error: ErrorFacts): DamagedCollection {
  return { kind: 'Damaged', error };
}

export function deletingCollection(replyTo: ReplyTo<boolean>, closing: Iterable<number>): DeletingCollection {
  return { kind: 'Deleting', replyTo, closing: new Set(closing) };
}

export function closingCollection(shards: Iterable<number>): ClosingCollection {
  return { kind: 'Closing', closing: new Set(shards) };
}
