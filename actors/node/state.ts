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
import { FolderMap } from './folder-map.js';

/** The receiver of an answer that no caller waits for. */
export const NO_CALLER: ReplyTo<boolean> = 0;

export type NodeState = ScanningNode | StartingNode | ActiveNode | StoppingNode | FailedNode;

/** The phase of a collection as the node knows it. */
export type CollectionPhase =
  | { readonly kind: 'Opening' }
  | { readonly kind: 'Creating'; readonly replyTo: ReplyTo<boolean> }
  | { readonly kind: 'Active' }
  /** shards: those that do not serve; null: none does. */
  | { readonly kind: 'Dead'; readonly error: ErrorFacts; readonly shards: readonly number[] | null }
  | { readonly kind: 'Deleting' }
  /** Its actor is stopped for good; its files still exist. */
  | { readonly kind: 'Abandoned' };

/** The phases of collections, by folder. It never changes. */
export class Phases {
  private constructor(
    private readonly byFolder: FolderMap<CollectionPhase>,
    /** How many of them are being opened. */
    readonly opening: number,
  ) {}

  static of(phases: Iterable<readonly [folder: string, phase: CollectionPhase]>): Phases {
    if (phases instanceof Phases) return phases;
    const byFolder = FolderMap.of(phases);
    let opening = 0;
    for (const phase of byFolder.values()) opening += openings(phase);
    return new Phases(byFolder, opening);
  }

  get size(): number {
    return this.byFolder.size;
  }

  get(folder: string): CollectionPhase | undefined {
    return this.byFolder.get(folder);
  }

  has(folder: string): boolean {
    return this.byFolder.has(folder);
  }

  folders(): Iterable<string> {
    return this.byFolder.keys();
  }

  [Symbol.iterator](): Iterator<readonly [folder: string, phase: CollectionPhase]> {
    return this.byFolder[Symbol.iterator]();
  }

  with(folder: string, phase: CollectionPhase): Phases {
    return new Phases(this.byFolder.with(folder, phase), this.opening - openings(this.get(folder)) + openings(phase));
  }

  without(folder: string): Phases {
    return new Phases(this.byFolder.without(folder), this.opening - openings(this.get(folder)));
  }
}

function openings(phase: CollectionPhase | undefined): number {
  return phase?.kind === 'Opening' ? 1 : 0;
}

/** As the constructors of states take them. */
type SomePhases = Iterable<readonly [folder: string, phase: CollectionPhase]>;

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
  collections: SomePhases,
  waiting: readonly ReplyTo<boolean>[],
  aliases: Aliases = NO_ALIASES,
  cluster: ClusterWork | null = null,
): StartingNode {
  return { kind: 'Starting', collections: Phases.of(collections), aliases, cluster, waiting };
}

export function activeNode(collections: SomePhases, aliases: Aliases = NO_ALIASES, cluster: ClusterWork | null = null): ActiveNode {
  return { kind: 'Active', collections: Phases.of(collections), aliases, cluster };
}

export function stopping(collections: SomePhases, replyTo: ReplyTo<boolean>, aliases: Aliases = NO_ALIASES): StoppingNode {
  return { kind: 'Stopping', collections: Phases.of(collections), aliases, replyTo };
}

export function failed(error: ErrorFacts): FailedNode {
  return { kind: 'Failed', error };
}

export function withPhase<State extends { readonly collections: Phases }>(state: State, folder: string, phase: CollectionPhase): State {
  return { ...state, collections: state.collections.with(folder, phase) };
}

export function withoutPhase<State extends { readonly collections: Phases }>(state: State, folder: string): State {
  return { ...state, collections: state.collections.without(folder) };
}
