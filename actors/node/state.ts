/**
 * States of the node.
 *
 * - `Scanning`: looks what is on disk;
 * - `Starting`: opens what it found; serves what is open already;
 * - `Active`;
 * - `Stopping`: collections close, and aliases that are being saved are; ends with none left;
 * - `Failed`: the storage folder cannot be used.
 */

import type { ErrorFacts } from '../../protocols/errors.js';
import type { ReplyTo } from '../runtime/behaviour.js';
import { type Aliases, NO_ALIASES } from './aliases.js';

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
  readonly aliases: Aliases;
  readonly waiting: readonly ReplyTo<boolean>[];
}

export interface ActiveNode {
  readonly kind: 'Active';
  readonly collections: Phases;
  readonly aliases: Aliases;
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

export function starting(collections: Phases, waiting: readonly ReplyTo<boolean>[], aliases: Aliases = NO_ALIASES): StartingNode {
  return { kind: 'Starting', collections, aliases, waiting };
}

export function active(collections: Phases, aliases: Aliases = NO_ALIASES): ActiveNode {
  return { kind: 'Active', collections, aliases };
}

export function stopping(collections: Phases, replyTo: ReplyTo<boolean>, aliases: Aliases = NO_ALIASES): StoppingNode {
  return { kind: 'Stopping', collections, aliases, replyTo };
}

export function failed(error: ErrorFacts): FailedNode {
  return { kind: 'Failed', error };
}
