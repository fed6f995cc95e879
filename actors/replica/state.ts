/**
 * States of a replica, in the words of the API, and `Closing`, from which nothing leads back.
 *
 * | state        | reads | writes | meaning |
 * |--------------|-------|--------|---------|
 * | Initializing | no    | no     | being opened |
 * | Active       | yes   | yes    | |
 * | Partial      | no    | yes    | a transfer fills it |
 * | Listener     | no    | yes    | keeps a copy that answers nobody |
 * | Dead         | no    | no     | could not be opened or failed; tried again later |
 */

import type { ErrorFacts } from '../../protocols/errors.js';
import type { CollectionConfig } from '../../protocols/model/collection.js';
import type { ReplicaStats } from '../../storage/threads/messages.js';
import type { WriteAnswer } from './messages.js';

export type ReplicaState = InitializingReplica | ActiveReplica | PartialReplica | ListenerReplica | DeadReplica | ClosingReplica;

export interface InitializingReplica {
  readonly kind: 'Initializing';
  readonly config: CollectionConfig;
  /** Whether the configuration changed after opening began. */
  readonly configChanged: boolean;
  /** Failures in a row before this try. */
  readonly failures: number;
  /** Of the failure before, null for the first try. */
  readonly reason: ErrorFacts | null;
}

/** States that take writes. */
interface WritableReplica {
  readonly config: CollectionConfig;
  /** Answers to `createFieldIndex` that wait for the index of every sealed segment. */
  readonly heldAnswers: readonly HeldAnswer[];
}

export interface ActiveReplica extends WritableReplica {
  readonly kind: 'Active';
}

export interface PartialReplica extends WritableReplica {
  readonly kind: 'Partial';
}

export interface ListenerReplica extends WritableReplica {
  readonly kind: 'Listener';
}

export interface DeadReplica {
  readonly kind: 'Dead';
  readonly config: CollectionConfig;
  readonly reason: ErrorFacts;
  /** Failures in a row. */
  readonly failures: number;
}

export interface ClosingReplica {
  readonly kind: 'Closing';
}

export interface HeldAnswer {
  readonly answer: WriteAnswer;
  /** Index files that were missing when the index was created. */
  readonly missing: readonly MissingIndex[];
}

export interface MissingIndex {
  readonly segment: number;
  readonly field: string;
}

export function initializing(config: CollectionConfig, failures: number, reason: ErrorFacts | null): InitializingReplica {
  return { kind: 'Initializing', config, configChanged: false, failures, reason };
}

export function active(config: CollectionConfig, heldAnswers: readonly HeldAnswer[] = []): ActiveReplica {
  return { kind: 'Active', config, heldAnswers };
}

export function partial(config: CollectionConfig, heldAnswers: readonly HeldAnswer[] = []): PartialReplica {
  return { kind: 'Partial', config, heldAnswers };
}

export function listener(config: CollectionConfig, heldAnswers: readonly HeldAnswer[] = []): ListenerReplica {
  return { kind: 'Listener', config, heldAnswers };
}

export function dead(config: CollectionConfig, reason: ErrorFacts, failures: number): DeadReplica {
  return { kind: 'Dead', config, reason, failures };
}

export function closing(): ClosingReplica {
  return { kind: 'Closing' };
}

export function servesReads(state: ReplicaState['kind']): boolean {
  return state === 'Active';
}

/** Index files of sealed segments that are not there yet. */
export function missingIndexes(stats: ReplicaStats): MissingIndex[] {
  const sealed = stats.segments.filter((segment) => segment.kind === 'sealed');
  return sealed.flatMap((segment) => segment.missingFields.map((field) => ({ segment: segment.id, field })));
}
