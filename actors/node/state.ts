/**
 * States of the node.
 *
 * - `Scanning`: looks for collections on disk;
 * - `Starting`: opens the collections that it found, and serves those that are open;
 * - `Active`;
 * - `Stopping`: collections close and aliases are saved; ends when none are left;
 * - `Failed`: the storage folder cannot be used.
 */

import type { ErrorFacts } from '../../protocols/errors.js';
import type { ReplyTo } from '../runtime/behaviour.js';
import { type Aliases, NO_ALIASES } from './aliases.js';
import type { ClusterWork } from './cluster-work.js';

/** The receiver of an answer that no caller waits for. */
export const NO_CALLER: ReplyTo<boolean> = 0;

export type NodeState = ScanningNode | StartingNode | ActiveNode | StoppingNode | FailedNode;

/** The phase of a collection as the node knows it. */
export type CollectionPhase =
  | { readonly kind: 'Opening' }
  | { readonly kind: 'Creating'; readonly replyTo: ReplyTo<boolean> }
  | { readonly kind: 'Active' }
  | { readonly kind: 'Dead'; readonly error: ErrorFacts }
  | { readonly kind: 'Deleting' }
  /** Its actor is stopped for good; its files still exist. */
  | { readonly kind: 'Abandoned' };

/** The phases of collections, by folder. */
export type Phases = ReadonlyMap<string, CollectionPhase>;

export interface ScanningNode {
  readonly kind: 'Scanning';
  readonly waiting: readonly ReplyTo<boolean>[];
}

export interface StartingNode {
  readonly kind: 'Starting';
  readonly collections: Phases;
  readonly aliases: Aliases;
  /** Null outside of a cluster. */
  readonly cluster: ClusterWork | null;
  readonly waiting: readonly ReplyTo<boolean>[];
}

export interface ActiveNode {
  readonly kind: 'Active';
  readonly collections: Phases;
  readonly aliases: Aliases;
  readonly cluster: ClusterWork | null;
}

export interface StoppingNode {
  readonly kind: 'Stopping';
  readonly collections: Phases;
  readonly aliases: Aliases;
  readonly replyTo: ReplyTo<boolean>;
}

export interface FailedNode {
  readonly kind: 'Failed';
  readonly error: ErrorFacts;
}

export function scanning(waiting: readonly ReplyTo<boolean>[] = []): ScanningNode {
  return { kind: 'Scanning', waiting };
}

export function startingNode(
  collections: Phases,
  waiting: readonly ReplyTo<boolean>[],
  aliases: Aliases = NO_ALIASES,
  cluster: ClusterWork | null = null,
): StartingNode {
  return { kind: 'Starting', collections, aliases, cluster, waiting };
}

export function activeNode(collections: Phases, aliases: Aliases = NO_ALIASES, cluster: ClusterWork | null = null): ActiveNode {
  return { kind: 'Active', collections, aliases, cluster };
}

export function stopping(collections: Phases, replyTo: ReplyTo<boolean>, aliases: Aliases = NO_ALIASES): StoppingNode {
  return { kind: 'Stopping', collections, aliases, replyTo };
}

export function failed(error: ErrorFacts): FailedNode {
  return { kind: 'Failed', error };
}

export function withPhase<State extends { readonly collections: Phases }>(state: State, folder: string, phase: CollectionPhase): State {
  return { ...state, collections: new Map(state.collections).set(folder, phase) };
}

export function withoutPhase<State extends { readonly collections: Phases }>(state: State, folder: string): State {
  const collections = new Map(state.collections);
  collections.delete(folder);
  return { ...state, collections };
}
