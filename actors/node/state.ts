/**
 * States of the node.
 *
 * - `Scanning`: looks what is on disk;
 * - `Starting`: opens what it found; serves what is open already;
 * - `Active`;
 * - `Stopping`: collections close; ends with none left;
 * - `Failed`: the storage folder cannot be used.
 */

import type { ErrorFacts } from '../../protocols/errors.js';
import type { ReplyTo } from '../runtime/behaviour.js';

export type NodeState = ScanningNode | StartingNode | ActiveNode | StoppingNode | FailedNode;

/** What the node knows of a collection. */
export type CollectionPhase =
  | { readonly kind: 'Opening' }
  | { readonly kind: 'Creating'; readonly replyTo: ReplyTo<boolean> }
  | { readonly kind: 'Active' }
  | { readonly kind: 'Dead' }
  | { readonly kind: 'Deleting' }
  /** Its actor is stopped for good; its files are there. */
  | { readonly kind: 'Abandoned' };

/** By folder. */
export type Phases = ReadonlyMap<string, CollectionPhase>;

export interface ScanningNode {
  readonly kind: 'Scanning';
  readonly waiting: readonly ReplyTo<boolean>[];
}

export interface StartingNode {
  readonly kind: 'Starting';
  readonly collections: Phases;
  readonly waiting: readonly ReplyTo<boolean>[];
}

export interface ActiveNode {
  readonly kind: 'Active';
  readonly collections: Phases;
}

export interface StoppingNode {
  readonly kind: 'Stopping';
  readonly collections: Phases;
  readonly replyTo: ReplyTo<boolean>;
}

export interface FailedNode {
  readonly kind: 'Failed';
  readonly error: ErrorFacts;
}

export function scanning(waiting: readonly ReplyTo<boolean>[] = []): ScanningNode {
  return { kind: 'Scanning', waiting };
}

export function starting(collections: Phases, waiting: readonly ReplyTo<boolean>[]): StartingNode {
  return { kind: 'Starting', collections, waiting };
}

export function active(collections: Phases): ActiveNode {
  return { kind: 'Active', collections };
}

export function stopping(collections: Phases, replyTo: ReplyTo<boolean>): StoppingNode {
  return { kind: 'Stopping', collections, replyTo };
}

export function failed(error: ErrorFacts): FailedNode {
  return { kind: 'Failed', error };
}
